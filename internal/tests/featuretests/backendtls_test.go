package featuretests

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/k8singress/k8singress/internal/tests/fixture"
)

// named returns a certificate with these names, signed by issuer.
func named(t testing.TB, issuer *fixture.Identity, names ...string) *fixture.Identity {
	t.Helper()
	return fixture.Identify(t, issuer, &x509.Certificate{
		Subject: pkix.Name{CommonName: "endpoint"}, DNSNames: names,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	})
}

// commonly returns a certificate that has only a common name.
func commonly(t testing.TB, issuer *fixture.Identity, name string) *fixture.Identity {
	t.Helper()
	return fixture.Identify(t, issuer, &x509.Certificate{Subject: pkix.Name{CommonName: name}})
}

// over starts an endpoint with this TLS configuration. Its response is the common name of the client certificate and
// the server name.
func over(t testing.TB, config *tls.Config) (ip, port string) {
	t.Helper()
	return serving(t, config, func(w http.ResponseWriter, r *http.Request) {
		who := "nobody"
		if len(r.TLS.PeerCertificates) > 0 {
			who = r.TLS.PeerCertificates[0].Subject.CommonName
		}
		fmt.Fprintf(w, "%s %q", who, r.TLS.ServerName)
	})
}

func serving(t testing.TB, config *tls.Config, handler http.HandlerFunc) (ip, port string) {
	t.Helper()
	server := httptest.NewUnstartedServer(handler)
	server.TLS = config
	// Failed handshakes are expected, so do not log them.
	server.Config.ErrorLog = zap.NewStdLog(zap.NewNop())
	server.StartTLS()
	t.Cleanup(server.Close)
	return hostPort(t, server.Listener.Addr())
}

// secured returns an Ingress "default/NAME" for NAME.example, with its own Service and the Secret of the same name.
func secured(name, ip, port string, secret map[string][]byte, annotations ...string) string {
	all := append([]string{"backend-protocol", "HTTPS", "proxy-ssl-secret", "default/" + name}, annotations...)
	return service(name, port, ip) + opaque(name, secret) + annotated(name, name+".example", name, all...)
}

// TestVerifiedEndpoints checks that an endpoint gets no request if its certificate does not match the settings
// of the Ingress.
func TestVerifiedEndpoints(t *testing.T) {
	ca, other := fixture.Authority(t, nil, "ca"), fixture.Authority(t, nil, "other")
	lower := fixture.Authority(t, fixture.Authority(t, ca, "upper"), "lower")
	web := named(t, ca, "web.internal")
	trusted := map[string][]byte{"ca.crt": ca.PEM()}
	verify := []string{"proxy-ssl-verify", "on", "proxy-ssl-name", "web.internal"}
	cases := map[string]struct {
		endpoint    *fixture.Identity
		secret      map[string][]byte
		annotations []string
		want        int
	}{
		"good":            {web, trusted, verify, 200},
		"good-of-two":     {web, map[string][]byte{"ca.crt": slices.Concat(other.PEM(), ca.PEM())}, verify, 200},
		"common-name":     {commonly(t, ca, "web.internal"), trusted, verify, 200},
		"wildcard":        {named(t, ca, "*.internal"), trusted, verify, 200},
		"itself":          {web, map[string][]byte{"ca.crt": web.PEM()}, verify, 200},
		"wrong-authority": {web, map[string][]byte{"ca.crt": other.PEM()}, verify, 502},
		"wrong-name":      {named(t, ca, "mail.internal"), trusted, verify, 502},
		"name-besides": {fixture.Identify(t, ca, &x509.Certificate{
			Subject: pkix.Name{CommonName: "web.internal"}, DNSNames: []string{"x"},
		}), trusted, verify, 502},
		"no-name":           {web, trusted, []string{"proxy-ssl-verify", "on"}, 502},
		"upstream-balancer": {named(t, ca, "upstream_balancer"), trusted, []string{"proxy-ssl-verify", "on"}, 200},
		"expired": {fixture.Identify(t, ca, &x509.Certificate{
			DNSNames: []string{"web.internal"}, NotBefore: time.Now().Add(-2 * time.Hour),
			NotAfter: time.Now().Add(-time.Hour),
		}), trusted, verify, 502},
		"for-clients": {fixture.Identify(t, ca, &x509.Certificate{
			DNSNames: []string{"web.internal"}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
		}), trusted, verify, 502},
		"revoked": {web, map[string][]byte{"ca.crt": ca.PEM(),
			"ca.crl": ca.Revoking(t, time.Now().Add(time.Hour), web)}, verify, 502},
		"not-revoked": {
			web, map[string][]byte{"ca.crt": ca.PEM(), "ca.crl": ca.Revoking(t, time.Now().Add(time.Hour), lower)},
			verify, 200,
		},
		"too-deep": {named(t, lower, "web.internal"), trusted, verify, 502},
		"deep": {named(t, lower, "web.internal"), trusted,
			append([]string{"proxy-ssl-verify-depth", "2"}, verify...), 200},
		"verify-off": {named(t, other, "x"), trusted,
			[]string{"proxy-ssl-verify", "off", "proxy-ssl-name", "web.internal"}, 200},
		"no-secret":        {web, nil, verify, 502},
		"no-secret-off":    {web, nil, []string{"proxy-ssl-verify", "off"}, 502},
		"no-authority":     {web, web.Secret(), verify, 502},
		"no-authority-off": {web, web.Secret(), nil, 200},
		"garbage":          {web, map[string][]byte{"ca.crt": []byte("garbage")}, verify, 502},
		"garbage-list":     {web, map[string][]byte{"ca.crt": ca.PEM(), "ca.crl": []byte("garbage")}, verify, 502},
		"garbage-pair": {web, map[string][]byte{"ca.crt": ca.PEM(), "tls.crt": []byte("garbage"),
			"tls.key": []byte("garbage")}, verify, 502},
		"nothing-in-it":     {web, map[string][]byte{"else": []byte("x")}, nil, 502},
		"newest-version":    {web, trusted, append([]string{"proxy-ssl-protocols", "TLSv1.3"}, verify...), 200},
		"not-his-version":   {web, trusted, append([]string{"proxy-ssl-protocols", "TLSv1.2"}, verify...), 502},
		"another-namespace": {web, trusted, append([]string{"proxy-ssl-secret", "shop/x"}, verify...), 503},
		"no-name-of-secret": {web, trusted, append([]string{"proxy-ssl-secret", "x"}, verify...), 503},
		"verify-means-other": {named(t, other, "x"), trusted,
			[]string{"proxy-ssl-verify", "true", "proxy-ssl-name", "web.internal"}, 200},
	}
	var manifests strings.Builder
	asked := map[string]*log{}
	for name, c := range cases {
		requests := &log{}
		ip, port := serving(t, &tls.Config{Certificates: []tls.Certificate{c.endpoint.Pair()},
			MinVersion: tls.VersionTLS13},
			func(http.ResponseWriter, *http.Request) { requests.add("one") })
		asked[name] = requests
		if slices.Contains(c.annotations, "proxy-ssl-secret") {
			manifests.WriteString(service(name, port, ip) + opaque(name, c.secret) +
				annotated(name, name+".example", name,
					append([]string{"backend-protocol", "HTTPS"}, c.annotations...)...))
			continue
		}
		manifests.WriteString(secured(name, ip, port, c.secret, c.annotations...))
	}
	in := start(t, class+manifests.String())
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := in.get(name+".example", "/")
			if got.status != c.want {
				t.Errorf("the answer is %d %q, want %d", got.status, got.body, c.want)
			}
			if n := len(asked[name].take()); (n == 1) != (c.want == 200) || n > 1 {
				t.Errorf("the endpoint got %d requests", n)
			}
			if reasons := in.reasons("Ingress/default/" + name); c.want == 503 &&
				!slices.Contains(reasons, "InvalidAnnotation") {
				t.Errorf("reasons are %q", reasons)
			}
		})
	}
	for name, want := range map[string]string{
		"no-secret": "SecretNotFound", "garbage": "InvalidCA", "garbage-pair": "InvalidTLSSecret",
		"nothing-in-it": "InvalidTLSSecret",
	} {
		if got := in.reasons("Ingress/default/" + name); !slices.Contains(got, want) {
			t.Errorf("%s: reasons are %q, without %s", name, got, want)
		}
	}
}

// TestEndpointsRequireCertificates checks that each Ingress presents its own client certificate to the same
// endpoint, on its own connections.
func TestEndpointsRequireCertificates(t *testing.T) {
	ca := fixture.Authority(t, nil, "ca")
	alice, bob, none := commonly(t, ca, "alice"), commonly(t, ca, "bob"), commonly(t, ca, "none")
	pool := x509.NewCertPool()
	pool.AddCert(ca.Leaf)
	ip, port := over(t, &tls.Config{
		Certificates: []tls.Certificate{named(t, ca, "web.internal").Pair()}, ClientAuth: tls.VerifyClientCertIfGiven,
		ClientCAs: pool,
	})
	stranger := commonly(t, fixture.Authority(t, nil, "stranger"), "stranger")
	in := start(t, class+
		secured("alice", ip, port, alice.Secret())+
		secured("bob", ip, port, bob.Secret(), "proxy-ssl-server-name", "on", "proxy-ssl-name", "web.internal")+
		secured("none", ip, port, map[string][]byte{"ca.crt": none.PEM()}, "proxy-ssl-server-name", "off",
			"proxy-ssl-name", "web.internal")+
		secured("stranger", ip, port, stranger.Secret())+
		service("plain", port, ip)+annotated("plain", "plain.example", "plain", "backend-protocol", "HTTPS")+
		annotated("bobs", "bobs.example", "bob", "backend-protocol", "HTTPS", "proxy-ssl-secret", "default/bob",
			"proxy-ssl-server-name", "on", "proxy-ssl-name", "mail.internal"))
	for range 3 {
		in.expect("alice.example", "/", 200, `alice ""`)
		in.expect("bob.example", "/", 200, `bob "web.internal"`)
		in.expect("bobs.example", "/", 200, `bob "mail.internal"`)
		in.expect("none.example", "/", 200, `nobody ""`)
		in.expect("plain.example", "/", 200, `nobody ""`)
		in.expect("stranger.example", "/", 502, "")
	}
}

// TestClientCertificateForEndpointsChanges checks that no request fails when the client certificate for endpoints
// changes under load.
func TestClientCertificateForEndpointsChanges(t *testing.T) {
	ca := fixture.Authority(t, nil, "ca")
	pool := x509.NewCertPool()
	pool.AddCert(ca.Leaf)
	ip, port := over(t, &tls.Config{
		Certificates: []tls.Certificate{named(t, ca, "web.internal").Pair()},
		ClientAuth:   tls.RequireAndVerifyClientCert, ClientCAs: pool,
	})
	as := func(name string) string {
		data := commonly(t, ca, name).Secret()
		data["ca.crt"] = ca.PEM()
		return opaque("web", data)
	}
	rest := class + secured("web", ip, port, nil, "proxy-ssl-verify", "on", "proxy-ssl-name", "web.internal")
	in := start(t, rest)
	in.expect("web.example", "/", 502, "")
	in.write("secret.yaml", as("0"))
	in.becomes("web.example", "/", 200, `0 ""`)

	var workers sync.WaitGroup
	failed, stop := &log{}, make(chan struct{})
	for range 8 {
		workers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if err := in.post("web.example"); err != nil {
					failed.add("%v", err)
				}
			}
		})
	}
	for i := range 5 {
		in.write("secret.yaml", as(fmt.Sprint(i+1)))
		in.becomes("web.example", "/", 200, fmt.Sprintf(`%d ""`, i+1))
		for range 20 {
			in.expect("web.example", "/", 200, fmt.Sprintf(`%d ""`, i+1))
		}
	}
	close(stop)
	workers.Wait()
	if got := failed.take(); len(got) > 0 {
		t.Errorf("%d requests failed: %q", len(got), got[0])
	}

	// With an unreadable authority, no endpoint passes verification, not even on an open connection.
	in.write("secret.yaml", opaque("web", map[string][]byte{"ca.crt": []byte("garbage")}))
	in.becomes("web.example", "/", 502, "")
	in.write("secret.yaml", as("mended"))
	in.becomes("web.example", "/", 200, `mended ""`)
	other := commonly(t, ca, "another").Secret()
	other["ca.crt"] = fixture.Authority(t, nil, "another").PEM()
	in.write("secret.yaml", opaque("web", other))
	in.becomes("web.example", "/", 502, "")
	in.remove("secret.yaml")
	in.eventually("verdict", func() error {
		if got := in.reasons("Ingress/default/web"); !slices.Contains(got, "SecretNotFound") {
			return fmt.Errorf("reasons are %q", got)
		}
		return nil
	})
	in.expect("web.example", "/", 502, "")
	in.write("secret.yaml", as("back"))
	in.becomes("web.example", "/", 200, `back ""`)
}

// post sends a request that must not be retried. It is safe for concurrent use.
func (in *ingress) post(host string) error {
	request, err := http.NewRequestWithContext(in.Context(), http.MethodPost, "http://"+in.http, strings.NewReader("x"))
	if err != nil {
		return err
	}
	request.Host = host
	response, err := in.client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if _, err = io.Copy(io.Discard, response.Body); err == nil && response.StatusCode != http.StatusOK {
		err = errors.New(response.Status)
	}
	return err
}

// TestGRPCWithCertificates checks gRPC with certificates of both the controller and the endpoint.
func TestGRPCWithCertificates(t *testing.T) {
	ca := fixture.Authority(t, nil, "ca")
	pool := x509.NewCertPool()
	pool.AddCert(ca.Leaf)
	_, ip, port := serveGRPC(t, grpc.Creds(credentials.NewTLS(&tls.Config{
		Certificates: []tls.Certificate{named(t, ca, "web.internal").Pair()},
		ClientAuth:   tls.RequireAndVerifyClientCert, ClientCAs: pool,
	})))
	data := commonly(t, ca, "me").Secret()
	data["ca.crt"] = ca.PEM()
	in := start(t, class+service("one", port, ip)+opaque("one", data)+oneWith("backend-protocol: GRPCS",
		"proxy-ssl-secret: default/one",
		"proxy-ssl-verify: on", "proxy-ssl-name: web.internal"))
	conn := caller(t, in.https, trusting)
	oneAnswer(t, conn)
	bothWays(t, conn)
}

// TestWebSocketWithCertificates checks that the endpoint of an upgraded connection is verified like any other.
func TestWebSocketWithCertificates(t *testing.T) {
	ca := fixture.Authority(t, nil, "ca")
	ends := make(chan string, 10)
	ip, port := serving(t, &tls.Config{Certificates: []tls.Certificate{named(t, ca, "web.internal").Pair()}},
		sockets(t, ends))
	in := start(t, class+service("one", port, ip)+opaque("one", map[string][]byte{"ca.crt": ca.PEM()})+
		oneWith("backend-protocol: HTTPS", "proxy-ssl-secret: default/one", "proxy-ssl-verify: on",
			"proxy-ssl-name: web.internal"))
	d := in.socket("/echo")
	d.say("hello\n")
	if got := d.line(); got != "hello" {
		t.Errorf("got %q", got)
	}
}

// TestHealthCheckWithCertificates checks that health checks use the same TLS settings as requests, and that an
// endpoint that fails verification is unhealthy.
func TestHealthCheckWithCertificates(t *testing.T) {
	ca := fixture.Authority(t, nil, "ca")
	pool := x509.NewCertPool()
	pool.AddCert(ca.Leaf)
	checked := make(chan string, 100)
	ip, port := serving(t, &tls.Config{
		Certificates: []tls.Certificate{named(t, ca, "web.internal").Pair()},
		ClientAuth:   tls.RequireAndVerifyClientCert, ClientCAs: pool,
	}, func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/healthz" {
			checked <- fmt.Sprintf("%s %q", r.TLS.PeerCertificates[0].Subject.CommonName, r.TLS.ServerName)
		}
	})
	data := commonly(t, ca, "me").Secret()
	data["ca.crt"] = ca.PEM()
	in := start(t, class+secured("web", ip, port, data, "proxy-ssl-verify", "on", "proxy-ssl-name", "web.internal",
		"proxy-ssl-server-name", "on",
		"k8singress.io/health-check-path", "/healthz", "k8singress.io/health-check-interval", "1"))
	if got := await(t, "a health check", checked); got != `me "web.internal"` {
		t.Errorf("asked by %s", got)
	}
	in.expect("web.example", "/", 200, "")
}

// TestConnectionsOfASecret checks that connections are reused by later requests, and closed when the Secret or the
// last Ingress is removed.
func TestConnectionsOfASecret(t *testing.T) {
	ca := fixture.Authority(t, nil, "ca")
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	server.TLS = &tls.Config{Certificates: []tls.Certificate{named(t, ca, "web.internal").Pair()},
		ClientAuth: tls.RequestClientCert}
	var mu sync.Mutex
	opened, open := 0, 0
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		mu.Lock()
		defer mu.Unlock()
		switch state {
		case http.StateNew:
			opened, open = opened+1, open+1
		case http.StateClosed, http.StateHijacked:
			open--
		case http.StateActive, http.StateIdle:
		}
	}
	server.StartTLS()
	t.Cleanup(server.Close)
	ip, port := hostPort(t, server.Listener.Addr())
	in := start(t, class+secured("a", ip, port, commonly(t, ca, "a").Secret()))
	in.write("same.yaml", annotated("b", "b.example", "a", "backend-protocol", "HTTPS",
		"proxy-ssl-secret", "default/a"))
	in.becomes("b.example", "/", 200, "")
	expect := func(what string, wantOpened, wantOpen int) {
		t.Helper()
		in.eventually(what, func() error {
			mu.Lock()
			defer mu.Unlock()
			if opened != wantOpened || open != wantOpen {
				return fmt.Errorf("%d connections were opened, and %d are", opened, open)
			}
			return nil
		})
	}
	for range 5 {
		in.expect("a.example", "/", 200, "")
		in.expect("b.example", "/", 200, "")
	}
	expect("one connection for both", 1, 1)
	in.load(fmt.Sprintf("manifests %s\nchain unused {\nrespond 204\n}", in.folder))
	in.expect("a.example", "/", 200, "")
	expect("the same one after a reload", 1, 1)

	in.write("manifests.yaml", class+secured("a", ip, port, commonly(t, ca, "another").Secret()))
	in.eventually("another connection", func() error {
		in.expect("a.example", "/", 200, "")
		mu.Lock()
		defer mu.Unlock()
		if opened == 1 {
			return errors.New("it is the old one")
		}
		return nil
	})
	expect("the old one is closed", 2, 1)
	in.remove("same.yaml")
	in.remove("manifests.yaml")
	expect("nobody is left", 2, 0)
}

// TestCiphersOfEndpoints checks that the annotation's cipher is used, and that the handshake fails if the endpoint
// does not support it.
func TestCiphersOfEndpoints(t *testing.T) {
	ca := fixture.Authority(t, nil, "ca")
	ip, port := serving(t, &tls.Config{
		Certificates: []tls.Certificate{named(t, ca, "web.internal").Pair()}, MaxVersion: tls.VersionTLS12,
		CipherSuites: []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
			tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384},
	}, func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, tls.CipherSuiteName(r.TLS.CipherSuite)) })
	data := map[string][]byte{"ca.crt": ca.PEM()}
	in := start(t, class+secured("small", ip, port, data, "proxy-ssl-ciphers", "ECDHE-ECDSA-AES128-GCM-SHA256")+
		secured("large", ip, port, data, "proxy-ssl-ciphers", "ECDHE-ECDSA-AES256-GCM-SHA384")+
		secured("other", ip, port, data, "proxy-ssl-ciphers", "ECDHE-ECDSA-CHACHA20-POLY1305"))
	in.expect("small.example", "/", http.StatusOK, "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256")
	in.expect("large.example", "/", http.StatusOK, "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384")
	in.expect("other.example", "/", http.StatusBadGateway, "")
}

// TestBackendTLSOfTheOldest checks that an Ingress beside one with proxy-ssl-secret gets a warning that this Secret is
// not used for its own endpoints, unless the administrator disables the warning with proxy-ssl-location-only.
func TestBackendTLSOfTheOldest(t *testing.T) {
	ca := fixture.Authority(t, nil, "ca")
	ip, port := over(t, &tls.Config{Certificates: []tls.Certificate{named(t, ca, "web.internal").Pair()}})
	in := start(t, class+secured("web", ip, port, map[string][]byte{"ca.crt": ca.PEM()})+
		annotate(rule("beside", "web.example", "Prefix", "/beside", "web"), "backend-protocol", "HTTPS"),
		"configmap default/global")
	in.awaitVerdict("Ingress/default/beside", "HostConflict", "proxy-ssl-location-only")
	in.write("configmap.yaml", global(`proxy-ssl-location-only: "true"`))
	in.awaitReasons("Ingress/default/beside")
	in.write("configmap.yaml", global(`proxy-ssl-location-only: "false"`))
	in.awaitVerdict("Ingress/default/beside", "HostConflict", "proxy-ssl-location-only")
}
