package issuance

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mholt/acmez/v3/acme"
	"github.com/miekg/dns"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/tests/fixture"
)

// with returns a replica with changed options.
func (b *bench) with(retry time.Duration, edit func(*Options)) *replica {
	b.Helper()
	r := b.replica(false, retry)
	o := Options{Issuers: b.issuers}
	edit(&o)
	r.configure(o)
	r.leading.Store(true)
	return r
}

// wantIn requests certificates for hosts of a namespace, each for an Ingress with the name of the host.
func (r *replica) wantIn(namespace string, hosts ...string) {
	all := map[string]*ir.Certificate{}
	for _, host := range hosts {
		all[host] = &ir.Certificate{Automated: true, Origin: ir.ParseRef("Ingress/" + namespace + "/" + host)}
	}
	r.Want(all)
}

// orderedNames returns the names for which the issuer got orders, without duplicates.
func (p *script) orderedNames() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := slices.Clone(p.asked)
	slices.Sort(all)
	return slices.Compact(all)
}

// TestTenant05NewNames checks that a namespace that keeps replacing its hosts reaches its limit, whichever replica
// leads, without affecting other namespaces.
func TestTenant05NewNames(t *testing.T) {
	b := newBench(t)
	plan := b.issuer("one")
	plan.set(errors.New("no"))
	bounded := func(o *Options) { o.NewHostsPerDay = 5 }
	r := b.with(time.Hour, bounded)
	round := func(r *replica, n int) {
		t.Helper()
		var hosts []string
		for i := range 3 {
			hosts = append(hosts, fmt.Sprintf("b%d-%d.example", n, i))
		}
		r.wantIn("b", hosts...)
		r.eventually("what is said of all hosts", func() error {
			for _, host := range hosts {
				if r.problemOf(host) == "" {
					return fmt.Errorf("nothing of %s", host)
				}
			}
			return nil
		})
		gone := map[string]*ir.Certificate{}
		for _, host := range hosts {
			gone[host] = nil
		}
		r.Want(gone)
	}
	for n := range 3 {
		round(r, n)
	}
	if asked := plan.orderedNames(); len(asked) != 5 {
		t.Errorf("the issuer was asked for %v", asked)
	}
	failures, err := filepath.Glob(filepath.Join(b.folder, "k8singress", "failures", "*"))
	if err != nil || len(failures) != 5 {
		t.Errorf("the storage remembers %v %v", failures, err)
	}
	r.stop()
	next := b.with(time.Hour, bounded)
	next.wantIn("b", "later.example")
	next.expectProblem("later.example", "5 new names of the namespace b within 24 hours")
	plan.set(nil)
	next.wantIn("c", "victim.example")
	next.gets("victim.example")
	if asked := plan.orderedNames(); len(asked) != 6 {
		t.Errorf("the issuer was asked for %v", asked)
	}
}

// TestBudgetOfADay checks that a name that was ordered within a day is not new, and that the budget is per day.
func TestBudgetOfADay(t *testing.T) {
	b := newBench(t)
	r := b.replica(false, time.Hour)
	now := time.Now()
	var all budgets
	spend := func(name string, at time.Time) *failure {
		t.Helper()
		f, err := all.spend(t.Context(), r.setup.storage, newName{"b", name}, 2, at)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	if spend("1", now) != nil || spend("2", now.Add(time.Hour)) != nil || spend("1", now.Add(2*time.Hour)) != nil {
		t.Error("there is no room for two names")
	}
	all.forget()
	if f := spend("3", now.Add(3*time.Hour)); f == nil || f.NotBefore.Sub(now.Add(budgetPeriod)).Abs() > 2*time.Second {
		t.Errorf("the third name is told %v", f)
	}
	if spend("3", now.Add(budgetPeriod+time.Minute)) != nil || spend("4", now.Add(budgetPeriod+time.Minute)) == nil {
		t.Error("a day later there is room for one name")
	}
	if _, err := os.Stat(filepath.Join(b.folder, "k8singress", "budgets", "b.json")); err != nil {
		t.Error(err)
	}
}

// TestTenant05TurnsAfterALimit checks that namespaces take turns after an authority has rejected all orders for a
// while, even if each turn ends with another limit.
func TestTenant05TurnsAfterALimit(t *testing.T) {
	b := newBench(t)
	plan := b.issuer("one")
	limited := acme.Problem{Type: acme.ProblemTypeRateLimited, Status: 429,
		Detail: "too many new orders (300) from this account"}
	plan.set(limited)
	r := b.replica(true, time.Hour)
	var hosts []string
	for n := range 40 {
		hosts = append(hosts, fmt.Sprintf("b%02d.example", n))
	}
	r.wantIn("b", hosts...)
	r.eventually("the limit", func() error {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.careful.IsZero() {
			return errors.New("it is not known")
		}
		return nil
	})
	r.wantIn("c", "victim.example")
	r.expectProblem("victim.example", "too many new orders")
	// The authority now accepts one order, which belongs to the namespace that has had none.
	begin := plan.count()
	plan.set(nil)
	r.mu.Lock()
	for h := range r.hosts.Values() {
		h.lastError = nil
		r.readSoon(h)
	}
	r.setup.pauses.Clear()
	r.mu.Unlock()
	if err := os.RemoveAll(filepath.Join(b.folder, "k8singress")); err != nil {
		t.Fatal(err)
	}
	r.kick.Send()
	r.gets("victim.example")
	plan.mu.Lock()
	defer plan.mu.Unlock()
	if at := slices.Index(plan.asked[begin:], "victim.example"); at < 0 || at > 2 {
		t.Errorf("%d orders came before that of the other namespace", at)
	}
}

// TestFailuresAreBounded checks that the storage keeps only a limited number of failures of removed hosts.
func TestFailuresAreBounded(t *testing.T) {
	b := newBench(t)
	b.issuer("one")
	folder := filepath.Join(b.folder, "k8singress", "failures")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	for n := range maxFailures + 20 {
		data := fmt.Appendf(nil, `{"attempts":1,"not_before":%q,"reason":"no"}`,
			time.Now().Add(time.Duration(n)*time.Second).Format(time.RFC3339))
		if err := os.WriteFile(filepath.Join(folder, fmt.Sprintf("h%04d.example.json", n)), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r := b.replica(true, time.Hour)
	r.want("wanted.example")
	r.gets("wanted.example")
	r.eventually("the sweep", func() error {
		left, err := filepath.Glob(filepath.Join(folder, "*"))
		if err == nil && (len(left) != maxFailures || filepath.Base(left[0]) != "h0020.example.json") {
			err = fmt.Errorf("the storage has %d, the first of which is %s", len(left), left[0])
		}
		return err
	})
}

// TestNamesOfOtherAddresses checks that, with check_host_dns, a name is ordered only after it resolves to this
// controller, and does not use up the budget before.
func TestNamesOfOtherAddresses(t *testing.T) {
	b := newBench(t)
	plan := b.issuer("one")
	zone := newZone(t, "here.example. 1 A 192.0.2.1", "elsewhere.example. 1 A 203.0.113.9",
		"lb.example. 1 A 192.0.2.7", "byname.example. 1 A 192.0.2.7")
	r := b.with(100*time.Millisecond, func(o *Options) {
		o.NewHostsPerDay, o.Resolvers = 3, []string{zone.address}
		o.Addresses = func() []string { return []string{"192.0.2.1", "lb.example"} }
	})
	r.wantIn("a", "here.example", "elsewhere.example", "nowhere.example", "byname.example")
	r.gets("here.example")
	r.gets("byname.example")
	r.expectProblem("elsewhere.example",
		"the name resolves to 203.0.113.9, and no certificate is requested until it resolves to one of "+
			"192.0.2.1, 192.0.2.7")
	r.expectProblem("nowhere.example", "its DNS lookup failed")
	if asked := plan.orderedNames(); strings.Join(asked, " ") != "byname.example here.example" {
		t.Errorf("the issuer was asked for %v", asked)
	}
	zone.set(t, "elsewhere.example. 1 A 192.0.2.1")
	r.gets("elsewhere.example")
}

// TestNamesWithoutOwnAddress checks that no name is ordered while the controller has no address, and that the reason
// names the options to set.
func TestNamesWithoutOwnAddress(t *testing.T) {
	b := newBench(t)
	plan := b.issuer("one")
	r := b.with(time.Hour, func(o *Options) { o.Addresses = func() []string { return nil } })
	r.wantIn("a", "here.example")
	r.expectProblem("here.example", "publish_address")
	if plan.count() != 0 {
		t.Error("an issuer was asked")
	}
}

// zone is a DNS server.
type zone struct {
	address string
	records chan []dns.RR
}

func newZone(t *testing.T, records ...string) *zone {
	t.Helper()
	z := &zone{address: fixture.Address(t), records: make(chan []dns.RR, 1)}
	z.records <- nil
	z.set(t, records...)
	if _, err := netip.ParseAddrPort(z.address); err != nil {
		t.Fatal(err)
	}
	started := make(chan struct{})
	server := &dns.Server{Addr: z.address, Net: "udp", Handler: dns.HandlerFunc(z.answer),
		NotifyStartedFunc: func() { close(started) }}
	ended := make(chan error, 1)
	go func() { ended <- server.ListenAndServe() }()
	fixture.Receive(t, "the start of the server", started)
	t.Cleanup(func() {
		if err := errors.Join(server.Shutdown(), <-ended); err != nil {
			t.Error(err)
		}
	})
	return z
}

func (z *zone) set(t *testing.T, records ...string) {
	t.Helper()
	var all []dns.RR
	for _, text := range records {
		record, err := dns.NewRR(text)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, record)
	}
	<-z.records
	z.records <- all
}

func (z *zone) answer(w dns.ResponseWriter, question *dns.Msg) {
	records := <-z.records
	z.records <- records
	m := new(dns.Msg)
	m.SetReply(question)
	m.RecursionAvailable = true
	known := false
	for _, record := range records {
		if strings.EqualFold(record.Header().Name, question.Question[0].Name) {
			known = true
			if record.Header().Rrtype == question.Question[0].Qtype {
				m.Answer = append(m.Answer, record)
			}
		}
	}
	if !known {
		m.Rcode = dns.RcodeNameError
	}
	_ = w.WriteMsg(m) // The client may have given up.
}
