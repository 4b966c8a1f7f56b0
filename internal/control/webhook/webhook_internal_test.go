package webhook

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"go.uber.org/zap"

	"github.com/k8singress/k8singress/internal/translate"
)

type recorder struct{ *httptest.ResponseRecorder }

func (recorder) SetReadDeadline(time.Time) error { return nil }

// TestClientGone checks that a review whose client has closed the connection does not count as a failure of the
// webhook.
func TestClientGone(t *testing.T) {
	h := NewHandler(func() bool { return false }, zap.NewNop())
	h.SetView(&translate.View{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	w := recorder{httptest.NewRecorder()}
	err := h.serve(w, httptest.NewRequestWithContext(ctx, http.MethodPost, path, strings.NewReader("{}")))
	if err == nil || w.Code != http.StatusRequestTimeout {
		t.Errorf("%d: %v", w.Code, err)
	}
	var m dto.Metric
	if err := h.Collector().(*prometheus.CounterVec).WithLabelValues(noAnswer).Write(&m); err != nil {
		t.Fatal(err)
	}
	if n := m.GetCounter().GetValue(); n != 0 {
		t.Errorf("%v reviews got no answer", n)
	}
}
