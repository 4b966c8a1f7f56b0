package k8singress

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"go.uber.org/zap"
	"google.golang.org/protobuf/proto"
)

// TestFailedScrape checks that Prometheus does not take metrics for complete whose writing has failed: the second
// family cannot be encoded, because it is a counter without a value.
func TestFailedScrape(t *testing.T) {
	m := &Metrics{log: zap.NewNop(), registry: prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) {
		return []*dto.MetricFamily{
			{Name: proto.String("good"), Type: dto.MetricType_GAUGE.Enum(),
				Metric: []*dto.Metric{{Gauge: &dto.Gauge{Value: proto.Float64(1)}}}},
			{Name: proto.String("bad"), Type: dto.MetricType_COUNTER.Enum(), Metric: []*dto.Metric{{}}},
		}, nil
	})}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := m.ServeHTTP(w, r, nil); err != nil {
			t.Errorf("an error is returned, so that Caddy ends the response: %v", err)
		}
	}))
	defer server.Close()
	for _, plain := range []bool{false, true} {
		client := http.Client{Transport: &http.Transport{DisableCompression: plain}}
		response, err := client.Get(server.URL)
		if err != nil {
			continue // The connection was closed before the head of the response.
		}
		body, err := io.ReadAll(response.Body)
		_ = response.Body.Close()
		if err == nil {
			t.Errorf("without compression %t: the client gets %d with %q, and no error", plain, response.StatusCode,
				body)
		}
	}
}
