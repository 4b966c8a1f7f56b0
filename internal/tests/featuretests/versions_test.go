package featuretests

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
)

// The versions of HTTP of clients: HTTP/1.1 without and with TLS, HTTP/2 without and with TLS, and HTTP/3. The last one
// is HTTP/1.1 without TLS at a server whose requests Caddy's HTTP server handles.
const (
	plain1  = "http1"
	secure1 = "https1"
	plain2  = "h2c"
	secure2 = "h2"
	secure3 = "h3"
	byCaddy = "by Caddy"
)

var (
	// direct are the versions whose requests are handled without Caddy's HTTP server.
	direct    = []string{plain1, secure1, plain2, secure2, secure3}
	versions  = append(slices.Clip(direct), byCaddy)
	protocols = map[string]string{plain1: "HTTP/1.1", secure1: "HTTP/1.1", plain2: "HTTP/2.0", secure2: "HTTP/2.0",
		secure3: "HTTP/3.0", byCaddy: "HTTP/1.1"}
)

// notByCaddy lists the tests of byEachVersion that cannot hold if Caddy's HTTP server handles the requests, with the
// reasons. TestNotByCaddy checks the names.
var notByCaddy = map[string]string{
	"TestBodyTooLarge":               "Caddy's reader hides the size of the next chunk, so 413 follows its bytes",
	"TestHeaderNames":                "Caddy removes fields with underscores and dots in their names",
	"TestHeaderNamesOfTheService":    "Caddy removes fields with underscores in their names",
	"TestSnippetFiles/large-headers": "the limit of a server of the administrator stays",
	"TestUnderscoresInHeadersPass":   "Caddy removes fields with underscores in their names",
	"TestCVEOfOthers/CVE-2026-39858:_a_client_writes_a_header_of_the_service": "it is TestHeaderNamesOfTheService",
}

// TestNotByCaddy checks that notByCaddy names tests.
func TestNotByCaddy(t *testing.T) {
	files, err := filepath.Glob("*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(text)
	}
	for name := range notByCaddy {
		if top, _, _ := strings.Cut(name, "/"); !strings.Contains(all.String(), "\nfunc "+top+"(t *testing.T)") {
			t.Errorf("there is no test %s", top)
		}
	}
}

// holdsByCaddy reports whether neither the running test nor its parents are in notByCaddy.
func holdsByCaddy(t *testing.T) bool {
	for name := t.Name(); ; {
		if notByCaddy[name] != "" {
			return false
		}
		i := strings.LastIndexByte(name, '/')
		if i < 0 {
			return true
		}
		name = name[:i]
	}
}

// byEachVersion runs a test once for each version of HTTP. The in that the test gets sends all requests with that
// version. All share one controller. Versions that do not support what the test checks are listed in without, with a
// comment that gives the reason. Without plain1, byCaddy is left out, too.
func (in *ingress) byEachVersion(t *testing.T, test func(t *testing.T, in *ingress), without ...string) {
	t.Helper()
	for _, version := range versions {
		as := version
		if version == byCaddy {
			as = plain1
		}
		if !slices.Contains(without, as) && (version != byCaddy || holdsByCaddy(t)) {
			t.Run(version, func(t *testing.T) { test(t, in.speaking(t, version)) })
		}
	}
}

// byEachAtOnce is byEachVersion for tests that wait for timeouts: all versions run at the same time.
func (in *ingress) byEachAtOnce(t *testing.T, test func(t *testing.T, in *ingress)) {
	t.Helper()
	t.Run("versions", func(t *testing.T) {
		for _, version := range versions {
			if version == byCaddy && !holdsByCaddy(t) {
				continue
			}
			t.Run(version, func(t *testing.T) {
				t.Parallel()
				test(t, in.speaking(t, version))
			})
		}
	})
}

// byHTTP1 is byEachVersion for tests that write and read the bytes of HTTP/1. They must have the same effect with TLS.
func (in *ingress) byHTTP1(t *testing.T, test func(t *testing.T, in *ingress)) {
	t.Helper()
	in.byEachVersion(t, test, plain2, secure2, secure3)
}

// speaking returns the same controller for a test that uses the given version.
func (in *ingress) speaking(t *testing.T, version string) *ingress {
	t.Helper()
	other := *in
	if other.TB, other.version = t, version; version == byCaddy {
		other.http = in.byCaddy
	}
	other.client = other.clientOf(t, version, anybody())
	return &other
}

// anybody returns the TLS configuration of a client that accepts any certificate.
func anybody() *tls.Config { return &tls.Config{InsecureSkipVerify: true} }

// secure reports whether the version uses TLS.
func (in *ingress) secure() bool { return hasTLS(in.version) }

func hasTLS(version string) bool {
	return version == secure1 || version == secure2 || version == secure3
}

// origin returns the prefix of URLs of a host.
func (in *ingress) origin(host string) string {
	if in.secure() {
		return "https://" + host
	}
	return "http://" + host
}

// either returns the first text for requests without TLS, and the second one for those with it.
func (in *ingress) either(plain, secure string) string {
	if in.secure() {
		return secure
	}
	return plain
}

// clientOf returns a client for a version. It connects to the controller whatever the host of a URL, and follows no
// redirects. If config has no server name, the client uses the host of the URL.
func (in *ingress) clientOf(t testing.TB, version string, config *tls.Config) *http.Client {
	client := &http.Client{Timeout: deadline,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	if version == secure3 {
		three := in.http3(config)
		t.Cleanup(func() { _ = three.Close() })
		client.Transport = three
		return client
	}
	transport := &http.Transport{
		TLSClientConfig: config, DisableCompression: true, Protocols: new(http.Protocols),
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			if version == plain1 || version == plain2 || version == byCaddy {
				return new(net.Dialer).DialContext(ctx, "tcp", in.http)
			}
			return new(net.Dialer).DialContext(ctx, "tcp", in.https)
		},
	}
	transport.Protocols.SetHTTP1(version == plain1 || version == secure1 || version == byCaddy)
	transport.Protocols.SetUnencryptedHTTP2(version == plain2)
	transport.Protocols.SetHTTP2(version == secure2)
	t.Cleanup(transport.CloseIdleConnections)
	client.Transport = transport
	return client
}

func (in *ingress) http3(config *tls.Config) *http3.Transport {
	return &http3.Transport{
		TLSClientConfig: config, DisableCompression: true,
		Dial: func(ctx context.Context, _ string, t *tls.Config, q *quic.Config) (*quic.Conn, error) {
			return quic.DialAddr(ctx, in.https, t, q)
		},
	}
}
