package engine_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	_ "github.com/caddyserver/caddy/v2/modules/standard"
	"go.uber.org/zap/zaptest"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/k8singress/k8singress/internal/control/engine"
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/kinds"
	"github.com/k8singress/k8singress/internal/model/report"
	"github.com/k8singress/k8singress/internal/model/settings"
	"github.com/k8singress/k8singress/internal/model/snapshot"
	"github.com/k8singress/k8singress/internal/tests/fixture"
	_ "github.com/k8singress/k8singress/k8singress"
)

// patience is the maximum time for which a test waits for an event.
const patience = fixture.Patience

// source is a source whose objects the test sets.
type source struct {
	store  *snapshot.Store
	synced chan struct{}
}

func newSource(objects ...kinds.Object) *source {
	s := &source{store: snapshot.NewStore(), synced: make(chan struct{})}
	s.set(objects...)
	return s
}

func (s *source) Run(ctx context.Context) { <-ctx.Done() }
func (s *source) Store() *snapshot.Store  { return s.store }
func (s *source) Synced() <-chan struct{} { return s.synced }
func (s *source) set(all ...kinds.Object) { s.store.Apply(all, nil) }

// publisher records what an engine publishes.
type publisher struct {
	mu       sync.Mutex
	count    int
	snapshot *snapshot.Snapshot
	settings settings.Config
	open     []*ir.StreamRoute
	verdicts []*report.Verdict
	changed  chan struct{}
	ended    chan struct{}
	// keeps is the last argument of KeepCertificates.
	keeps atomic.Pointer[string]
}

func newPublisher() *publisher {
	return &publisher{ended: make(chan struct{}), changed: make(chan struct{})}
}

func (p *publisher) Run(ctx context.Context) {
	defer close(p.ended)
	<-ctx.Done()
}

func (p *publisher) Leader() bool                 { return true }
func (p *publisher) Changed() <-chan struct{}     { return p.changed }
func (p *publisher) KeepCertificates(name string) { p.keeps.Store(&name) }

func (p *publisher) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	return nil, errors.New("the test has no certificate")
}

func (p *publisher) Verdicts() []*report.Verdict {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.verdicts
}

// tell makes the publisher report problems.
func (p *publisher) tell(verdicts ...*report.Verdict) {
	p.mu.Lock()
	p.verdicts = verdicts
	p.mu.Unlock()
	p.changed <- struct{}{}
}

func (p *publisher) Publish(_ *report.Report, s *snapshot.Snapshot, o settings.Config, open []*ir.StreamRoute) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.count++
	p.snapshot, p.settings, p.open = s, o, open
}

func (p *publisher) times() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.count
}

func (p *publisher) latest() *snapshot.Snapshot {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.snapshot
}

func (p *publisher) options() settings.Config {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.settings
}

// running is an engine that a Caddy configuration uses.
type running struct {
	*engine.Engine
	testing.TB
}

func options() settings.Config {
	o := settings.Defaults()
	o.Admin, o.WatchIngressWithoutClass = settings.AdminOff, true
	// No server runs in these tests.
	o.HTTP, o.HTTPS = []string{}, []string{}
	o.ReachAllow = []string{"127.0.0.0/8"}
	return o
}

// provisioned returns the context of an empty Caddy configuration.
func provisioned(t testing.TB) caddy.Context {
	t.Helper()
	ctx, err := caddy.ProvisionContext(&caddy.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return ctx
}

// newEngine returns an engine, which is ended at the end of the test. No configuration uses the engine yet.
func newEngine(t testing.TB, s engine.Source) *running {
	t.Helper()
	e := &running{engine.New(s, nil, zaptest.NewLogger(t)), t}
	t.Cleanup(e.end)
	return e
}

// adoptedBy makes a configuration use an engine, and returns the engine, which is ended at the end of the test.
func adoptedBy(t testing.TB, ctx caddy.Context, made *engine.Engine, o settings.Config) *running {
	t.Helper()
	e := &running{made, t}
	t.Cleanup(e.end)
	e.Adopt(ctx, o, nil)
	return e
}

// end stops the engine and waits until everything has ended.
func (e *running) end() {
	if err := e.Destruct(); err != nil {
		e.Error(err)
	}
	select {
	case <-e.Done():
	case <-time.After(patience):
		e.Error("the engine does not end")
	}
}

// start runs an engine, and waits until it has applied everything.
func start(t testing.TB, s *source) *running {
	t.Helper()
	e := newEngine(t, s)
	e.Adopt(provisioned(t), options(), nil)
	close(s.synced)
	e.await(1)
	return e
}

// startIn is like start, for an engine in a bubble of synctest. The context ctx comes from outside the bubble.
func startIn(t testing.TB, ctx caddy.Context, s *source) *running {
	t.Helper()
	e := adoptedBy(t, ctx, engine.New(s, nil, zaptest.NewLogger(t)), options())
	close(s.synced)
	e.await(1)
	return e
}

func (e *running) await(generation uint64) {
	e.Helper()
	ctx, cancel := context.WithTimeout(e.Context(), patience)
	defer cancel()
	if err := e.Await(ctx, generation); err != nil {
		e.Fatalf("waiting for generation %d at %d: %v", generation, e.Generation(), err)
	}
}

// eventually waits until a condition holds.
func (e *running) eventually(what string, holds func() bool) {
	e.Helper()
	fixture.Holds(e, what, holds)
}

// runs returns the number of times that the pipeline has run.
func (e *running) runs() uint64 {
	family := fixture.Collect(e, e.Collectors()...)["k8singress_apply_duration_seconds"]
	return family.GetMetric()[0].GetHistogram().GetSampleCount()
}

func meta(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: "a", Name: name} }

// ingress returns an Ingress with a host for the Service web, and optionally a Secret.
func ingress(name, host string, secrets ...string) *networkingv1.Ingress {
	prefix := networkingv1.PathTypePrefix
	backend := networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{
		Name: "web", Port: networkingv1.ServiceBackendPort{Number: 80},
	}}
	o := &networkingv1.Ingress{ObjectMeta: meta(name)}
	o.Spec.Rules = []networkingv1.IngressRule{{Host: host, IngressRuleValue: networkingv1.IngressRuleValue{
		HTTP: &networkingv1.HTTPIngressRuleValue{Paths: []networkingv1.HTTPIngressPath{{Path: "/", PathType: &prefix,
			Backend: backend}}},
	}}}
	for _, secret := range secrets {
		o.Spec.TLS = append(o.Spec.TLS, networkingv1.IngressTLS{Hosts: []string{host}, SecretName: secret})
	}
	return o
}

func service() *corev1.Service {
	return &corev1.Service{ObjectMeta: meta("web"), Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}}
}

// addresses returns an EndpointSlice with the endpoints of the Service web.
func addresses(all ...string) *discoveryv1.EndpointSlice {
	port, protocol, name := int32(8080), corev1.ProtocolTCP, ""
	o := &discoveryv1.EndpointSlice{ObjectMeta: meta("web-1"), AddressType: discoveryv1.AddressTypeIPv4}
	o.Labels = map[string]string{discoveryv1.LabelServiceName: "web"}
	o.Ports = []discoveryv1.EndpointPort{{Name: &name, Port: &port, Protocol: &protocol}}
	for _, address := range all {
		o.Endpoints = append(o.Endpoints, discoveryv1.Endpoint{Addresses: []string{address}})
	}
	return o
}

func secret(name string, version int) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: meta(name), Type: corev1.SecretTypeTLS, Data: map[string][]byte{
		"tls.crt": fmt.Appendf(nil, "garbage %d", version), "tls.key": []byte("garbage"),
	}}
}
