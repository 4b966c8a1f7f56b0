package issuance

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	_ "github.com/caddyserver/caddy/v2/modules/filestorage"
	"github.com/caddyserver/certmagic"
	dto "github.com/prometheus/client_model/go"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest"
	"go.uber.org/zap/zaptest/observer"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/tests/fixture"
)

func init() { caddy.RegisterModule(new(scripted)) }

// scripted is an issuer that follows a test's script. Its name is its key.
type scripted struct {
	Name string `json:"name"`
}

// script defines what a scripted issuer does, and records what it did.
type script struct {
	mu       sync.Mutex
	fails    error
	lifetime time.Duration
	asked    []string
}

var scripts sync.Map

func (*scripted) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "tls.issuance.scripted", New: func() caddy.Module { return new(scripted) }}
}

func (s *scripted) IssuerKey() string { return s.Name }

func (s *scripted) Issue(_ context.Context, request *x509.CertificateRequest) (*certmagic.IssuedCertificate, error) {
	value, _ := scripts.Load(s.Name)
	plan := value.(*script)
	plan.mu.Lock()
	defer plan.mu.Unlock()
	plan.asked = append(plan.asked, request.DNSNames[0])
	if plan.fails != nil {
		return nil, plan.fails
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: serial, DNSNames: request.DNSNames, NotBefore: time.Now().Add(-time.Minute),
		NotAfter: time.Now().Add(plan.lifetime),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, request.PublicKey, key)
	if err != nil {
		return nil, err
	}
	return &certmagic.IssuedCertificate{Certificate: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})},
		nil
}

func (p *script) set(fails error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fails = fails
}

func (p *script) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.asked)
}

// bench holds the data that the replicas of a test share.
type bench struct {
	*testing.T
	folder  string
	issuers []json.RawMessage
	// permission and newHostsPerDay are options of all replicas.
	permission     json.RawMessage
	newHostsPerDay int
}

func newBench(t *testing.T) *bench { return &bench{T: t, folder: t.TempDir()} }

// issuer adds an issuer.
func (b *bench) issuer(name string) *script {
	name = strings.ToLower(b.Name()) + "-" + name
	plan := &script{lifetime: 24 * time.Hour}
	scripts.Store(name, plan)
	b.issuers = append(b.issuers, fmt.Appendf(nil, `{"module":"scripted","name":%q}`, name))
	return plan
}

func (b *bench) storage() json.RawMessage {
	return fmt.Appendf(nil, `{"module":"file_system","root":%q}`, b.folder)
}

// replica is a running replica.
type replica struct {
	*Manager
	*bench
	leading atomic.Bool
	stop    func()
	shown   map[string]*tls.Certificate
	logs    *observer.ObservedLogs
}

func (b *bench) replica(leads bool, retry time.Duration) *replica {
	b.Helper()
	core, logs := observer.New(zap.InfoLevel)
	log := zaptest.NewLogger(b,
		zaptest.WrapOptions(zap.WrapCore(func(c zapcore.Core) zapcore.Core { return zapcore.NewTee(c, core) })))
	r := &replica{Manager: New(log), bench: b, shown: map[string]*tls.Certificate{}, logs: logs}
	r.retry = retry
	r.leading.Store(leads)
	r.configure(b.options())
	r.stop = fixture.Run(b, "the manager", func(ctx context.Context) { r.Run(ctx, r.leading.Load) })
	return r
}

// options returns the options of all replicas.
func (b *bench) options() Options {
	return Options{
		Issuers: b.issuers, Permission: b.permission, OnDemand: onDemandObject, NewHostsPerDay: b.newHostsPerDay,
	}
}

// configure replaces the replica's configuration.
func (r *replica) configure(o Options) {
	r.Helper()
	ctx, err := caddy.ProvisionContext(&caddy.Config{StorageRaw: r.storage()})
	if err != nil {
		r.Fatal(err)
	}
	if err := r.Configure(ctx, o); err != nil {
		r.Fatal(err)
	}
}

func (r *replica) want(hosts ...string) {
	all := map[string]*ir.Certificate{}
	for _, host := range hosts {
		all[host] = &ir.Certificate{Automated: true, Origin: ir.ParseRef("Ingress/shop/" + host)}
	}
	r.Want(all)
}

func (r *replica) eventually(what string, condition func() error) {
	r.Helper()
	fixture.Eventually(r, what, condition)
}

// gets waits for a certificate.
func (r *replica) gets(host string) *tls.Certificate {
	r.Helper()
	r.eventually("a certificate for "+host, func() error {
		for name, pair := range r.Take() {
			r.shown[name] = pair
		}
		if r.shown[host] == nil {
			return errors.New("there is none")
		}
		return nil
	})
	return r.shown[host]
}

// problemOf returns the problem of the Ingress of a host.
func (r *replica) problemOf(host string) string {
	for _, v := range r.Problems() {
		if v.Object.Name == host {
			return string(v.Problems[0].Reason) + ": " + v.Problems[0].Message
		}
	}
	return ""
}

func (r *replica) expectProblem(host, text string) {
	r.Helper()
	r.eventually("the verdict", func() error {
		if got := r.problemOf(host); !strings.Contains(got, text) {
			return fmt.Errorf("it is %q, not %q", got, text)
		}
		return nil
	})
}

func (r *replica) ordered(result string) float64 {
	r.Helper()
	var m dto.Metric
	if err := r.metrics.orders.WithLabelValues(result).Write(&m); err != nil {
		r.Fatal(err)
	}
	return m.GetCounter().GetValue()
}

func TestFailureIsRetried(t *testing.T) {
	b := newBench(t)
	plan := b.issuer("one")
	plan.set(errors.New("the sea is rough"))
	r := b.replica(true, time.Second)
	r.want("a.example")
	r.expectProblem("a.example", "the sea is rough; the next attempt is after 20")
	if r.waiting() != 1 || r.ordered(failedResult) == 0 {
		t.Errorf("%v wait, %v failed", r.waiting(), r.ordered(failedResult))
	}
	failures, err := filepath.Glob(filepath.Join(b.folder, "k8singress", "failures", "*"))
	if err != nil || len(failures) != 1 {
		t.Errorf("the storage remembers %v %v", failures, err)
	}
	plan.set(nil)
	r.gets("a.example")
	r.expectProblem("a.example", "")
	if r.waiting() != 0 || r.ordered(issuedResult) != 1 {
		t.Errorf("%v wait, %v were issued", r.waiting(), r.ordered(issuedResult))
	}
	if failures, _ = filepath.Glob(filepath.Join(b.folder, "k8singress", "failures", "*")); len(failures) != 0 {
		t.Errorf("the storage still remembers %v", failures)
	}
}

// TestFailureOutlivesTheLeader checks that the backoff applies to all replicas: a new leader does not start again.
func TestFailureOutlivesTheLeader(t *testing.T) {
	b := newBench(t)
	plan := b.issuer("one")
	plan.set(errors.New("the sea is rough"))
	first := b.replica(true, time.Hour)
	first.want("a.example")
	first.expectProblem("a.example", "the sea is rough")
	first.stop()
	plan.set(nil)
	next := b.replica(true, time.Hour)
	next.want("a.example")
	next.expectProblem("a.example", "the sea is rough")
	if got := plan.count(); got != 1 {
		t.Errorf("the issuer was asked %d times", got)
	}
}

func TestOtherIssuersAreTriedAtOnce(t *testing.T) {
	b := newBench(t)
	b.issuer("one").set(errors.New("the sea is rough"))
	r := b.replica(true, time.Hour)
	r.want("a.example", "b.example")
	r.expectProblem("a.example", "the sea is rough")
	r.expectProblem("b.example", "the sea is rough")
	b.issuers = nil
	b.issuer("two")
	ctx, err := caddy.ProvisionContext(&caddy.Config{StorageRaw: b.storage()})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Configure(ctx, Options{Issuers: b.issuers}); err != nil {
		t.Fatal(err)
	}
	r.gets("a.example")
	r.stop()
	// The storage also remembers the failure of the first issuer.
	b.issuer("three").set(errors.New("the wind is high"))
	b.issuers = b.issuers[1:]
	other := b.replica(true, time.Hour)
	other.want("c.example")
	other.expectProblem("c.example", "the wind is high")
	other.stop()
	b.issuers = nil
	b.issuer("four")
	last := b.replica(true, time.Hour)
	last.want("c.example")
	last.gets("c.example")
}

// announced returns the issued certificates in the log, each as "how host issuer", if the logged expiry time is right.
func (r *replica) announced() []string {
	var all []string
	for _, e := range r.logs.FilterLevelExact(zap.InfoLevel).All() {
		if !strings.HasPrefix(e.Message, "certificate ") {
			continue
		}
		fields := e.ContextMap()
		host := fields["host"].(string)
		if end := r.gets(host).Leaf.NotAfter; !end.Equal(fields["until"].(time.Time)) {
			r.Errorf("%s is valid until %v, and the log says %v", host, end, fields["until"])
		}
		all = append(all, fmt.Sprint(e.Message, " ", host, " ", fields["issuer"]))
	}
	return all
}

func TestOnlyTheLeaderOrders(t *testing.T) {
	b := newBench(t)
	plan := b.issuer("one")
	leader, other := b.replica(true, time.Hour), b.replica(false, time.Hour)
	for _, r := range []*replica{other, leader} {
		r.want("a.example", "b.example")
	}
	for _, host := range []string{"a.example", "b.example"} {
		if one, two := leader.gets(host), other.gets(host); !one.Leaf.Equal(two.Leaf) {
			t.Errorf("the replicas have different certificates for %s", host)
		}
	}
	if got := other.announced(); len(got) != 0 || len(leader.announced()) != 2 {
		t.Errorf("the replicas log %q and %q", got, leader.announced())
	}
	if other.ordered(issuedResult) != 0 || plan.count() != 2 {
		t.Errorf("%d orders, the follower's %v", plan.count(), other.ordered(issuedResult))
	}
	leader.stop()
	other.want("c.example")
	other.leading.Store(true)
	other.gets("c.example")
}

func TestNextIssuerIsTried(t *testing.T) {
	b := newBench(t)
	b.issuer("one").set(errors.New("the sea is rough"))
	second := b.issuer("two")
	r := b.replica(true, time.Hour)
	r.want("a.example")
	r.gets("a.example")
	r.expectProblem("a.example", "")
	second.set(errors.New("the wind is high"))
	r.want("b.example")
	r.expectProblem("b.example", "the sea is rough; testnextissueristried-two returned an error: ")
	r.expectProblem("b.example", "the wind is high")
}

// TestRenewal checks that a starting replica renews a certificate that is due, and uses the old one until then, also if
// the renewal fails.
func TestRenewal(t *testing.T) {
	b := newBench(t)
	plan := b.issuer("one")
	plan.lifetime = 2 * time.Minute
	first := b.replica(true, time.Hour)
	first.want("a.example")
	old := first.gets("a.example")
	first.stop()
	plan.set(errors.New("the sea is rough"))
	second := b.replica(true, time.Second)
	second.want("a.example")
	second.expectProblem("a.example", "ACMEFailed: the certificate for a.example, which is valid until ")
	if got := second.gets("a.example"); !got.Leaf.Equal(old.Leaf) {
		t.Error("the old certificate is not shown")
	}
	second.stop()
	plan.set(nil)
	if err := os.RemoveAll(filepath.Join(b.folder, "k8singress")); err != nil {
		t.Fatal(err)
	}
	third := b.replica(true, time.Hour)
	third.want("a.example")
	third.eventually("another certificate", func() error {
		if third.gets("a.example").Leaf.Equal(old.Leaf) {
			return errors.New("it is the old one")
		}
		return nil
	})
	if third.ordered(renewedResult) != 1 {
		t.Error("it was not a renewal")
	}
	if got := fmt.Sprint(first.announced()); got != "[certificate obtained successfully a.example testrenewal-one]" {
		t.Errorf("the first replica logs %s", got)
	}
	if got := fmt.Sprint(third.announced()); got != "[certificate renewed successfully a.example testrenewal-one]" {
		t.Errorf("the one that renews logs %s", got)
	}
}

// TestRemovedHost checks that a host that is removed before or during an order is forgotten.
func TestRemovedHost(t *testing.T) {
	b := newBench(t)
	b.issuer("one").set(errors.New("the sea is rough"))
	r := b.replica(true, time.Hour)
	r.want("a.example")
	r.expectProblem("a.example", "the sea is rough")
	r.Want(map[string]*ir.Certificate{"a.example": {Secret: ir.Name{Namespace: "shop", Name: "tls"}},
		"never.example": nil})
	if got := r.problemOf("a.example"); got != "" || r.waiting() != 0 || r.hosts.Len() != 0 {
		t.Errorf("it is told %q", got)
	}
	ctx, cancel := context.WithTimeout(context.Background(), fixture.Patience)
	defer cancel()
	if r.Read(ctx); ctx.Err() != nil {
		t.Error("somebody waits for it")
	}
}

// TestManyFailures checks that many failing hosts of one object result in one verdict of limited length.
func TestManyFailures(t *testing.T) {
	b := newBench(t)
	b.issuer("one").set(errors.New("the sea is rough"))
	r := b.replica(true, time.Hour)
	all := map[string]*ir.Certificate{}
	for n := range 50 {
		all[fmt.Sprintf("h%02d.example", n)] = &ir.Certificate{Automated: true, Origin: ir.ParseRef("Ingress/shop/web")}
	}
	r.Want(all)
	r.eventually("all verdicts", func() error {
		verdicts := r.Problems()
		if len(verdicts) != 1 || len(verdicts[0].Problems) != maxProblems+1 ||
			!strings.Contains(verdicts[0].Problems[maxProblems].Message,
				"h04.example, h05.example, h06.example, h07.example and 42 more") {
			return fmt.Errorf("they are %v", verdicts)
		}
		return nil
	})
}

// TestOldFailuresGo checks that the failures of unwanted hosts are deleted a day after their NotBefore.
func TestOldFailuresGo(t *testing.T) {
	b := newBench(t)
	b.issuer("one")
	folder := filepath.Join(b.folder, "k8singress", "failures")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, age := range map[string]time.Duration{"old": 25 * time.Hour, "young": time.Hour,
		"wanted.example": 25 * time.Hour} {
		data, err := json.Marshal(failure{Attempts: 1, NotBefore: time.Now().Add(-age), Reason: "the sea is rough"})
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, name+".json"), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r := b.replica(true, time.Hour)
	r.want("wanted.example")
	r.gets("wanted.example")
	r.eventually("the sweep", func() error {
		left, err := filepath.Glob(filepath.Join(folder, "*"))
		if err == nil && (len(left) != 1 || filepath.Base(left[0]) != "young.json") {
			err = fmt.Errorf("the storage has %v", left)
		}
		return err
	})
}

// TestUnreadableCertificate checks that an unreadable certificate is reported and not replaced by an order.
func TestUnreadableCertificate(t *testing.T) {
	b := newBench(t)
	plan := b.issuer("one")
	first := b.replica(true, time.Hour)
	first.want("a.example")
	first.gets("a.example")
	first.stop()
	files, err := filepath.Glob(filepath.Join(b.folder, "certificates", "*", "*", "*.crt"))
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	if err := os.WriteFile(files[0], []byte("garbage"), 0o600); err != nil {
		t.Fatal(err)
	}
	second := b.replica(false, time.Hour)
	second.want("a.example")
	second.expectProblem("a.example", "in the storage cannot be read")
	if plan.count() != 1 {
		t.Errorf("%d orders", plan.count())
	}
}
