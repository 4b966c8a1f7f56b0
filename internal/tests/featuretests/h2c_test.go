package featuretests

import (
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// preface is the start of an HTTP/2 connection with prior knowledge.
const preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

// TestHTTP2InTheClear checks that HTTP/2 without TLS is served only if an option or Caddy's own protocols enable it.
// Otherwise its preface is rejected as an invalid request.
func TestHTTP2InTheClear(t *testing.T) {
	ip, port := endpointOf(t, func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.URL.Path) })
	in := newIngress(t)
	in.write("manifests.yaml", class+service("one", port, ip)+rule("a", "a.example", "Prefix", "/", "one"))
	without := fmt.Sprintf("{\nadmin %s\nk8singress {\nhttp %s\nhttps %s\nmanifests %s\n}\n}\n", in.admin, in.http,
		in.https, in.folder)
	with := strings.Replace(without, "manifests", "h2c\nmanifests", 1)
	speaking := func(protocols ...string) func() {
		return func() { in.change(func(server map[string]any) { server["protocols"] = protocols }) }
	}
	for _, c := range []struct {
		name   string
		load   func()
		served bool
	}{
		{"by default", func() { in.loadCaddyfile(without) }, false},
		{"with the option", func() { in.loadCaddyfile(with) }, true},
		{"without it again", func() { in.loadCaddyfile(without) }, false},
		{"by Caddy's protocols", speaking("h1", "h2", "h2c", "h3"), true},
		{"by Caddy's protocols without it", speaking("h1", "h2", "h3"), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.load()
			in.awaitReady()
			in.speaking(t, plain1).expect("a.example", "/one", http.StatusOK, "/one")
			if c.served {
				in.speaking(t, plain2).expect("a.example", "/two", http.StatusOK, "/two")
				return
			}
			in.refusesHTTP2(t)
		})
	}
}

// badRequests matches a counter of the whole process.
var badRequests = regexp.MustCompile(`(?m)^k8singress_http_requests_total\{code="400"\} (\d+)$`)

// refusesHTTP2 checks that the HTTP/2 preface is rejected as a bad request of HTTP/1.1, and counted as such.
func (in *ingress) refusesHTTP2(t *testing.T) {
	t.Helper()
	count := func() int {
		n := 0
		if match := badRequests.FindStringSubmatch(in.metrics()); match != nil {
			n, _ = strconv.Atoi(match[1])
		}
		return n
	}
	before := count()
	conn := in.speaking(t, plain1).connect()
	conn.say(preface)
	if got := conn.hear(http.MethodGet); !strings.HasPrefix(got, "400 400 Bad Request: http2-preface\n") {
		t.Errorf("the beginning of HTTP/2 is answered with %q", got)
	}
	conn.ends()
	if after := count(); after != before+1 {
		t.Errorf("%d bad requests were counted, %d before", after, before)
	}
}
