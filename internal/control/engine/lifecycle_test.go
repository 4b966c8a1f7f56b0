package engine_test

import (
	"encoding/json"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"go.uber.org/zap/zaptest"
	corev1 "k8s.io/api/core/v1"

	"github.com/k8singress/k8singress/internal/control/engine"
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/tests/fixture"
)

func TestEngineEnds(t *testing.T) {
	t.Run("before it was used", func(t *testing.T) { newEngine(t, newSource()) })
	t.Run("before the source has synced", func(t *testing.T) {
		e := newEngine(t, newSource())
		e.Adopt(provisioned(t), options(), nil)
	})
	t.Run("twice", func(t *testing.T) { start(t, newSource()).end() })
	t.Run("used after its end", func(t *testing.T) {
		e := newEngine(t, newSource())
		e.end()
		e.Adopt(provisioned(t), options(), nil)
	})
	t.Run("used from many goroutines", func(t *testing.T) {
		e := engine.New(newSource(), nil, zaptest.NewLogger(t))
		ctx := provisioned(t)
		for range 4 {
			go e.Adopt(ctx, options(), nil)
		}
		if err := e.Destruct(); err != nil {
			t.Error(err)
		}
		<-e.Done()
	})
}

func TestResign(t *testing.T) {
	p := newPublisher()
	e := adoptedBy(t, provisioned(t), engine.New(newSource(), p, zaptest.NewLogger(t)), options())
	e.Resign()
	select {
	case <-p.ended:
	default:
		t.Error("the writing of status goes on")
	}
	select {
	case <-e.Done():
		t.Error("the engine has ended, too")
	default:
	}
	e.Resign()
}

// TestResignAtTheStart checks that Resign and Adopt may be called concurrently, because Caddy may stop while it loads a
// configuration. The race detector finds data races in this test.
func TestResignAtTheStart(t *testing.T) {
	ctx := provisioned(t)
	for range 20 {
		p := newPublisher()
		e := &running{engine.New(newSource(), p, zaptest.NewLogger(t)), t}
		var both sync.WaitGroup
		both.Go(func() { e.Adopt(ctx, options(), nil) })
		both.Go(e.Resign)
		both.Wait()
		select {
		case <-p.ended:
		case <-e.Done():
		case <-time.After(patience):
			t.Fatal("the writing of status goes on")
		}
		e.end()
	}
}

// TestNextConfiguration checks that each later Caddy configuration replaces the options, and that the tables stay the
// same.
func TestNextConfiguration(t *testing.T) {
	s := newSource(service(), ingress("web", "web.example"))
	e := start(t, s)
	next := e.Generation() + 1
	o := options()
	o.WatchIngressWithoutClass = false
	e.Adopt(provisioned(t), o, nil)
	e.await(next)
	if e.Table().Hosts() != 0 || e.Settings().WatchIngressWithoutClass {
		t.Errorf("%d hosts, options %+v", e.Table().Hosts(), e.Settings())
	}
	e.Adopt(provisioned(t), options(), nil)
	e.await(next + 1)
	if e.Table().Hosts() != 1 {
		t.Errorf("%d hosts", e.Table().Hosts())
	}
}

// TestNextConfigurationIsPublished checks that a new configuration is published even if its options differ only in what
// the status contains.
func TestNextConfigurationIsPublished(t *testing.T) {
	s, p := newSource(service(), ingress("web", "web.example")), newPublisher()
	e := adoptedBy(t, provisioned(t), engine.New(s, p, zaptest.NewLogger(t)), options())
	close(s.synced)
	e.await(1)
	o := options()
	o.PublishAddress = []string{"192.0.2.1"}
	e.Adopt(provisioned(t), o, nil)
	e.await(2)
	e.eventually("the new options are published", func() bool { return len(p.options().PublishAddress) == 1 })
}

func TestNewestConfigurationSetsTheSettings(t *testing.T) {
	for name, s := range map[string]engine.Source{"with a source": newSource(), "without": nil} {
		t.Run(name, func(t *testing.T) {
			e := newEngine(t, s)
			for _, class := range []string{"first", "second"} {
				o := options()
				o.IngressClass = class
				e.Adopt(provisioned(t), o, nil)
				if got := e.Settings().IngressClass; got != class {
					t.Errorf("the class is %q, want %q", got, class)
				}
			}
		})
	}
}

// TestStructureWithoutASource checks that the engine adds the structure through the admin API to a configuration that
// contains only the app, and to the next configuration as well.
func TestStructureWithoutASource(t *testing.T) {
	admin, address := fixture.Address(t), fixture.Address(t)
	t.Cleanup(func() {
		if err := caddy.Stop(); err != nil {
			t.Error(err)
		}
	})
	for _, class := range []string{"first", "second"} {
		load(t, map[string]any{
			"admin": map[string]any{"listen": admin, "config": map[string]any{"persist": false}},
			"apps": map[string]any{"k8singress": map[string]any{
				"admin": admin, "http": []string{address}, "https": []string{}, "ingress_class": class,
			}},
		})
		fixture.Eventually(t, "the server", func() error { return listens(address) })
	}
}

func load(t *testing.T, config map[string]any) {
	t.Helper()
	text, err := json.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	if err := caddy.Load(text, true); err != nil {
		t.Fatal(err)
	}
}

// TestStreamBindOfTheNextConfiguration checks that a changed listen address of TCP ports takes effect without a change
// of the objects.
func TestStreamBindOfTheNextConfiguration(t *testing.T) {
	port := fixture.Port(t)
	services := &corev1.ConfigMap{ObjectMeta: meta("tcp"), Data: map[string]string{port: "a/web:80"}}
	s := newSource(service(), addresses("127.0.0.1"), services)
	o := options()
	o.TCPServices, o.StreamBind = ir.Name{Namespace: "a", Name: "tcp"}, []string{"127.0.0.1"}
	e := adoptedBy(t, provisioned(t), engine.New(s, nil, zaptest.NewLogger(t)), o)
	close(s.synced)
	fixture.Eventually(t, "the first address", func() error { return listens("127.0.0.1:" + port) })
	o.StreamBind = []string{"127.0.0.2"}
	e.Adopt(provisioned(t), o, nil)
	fixture.Eventually(t, "the second address", func() error { return listens("127.0.0.2:" + port) })
	e.eventually("the first address is free", func() bool { return listens("127.0.0.1:"+port) != nil })
	s.store.Delete(services)
	e.eventually("the second address is free", func() bool { return listens("127.0.0.2:"+port) != nil })
}

func listens(address string) error {
	c, err := net.Dial("tcp", address)
	if err != nil {
		return err
	}
	return c.Close()
}
