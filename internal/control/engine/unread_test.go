package engine_test

import (
	"errors"
	"iter"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap/zaptest"

	"github.com/k8singress/k8singress/internal/control/engine"
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/kinds"
	"github.com/k8singress/k8singress/internal/model/report"
	"github.com/k8singress/k8singress/internal/tests/fixture"
)

// follower is a source that reads only the Secrets that the engine requests. The test decides when they have been read.
type follower struct {
	*source
	read   atomic.Bool
	wanted atomic.Pointer[[]ir.Ref]
}

func (f *follower) Follow(secrets iter.Seq[ir.Ref]) bool {
	wanted := slices.Collect(secrets)
	f.wanted.Store(&wanted)
	return f.read.Load()
}

// answer sets objects, and makes Follow report that all requested Secrets have been read.
func (f *follower) answer(objects ...kinds.Object) {
	f.set(objects...)
	f.read.Store(true)
	f.store.Wake()
}

// wants waits until the engine requests a Secret from the source.
func (f *follower) wants(t testing.TB, name string) {
	t.Helper()
	fixture.Eventually(t, "the Secret "+name+" is asked for", func() error {
		wanted := f.wanted.Load()
		if wanted == nil || !slices.Contains(*wanted, ir.Ref{Kind: kinds.Secret, Namespace: "a", Name: name}) {
			return errors.New("it is not")
		}
		return nil
	})
}

// objects is a list of Kubernetes objects.
type objects = []kinds.Object

// follow runs a test in a bubble of synctest, with an engine whose source is a follower of these objects.
func follow(t *testing.T, all objects, test func(t *testing.T, f *follower, e *running)) {
	t.Helper()
	ctx := provisioned(t)
	synctest.Test(t, func(t *testing.T) {
		f := &follower{source: newSource(all...)}
		o := options()
		o.DefaultCertificate = ir.Name{Namespace: "a", Name: "default"}
		e := adoptedBy(t, ctx, engine.New(f, nil, zaptest.NewLogger(t)), o)
		close(f.synced)
		test(t, f, e)
	})
}

// missing returns the problem of an Ingress whose Secret is missing.
func (e *running) missing(name string) string {
	v := e.Report().Get(ir.Ref{Kind: kinds.Ingress, Namespace: "a", Name: name})
	if v == nil {
		return ""
	}
	for _, p := range v.Problems {
		if p.Reason == report.SecretNotFound {
			return p.Message
		}
	}
	return ""
}

func TestNothingIsAppliedBeforeTheSecretsAreRead(t *testing.T) {
	follow(t, objects{service(), ingress("one", "one.example", "tls")}, func(t *testing.T, f *follower, e *running) {
		f.wants(t, "tls")
		f.wants(t, "default")
		settle(t, time.Hour)
		if e.Generation() != 0 || e.Status().Ready {
			t.Errorf("generation %d, ready %v before the Secret is read", e.Generation(), e.Status().Ready)
		}
		f.answer(secret("tls", 1))
		e.await(1)
		if got := e.missing("one"); got != "" || e.Table().Hosts() != 1 {
			t.Errorf("%d hosts, and it is said that %q", e.Table().Hosts(), got)
		}
	})
}

func TestNewIngressWaitsForItsSecret(t *testing.T) {
	all := objects{service(), ingress("one", "one.example"), addresses("127.0.0.1")}
	follow(t, all, func(t *testing.T, f *follower, e *running) {
		f.answer()
		e.await(1)
		f.read.Store(false)
		f.set(ingress("two", "two.example", "tls"))
		f.wants(t, "tls")
		if e.Table().Hosts() != 1 {
			t.Error("it is served without its Secret")
		}
		// Changes that do not depend on Secrets are applied.
		f.set(addresses("127.0.0.1", "127.0.0.2"))
		e.eventually("endpoints change", func() bool { return len(e.Document().Backends["a/web/80"].Endpoints) == 2 })
		f.answer(secret("tls", 1))
		e.eventually("it is served", func() bool { return e.Table().Hosts() == 2 })
		if got := e.missing("two"); got != "" {
			t.Errorf("it is said that %q", got)
		}
	})
}

// TestSecretIsKeptUntilItsSuccessorIsRead checks that a host whose Ingress names another Secret keeps the old Secret
// until the new Secret is read. The engine must request both Secrets in the meantime, because a source forgets Secrets
// that are not requested.
func TestSecretIsKeptUntilItsSuccessorIsRead(t *testing.T) {
	follow(t, objects{service(), ingress("one", "one.example", "old")}, func(t *testing.T, f *follower, e *running) {
		f.answer(secret("old", 1))
		e.await(1)
		f.read.Store(false)
		f.set(ingress("one", "one.example", "new"))
		f.wants(t, "new")
		f.wants(t, "old")
		f.answer(secret("new", 2))
		e.eventually("the Secret old is no longer requested", func() bool {
			return !slices.Contains(*f.wanted.Load(), ir.Ref{Kind: kinds.Secret, Namespace: "a", Name: "old"})
		})
	})
}

// TestOneSecretDoesNotHoldUpTheRest checks that a Secret that the API server does not return does not delay the changes
// of other objects.
func TestOneSecretDoesNotHoldUpTheRest(t *testing.T) {
	follow(t, objects{service(), ingress("one", "one.example")}, func(t *testing.T, f *follower, e *running) {
		f.answer()
		e.await(1)
		f.read.Store(false)
		f.set(ingress("two", "two.example", "tls"))
		e.eventually("it is served without its Secret after a while", func() bool { return e.Table().Hosts() == 2 })
		e.eventually("the Ingress two has a problem with its Secret", func() bool { return e.missing("two") != "" })
		begin := time.Now()
		f.set(ingress("next", "next.example"))
		e.eventually("the next one is served", func() bool { return e.Table().Hosts() == 3 })
		if took := time.Since(begin); took > 100*time.Millisecond {
			t.Errorf("the next change waited as well, %v", took)
		}
	})
}

func TestUnreadableSecret(t *testing.T) {
	follow(t, objects{service(), ingress("one", "one.example", "tls")}, func(t *testing.T, f *follower, e *running) {
		f.wants(t, "tls")
		ref := ir.Ref{Kind: kinds.Secret, Namespace: "a", Name: "tls"}
		f.store.Deny(ref, true)
		f.answer()
		e.await(1)
		if got := e.missing("one"); !strings.Contains(got, "the controller may not read the Secret a/tls") {
			t.Errorf("it is said that %q", got)
		}
		f.store.Deny(ref, false)
		e.eventually("the problem says that the Secret does not exist",
			func() bool { return strings.Contains(e.missing("one"), "the Secret a/tls does not exist") })
	})
}
