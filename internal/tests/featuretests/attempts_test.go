package featuretests

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// pair holds two endpoints on one port. The endpoint that gets the first request misbehaves; the other one records its
// requests. The pair also counts the requests to the bad endpoint.
type pair struct {
	port  string
	asked log
	bad   atomic.Pointer[http.HandlerFunc]
}

func startPair(t *testing.T) *pair {
	t.Helper()
	p := &pair{}
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if n := len(p.asked.peek()); n == 0 {
			p.asked.add("%s", r.Context().Value(http.LocalAddrContextKey))
			(*p.bad.Load())(w, r)
			return
		}
		p.asked.add("%s", r.Context().Value(http.LocalAddrContextKey))
		fmt.Fprintf(w, "%s %s %v", r.Method, hash(body), err)
	})
	first := httptest.NewServer(handler)
	t.Cleanup(first.Close)
	_, p.port = hostPort(t, first.Listener.Addr())
	listener, err := net.Listen("tcp", "127.0.0.2:"+p.port)
	if err != nil {
		t.Skip("this machine has one address only:", err)
	}
	second := httptest.NewUnstartedServer(handler)
	_ = second.Listener.Close()
	second.Listener = listener
	second.Start()
	t.Cleanup(second.Close)
	return p
}

func (l *log) peek() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lines
}

func hangsUp(w http.ResponseWriter, _ *http.Request) {
	if conn, _, err := http.NewResponseController(w).Hijack(); err == nil {
		_ = conn.Close()
	}
}

func answersWith(status int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }
}

func garbage(w http.ResponseWriter, _ *http.Request) {
	if conn, _, err := http.NewResponseController(w).Hijack(); err == nil {
		_, _ = io.WriteString(conn, "SSH-2.0-OpenSSH\r\n\r\n")
		_ = conn.Close()
	}
}

func hangs(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }

// TestNextUpstream checks which failures cause a retry, and that the retry sends the whole body to another endpoint.
func TestNextUpstream(t *testing.T) {
	p := startPair(t)
	for name, c := range map[string]struct {
		annotations []string
		bad         http.HandlerFunc
		// get and post are the statuses for the two methods, which differ if the endpoint may have received the
		// request.
		get, post int
	}{
		"error":                 {nil, hangsUp, 200, 502},
		"off":                   {[]string{"proxy-next-upstream: off"}, hangsUp, 502, 502},
		"one try":               {[]string{"proxy-next-upstream-tries: 1"}, hangsUp, 502, 502},
		"non_idempotent":        {[]string{"proxy-next-upstream: error non_idempotent"}, hangsUp, 200, 200},
		"http_503":              {[]string{"proxy-next-upstream: http_503 non_idempotent"}, answersWith(503), 200, 200},
		"http_503, but 429":     {[]string{"proxy-next-upstream: http_503 non_idempotent"}, answersWith(429), 429, 429},
		"http_429":              {[]string{"proxy-next-upstream: http_429"}, answersWith(429), 200, 429},
		"invalid_header":        {[]string{"proxy-next-upstream: invalid_header"}, garbage, 200, 502},
		"error, not invalid":    {nil, garbage, 502, 502},
		"timeout":               {[]string{"proxy-read-timeout: 1"}, hangs, 200, 504},
		"total time is over":    {[]string{"proxy-read-timeout: 1", "proxy-next-upstream-timeout: 1"}, hangs, 504, 504},
		"no time limit of both": {[]string{"proxy-next-upstream-timeout: 5"}, hangsUp, 200, 502},
	} {
		t.Run(name, func(t *testing.T) {
			p.bad.Store(&c.bad)
			// A request on a connection that the endpoint is just closing would be sent to the same endpoint again.
			in := start(t, class+service("one", p.port, "127.0.0.1", "127.0.0.2")+
				oneWith(append(c.annotations, "proxy-body-size: 8m", "connection-proxy-header: close")...))
			defer in.stop()
			sizes := []int{0, 100, 1 << 20}
			tries := func(t *testing.T, in *ingress) {
				for method, want := range map[string]int{http.MethodPut: c.get, http.MethodPost: c.post} {
					for _, size := range sizes {
						t.Run(fmt.Sprint(method, " ", size), func(t *testing.T) { p.tries(t, in, want, method, size) })
					}
				}
			}
			if strings.Contains(name, "time") {
				// One second each is enough, and one version.
				sizes = sizes[1:2]
				tries(t, in)
				return
			}
			in.byEachVersion(t, tries)
		})
	}
}

// tries sends a request with a body, and checks which endpoints received it.
func (p *pair) tries(t *testing.T, in *ingress, want int, method string, size int) {
	p.asked.take()
	sent := pattern(size)
	got := in.send(method, "/", strings.NewReader(string(sent)))
	asked := p.asked.take()
	if got.status != want {
		t.Errorf("%d %q, not %d", got.status, got.body, want)
	}
	if want != http.StatusOK {
		if len(asked) != 1 {
			t.Errorf("asked are %v", asked)
		}
		return
	}
	if want := fmt.Sprintf("%s %s <nil>", method, hash(sent)); got.body != want {
		t.Errorf("got %q, not %q", got.body, want)
	}
	if len(asked) != 2 || asked[0] == asked[1] {
		t.Errorf("asked are %v", asked)
	}
}

// TestSlowEndpoint checks that timeouts apply to silence of the endpoint, and which response a client gets after
// a timeout.
func TestSlowEndpoint(t *testing.T) {
	in := inFront(t, func(w http.ResponseWriter, r *http.Request) {
		control := http.NewResponseController(w)
		switch r.URL.Path {
		case "/silent":
			<-r.Context().Done()
		case "/stalls":
			w.Header().Set("Content-Length", "10")
			fmt.Fprint(w, "begin")
			_ = control.Flush()
			<-r.Context().Done()
		case "/slow":
			tick := time.NewTicker(400 * time.Millisecond)
			defer tick.Stop()
			for i := range 4 {
				<-tick.C
				fmt.Fprint(w, i)
				_ = control.Flush()
			}
		}
	}, "proxy-read-timeout: 1", "proxy-next-upstream: off")
	in.byEachAtOnce(t, func(t *testing.T, in *ingress) {
		begin := time.Now()
		if got := in.send(http.MethodGet, "/silent", nil); got.status != http.StatusGatewayTimeout {
			t.Errorf("got %d", got.status)
		}
		took(t, "silence", begin, time.Second)
		in.breaksOff(t, "/stalls", "begin")
		// On a busy machine, the endpoint may be silent for too long.
		in.eventually("a slow answer", func() error {
			if got := in.send(http.MethodGet, "/slow", nil); got.body != "0123" {
				return fmt.Errorf("got %q", got.body)
			}
			return nil
		})
	})
}

// breaksOff fails the test unless the response body for a path breaks off after text.
func (in *ingress) breaksOff(t *testing.T, path, text string) {
	t.Helper()
	response, err := in.client.Do(in.request(path))
	if err != nil && in.version == secure3 {
		return // A reset may overtake the data of the stream (RFC 9000 2.2).
	}
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err == nil || string(body) != text && in.version != secure3 {
		t.Errorf("%q, %v", body, err)
	}
}

// TestEndpointReadsNothing checks that a request body that cannot be sent causes a timeout, too.
func TestEndpointReadsNothing(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	ip, port := hostPort(t, listener.Addr())
	in := inFrontOf(t, ip, port, "proxy-send-timeout: 1", "proxy-next-upstream: off", "proxy-body-size: 0")
	begin := time.Now()
	if got := in.send(http.MethodPost, "/",
		strings.NewReader(string(pattern(20<<20)))); got.status != http.StatusGatewayTimeout {
		t.Errorf("got %d", got.status)
	}
	took(t, "it", begin, time.Second)
}

// TestClientGoesAway checks that the endpoint's request is canceled when the client disconnects, on every protocol.
func TestClientGoesAway(t *testing.T) {
	begun, ended := make(chan struct{}, 10), make(chan struct{}, 10)
	ip, port := endpointOf(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/fine" {
			fmt.Fprint(w, "fine")
			return
		}
		begun <- struct{}{}
		<-r.Context().Done()
		ended <- struct{}{}
	})
	in := inFrontOf(t, ip, port)
	in.byEachVersion(t, func(t *testing.T, in *ingress) {
		for range 4 {
			ctx, leave := context.WithCancel(t.Context())
			go func() {
				<-begun
				leave()
			}()
			if response, err := in.client.Do(in.request("/").WithContext(ctx)); err == nil {
				_ = response.Body.Close()
				t.Errorf("got %s", response.Status)
			}
			leave()
			await(t, "the end at the endpoint", ended)
		}
		in.expect("a.example", "/fine", http.StatusOK, "fine")
	})
}
