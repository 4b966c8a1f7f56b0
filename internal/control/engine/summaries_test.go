package engine_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/k8singress/k8singress/internal/control/engine"
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/report"
)

// TestSummariesChangeOncePerMinute checks that messages of a summary that change all the time are logged and published
// rarely, that other problems are logged at once, and that the last message appears in the end.
func TestSummariesChangeOncePerMinute(t *testing.T) {
	ctx := provisioned(t)
	synctest.Test(t, func(t *testing.T) {
		core, logs := observer.New(zapcore.WarnLevel)
		s, p := newSource(service(), addresses("127.0.0.1"), ingress("web", "web.example")), newPublisher()
		e := adoptedBy(t, ctx, engine.New(s, p, zap.New(core)), options())
		close(s.synced)
		e.await(1)
		settle(t, time.Second)
		tell := func(more ...string) {
			web := &report.Verdict{Object: ir.Ref{Kind: "Ingress", Namespace: "a", Name: "web"}}
			for n, message := range more {
				web.Problems = append(web.Problems, report.Problem{Severity: report.Warning, Reason: report.ACMEFailed,
					Message: message, Summary: n == 0})
			}
			p.tell(web)
			settle(t, 10*time.Millisecond)
		}
		expect := func(when string, want ...string) {
			t.Helper()
			var got []string
			for _, entry := range logs.TakeAll() {
				got = append(got, entry.Message)
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("%s, the log differs: %s", when, d)
			}
		}
		for n := range 50 {
			tell(fmt.Sprintf("%d more", n))
		}
		expect("after a burst", "0 more", "1 more")
		published := p.times()
		tell("50 more", "other")
		expect("after another problem", "other")
		tell("51 more", "other")
		if n := p.times() - published; n != 1 {
			t.Errorf("published %d times", n)
		}
		settle(t, 2*time.Minute)
		expect("later", "51 more")
		tell("52 more", "other")
		settle(t, 2*time.Minute)
		expect("later again", "52 more")
	})
}
