package featuretests

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/k8singress/k8singress/internal/tests/fixture"
)

// TestRefusalBeforeTheBody checks that a client that is still sending gets the complete error response, which the
// server sends without reading the body. In HTTP/2 and HTTP/3, only the rest of the body may be rejected.
func TestRefusalBeforeTheBody(t *testing.T) {
	ip, port := backend(t, "one")
	in := start(t, class+service("one", port, ip)+rule("a", "a.example", "Prefix", "/", "one")+
		annotated("staff", "staff.example", "one", "k8singress.io/chains", "staff")+
		annotated("closed", "closed.example", "one", "k8singress.io/chains", "closed"),
		strings.TrimSuffix(staffOne, "\n"), "chain closed {\nrespond \"closed\" 403\n}")
	for name, c := range map[string]struct {
		q    question
		want int
	}{
		"too large":   {question{fields: []string{"Content-Length: 1048577"}}, http.StatusRequestEntityTooLarge},
		"no password": {question{host: "staff.example"}, http.StatusUnauthorized},
		"not allowed": {question{host: "closed.example"}, http.StatusForbidden},
		"no path":     {question{host: "nobody.example"}, http.StatusNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			in.byEachVersion(t, func(t *testing.T, in *ingress) {
				q := c.q
				q.method, q.body, q.open = http.MethodPost, []string{"some of it"}, true
				if q.fields == nil {
					q.fields = []string{"X-A: 1"}
				}
				if got := in.exchange(q.usual()); got.status != c.want || got.broken != "" {
					t.Errorf("got %q, want %d", got, c.want)
				}
			})
		})
	}
}

// TestRefusalWithinTheBody checks that a body of unknown length is rejected while it arrives, as soon as it is too
// long. A client that continues to send, or that pauses, gets the complete response in every version of HTTP.
func TestRefusalWithinTheBody(t *testing.T) {
	ip, port := endpointOf(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // The body is cut off.
		fmt.Fprint(w, "all of it has come")
	})
	page := string(pattern(100_000))
	pages, pagesPort := endpointOf(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/octet-stream")
		w.WriteHeader(http.StatusRequestEntityTooLarge)
		fmt.Fprint(w, page)
	})
	objects := class + service("one", port, ip) + service("pages", pagesPort, pages)
	bodies := map[string]string{}
	for _, buffering := range []string{"on", "off"} {
		limits := []string{"proxy-body-size", "64k", "proxy-request-buffering", buffering}
		bare, paged := "bare-"+buffering, "paged-"+buffering
		errorPage := append(slices.Clip(limits), "custom-http-errors", "413", "default-backend", "pages")
		objects += annotated(bare, bare+".example", "one", limits...) + annotated(paged, paged+".example",
			"one", errorPage...)
		bodies[bare], bodies[paged] = "", page
	}
	in := start(t, objects)
	piece := strings.Repeat("x", 16<<10)
	for what, pieces := range map[string]int{"waits": 5, "goes on": 32} {
		for name, want := range bodies {
			t.Run(what+", "+name, func(t *testing.T) {
				in.byEachVersion(t, func(t *testing.T, in *ingress) {
					q := question{method: http.MethodPost, host: name + ".example", open: true}
					q.body = slices.Repeat([]string{piece}, pieces)
					got := in.exchange(q.usual())
					if got.status != http.StatusRequestEntityTooLarge || got.broken != "" || got.body != want {
						t.Errorf("got %d, %s, with %d of %d bytes", got.status, got.broken, len(got.body), len(want))
					}
				})
			})
		}
	}
}

// TestRequestAsBody sends a request as the body of another one, which is rejected before its body is read. It
// checks that the body is never parsed as a request. This cannot happen in HTTP/2 and HTTP/3, since bodies have
// separate frames.
func TestRequestAsBody(t *testing.T) {
	ip, port := endpointOf(t, func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.URL.Path) })
	in := start(t, class+service("one", port, ip)+rule("a", "a.example", "Prefix", "/", "one")+
		annotated("staff", "staff.example", "one", "k8singress.io/chains", "staff"), strings.TrimSuffix(staffOne, "\n"))
	smuggled := get("/smuggled")
	in.byHTTP1(t, func(t *testing.T, in *ingress) {
		for name, body := range map[string]string{
			"a length": fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(smuggled), smuggled),
			"chunks":   fmt.Sprintf("Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", len(smuggled), smuggled),
		} {
			got := in.raw("POST / HTTP/1.1\r\nHost: staff.example\r\n" + body + get("/last", "Connection: close"))
			if len(got) == 0 || !strings.HasPrefix(got[0], "401") || len(got) > 1 &&
				!slices.Equal(got[1:], []string{"200 /last"}) {
				t.Errorf("%s: got %q", name, got)
			}
		}
	})
}

// TestEndpointsWithoutEnd checks endless heads, interim responses and bodies of endpoints. The first two result in 502.
// A client can read a body as long as it wants, and the endpoint notices when the client disconnects.
func TestEndpointsWithoutEnd(t *testing.T) {
	gone := make(chan error, 100)
	ip, port := endpointOf(t, func(w http.ResponseWriter, r *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		begin, again := "HTTP/1.1 200 OK\r\n", "X-A: "+strings.Repeat("x", 1000)+"\r\n"
		switch r.URL.Path {
		case "/interim":
			begin, again = "", "HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\n"
		case "/body":
			begin, again = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n", strings.Repeat("x", 10_000)
		}
		for _, err = fmt.Fprint(conn, begin); err == nil; _, err = fmt.Fprint(conn, again) {
		}
		gone <- err
	})
	in := inFrontOf(t, ip, port, "proxy-next-upstream: off")
	in.byEachVersion(t, func(t *testing.T, in *ingress) {
		// The endpoint may end with any error.
		ends := func(what string) { _ = fixture.Receive(t, "the end of "+what, gone) }
		q := question{path: "/head"}
		if got := in.exchange(q.usual()); got.status != http.StatusBadGateway {
			t.Errorf("a head without end: %q", got)
		}
		ends("the head")
		q.path = "/interim"
		if got := in.exchange(q.usual()); got.status != http.StatusBadGateway {
			t.Errorf("interim answers without end: %q", got)
		}
		ends("the interim answers")
		response, err := in.client.Do(in.request("/body"))
		if err != nil {
			t.Fatal(err)
		}
		_, err = response.Body.Read(make([]byte, 1000))
		_ = response.Body.Close()
		if err != nil {
			t.Errorf("a body without end: %v", err)
		}
		ends("the body")
	})
}
