package engine_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/k8singress/k8singress/internal/control/engine"
)

// TestARenamedPortKeepsItsEndpoints checks that a backend keeps its endpoints while a Service and its EndpointSlices
// have different names for a port. When a port is renamed, one of the two changes always arrives first.
func TestARenamedPortKeepsItsEndpoints(t *testing.T) {
	renamedService, renamedSlice, name := service(), addresses("127.0.0.2"), "web"
	renamedService.Spec.Ports[0].Name = name
	renamedSlice.Ports[0].Name = &name

	s := newSource(service(), addresses("127.0.0.1"), ingress("web", "web.example"))
	e := start(t, s)
	listed := func() []string { return e.Document().Backends["a/web/80"].Endpoints }
	s.set(renamedSlice)
	s.set(renamedService)
	for begin := time.Now(); !slices.Equal(listed(), []string{"127.0.0.2:8080"}); {
		if len(listed()) == 0 {
			t.Fatal("there is no endpoint in between")
		}
		if time.Since(begin) > patience {
			t.Fatalf("the endpoints stay %v", listed())
		}
	}
}

func TestRemovedPortHasNoEndpoints(t *testing.T) {
	other, name := addresses("127.0.0.2"), "other"
	other.Ports[0].Name = &name
	s := newSource(service(), addresses("127.0.0.1"), ingress("web", "web.example"))
	e := start(t, s)
	s.set(other)
	e.eventually("there is no endpoint", func() bool { return len(e.Document().Backends["a/web/80"].Endpoints) == 0 })
}

func TestEachProblemIsLoggedOnce(t *testing.T) {
	core, logs := observer.New(zapcore.WarnLevel)
	s := newSource(service(), addresses("127.0.0.1"), ingress("web", "web.example", "one"))
	close(s.synced)
	e := adoptedBy(t, provisioned(t), engine.New(s, nil, zap.New(core)), options())
	e.await(1)
	s.set(ingress("web", "web.example", "one", "two"))
	e.await(2)
	for _, secret := range []string{"a/one", "a/two"} {
		about := logs.Filter(func(entry observer.LoggedEntry) bool {
			return strings.Contains(entry.Message,
				"Secret "+secret)
		})
		if about.Len() != 1 {
			t.Errorf("Secret %s is in the log %d times", secret, about.Len())
		}
		// The problem is an error, so it must be logged at error level.
		for _, entry := range about.All() {
			if entry.Level != zapcore.ErrorLevel || entry.ContextMap()["severity"] != "error" {
				t.Errorf("the level is %s of %v", entry.Level, entry.ContextMap())
			}
		}
	}
}
