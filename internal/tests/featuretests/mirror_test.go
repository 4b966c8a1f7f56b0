package featuretests

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/k8singress/k8singress/internal/tests/fixture"
)

// withBody is a request with its body.
type withBody struct {
	*http.Request
	body string
}

// mirrorOf starts a server that records its requests.
func mirrorOf(t *testing.T) (ip, port string, got chan withBody) {
	t.Helper()
	got = make(chan withBody, 100)
	ip, port = endpointOf(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got <- withBody{r.Clone(r.Context()), string(body)}
		w.Header().Set("X-From", r.Host)
		_, _ = w.Write(pattern(200 << 10))
	})
	return ip, port, got
}

// TestMirror checks the requests that mirrors get, and that clients and backends do not notice them.
func TestMirror(t *testing.T) {
	ip, port, backends := mirrorOf(t)
	mirrorIP, mirrorPort, mirrors := mirrorOf(t)
	to := "http://" + net.JoinHostPort(mirrorIP, mirrorPort)
	in := start(t, class+service("web", port, ip)+
		annotated("uri", "uri.example", "web", "mirror-target", to+"$request_uri", "rewrite-target", "/new",
			"proxy-body-size", "2m")+
		annotated("streamed", "streamed.example", "web", "mirror-target", to+"/x/$host",
			"proxy-request-buffering", "off")+
		annotated("fixed", "fixed.example", "web", "mirror-target", to+"/fixed?a=b", "mirror-host",
			"$host.mirror.example")+
		annotated("headonly", "headonly.example", "web", "mirror-target", to, "mirror-request-body", "off"))
	in.byEachVersion(t, func(t *testing.T, in *ingress) {
		for _, c := range []struct{ host, uri, mirrored, body string }{
			{"uri.example", "/a%20b?c=d&e", mirrorIP, "hello"},
			{"streamed.example", "/x/streamed.example", mirrorIP, "hello"},
			{"fixed.example", "/fixed?a=b&c=d&e", "fixed.example.mirror.example", "hello"},
			{"headonly.example", "/?c=d&e", mirrorIP, ""},
		} {
			answer := in.sendBy(in.client, in.origin(c.host)+"/a%20b?c=d&e", http.MethodPost,
				strings.NewReader("hello"),
				"X-Real-Ip: 192.0.2.1", "X-Original-Url: /admin", "X-Some: thing")
			sent, copied := fixture.Receive(t, "the request", backends), fixture.Receive(t, "its copy", mirrors)
			if answer.status != http.StatusOK || hash([]byte(answer.body)) != hash(pattern(200<<10)) ||
				answer.header.Get("X-From") != c.host ||
				sent.body != "hello" {
				t.Errorf("%s: %d with %v; the backend got %q", c.host, answer.status, answer.header, sent.body)
			}
			if copied.Method != http.MethodPost || copied.RequestURI != c.uri || copied.Host != c.mirrored ||
				copied.body != c.body {
				t.Errorf("%s: the mirror got %s %s, host %s, with %q", c.host, copied.Method, copied.RequestURI,
					copied.Host, copied.body)
			}
			for name, want := range map[string]string{
				"X-Request-Id": sent.Header.Get("X-Request-Id"), "X-Real-Ip": "127.0.0.1",
				"X-Forwarded-For":  "127.0.0.1",
				"X-Forwarded-Host": c.host, "X-Forwarded-Proto": in.either("http", "https"),
				"Cdn-Loop":       sent.Header.Get("Cdn-Loop"),
				"X-Original-Url": "", "X-Some": "thing",
			} {
				if found := strings.Join(copied.Header[name], "|"); found != want {
					t.Errorf("%s: the mirror got %s: %q, want %q", c.host, name, found, want)
				}
			}
		}
	})
	in.longMirrored(t, backends, mirrors)
}

// longMirrored checks that a body of one MiB is copied, whatever its framing, and that a longer one is only sent to the
// backend.
func (in *ingress) longMirrored(t *testing.T, backends, mirrors chan withBody) {
	t.Helper()
	for _, c := range []struct {
		size   int
		copied bool
	}{{1 << 20, true}, {1<<20 + 1, false}} {
		body := pattern(c.size)
		// net/http only knows the length of the first one.
		for _, reader := range []io.Reader{bytes.NewReader(body), struct{ io.Reader }{bytes.NewReader(body)}} {
			if got := in.sendBy(in.client, in.origin("uri.example")+"/", http.MethodPost,
				reader); got.status != http.StatusOK {
				t.Fatalf("%d", got.status)
			}
			if sent := fixture.Receive(t, "the request", backends); hash([]byte(sent.body)) != hash(body) {
				t.Errorf("the backend got %d bytes of %d", len(sent.body), c.size)
			}
			if !c.copied {
				continue
			}
			if copied := fixture.Receive(t, "its copy", mirrors); hash([]byte(copied.body)) != hash(body) {
				t.Errorf("the mirror got %d bytes of %d", len(copied.body), c.size)
			}
		}
	}
	in.counts(`k8singress_mirrored_requests_dropped_total{reason="body"} 2`)
}

// counts waits until the metrics contain a line.
func (in *ingress) counts(line string) {
	in.Helper()
	in.eventually(line, func() error {
		for found := range strings.SplitSeq(in.metrics(), "\n") {
			if found == line {
				return nil
			}
		}
		return fmt.Errorf("the metrics have no line %s", line)
	})
}

// TestMirrorTakesNoTime checks that a request gets its response before its mirror responds, and also if the mirror is
// down. Mirrored requests in progress end with the process.
func TestMirrorTakesNoTime(t *testing.T) {
	ip, port := backend(t, "web")
	asked, done := make(chan struct{}, 10), make(chan struct{})
	mirrorIP, mirrorPort := endpointOf(t, func(_ http.ResponseWriter, r *http.Request) {
		asked <- struct{}{}
		select {
		case <-done:
		case <-r.Context().Done():
		}
	})
	t.Cleanup(func() { close(done) })
	in := start(t, class+service("web", port, ip)+
		annotated("slow", "slow.example", "web", "mirror-target", "http://"+net.JoinHostPort(mirrorIP, mirrorPort))+
		annotated("gone", "gone.example", "web", "mirror-target", "http://"+fixture.Address(t))+
		annotated("nowhere", "nowhere.example", "web", "mirror-target", "http://a.invalid/"))
	in.expect("slow.example", "/", http.StatusOK, "web /")
	fixture.Receive(t, "the mirror", asked)
	in.expect("gone.example", "/", http.StatusOK, "web /")
	in.expect("nowhere.example", "/", http.StatusOK, "web /")
	in.counts(`k8singress_mirrored_requests_total{result="failed"} 2`)
	in.counts(`k8singress_mirrored_requests_total{result="answered"} 0`)
}

// TestMirrorWithoutPassword checks that rejected requests are not mirrored, and that the passwords of allowed requests
// are not sent to mirrors.
func TestMirrorWithoutPassword(t *testing.T) {
	ip, port := backend(t, "web")
	mirrorIP, mirrorPort, mirrors := mirrorOf(t)
	in := start(t, class+service("web", port, ip)+
		"---\napiVersion: v1\nkind: Secret\nmetadata: {name: users}\nstringData: {auth: \"alice:{PLAIN}secret\"}\n"+
		annotated("in", "in.example", "web", "auth-type", "basic", "auth-secret", "users",
			"mirror-target", "http://"+net.JoinHostPort(mirrorIP, mirrorPort)))
	in.byEachVersion(t, func(t *testing.T, in *ingress) {
		if got := in.get("in.example", "/refused"); got.status != http.StatusUnauthorized {
			t.Errorf("%d", got.status)
		}
		got := in.sendBy(in.client, in.origin("in.example")+"/let-in", http.MethodGet, nil,
			"Authorization: Basic YWxpY2U6c2VjcmV0")
		copied := fixture.Receive(t, "the copy", mirrors)
		if got.status != http.StatusOK || copied.URL.Path != "/" || copied.Header["Authorization"] != nil {
			t.Errorf("%d, and the mirror got %s with %v", got.status, copied.URL, copied.Header)
		}
	})
}

// TestMirrorReachesNothingInside checks that no spelling of the addresses of this machine, of the controller or of
// cloud metadata gets a copy.
func TestMirrorReachesNothingInside(t *testing.T) {
	asked := make(chan string, 10)
	_, port := endpointOf(t, func(_ http.ResponseWriter, r *http.Request) { asked <- r.Host })
	hosts := []string{"127.0.0.1", "localhost", "[::1]", "[::ffff:127.0.0.1]", "0.0.0.0", "169.254.169.254"}
	in := newIngress(t)
	manifests := class + service("web", port)
	for i, host := range hosts {
		name := fmt.Sprintf("inside%d", i)
		manifests += annotated(name, name+".example", "web", "mirror-target", "http://"+host+":"+port)
	}
	manifests += annotated("own", "own.example", "web", "mirror-target", "http://"+in.http)
	in.write("manifests.yaml", manifests)
	in.load(fmt.Sprintf("manifests %s\nreach_allow 192.0.2.0/24", in.folder))
	in.awaitReady()
	for i := range hosts {
		in.get(fmt.Sprintf("inside%d.example", i), "/")
	}
	in.get("own.example", "/")
	in.counts(fmt.Sprintf(`k8singress_mirrored_requests_total{result="failed"} %d`, len(hosts)+1))
	select {
	case host := <-asked:
		t.Errorf("%s was asked", host)
	default:
	}
}
