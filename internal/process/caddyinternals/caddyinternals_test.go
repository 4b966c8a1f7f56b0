package caddyinternals

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	_ "github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/caddyserver/caddy/v2/modules/caddytls"
	"github.com/caddyserver/certmagic"
	"github.com/mholt/acmez/v3/acme"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest"
)

// writtenAgainst lists the versions whose sources this package was written for.
var writtenAgainst = []string{
	"github.com/caddyserver/caddy/v2 v2.11.9", "github.com/caddyserver/certmagic v0.25.6",
	"github.com/mholt/acmez/v3 v3.1.7",
}

// lookAt prints what to check if a test fails.
func lookAt(t *testing.T, what string) {
	t.Helper()
	t.Cleanup(func() {
		if t.Failed() {
			t.Errorf("written against %s: look at %s, and at design/011-reaching-into-caddy.md",
				strings.Join(writtenAgainst, ", "), what)
		}
	})
}

// TestVersions checks that go.mod has the versions in writtenAgainst, so that the sources of a new version are read
// before it is used.
func TestVersions(t *testing.T) {
	lookAt(t,
		"the sources that the other tests of this file name, in the versions of go.mod; then change writtenAgainst")
	required, err := os.ReadFile("../../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	for _, module := range writtenAgainst {
		if !strings.Contains(string(required), "\t"+module+"\n") {
			t.Errorf("go.mod does not require %s", module)
		}
	}
}

// wrapped is an adapter around another adapter.
type wrapped struct{ caddyconfig.Adapter }

func TestWrapAdapter(t *testing.T) {
	lookAt(t,
		"caddyconfig/configadapters.go: whether configAdapters is a map[string]Adapter that GetAdapter reads; "+
			"without it the servers of a Caddyfile are added only after the start")
	before := caddyconfig.GetAdapter("caddyfile")
	t.Cleanup(func() { configAdapters["caddyfile"] = before })
	wrap := func(next caddyconfig.Adapter) caddyconfig.Adapter { return wrapped{next} }
	if err := WrapAdapter("caddyfile", wrap); err != nil {
		t.Fatal(err)
	}
	if got := caddyconfig.GetAdapter("caddyfile"); got != (wrapped{before}) {
		t.Errorf("Caddy uses %T", got)
	}
	if err := WrapAdapter("missing", wrap); err == nil || caddyconfig.GetAdapter("missing") != nil {
		t.Errorf("an adapter that does not exist is replaced: %v", err)
	}
}

// uncomparable is an adapter of a type that WrapAdapter does not expect.
type uncomparable struct {
	caddyconfig.Adapter
	_ []string
}

// TestWrapAdapterOfAnotherCaddy checks that an unexpected map of adapters is not changed and does not make the process
// panic.
func TestWrapAdapterOfAnotherCaddy(t *testing.T) {
	list := configAdapters
	t.Cleanup(func() { configAdapters = list })
	for name, other := range map[string]map[string]caddyconfig.Adapter{
		"no list": nil, "another type": {"caddyfile": uncomparable{}},
	} {
		configAdapters = other
		if err := WrapAdapter("caddyfile",
			func(caddyconfig.Adapter) caddyconfig.Adapter { panic("called") }); err == nil {
			t.Errorf("%s: there is no error", name)
		}
	}
}

func TestCountListener(t *testing.T) {
	lookAt(t,
		"listeners.go: whether ListenerUsage asks the UsagePool listenerPool for NETWORK/ADDRESS; without it each "+
			"load of a configuration waits for shutdown_delay")
	const network, address = "counted", "127.0.0.1:80"
	first, err := CountListener(network, address)
	if err != nil {
		t.Fatal(err)
	}
	second, err := CountListener(network, address)
	if err != nil {
		t.Fatal(err)
	}
	for want, uncount := range []func(){func() {}, first, first, second} {
		uncount()
		if want = []int{2, 1, 1, 0}[want]; caddy.ListenerUsage(network, address) != want {
			t.Errorf("Caddy counts %d, want %d", caddy.ListenerUsage(network, address), want)
		}
	}
	pool := listenerPool
	t.Cleanup(func() { listenerPool = pool })
	listenerPool = nil
	if uncount, err := CountListener(network, address); err == nil {
		t.Error("without the variable there is no error")
	} else {
		uncount()
	}
}

func TestACMEIssuer(t *testing.T) {
	lookAt(t,
		"modules/caddytls/acmeissuer.go: where SetConfig keeps the result of certmagic.NewACMEIssuer; without it "+
			"Retry-After is ignored, and renewals count towards rate limits")
	module := &caddytls.ACMEIssuer{CA: "https://ca.example/directory"}
	if inside, err := ACMEIssuer(module); inside != nil || err == nil {
		t.Errorf("before its configuration is set: %v, error %v", inside, err)
	}
	cache := certmagic.NewCache(certmagic.CacheOptions{
		GetConfigForCert: func(certmagic.Certificate) (*certmagic.Config, error) { return nil, nil },
	})
	defer cache.Stop()
	config := certmagic.New(cache, certmagic.Config{Storage: &certmagic.FileStorage{Path: t.TempDir()}})
	ctx, err := caddy.ProvisionContext(&caddy.Config{})
	if err != nil {
		t.Fatal(err)
	}
	if err := module.Provision(ctx); err != nil {
		t.Fatal(err)
	}
	module.SetConfig(config)
	inside, err := ACMEIssuer(module)
	if err != nil || inside == nil || inside.CA != module.CA || inside.IssuerKey() != module.IssuerKey() {
		t.Errorf("inside of it is %+v, error %v", inside, err)
	}
	if inside, err := ACMEIssuer(new(caddytls.InternalIssuer)); inside != nil || err != nil {
		t.Errorf("the internal issuer speaks ACME: %v, error %v", inside, err)
	}
}

func TestTrustedProxies(t *testing.T) {
	lookAt(t,
		"modules/caddyhttp/app.go: where Provision keeps the module of TrustedProxiesRaw; without it trusted_proxies "+
			"has no effect for hosts of Ingresses")
	ctx, err := caddy.ProvisionContext(&caddy.Config{AppsRaw: caddy.ModuleMap{"http": json.RawMessage(`{"servers": {
		"one": {"trusted_proxies": {"source": "static", "ranges": ["10.0.0.0/8"]}}, "two": {}
	}}`)}})
	if err != nil {
		t.Fatal(err)
	}
	loaded, err := ctx.App("http")
	if err != nil {
		t.Fatal(err)
	}
	app := loaded.(*caddyhttp.App)
	source, err := TrustedProxies(app.Servers["one"])
	if err != nil || source == nil || len(source.GetIPRanges(nil)) != 1 {
		t.Errorf("got %v, %v", source, err)
	}
	if source, err := TrustedProxies(app.Servers["two"]); source != nil || err != nil {
		t.Errorf("a server without trusted proxies has %v, %v", source, err)
	}
}

// failing is an issuer that always fails and does not use ACME.
type failing struct{ err error }

func (failing) IssuerKey() string { return "failing" }

func (f failing) Issue(context.Context, *x509.CertificateRequest) (*certmagic.IssuedCertificate, error) {
	return nil, f.err
}

// TestTapLog checks that the tap collects the errors of both failing issuers and the header of the response. certmagic
// only returns the error of the second issuer, without the header.
func TestTapLog(t *testing.T) {
	lookAt(t,
		"certmagic's obtainCert and renewCert in config.go (\"could not get certificate from issuer\") and acmez's "+
			"doHTTPRequest in acme/http.go (\"http request\"): the names and types of the fields of the log; "+
			"without them only the text of the last error counts")
	busy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "7200")
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(http.StatusTooManyRequests)
		_, _ = w.Write([]byte(`{"type": "` + acme.ProblemTypeRateLimited + `", "detail": "too many orders"}`))
	}))
	defer busy.Close()
	log, tap := TapLog(zaptest.NewLogger(t))
	var config *certmagic.Config
	cache := certmagic.NewCache(certmagic.CacheOptions{
		GetConfigForCert: func(certmagic.Certificate) (*certmagic.Config, error) { return config, nil }, Logger: log,
	})
	defer cache.Stop()
	config = certmagic.New(cache, certmagic.Config{Storage: &certmagic.FileStorage{Path: t.TempDir()}, Logger: log})
	authority := certmagic.NewACMEIssuer(config,
		certmagic.ACMEIssuer{CA: busy.URL, Email: "a@shop.example", Logger: log})
	refused := errors.New("refused")
	config.Issuers = []certmagic.Issuer{authority, failing{refused}}
	if err := config.ObtainCertSync(t.Context(), "www.shop.example"); !errors.Is(err, refused) {
		t.Fatalf("the order ends with %v", err)
	}
	var problem acme.Problem
	if err := tap.ErrorOf(authority.IssuerKey()); !errors.As(err, &problem) || problem.Detail != "too many orders" {
		t.Errorf("the error of the authority is %v", err)
	}
	if err := tap.ErrorOf("failing"); !errors.Is(err, refused) {
		t.Errorf("the error of the other issuer is %v", err)
	}
	status, after := tap.LastError()
	if wait := time.Until(after); status != http.StatusTooManyRequests || wait < time.Hour || wait > 2*time.Hour {
		t.Errorf("the last error is %d, to be tried again in %v", status, wait)
	}
}

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for text, want := range map[string]time.Time{
		"": {}, "soon": {}, "-3": {}, "120": now.Add(2 * time.Minute),
		"Fri, 02 Jan 2026 05:00:00 GMT": time.Date(2026, 1, 2, 5, 0, 0, 0, time.UTC),
	} {
		if got := parseRetryAfter(http.Header{"Retry-After": {text}}, now); !got.Equal(want) {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}

// TestRouteGroups checks that Caddy skips a route of a group that has already run, and runs it with new groups.
func TestRouteGroups(t *testing.T) {
	lookAt(t,
		"modules/caddyhttp/routes.go: whether wrapRoute looks for a map[string]struct{} under routeGroupCtxKey; "+
			"without it requests for chains with groups get 503")
	if err := CheckRouteGroups(t.Context()); err != nil {
		t.Fatal(err)
	}
	ran := 0
	route := caddyhttp.Route{Group: "group0", MatcherSets: caddyhttp.MatcherSets{{counting{&ran}}}}
	routes := caddyhttp.RouteList{route, route}
	end := caddyhttp.HandlerFunc(func(http.ResponseWriter, *http.Request) error { return nil })
	r := httptest.NewRequest(http.MethodGet, "/", http.NoBody)
	r = caddyhttp.PrepareRequest(r, caddy.NewReplacer(), httptest.NewRecorder(), new(caddyhttp.Server))
	for _, c := range []struct {
		name string
		r    *http.Request
		want int
	}{
		{"the first list", r, 1}, {"the second list", r, 1},
		{"the second list with new groups", r.WithContext(WithRouteGroups(r.Context())), 2},
	} {
		if err := routes.Compile(end).ServeHTTP(httptest.NewRecorder(), c.r); err != nil {
			t.Fatal(err)
		}
		if ran != c.want {
			t.Errorf("%s: %d routes have run, want %d", c.name, ran, c.want)
		}
	}
}

// TestRouteGroupsOfAnotherCaddy checks that CheckRouteGroups returns an error if Caddy uses another key.
func TestRouteGroupsOfAnotherCaddy(t *testing.T) {
	key := groupsKey
	t.Cleanup(func() { groupsKey = key })
	groupsKey = "another"
	if err := CheckRouteGroups(t.Context()); err == nil {
		t.Error("there is no error")
	}
}

// counting is a matcher that counts its calls.
type counting struct{ calls *int }

func (c counting) MatchWithError(*http.Request) (bool, error) {
	*c.calls++
	return true, nil
}

func TestWrapGetCertificate(t *testing.T) {
	lookAt(t,
		"modules/caddytls/connpolicy.go: whether the handshakes of a server use TLSConfig.GetCertificate of its "+
			"connection policies; without it one host cannot have certificates for two types of keys")
	ctx, err := caddy.ProvisionContext(&caddy.Config{AppsRaw: caddy.ModuleMap{
		"http": json.RawMessage(`{"servers": {"one": {"listen": ["127.0.0.1:0"], "tls_connection_policies": [{}]}}}`),
	}})
	if err != nil {
		t.Fatal(err)
	}
	app, err := ctx.App("http")
	if err != nil {
		t.Fatal(err)
	}
	server := app.(*caddyhttp.App).Servers["one"]
	ours := errors.New("ours is called")
	if n := WrapGetCertificate(server, func(GetCertificate) GetCertificate {
		return func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return nil, ours }
	}); n != len(server.TLSConnPolicies) || n == 0 {
		t.Errorf("%d of %d policies are changed", n, len(server.TLSConnPolicies))
	}
	client, conn := net.Pipe()
	defer client.Close()
	defer conn.Close()
	// The goroutine ends when the pipe is closed.
	go func() { _ = tls.Client(client, &tls.Config{ServerName: "shop.example"}).Handshake() }()
	if err := tls.Server(conn, server.TLSConnPolicies.TLSConfig(ctx)).HandshakeContext(t.Context()); !errors.Is(err,
		ours) {
		t.Errorf("the handshake ends with %v", err)
	}
	// A server without the expected fields is not changed.
	if n := WrapGetCertificate(&caddyhttp.Server{TLSConnPolicies: caddytls.ConnectionPolicies{{}, nil}}, nil); n != 0 {
		t.Errorf("%d policies without a configuration are changed", n)
	}
	if n := WrapGetCertificate(nil, nil); n != 0 {
		t.Errorf("%d policies of no server are changed", n)
	}
}

// TestRunningConfig checks that the result is the configuration that Caddy has loaded, and that waiting for Caddy's
// lock ends with the context.
func TestRunningConfig(t *testing.T) {
	lookAt(t,
		"caddy.go: whether rawCfgJSON is the running configuration, and whether changeConfig holds rawCfgMu; without "+
			"them the controller reads the configuration from the admin API, which logs each request")
	const config = `{"admin":{"config":{"persist":false},"disabled":true}}`
	if err := caddy.Load([]byte(config), true); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = caddy.Stop() })
	if got, err := RunningConfig(t.Context()); err != nil || string(got) != config {
		t.Errorf("got %s, error %v", got, err)
	}
	rawCfgMu.Lock()
	defer rawCfgMu.Unlock()
	ended, end := context.WithCancel(t.Context())
	end()
	if got, err := RunningConfig(ended); !errors.Is(err, context.Canceled) {
		t.Errorf("while Caddy loads a configuration: %s, error %v", got, err)
	}
}

// TestLogFields checks that the fields that handlers add to the access log can be read.
func TestLogFields(t *testing.T) {
	lookAt(t,
		"modules/caddyhttp/logging.go: whether ExtraLogFields keeps the fields in a field with the name fields; "+
			"without it log_append has no effect in a chain")
	extra := new(caddyhttp.ExtraLogFields)
	extra.Add(zap.String("a", "1"))
	extra.Set(zap.Int("b", 2))
	got, want := LogFields(extra), []zap.Field{zap.String("a", "1"), zap.Int("b", 2)}
	if !slices.EqualFunc(got, want, zap.Field.Equals) {
		t.Errorf("the fields are %v, want %v", got, want)
	}
	if got := LogFields(nil); got != nil {
		t.Errorf("without a request the fields are %v", got)
	}
}
