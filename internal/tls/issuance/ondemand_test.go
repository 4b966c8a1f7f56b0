package issuance

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddytls"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/tests/fixture"
)

func init() { caddy.RegisterModule(new(gatekeeper)) }

// gatekeeper is a permission module that follows a test's script.
type gatekeeper struct {
	Name string `json:"name"`
}

// gate is the script of a gatekeeper.
type gate struct {
	decide func(ctx context.Context, name string) error
	asked  atomic.Int64
}

var gates sync.Map

func (*gatekeeper) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "tls.permission.gatekeeper", New: func() caddy.Module { return new(gatekeeper) }}
}

func (k *gatekeeper) CertificateAllowed(ctx context.Context, name string) error {
	value, _ := gates.Load(k.Name)
	g := value.(*gate)
	g.asked.Add(1)
	return g.decide(ctx, name)
}

// gate makes all replicas that are configured later order certificates on demand. The object in the namespace shop
// requests them for all names, except that names ending in .bank belong to the namespace bank, and .closed requests
// none.
func (b *bench) gate(decide func(ctx context.Context, name string) error) *gate {
	g := &gate{decide: decide}
	name := fmt.Sprintf("%p", g)
	gates.Store(name, g)
	b.permission = fmt.Appendf(nil, `{"module":"gatekeeper","name":%q}`, name)
	return g
}

func allow(context.Context, string) error { return nil }

func onDemandObject(name string) (ir.Ref, bool) {
	if strings.HasSuffix(name, ".bank") {
		return ir.ParseRef("Ingress/bank/any"), true
	}
	return ir.ParseRef("Ingress/shop/any"), !strings.HasSuffix(name, ".closed")
}

// shakes returns the certificate for a handshake, which may wait.
func (r *replica) shakes(name string) *tls.Certificate { return r.OnDemand(r.Context(), name) }

func TestOnDemand(t *testing.T) {
	b := newBench(t)
	plan, g := b.issuer("one"), b.gate(allow)
	r := b.replica(true, time.Second)
	for _, name := range []string{"a.example", "A.Example.", "a.example"} {
		c := r.shakes(name)
		if c == nil || c.Leaf.VerifyHostname("a.example") != nil {
			t.Fatalf("%s: the certificate is %v", name, c)
		}
	}
	if plan.count() != 1 || g.asked.Load() != 1 {
		t.Errorf("%d orders, the gate was asked %d times", plan.count(), g.asked.Load())
	}
	// The next process reads the certificate from the storage, if the module still allows it.
	r.stop()
	next := b.replica(true, time.Second)
	if next.shakes("a.example") == nil || plan.count() != 1 || g.asked.Load() != 2 {
		t.Errorf("%d orders, the gate was asked %d times", plan.count(), g.asked.Load())
	}
}

// TestOnDemandOfReplicas checks that many handshakes at all replicas lead to one order for each name.
func TestOnDemandOfReplicas(t *testing.T) {
	const names, handshakes = 200, 1000
	b := newBench(t)
	plan := b.issuer("one")
	b.gate(allow)
	replicas := []*replica{b.replica(false, time.Second), b.replica(true, time.Second), b.replica(false, time.Second)}
	var all sync.WaitGroup
	for n := range handshakes {
		all.Go(func() {
			name, r := fmt.Sprintf("n%d.example", n%names), replicas[n%len(replicas)]
			r.eventually("a certificate for "+name, func() error {
				if c := r.shakes(name); c == nil || c.Leaf.VerifyHostname(name) != nil {
					return fmt.Errorf("it is %v", c)
				}
				return nil
			})
		})
	}
	all.Wait()
	if plan.count() != names {
		t.Errorf("there were %d orders", plan.count())
	}
	b.expectNoRequests(replicas[1])
}

// expectNoRequests waits until the leader has deleted all requests from the storage.
func (b *bench) expectNoRequests(leader *replica) {
	b.Helper()
	leader.eventually("the end of the requests", func() error {
		left, err := filepath.Glob(filepath.Join(b.folder, requestsFolder, "*"))
		if len(left) > 0 {
			return fmt.Errorf("%v are left", left)
		}
		return err
	})
}

// TestOnDemandDenied checks that there is no order, and no memory is used up, for names that the module denies, that it
// cannot decide about, and that no object or issuer can serve.
func TestOnDemandDenied(t *testing.T) {
	for name, decide := range map[string]func(context.Context, string) error{
		"denied": func(context.Context, string) error { return caddytls.ErrPermissionDenied },
		"failed": func(context.Context, string) error { return errors.New("no route to host") },
		"panics": func(context.Context, string) error { panic("oops") },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			plan, g := b.issuer("one"), b.gate(decide)
			r := b.replica(true, time.Second)
			for range 3 {
				if c := r.shakes("a.example"); c != nil {
					t.Errorf("the certificate is %v", c)
				}
			}
			if plan.count() != 0 || g.asked.Load() != 1 {
				t.Errorf("%d orders, the gate was asked %d times", plan.count(), g.asked.Load())
			}
			if problem := r.problemOf("any"); problem != "" {
				t.Errorf("the Ingress has the problem %q", problem)
			}
		})
	}
	b := newBench(t)
	plan, g := b.issuer("one"), b.gate(allow)
	r := b.replica(true, time.Second)
	for _, name := range []string{"", "a.closed", "*.example", "a_b.example", "-", "a..example",
		strings.Repeat("a.", 123) + "examples", "käse.example", "a/b.example"} {
		if c := r.shakes(name); c != nil {
			t.Errorf("the certificate for %q is %v", name, c)
		}
	}
	if plan.count() != 0 || g.asked.Load() != 0 {
		t.Errorf("%d orders, the gate was asked %d times", plan.count(), g.asked.Load())
	}
}

// TestOnDemandFlood checks that memory is bounded if a client sends very many names, and that another namespace still
// gets its certificates meanwhile.
func TestOnDemandFlood(t *testing.T) {
	b := newBench(t)
	b.issuer("one")
	b.gate(func(ctx context.Context, name string) error {
		switch {
		case strings.HasSuffix(name, ".bank"):
			return nil
		case strings.HasPrefix(name, "slow"):
			<-ctx.Done()
		}
		return caddytls.ErrPermissionDenied
	})
	r := b.replica(true, time.Second)
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	for n := range 100_000 {
		r.OnDemand(gone, fmt.Sprintf("slow%d.example", n))
	}
	if c := r.shakes("a.bank"); c == nil {
		t.Error("the other namespace has no certificate")
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.demands.Len() > pendingPerNamespace+1 || len(r.pending) > pendingPerNamespace || r.hosts.Len() != 1 {
		t.Errorf("there are %d names, %d are pending, %d hosts", r.demands.Len(), len(r.pending), r.hosts.Len())
	}
	for n := range 2 * maxDenied {
		r.denied.add(fmt.Sprintf("n%d.example", n), time.Now())
	}
	if n := len(r.denied.recent) + len(r.denied.older); n > maxDenied || !r.denied.has("n19999.example", time.Now()) {
		t.Errorf("%d denied names are remembered", n)
	}
}

// TestOnDemandFails checks that handshakes do not wait for a name whose order has failed, that the object gets a
// verdict, and that a handshake tries again later, also at a replica that is not the leader.
func TestOnDemandFails(t *testing.T) {
	b := newBench(t)
	plan := b.issuer("one")
	b.gate(allow)
	plan.set(errors.New("the sea is rough"))
	leader, other := b.replica(true, time.Second), b.replica(false, time.Second)
	if c := other.shakes("a.example"); c != nil {
		t.Errorf("the certificate is %v", c)
	}
	leader.expectProblem("any", "the sea is rough; the next attempt is after 20")
	if field := leader.Problems()[0].Problems[0].Field; !strings.Contains(field, "on-demand-tls") {
		t.Errorf("the field is %q", field)
	}
	b.expectNoRequests(leader)
	plan.set(nil)
	other.eventually("a certificate", func() error {
		if other.shakes("a.example") == nil {
			return errors.New("there is no certificate for a.example")
		}
		return nil
	})
	leader.expectProblem("any", "")
}

// TestOnDemandIsRenewed checks that only a certificate with handshakes is renewed, that handshakes do not wait for it,
// and that a denied certificate is used until it expires.
func TestOnDemandIsRenewed(t *testing.T) {
	b := newBench(t)
	plan := b.issuer("one")
	var denies atomic.Bool
	b.gate(func(context.Context, string) error {
		if denies.Load() {
			return caddytls.ErrPermissionDenied
		}
		return nil
	})
	// Certificates are due for renewal at once.
	plan.lifetime = 4 * renewCheck
	leader, other := b.replica(true, time.Second), b.replica(false, time.Second)
	first := other.shakes("a.example")
	if first == nil {
		t.Fatal("there is no certificate")
	}
	plan.mu.Lock()
	plan.lifetime = 24 * time.Hour
	plan.mu.Unlock()
	leader.mu.Lock()
	// The leader would wait for a minute between two orders.
	leader.hosts.Get("a.example").ordered = time.Time{}
	leader.mu.Unlock()
	other.eventually("the renewed certificate", func() error {
		if c := other.shakes("a.example"); c == nil || c.Leaf.Equal(first.Leaf) {
			return errors.New("it is not renewed")
		}
		return nil
	})
	b.expectNoRequests(leader)
	denies.Store(true)
	if c := other.shakes("a.example"); c == nil {
		t.Error("the certificate is gone")
	}
}

// TestOnDemandForgets checks that names are forgotten if no object requests them any more, if another object gets the
// name, or if there were no handshakes for a long time.
func TestOnDemandForgets(t *testing.T) {
	b := newBench(t)
	b.issuer("one")
	b.gate(allow)
	r := b.replica(true, time.Second)
	known := func() int {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.hosts.Len() < r.demands.Len() {
			t.Errorf("%d hosts, %d names", r.hosts.Len(), r.demands.Len())
		}
		return r.demands.Len()
	}
	for _, name := range []string{"a.example", "b.example", "c.example"} {
		if r.shakes(name) == nil {
			t.Fatal("there is no certificate for " + name)
		}
	}
	r.want("a.example")
	r.gets("a.example")
	if r.shakes("a.example") != nil || known() != 2 {
		t.Error("a host of another object is on demand")
	}
	r.mu.Lock()
	r.demands.Get("b.example").origin = ir.ParseRef("Ingress/old/any")
	r.mu.Unlock()
	if r.RecheckOnDemand(); known() != 1 {
		t.Error("a name whose object has changed is kept")
	}
	r.mu.Lock()
	r.forgetIdle(time.Now().Add(maxIdle + time.Minute))
	r.mu.Unlock()
	if known() != 0 {
		t.Error("an idle name is kept")
	}
	if r.shakes("c.example") == nil {
		t.Error("a name that was forgotten has no certificate")
	}
}

// TestOnDemandBudget checks that new names on demand count towards the daily limit of their namespace.
func TestOnDemandBudget(t *testing.T) {
	b := newBench(t)
	plan := b.issuer("one")
	b.gate(allow)
	b.newHostsPerDay = 2
	r := b.replica(true, time.Second)
	for n := range 4 {
		if got := r.shakes(fmt.Sprintf("n%d.example", n)) != nil; got != (n < 2) {
			t.Errorf("name %d has a certificate: %t", n, got)
		}
	}
	if plan.count() != 2 {
		t.Errorf("there were %d orders", plan.count())
	}
	r.expectProblem("any", "which is the limit")
}

// TestAskDuringReload checks that the permission module of the current configuration decides, although the previous
// module responds after the reload, and that it is asked at once.
func TestAskDuringReload(t *testing.T) {
	deny := func(context.Context, string) error { return caddytls.ErrPermissionDenied }
	for name, test := range map[string]struct {
		before, after func(context.Context, string) error
		orders        int
		// hangs is true if the previous module does not respond before the handshake has ended.
		hangs bool
	}{
		"denied":               {before: allow, after: deny, orders: 0},
		"allowed":              {before: deny, after: allow, orders: 1},
		"denied, with a hang":  {before: allow, after: deny, orders: 0, hangs: true},
		"allowed, with a hang": {before: deny, after: allow, orders: 1, hangs: true},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			plan := b.issuer("one")
			asked, reloaded := make(chan bool, 1), make(chan bool)
			b.gate(func(ctx context.Context, name string) error {
				asked <- true
				<-reloaded
				return test.before(ctx, name)
			})
			r := b.replica(true, time.Second)
			certificates := make(chan *tls.Certificate, 1)
			go func() { certificates <- r.shakes("a.example") }()
			fixture.Receive(t, "the question", asked)
			after := b.gate(test.after)
			r.configure(b.options())
			respond := sync.OnceFunc(func() { close(reloaded) })
			defer respond()
			if !test.hangs {
				respond()
			}
			began := time.Now()
			if c := fixture.Receive(t, "the end of the handshake", certificates); (c != nil) != (test.orders > 0) {
				t.Errorf("the certificate is %v", c)
			}
			if waited := time.Since(began); waited >= askPatience {
				t.Errorf("the handshake has waited for %s", waited)
			}
			if plan.count() != test.orders || after.asked.Load() != 1 {
				t.Errorf("%d orders, the new gate was asked %d times", plan.count(), after.asked.Load())
			}
		})
	}
}

// TestAskOfTheControllerItself checks that a permission module that asks this controller does not wait for itself.
func TestAskOfTheControllerItself(t *testing.T) {
	for _, endpoint := range []string{"https://ask.example:1/may", "https://Ask.example./"} {
		t.Run(endpoint, func(t *testing.T) {
			b := newBench(t)
			b.issuer("one")
			b.permission = fmt.Appendf(nil, `{"module":"http","endpoint":%q}`, endpoint)
			r := b.replica(true, time.Second)
			begin := time.Now()
			if c := r.shakes("ask.example"); c != nil || time.Since(begin) > askPatience {
				t.Errorf("the certificate is %v after %v", c, time.Since(begin))
			}
			r.mu.Lock()
			defer r.mu.Unlock()
			if r.demands.Has("ask.example") || r.denied.has("ask.example", time.Now()) {
				t.Error("the module was asked about its own name")
			}
		})
	}
}
