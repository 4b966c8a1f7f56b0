package engine_test

import (
	"crypto/x509"
	"maps"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap/zaptest"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"

	"github.com/k8singress/k8singress/internal/control/engine"
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/report"
	"github.com/k8singress/k8singress/internal/model/snapshot"
	"github.com/k8singress/k8singress/internal/tests/fixture"
)

// settle lets the engine work for a while on the fake clock of synctest.
func settle(t *testing.T, while time.Duration) {
	t.Helper()
	<-time.After(while)
	synctest.Wait()
}

// activity holds the numbers of new generations, runs of the pipeline, and published results of an engine.
type activity struct{ generations, runs, published int }

func (e *running) during(t *testing.T, p *publisher, happens func()) activity {
	t.Helper()
	settle(t, time.Second)
	before := activity{int(e.Generation()), int(e.runs()), p.times()}
	happens()
	return activity{int(e.Generation()) - before.generations, int(e.runs()) - before.runs, p.times() - before.published}
}

func TestUnreferencedSecret(t *testing.T) {
	ctx := provisioned(t)
	synctest.Test(t, func(t *testing.T) {
		s, p := newSource(service(), secret("tls", 1), ingress("web", "web.example", "tls")), newPublisher()
		e := adoptedBy(t, ctx, engine.New(s, p, zaptest.NewLogger(t)), options())
		close(s.synced)
		for _, c := range []struct {
			what    string
			happens func()
			want    activity
		}{
			// Only the translation knows whether an object refers to the Secret.
			{"it is made", func() { s.set(secret("other", 1)) }, activity{runs: 1}},
			{"it changes", func() { s.set(secret("other", 2)) }, activity{}},
			{"it goes", func() { s.store.Delete(secret("other", 2)) }, activity{runs: 1}},
			// Without these cases, the test would also pass if the engine ignored all Secrets.
			{"a named one changes", func() { s.set(secret("tls", 2)) }, activity{generations: 1, published: 1}},
			{"a named one goes", func() { s.store.Delete(secret("tls", 2)) },
				activity{generations: 1, runs: 1, published: 1}},
		} {
			got := e.during(t, p, func() {
				c.happens()
				settle(t, time.Second)
			})
			if got != c.want {
				t.Errorf("when %s the engine tells %+v, want %+v", c.what, got, c.want)
			}
		}
		s.set(secret("third", 1))
		settle(t, time.Second)
		if n := e.Status().Objects["Secret"]; n != 1 {
			t.Errorf("the status counts %d Secrets", n)
		}
	})
}

// TestDefaultCertificateIsNamed checks that a change of the Secret of the default certificate is applied, although only
// the options refer to that Secret.
func TestDefaultCertificateIsNamed(t *testing.T) {
	ctx := provisioned(t)
	synctest.Test(t, func(t *testing.T) {
		o := options()
		o.DefaultCertificate = ir.Name{Namespace: "a", Name: "default"}
		s, p := newSource(secret("default", 1)), newPublisher()
		e := adoptedBy(t, ctx, engine.New(s, p, zaptest.NewLogger(t)), o)
		close(s.synced)
		got := e.during(t, p, func() {
			s.set(secret("default", 2))
			settle(t, time.Second)
		})
		if want := (activity{generations: 1, published: 1}); got != want {
			t.Errorf("the engine tells %+v, want %+v", got, want)
		}
	})
}

// reporting is a source that has its own verdicts.
type reporting struct {
	*source
	verdicts []*report.Verdict
}

func (r *reporting) Verdicts() []*report.Verdict { return r.verdicts }

func broken(why string) []*report.Verdict {
	return []*report.Verdict{{Object: ir.Ref{Kind: "File", Name: "web.yaml"}, Problems: []report.Problem{{
		Severity: report.Error, Reason: report.InvalidManifest, Message: why,
	}}}}
}

func TestIdleMinutesPublishNothing(t *testing.T) {
	ctx := provisioned(t)
	synctest.Test(t, func(t *testing.T) {
		s := &reporting{newSource(service(), ingress("web", "web.example")), broken("line 3")}
		p := newPublisher()
		e := adoptedBy(t, ctx, engine.New(s, nil, zaptest.NewLogger(t)), options())
		close(s.synced)
		got := e.during(t, p, func() { settle(t, 10*time.Minute) })
		if got != (activity{}) {
			t.Errorf("in ten minutes without a change the engine tells %+v", got)
		}
		// A source wakes the engine when its verdicts change, and sometimes when they have not changed.
		got = e.during(t, p, func() {
			s.store.Wake()
			settle(t, time.Second)
		})
		if got != (activity{}) {
			t.Errorf("woken for nothing, the engine tells %+v", got)
		}
		for _, verdicts := range [][]*report.Verdict{broken("line 4"), nil} {
			got = e.during(t, p, func() {
				s.verdicts = verdicts
				s.store.Wake()
				settle(t, time.Second)
			})
			if want := (activity{generations: 1}); got != want || len(e.Report().Verdicts) != 1+len(verdicts) {
				t.Errorf("with other verdicts of the source the engine tells %+v, want %+v: %+v", got, want, e.Report())
			}
		}
	})
}

// TestStatusIsComparedEachMinute checks that a status that another client has written does not make the pipeline run.
// Instead, the writer gets the current objects each minute, and compares their status.
func TestStatusIsComparedEachMinute(t *testing.T) {
	ctx := provisioned(t)
	synctest.Test(t, func(t *testing.T) {
		s, p := newSource(service(), ingress("web", "web.example")), newPublisher()
		e := adoptedBy(t, ctx, engine.New(s, p, zaptest.NewLogger(t)), options())
		close(s.synced)
		got := e.during(t, p, func() {
			o := ingress("web", "web.example")
			o.Status.LoadBalancer.Ingress = []networkingv1.IngressLoadBalancerIngress{{IP: "192.0.2.1"}}
			s.set(o)
			settle(t, 2*time.Minute)
		})
		if want := (activity{published: 2}); got != want {
			t.Errorf("in two minutes the engine tells %+v, want %+v", got, want)
		}
		if o, _ := snapshot.Of[*networkingv1.Ingress](p.latest()).Get("a",
			"web"); len(o.Status.LoadBalancer.Ingress) != 1 {
			t.Error("what is published is not the newest status")
		}
	})
}

// TestServiceOfTheStatus checks that a change of the Service from which the status takes its addresses is
// published, although the translation does not depend on that Service.
func TestServiceOfTheStatus(t *testing.T) {
	ctx := provisioned(t)
	synctest.Test(t, func(t *testing.T) {
		s, p := newSource(service(), ingress("web", "web.example")), newPublisher()
		e := adoptedBy(t, ctx, engine.New(s, p, zaptest.NewLogger(t)), options())
		close(s.synced)
		got := e.during(t, p, func() {
			o := service()
			o.Name = "controller"
			s.set(o)
			settle(t, time.Second)
		})
		if want := (activity{runs: 1, published: 1}); got != want {
			t.Errorf("the engine tells %+v, want %+v", got, want)
		}
		if _, ok := snapshot.Of[*corev1.Service](p.latest()).Get("a", "controller"); !ok {
			t.Error("the Service is not published")
		}
	})
}

// TestExpiryIsReported checks that the expiry of a certificate is reported, although no event announces it.
func TestExpiryIsReported(t *testing.T) {
	ctx := provisioned(t)
	synctest.Test(t, func(t *testing.T) {
		s := newSource(service(), valid(t, "tls", "web.example", 5*time.Minute), ingress("web", "web.example", "tls"))
		e := adoptedBy(t, ctx, engine.New(s, nil, zaptest.NewLogger(t)), options())
		close(s.synced)
		got := e.during(t, newPublisher(), func() { settle(t, 10*time.Minute) })
		if want := (activity{generations: 1}); got != want {
			t.Errorf("the engine tells %+v, want %+v", got, want)
		}
		v := e.Report().Get(ir.Ref{Kind: "Ingress", Namespace: "a", Name: "web"})
		if v == nil || len(v.Problems) == 0 || v.Problems[0].Reason != report.CertificateExpired {
			t.Errorf("the verdict is %+v", v)
		}
	})
}

// valid returns a Secret with a certificate that is valid for the given time from now.
func valid(t *testing.T, name, host string, while time.Duration) *corev1.Secret {
	t.Helper()
	o := secret(name, 1)
	maps.Copy(o.Data, fixture.Identify(t, nil, &x509.Certificate{
		DNSNames: []string{host}, NotBefore: time.Now(), NotAfter: time.Now().Add(while),
	}).Secret())
	return o
}
