package featuretests

import (
	"bufio"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/caddyserver/caddy/v2"

	"github.com/k8singress/k8singress/internal/tests/fixture"
)

// startSecure runs a controller with shop.example and other.example, both with ECDSA certificates.
func startSecure(t *testing.T) *ingress {
	t.Helper()
	ip, port := backend(t, "web")
	return start(t, class+service("web", port, ip)+secureHost("shop", "")+secureHost("other", ""),
		"configmap default/global")
}

// secureHost returns an Ingress for NAME.example with a tls entry, and with an annotation "name: value" unless it is
// empty.
func secureHost(name, annotation string) string {
	host := name + ".example"
	text := withTLS(rule(name, host, "Prefix", "/", "web"), host, "nowhere")
	if annotation != "" {
		text = strings.Replace(text, "metadata: {name: "+name+"}",
			fmt.Sprintf("metadata:\n  name: %s\n  annotations: {nginx.ingress.kubernetes.io/%s}", name, annotation), 1)
	}
	return text
}

// handshake returns the result of a client's TLS handshake with a host.
func (in *ingress) handshake(host string, config *tls.Config) (tls.ConnectionState, error) {
	in.Helper()
	config = config.Clone()
	config.ServerName, config.InsecureSkipVerify = host, true
	conn, err := tls.Dial("tcp", in.https, config)
	if err != nil {
		return tls.ConnectionState{}, err
	}
	defer conn.Close()
	return conn.ConnectionState(), nil
}

// agrees waits until the handshake of a client with a host succeeds (want is true) or fails.
func (in *ingress) agrees(host string, config *tls.Config, want bool) {
	in.Helper()
	in.eventually("the handshake", func() error {
		if _, err := in.handshake(host, config); (err == nil) != want {
			return errors.Join(fmt.Errorf("%s takes a client of the versions %x to %x: %t", host, config.MinVersion,
				config.MaxVersion, !want), err)
		}
		return nil
	})
}

var (
	only12 = &tls.Config{MaxVersion: tls.VersionTLS12}
	only13 = &tls.Config{MinVersion: tls.VersionTLS13}
	// chacha and aes are clients with one cipher of TLS 1.2.
	chacha = &tls.Config{MaxVersion: tls.VersionTLS12,
		CipherSuites: []uint16{tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256}}
	aes = &tls.Config{MaxVersion: tls.VersionTLS12,
		CipherSuites: []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256}}
)

// TestTLSVersions checks that the TLS versions of all hosts, of one class's hosts, and of unknown names change without
// a reload.
func TestTLSVersions(t *testing.T) {
	in := startSecure(t)
	for _, step := range []struct {
		keys             []string
		takes12, takes13 bool
	}{
		{nil, true, true},
		{[]string{"ssl-protocols=TLSv1.3"}, false, true},
		{[]string{"ssl-protocols=TLSv1.2"}, true, false},
		{[]string{"ssl-protocols=TLSv1 TLSv1.1 TLSv1.2 TLSv1.3"}, true, true},
		{[]string{"ssl-protocols=TLSv1.3 SSLv3"}, false, true},
		{[]string{"ssl-protocols=TLSv1.1"}, true, true},
	} {
		if step.keys != nil {
			in.globalKeys(step.keys...)
		}
		for _, host := range []string{"shop.example", "nobody.example"} {
			in.agrees(host, only12, step.takes12)
			in.agrees(host, only13, step.takes13)
		}
		in.agrees("shop.example", &tls.Config{MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11}, false)
	}
	in.globalKeys("ssl-protocols=TLSv1.3")
	in.write("class.yaml", `
apiVersion: networking.k8s.io/v1
kind: IngressClass
metadata: {name: old}
spec:
  controller: k8s.io/ingress-nginx
  parameters: {kind: ConfigMap, name: old, namespace: default, scope: Namespace}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: old}
data: {ssl-protocols: TLSv1.2 TLSv1.3}
`+strings.Replace(secureHost("old", ""), "ingressClassName: nginx", "ingressClassName: old", 1))
	in.agrees("old.example", only12, true)
	in.agrees("shop.example", only12, false)
	in.neverReloads()
}

// TestCiphers checks that the ciphers of one host, of all hosts, and of unknown names change without a reload.
func TestCiphers(t *testing.T) {
	in := startSecure(t)
	in.agrees("shop.example", aes, true)
	in.agrees("shop.example", chacha, true)
	in.write("more.yaml", secureHost("picky", "ssl-ciphers: ECDHE-ECDSA-AES128-GCM-SHA256"))
	in.agrees("picky.example", chacha, false)
	in.agrees("picky.example", aes, true)
	in.agrees("picky.example", only13, true)
	in.agrees("shop.example", chacha, true)
	in.write("again.yaml", secureHost("again", "ssl-ciphers: 'ECDHE-ECDSA-AES128-GCM-SHA256:!aNULL'"))
	in.agrees("again.example", chacha, false)
	in.remove("more.yaml")
	in.agrees("picky.example", chacha, true)
	in.write("again.yaml", secureHost("again", "ssl-ciphers: ECDHE-ECDSA-CHACHA20-POLY1305"))
	in.agrees("again.example", chacha, true)
	in.agrees("again.example", aes, false)
	in.globalKeys("ssl-ciphers=ECDHE-ECDSA-AES128-GCM-SHA256")
	in.agrees("nobody.example", chacha, false)
	in.agrees("again.example", aes, false)
	in.neverReloads()
}

// TestTenant07 checks that edits of ciphers by one Ingress take effect and close no connection of another Ingress,
// however many there are.
func TestTenant07(t *testing.T) {
	in := startSecure(t)
	client := in.secureClient()
	var made atomic.Int32
	trace := &httptrace.ClientTrace{ConnectStart: func(string, string) { made.Add(1) }}
	ask := func() {
		t.Helper()
		request, err := http.NewRequestWithContext(httptrace.WithClientTrace(t.Context(), trace), http.MethodGet,
			"https://"+in.https+"/", nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Host = "shop.example"
		response, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		if got := read(t, response); got.status != http.StatusOK {
			t.Fatalf("the other tenant's client gets %d", got.status)
		}
	}
	for range 20 {
		for cipher, takes := range map[string]*tls.Config{"ECDHE-ECDSA-AES128-GCM-SHA256": aes,
			"ECDHE-ECDSA-CHACHA20-POLY1305": chacha} {
			in.write("picky.yaml", secureHost("picky", "ssl-ciphers: "+cipher))
			in.agrees("picky.example", takes, true)
			ask()
		}
	}
	if n := made.Load(); n != 1 {
		t.Errorf("the other tenant's client has made %d connections", n)
	}
	in.neverReloads()
}

// TestRejectHandshake checks that handshakes for unknown names are rejected with the key, and get a certificate
// without it.
func TestRejectHandshake(t *testing.T) {
	in := startSecure(t)
	in.agrees("nobody.example", &tls.Config{}, true)
	in.globalKeys("ssl-reject-handshake=true")
	in.agrees("nobody.example", &tls.Config{}, false)
	in.agrees("shop.example", &tls.Config{}, true)
	in.agrees("SHOP.example", &tls.Config{}, true)
	in.agrees("", &tls.Config{}, false)
	in.globalKeys("ssl-reject-handshake=false")
	in.agrees("nobody.example", &tls.Config{}, true)
}

func TestWithoutHTTP2(t *testing.T) {
	in := startSecure(t)
	both := &tls.Config{NextProtos: []string{"h2", "http/1.1"}}
	for _, step := range []struct{ value, want string }{{"true", "h2"}, {"false", "http/1.1"}, {"true", "h2"}} {
		in.write("configmap.yaml", global(fmt.Sprintf("use-http2: %q", step.value)))
		in.eventually("ALPN", func() error {
			state, err := in.handshake("shop.example", both)
			if err == nil && state.NegotiatedProtocol != step.want {
				return fmt.Errorf("it is %q, want %s", state.NegotiatedProtocol, step.want)
			}
			return err
		})
	}
	in.neverReloads()
}

// secureClient returns a client that sends requests over HTTPS.
func (in *ingress) secureClient() *http.Client {
	client := &http.Client{Timeout: deadline, Transport: &http.Transport{
		TLSClientConfig: &tls.Config{ServerName: "shop.example", InsecureSkipVerify: true}, ForceAttemptHTTP2: true,
	}}
	in.Cleanup(client.CloseIdleConnections)
	return client
}

// TestHSTS checks that each response over HTTPS has exactly one HSTS header, whatever the endpoint sends and whichever
// handler responds.
func TestHSTS(t *testing.T) {
	ip, port := strictBackend(t)
	in := start(t, class+service("web", port, ip)+service("nobody", port)+secureHost("shop", "")+
		rule("none", "shop.example", "Exact", "/none", "nobody"), "configmap default/global")
	client := in.secureClient()
	for _, step := range []struct{ keys, want []string }{
		{nil, []string{"max-age=31536000; includeSubDomains"}},
		{[]string{"hsts-preload=true", "hsts-max-age=63072000", "hsts-include-subdomains=false"},
			[]string{"max-age=63072000; preload"}},
		{[]string{"hsts-max-age=0"}, []string{"max-age=0; includeSubDomains"}},
		{[]string{"hsts=false"}, nil},
	} {
		if step.keys != nil {
			in.globalKeys(step.keys...)
		}
		for _, question := range []struct {
			host, path, header string
			status             int
		}{
			{"shop.example", "/", "X-A", 200}, {"shop.example", "/none", "X-None", 503},
			{"nobody.example", "/", "X-Nobody", 404},
		} {
			got := in.askSecurely(client, question.host, question.path, question.header)
			want := step.want
			if want == nil && question.status == http.StatusOK {
				want = []string{"max-age=1"}
			}
			if sent := got.header["Strict-Transport-Security"]; got.status != question.status ||
				!slices.Equal(sent, want) {
				t.Errorf("%v, %s%s with %s: %d with %q, want %d with %q", step.keys, question.host, question.path,
					question.header,
					got.status, sent, question.status, want)
			}
		}
	}
}

// strictBackend starts an endpoint with its own HSTS header.
func strictBackend(t *testing.T) (ip, port string) {
	t.Helper()
	return endpointOf(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Strict-Transport-Security", "max-age=1")
		_, _ = io.WriteString(w, "ok")
	})
}

func (in *ingress) askSecurely(client *http.Client, host, path, header string) answer {
	in.Helper()
	request, err := http.NewRequestWithContext(in.Context(), http.MethodGet, "https://"+in.https+path, nil)
	if err != nil {
		in.Fatal(err)
	}
	request.Host = host
	request.Header.Set(header, "?0")
	response, err := client.Do(request)
	if err != nil {
		in.Fatal(err)
	}
	return read(in, response)
}

// TestHSTSOfASite checks that the HSTS header in an administrator's own site is used there.
func TestHSTSOfASite(t *testing.T) {
	ip, port := backend(t, "web")
	in := newIngress(t)
	in.write("manifests.yaml", class+service("web", port, ip)+rule("web", "site.localhost", "Prefix", "/web", "web"))
	site := fixture.Address(t)
	_, sitePort, _ := strings.Cut(site, ":")
	in.loadCaddyfile(fmt.Sprintf(`{
	admin %s
	local_certs
	skip_install_trust
	k8singress {
		http %s
		https %s
		manifests %s
	}
}
https://site.localhost:%s {
	bind 127.0.0.1
	tls internal
	route {
		header /own* Strict-Transport-Security max-age=7
		header /web/own* Strict-Transport-Security max-age=7
		k8singress {
			pass_thru
		}
		respond "site"
	}
}
`, in.admin, in.http, in.https, in.folder, sitePort))
	in.awaitReady()
	client := in.secureClient()
	client.Transport.(*http.Transport).TLSClientConfig.ServerName = "site.localhost"
	in.https = site
	in.agrees("site.localhost", &tls.Config{}, true)
	for path, want := range map[string]string{"/": "", "/own": "max-age=7",
		"/web": "max-age=31536000; includeSubDomains", "/web/own": "max-age=7"} {
		got := in.askSecurely(client, "site.localhost", path, "X-A")
		if sent := strings.Join(got.header["Strict-Transport-Security"], "|"); got.status != http.StatusOK ||
			sent != want {
			t.Errorf("%s: %d %q with %q, want %q", path, got.status, got.body, sent, want)
		}
	}
}

// TestSessionTickets checks that a TLS session can be resumed at a replica with the same storage, and at no other.
func TestSessionTickets(t *testing.T) {
	for name, c := range map[string]struct {
		storage string
		resumes bool
	}{
		"shared": {"storage file_system " + t.TempDir(), true},
		"none":   {"", false},
	} {
		t.Run(name, func(t *testing.T) {
			sessions := &tls.Config{ClientSessionCache: tls.NewLRUClientSessionCache(4)}
			for replica := range 2 {
				in := newIngress(t)
				ip, port := backend(t, "web")
				in.write("manifests.yaml", class+service("web", port, ip)+secureHost("shop", ""))
				in.loadCaddyfile(fmt.Sprintf("{\n%s\nadmin %s\nk8singress {\nhttp %s\nhttps %s\nmanifests %s\n}\n}\n",
					c.storage, in.admin, in.http, in.https, in.folder))
				in.awaitReady()
				if resumed, want := in.resumes(sessions), replica > 0 && c.resumes; resumed != want {
					t.Errorf("at replica %d: resumed is %t, want %t", replica, resumed, want)
				}
				if !in.resumes(sessions) {
					t.Errorf("replica %d does not resume a session of its own", replica)
				}
				if err := caddy.Stop(); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// resumes sends one request on a new connection, and reports whether its TLS session was resumed. Tickets arrive with
// the response.
func (in *ingress) resumes(config *tls.Config) bool {
	in.Helper()
	config = config.Clone()
	config.ServerName, config.InsecureSkipVerify = "shop.example", true
	client := &http.Client{Timeout: deadline,
		Transport: &http.Transport{TLSClientConfig: config, DisableKeepAlives: true}}
	response, err := client.Get("https://" + in.https + "/")
	if err != nil {
		in.Fatal(err)
	}
	resumed := response.TLS.DidResume
	read(in, response)
	return resumed
}

// TestAltSvc checks that responses over TLS name the port of HTTP/3, which is served there, and that responses without
// TLS do not.
func TestAltSvc(t *testing.T) {
	in := inFront(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") })
	_, port, err := net.SplitHostPort(in.https)
	if err != nil {
		t.Fatal(err)
	}
	in.byEachVersion(t, func(t *testing.T, in *ingress) {
		got := in.get("a.example", "/")
		want := in.either("", fmt.Sprintf("h3=%q; ma=2592000", ":"+port))
		if in.version == secure3 {
			want = ""
		}
		if service := got.header.Get("Alt-Svc"); service != want {
			t.Errorf("Alt-Svc is %q, want %q", service, want)
		}
		if hsts := got.header.Get("Strict-Transport-Security"); hsts != in.either("",
			"max-age=31536000; includeSubDomains") {
			t.Errorf("HSTS is %q", hsts)
		}
	})
}

// TestSessionTicketsStayOn checks that the key cannot disable session tickets, and that an attempt causes a warning.
func TestSessionTicketsStayOn(t *testing.T) {
	in := startSecure(t)
	for value, reasons := range map[string][]string{"true": nil, "false": {"InvalidEntry"}} {
		in.write("configmap.yaml", global(fmt.Sprintf("ssl-session-tickets: %q", value)))
		in.awaitReasons("ConfigMap/default/global", reasons...)
		sessions := &tls.Config{ClientSessionCache: tls.NewLRUClientSessionCache(4)}
		if in.resumes(sessions); !in.resumes(sessions) {
			t.Errorf("with ssl-session-tickets %s, no session is resumed", value)
		}
	}
}

// TestHandshakeFailures checks that each failed TLS handshake is counted by its reason.
func TestHandshakeFailures(t *testing.T) {
	in := inFront(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "ok") })
	in.speaking(t, secure1).expect("a.example", "/", http.StatusOK, "ok")
	counter := func(reason string) string { return `k8singress_tls_handshake_failures_total{reason="` + reason + `"}` }
	dial := func() net.Conn {
		conn, err := net.Dial("tcp", in.https)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		return conn
	}
	for reason, fail := range map[string]func(){
		"not_tls": func() { _, _ = io.WriteString(dial(), "GET / HTTP/1.1\r\nHost: a.example\r\n\r\n") },
		"closed":  func() { _ = dial().Close() },
		"refused": func() {
			config := &tls.Config{ServerName: "a.example", InsecureSkipVerify: true, MinVersion: tls.VersionTLS10,
				MaxVersion: tls.VersionTLS10}
			_ = tls.Client(dial(), config).Handshake()
		},
		"client_alert": func() {
			_ = tls.Client(dial(), &tls.Config{ServerName: "a.example", MinVersion: tls.VersionTLS12}).Handshake()
		},
	} {
		before := in.metric(counter(reason))
		fail()
		in.eventually(reason, func() error {
			if n := in.metric(counter(reason)) - before; n != 1 {
				return fmt.Errorf("%v handshakes are counted", n)
			}
			return nil
		})
	}
}

// TestPlainHTTPToHTTPS checks the response to a request without TLS on the HTTPS port. It contains nginx's text.
func TestPlainHTTPToHTTPS(t *testing.T) {
	in := inFront(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "ok") })
	in.speaking(t, secure1).expect("a.example", "/", http.StatusOK, "ok")
	const text = "400 Bad Request: The plain HTTP request was sent to HTTPS port\nk8singress\n"
	for method, want := range map[string]string{http.MethodGet: text, http.MethodDelete: text, http.MethodHead: ""} {
		conn := connect(t, in.https)
		if _, err := io.WriteString(conn, method+" / HTTP/1.1\r\nHost: a.example\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		request := &http.Request{Method: method}
		response, err := http.ReadResponse(bufio.NewReader(conn), request)
		if err != nil {
			t.Fatalf("%s: %v", method, err)
		}
		body, err := io.ReadAll(response.Body)
		if got := string(body); err != nil || got != want || response.StatusCode != http.StatusBadRequest ||
			response.ContentLength != int64(len(text)) || !response.Close {
			t.Errorf("%s: %v with %q, %v", method, response, got, err)
		}
		_ = response.Body.Close()
	}
}

// metric returns the value of a metric, given by its name with labels.
func (in *ingress) metric(name string) float64 {
	in.Helper()
	for line := range strings.Lines(in.metrics()) {
		if value, ok := strings.CutPrefix(strings.TrimSpace(line), name+" "); ok {
			n, err := strconv.ParseFloat(value, 64)
			if err != nil {
				in.Fatal(err)
			}
			return n
		}
	}
	return 0
}
