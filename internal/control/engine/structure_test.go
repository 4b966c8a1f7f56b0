package engine_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest"
	"go.uber.org/zap/zaptest/observer"

	"github.com/k8singress/k8singress/internal/control/engine"
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/settings"
	"github.com/k8singress/k8singress/internal/tests/fixture"
)

func init() { caddy.RegisterModule(new(slow)) }

// slow is an app whose start the test can delay.
type slow struct{}

var (
	slowStarts = make(chan struct{})
	slowMayEnd = make(chan struct{})
)

func (*slow) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "engine_test_slow", New: func() caddy.Module { return new(slow) }}
}

func (*slow) Start() error {
	slowStarts <- struct{}{}
	<-slowMayEnd
	return nil
}

func (*slow) Stop() error { return nil }

// TestObjectsWhileCaddyLoads checks that objects are watched while Caddy loads a configuration and its admin API does
// not respond.
func TestObjectsWhileCaddyLoads(t *testing.T) {
	admin, address := fixture.Address(t), fixture.Address(t)
	var loading sync.WaitGroup
	loading.Go(func() {
		config := fmt.Sprintf(`{"admin":{"listen":%q,"config":{"persist":false}},"apps":{"engine_test_slow":{},`+
			`"k8singress":{"admin":"off","http":[],"https":[]}}}`, admin)
		if err := caddy.Load([]byte(config), true); err != nil {
			t.Error(err)
		}
	})
	fixture.Receive(t, "the start of the app", slowStarts)
	end := sync.OnceFunc(func() {
		slowMayEnd <- struct{}{}
		loading.Wait()
	})
	t.Cleanup(func() {
		end()
		if err := caddy.Stop(); err != nil {
			t.Error(err)
		}
	})
	s, o := newSource(service(), ingress("web", "web.example"), addresses("192.0.2.1")), options()
	o.Admin, o.HTTP, o.HTTPS = admin, []string{address}, []string{}
	e := adoptedBy(t, provisioned(t), engine.New(s, nil, zaptest.NewLogger(t)), o)
	close(s.synced)
	e.await(1)
	// The structure is made from the newest options, even if these arrive while Caddy loads a configuration.
	o.HTTP = []string{fixture.Address(t)}
	e.Adopt(provisioned(t), o, nil)
	s.set(addresses("192.0.2.2"))
	e.eventually("the endpoints follow", func() bool {
		for _, b := range e.Document().Backends {
			return len(b.Endpoints) == 1 && b.Endpoints[0] == "192.0.2.2:8080"
		}
		return false
	})
	go func() { // The load that the engine requests starts the app again.
		<-slowStarts
		slowMayEnd <- struct{}{}
	}()
	end()
	fixture.Eventually(t, "the server", func() error { return listens(o.HTTP[0]) })
	if err := listens(address); err == nil {
		t.Error("the structure was that of older options first")
	}
}

// TestAnotherProcessIsLoggedOnce checks that a repeated error is logged once at error level, however often the engine
// retries.
func TestAnotherProcessIsLoggedOnce(t *testing.T) {
	stranger := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(stranger.Close)
	core, log := observer.New(zap.DebugLevel)
	o := options()
	o.Admin = stranger.Listener.Addr().String()
	e := adoptedBy(t, provisioned(t), engine.New(newSource(), nil, zap.New(core)), o)
	logged := func(level zapcore.Level) int {
		return log.FilterMessageSnippet("to Caddy's configuration").FilterLevelExact(level).Len()
	}
	e.eventually("it tries again", func() bool { return logged(zap.DebugLevel) > 0 })
	if n := logged(zap.ErrorLevel); n != 1 {
		t.Errorf("%d errors", n)
	}
}

// TestFixed checks which options require a new source if they change: the source itself and the options that the source
// reads.
func TestFixed(t *testing.T) {
	for source, want := range map[string]string{
		`{}`:                                   `{}`,
		`{"source":{"manifests":{"dir":"d"}}}`: `{"source":{"manifests":{"dir":"d"}}}`,
		`{"source":{"kubernetes":{}}}`: `{"source":{"kubernetes":{}},"publish_nodes":"internal",` +
			`"election_id":"e","election_fallback":"f","election_namespace":"n","election_ttl":30000000000,` +
			`"election":"off"}`,
		`{"source":{"kubernetes":{"namespaces":["a"]}}}`: `{"source":{"kubernetes":{"namespaces":["a"]}},` +
			`"configmap":"a/c","tcp_services":"a/t","udp_services":"a/u","publish_service":"a/p",` +
			`"publish_nodes":"internal","default_certificate":"a/d",` +
			`"election_id":"e","election_fallback":"f","election_namespace":"n","election_ttl":30000000000,` +
			`"election":"off"}`,
	} {
		o := options()
		o.ConfigMap, o.TCPServices = ir.Name{Namespace: "a", Name: "c"}, ir.Name{Namespace: "a", Name: "t"}
		o.UDPServices = ir.Name{Namespace: "a", Name: "u"}
		o.PublishService, o.DefaultCertificate = ir.Name{Namespace: "a", Name: "p"}, ir.Name{Namespace: "a", Name: "d"}
		o.ElectionID, o.ElectionFallback, o.ElectionNamespace, o.ElectionTTL = "e", "f", "n",
			settings.Duration(30*time.Second)
		o.Election, o.PublishNodes = settings.ElectionOff, settings.PublishNodesInternal
		if err := json.Unmarshal([]byte(source), &o); err != nil {
			t.Fatal(err)
		}
		got, err := json.Marshal(engine.Fixed(o))
		if err != nil || string(got) != want {
			t.Errorf("%s: %s, want %s, error %v", source, got, want, err)
		}
	}
}
