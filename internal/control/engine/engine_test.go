package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"go.uber.org/zap/zaptest"

	"github.com/k8singress/k8singress/internal/control/engine"
	"github.com/k8singress/k8singress/internal/model/document"
	"github.com/k8singress/k8singress/internal/model/report"
	"github.com/k8singress/k8singress/internal/tests/fixture"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		// These goroutines remain after a test that runs Caddy: its admin API outlives caddy.Stop, and the release of a
		// lock is noticed seconds later.
		goleak.IgnoreAnyFunction("github.com/caddyserver/caddy/v2.replaceLocalAdminServer.func2"),
		goleak.IgnoreAnyFunction("github.com/caddyserver/certmagic.keepLockfileFresh"),
	)
}

func TestNothingIsAppliedBeforeTheSourceHasSynced(t *testing.T) {
	ctx := provisioned(t)
	synctest.Test(t, func(t *testing.T) {
		s := newSource(service(), addresses("127.0.0.1"))
		e := adoptedBy(t, ctx, engine.New(s, nil, zaptest.NewLogger(t)), options())
		s.set(ingress("one", "one.example"))
		settle(t, time.Hour)
		if e.Generation() != 0 || e.Status().Ready || e.Table().Hosts() != 0 {
			t.Errorf("before the source has synced: generation %d, ready %v, %d hosts",
				e.Generation(), e.Status().Ready, e.Table().Hosts())
		}
		s.set(ingress("two", "two.example"))
		close(s.synced)
		e.await(1)
		if status := e.Status(); !status.Ready || e.Table().Hosts() != 2 || status.Objects["Ingress"] != 2 {
			t.Errorf("after it, %d hosts, %+v", e.Table().Hosts(), status)
		}
	})
}

func TestSourceSyncsBeforeTheFirstConfiguration(t *testing.T) {
	s := newSource(service(), ingress("one", "one.example"))
	close(s.synced)
	e := newEngine(t, s)
	e.Adopt(provisioned(t), options(), nil)
	e.await(1)
	if e.Table().Hosts() != 1 {
		t.Errorf("%d hosts", e.Table().Hosts())
	}
}

// TestBurstIsOneRun checks that the pipeline runs once for changes that arrive in quick succession.
func TestBurstIsOneRun(t *testing.T) {
	ctx := provisioned(t)
	synctest.Test(t, func(t *testing.T) {
		s := newSource(service(), addresses("127.0.0.1"))
		e := startIn(t, ctx, s)
		before := e.runs()
		for i := range 100 {
			s.set(ingress(fmt.Sprint("web-", i), fmt.Sprintf("host-%d.example", i)))
			<-time.After(time.Millisecond)
		}
		settle(t, time.Second)
		if runs := e.runs() - before; runs != 1 || e.Table().Hosts() != 100 {
			t.Errorf("the pipeline ran %d times for a burst of 100 changes; %d hosts", runs, e.Table().Hosts())
		}
	})
}

// TestLoneChangeIsQuick checks that a single change is applied after the quiet time of the holdoff.
func TestLoneChangeIsQuick(t *testing.T) {
	ctx := provisioned(t)
	synctest.Test(t, func(t *testing.T) {
		s := newSource(service(), addresses("127.0.0.1"))
		e := startIn(t, ctx, s)
		settle(t, time.Second)
		begin, next := time.Now(), e.Generation()+1
		s.set(ingress("web", "web.example"))
		e.await(next)
		if took := time.Since(begin); took != 50*time.Millisecond {
			t.Errorf("a change took %v", took)
		}
	})
}

// TestEndlessChangesAreAppliedInBetween checks that the pipeline runs at intervals while objects change without a
// pause.
func TestEndlessChangesAreAppliedInBetween(t *testing.T) {
	ctx := provisioned(t)
	synctest.Test(t, func(t *testing.T) {
		s := newSource(service())
		e := startIn(t, ctx, s)
		before := e.Generation()
		for i := range 1100 {
			s.set(ingress("web", fmt.Sprintf("host-%d.example", i)))
			<-time.After(time.Millisecond)
		}
		// The longest delay of a change is half a second.
		if runs := e.Generation() - before; runs != 2 {
			t.Errorf("the pipeline ran %d times in 1.1 s, want 2", runs)
		}
	})
}

func TestIrrelevantChangeStartsNoTranslation(t *testing.T) {
	s := newSource(service(), ingress("web", "web.example"))
	e := start(t, s)
	before := e.Generation()
	same := ingress("web", "web.example")
	same.Generation, same.ResourceVersion = 7, "7"
	s.set(same)
	s.set(ingress("other", "other.example"))
	e.await(before + 1)
	if g := e.Generation(); g != before+1 {
		t.Errorf("generation %d, want %d", g, before+1)
	}
}

func TestEndpointsChangeWithoutThePipeline(t *testing.T) {
	s := newSource(service(), addresses("127.0.0.1"), ingress("web", "web.example"))
	e := start(t, s)
	before, runs := e.Generation(), e.runs()
	for _, want := range []string{"127.0.0.2", "127.0.0.3"} {
		s.set(addresses(want))
		e.eventually(want+" is an endpoint", func() bool {
			return slices.Equal(e.Document().Backends["a/web/80"].Endpoints, []string{want + ":8080"})
		})
	}
	s.set(addresses())
	e.eventually("there is no endpoint", func() bool { return len(e.Document().Backends["a/web/80"].Endpoints) == 0 })
	if e.Generation() != before || e.runs() != runs {
		t.Errorf("generation %d, want %d; the pipeline ran %d times more", e.Generation(), before, e.runs()-runs)
	}
	s.set(addresses("127.0.0.4"), ingress("other", "other.example"))
	e.await(before + 1)
	if got := e.Document().Backends["a/web/80"].Endpoints; !slices.Equal(got, []string{"127.0.0.4:8080"}) {
		t.Errorf("endpoints %v", got)
	}
}

func TestSecretChangesWithoutThePipeline(t *testing.T) {
	s := newSource(service(), secret("tls", 1), ingress("web", "web.example", "tls"))
	e := start(t, s)
	before, runs := e.Generation(), e.runs()
	s.set(secret("tls", 2))
	e.await(before + 1)
	if e.runs() != runs {
		t.Errorf("the pipeline ran %d times more", e.runs()-runs)
	}
	s.store.Delete(secret("tls", 2))
	e.eventually("the report says that the Secret is missing", func() bool {
		v := e.Report().Verdicts
		return len(v) == 1 && v[0].Problems[0].Reason == report.SecretNotFound
	})
}

func TestLoadIsRefusedWithASource(t *testing.T) {
	e := start(t, newSource())
	if err := e.Load(t.Context(), &document.Live{}); !errors.Is(err, engine.ErrHasSource) {
		t.Errorf("error %v", err)
	}
}

func liveOf(host string) *document.Live {
	chain := json.RawMessage(`[{"handle":[{"handler":"static_response","body":"hello"}]}]`)
	return &document.Live{Hosts: map[string]*document.Host{
		host: {Routes: []*document.Route{{Type: "prefix", Path: "/", Destination: document.Destination{Chain: chain}}}},
	}}
}

func TestLoadWithoutASource(t *testing.T) {
	e := newEngine(t, nil)
	e.Adopt(provisioned(t), options(), liveOf("first.example"))
	e.await(1)
	if !e.Status().Ready || e.Document().Hosts["first.example"] == nil {
		t.Errorf("the document of the configuration is not served: %+v", e.Document())
	}
	if err := e.Load(t.Context(), liveOf("second.example")); err != nil {
		t.Fatal(err)
	}
	if d := e.Document(); len(d.Hosts) != 1 || d.Hosts["second.example"] == nil || e.Table().Hosts() != 1 {
		t.Errorf("after Load the document is %+v", d)
	}
	e.Adopt(provisioned(t), options(), liveOf("first.example"))
	if err := e.Load(t.Context(), liveOf("third.example")); err != nil {
		t.Fatal(err)
	}
	if e.Table().Hosts() != 1 {
		t.Errorf("%d hosts", e.Table().Hosts())
	}
}

func TestLoadWithoutConfiguration(t *testing.T) {
	e := newEngine(t, nil)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if err := e.Load(ctx, liveOf("a.example")); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v", err)
	}
	e.end()
	if err := e.Load(t.Context(), liveOf("a.example")); err == nil {
		t.Error("an engine that has ended takes a document")
	}
}

// TestLoadDuringTheFirstConfiguration checks that Load may be called before or during the first call of Adopt, and that
// the document is served afterwards.
func TestLoadDuringTheFirstConfiguration(t *testing.T) {
	for range 20 {
		e := newEngine(t, nil)
		loaded := make(chan error)
		go func() { loaded <- e.Load(t.Context(), liveOf("a.example")) }()
		e.Adopt(provisioned(t), options(), nil)
		if err := fixture.Receive(t, "the end of the load", loaded); err != nil {
			t.Fatal(err)
		}
		if e.Table().Hosts() != 1 {
			t.Errorf("%d hosts", e.Table().Hosts())
		}
	}
}
