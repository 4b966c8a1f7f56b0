package proxy_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/fcgi"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/k8singress/k8singress/internal/http/proxy"
	"github.com/k8singress/k8singress/internal/model/document"
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/tests/fixture"
	"github.com/k8singress/k8singress/internal/tls/trust"
	"github.com/k8singress/k8singress/internal/upstream/balancer"
)

// speaking2 starts an HTTP/2 server, with or without TLS.
func speaking2(t *testing.T, secure bool, handler http.Handler) *httptest.Server {
	t.Helper()
	server := httptest.NewUnstartedServer(handler)
	server.Config.Protocols = new(http.Protocols)
	server.Config.Protocols.SetUnencryptedHTTP2(!secure)
	server.Config.Protocols.SetHTTP2(secure)
	if server.EnableHTTP2 = secure; secure {
		server.StartTLS()
	} else {
		server.Start()
	}
	t.Cleanup(server.Close)
	return server
}

// TestGRPC checks the HTTP/2 features that gRPC needs: streaming in both directions at once, TE, and trailers,
// including trailers of a response without a body.
func TestGRPC(t *testing.T) {
	for _, protocol := range []ir.BackendProtocol{ir.GRPC, ir.GRPCS} {
		t.Run(string(protocol), func(t *testing.T) {
			behind := speaking2(t, protocol == ir.GRPCS, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Trailer", "Grpc-Status")
				w.Header().Set("X-Got", fmt.Sprint(r.Proto, r.Header["Te"], r.Header["X-Real-Ip"], r.Host))
				_ = http.NewResponseController(w).Flush()
				for piece := make([]byte, 100); ; {
					n, err := r.Body.Read(piece)
					_, _ = w.Write(piece[:n])
					_ = http.NewResponseController(w).Flush()
					if err != nil {
						break
					}
				}
				w.Header().Set("Grpc-Status", "7")
			}))
			f := inFront(t, settingsOf(ir.Proxy{Forwarding: ir.Forwarding{Protocol: protocol}}),
				of(&endpoint{Listener: behind.Listener}))
			server := speaking2(t, false, f)
			client := &http.Client{Transport: &http.Transport{Protocols: server.Config.Protocols}}
			reader, writer := io.Pipe()
			r, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL, reader)
			r.Header.Set("Te", "trailers")
			r.Host = "a.example"
			response, err := client.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			defer response.Body.Close()
			if got := response.Header.Get("X-Got"); got != "HTTP/2.0[trailers] [127.0.0.1]a.example" {
				t.Errorf("the endpoint got %s", got)
			}
			for _, word := range []string{"one", "two"} {
				_, _ = io.WriteString(writer, word)
				got := make([]byte, len(word))
				if _, err := io.ReadFull(response.Body, got); err != nil || string(got) != word {
					t.Fatalf("%q, %v", got, err)
				}
			}
			writer.Close()
			if rest, err := io.ReadAll(response.Body); len(rest) > 0 || err != nil ||
				response.Trailer.Get("Grpc-Status") != "7" {
				t.Errorf("%q, %v, %v", rest, err, response.Trailer)
			}
			if err := fixture.Receive(t, "the end", f.errs); err != nil {
				t.Error(err)
			}
		})
	}
	s := settingsOf(ir.Proxy{Forwarding: ir.Forwarding{Protocol: ir.GRPC}})
	if got := outcomeOf(pool(t), request(t, http.MethodPost, "x"), s, of(refusing(t))); got != "error 502" {
		t.Errorf("nobody is there: %s", got)
	}
}

// TestGRPCOfTwoNamespaces checks that two namespaces whose backends have the same address do not share a connection.
func TestGRPCOfTwoNamespaces(t *testing.T) {
	var mu sync.Mutex
	clients := map[string]int{}
	behind := speaking2(t, false, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		clients[r.RemoteAddr]++
		w.Header().Set("Grpc-Status", "0")
	}))
	p, s := pool(t), settingsOf(ir.Proxy{Forwarding: ir.Forwarding{Protocol: ir.GRPC}})
	for range 3 {
		for _, id := range []string{"shop/web/80", "bank/web/80"} {
			b := balancer.New(id)
			b.SetPolicy(&ir.LoadBalancing{})
			b.SetEndpoints([]ir.Endpoint{{Address: behind.Listener.Addr().String()}})
			if got := outcomeOf(p, request(t, http.MethodPost, "x"), s, b); got != "200 " {
				t.Errorf("%s: %q", id, got)
			}
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if len(clients) != 2 {
		t.Errorf("six requests of two namespaces come by %d connections, want 2: %v", len(clients), clients)
	}
}

// TestGRPCResponseBeforeTheEnd checks that an endpoint can finish its response while the client may still send.
func TestGRPCResponseBeforeTheEnd(t *testing.T) {
	behind := speaking2(t, false,
		http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Grpc-Status", "12") }))
	f := inFront(t, settingsOf(ir.Proxy{Forwarding: ir.Forwarding{Protocol: ir.GRPC}}),
		of(&endpoint{Listener: behind.Listener}))
	server := speaking2(t, false, f)
	client := &http.Client{Transport: &http.Transport{Protocols: server.Config.Protocols}}
	reader, writer := io.Pipe()
	defer writer.Close()
	r, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL, reader)
	response, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if response.Header.Get("Grpc-Status") != "12" {
		t.Errorf("got %v", response.Header)
	}
	if err := fixture.Receive(t, "the end", f.errs); err != nil {
		t.Error(err)
	}
}

// TestFastCGI checks the parameters that an application gets and the response that the client gets.
func TestFastCGI(t *testing.T) {
	listener := fixture.Listen(t)
	go func() {
		_ = fcgi.Serve(listener, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(r.Body)
			w.Header().Set("X-Got", fmt.Sprint(r.Method, " ", r.URL, " ", r.Host, r.Header["Cookie"],
				r.Header["X-Real-Ip"], r.RemoteAddr, err))
			w.Header().Set("Set-Cookie", "a=b; Path=/in")
			w.WriteHeader(http.StatusAccepted)
			_, _ = w.Write(body)
		}))
	}()
	for _, streams := range []bool{false, true} {
		forwarding := ir.Forwarding{Protocol: ir.FastCGI, StreamRequest: streams,
			CookiePath: ir.ResponseRewrite{From: "/in", To: "/out"}}
		f := inFront(t, settingsOf(ir.Proxy{Forwarding: forwarding}), of(&endpoint{Listener: listener}))
		for _, size := range []int{0, 10, 100_000} {
			r := request(t, http.MethodPost, string(pattern(size)))
			r.Header["Cookie"] = []string{"a=b", "c=d"}
			w := httptest.NewRecorder()
			err := forwardOnce(f.pool, w, r, f.settings, f.backend)
			if err != nil || w.Code != http.StatusAccepted || !bytes.Equal(w.Body.Bytes(), pattern(size)) {
				t.Errorf("%d bytes, streamed %v: %d, %d bytes, %v", size, streams, w.Code, w.Body.Len(), err)
			}
			if got := w.Header().Get("X-Got"); got !=
				"POST http://shop.example/a?b=c shop.example[a=b; c=d] [192.0.2.1]192.0.2.1:1234<nil>" {
				t.Errorf("the application got %s", got)
			}
			if got := w.Header().Get("Set-Cookie"); got != "a=b; Path=/out" {
				t.Errorf("the cookie is %s", got)
			}
		}
	}
	for name, c := range map[string]struct {
		e    *endpoint
		want string
	}{
		"no FastCGI": {serve(t, respondWith(fine)), "error 502"}, "nobody": {refusing(t), "error 502"},
		"silence": {&endpoint{Listener: fixture.Listen(t)}, "error 504"},
	} {
		s := settingsOf(ir.Proxy{Forwarding: ir.Forwarding{Protocol: ir.FastCGI}})
		s.Tries = 1
		if name == "silence" {
			s.Read = 300 * time.Millisecond
		}
		if got := outcomeOf(pool(t), request(t, http.MethodGet, ""), s, of(c.e)); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// TestTheWayOfARoute checks that routes with different TLS settings share no connection, that connections end when
// their Secret changes, and that nothing is sent while the Secret is invalid.
func TestTheWayOfARoute(t *testing.T) {
	e := serving(t, true, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("ok")) })
	secret, ca := ir.Name{Namespace: "shop", Name: "ca"}, fixture.Authority(t, nil, "ca")
	store, p := trust.NewStore(), pool(t)
	one, two := ir.BackendTLS{Secret: secret, Name: "one", SendName: true},
		ir.BackendTLS{Secret: secret, Name: "two", SendName: true}
	store.Update(&document.Delta{Hosts: map[string]*document.Host{"a": {
		Routes: []*document.Route{{Destination: document.Destination{TLS: &one}}},
	}}})
	ways := []*proxy.Secured{nil, secure(t, p, &one, store), secure(t, p, &two, store)}
	s := settingsOf(ir.Proxy{Forwarding: ir.Forwarding{Protocol: ir.HTTPS}})
	goes := func(way *proxy.Secured, want string, connections int32) {
		t.Helper()
		f := &front{pool: p, settings: s, backend: of(e), secured: way, errs: make(chan error, 1)}
		w := httptest.NewRecorder()
		f.ServeHTTP(w, request(t, http.MethodGet, ""))
		if got := outcome(w, <-f.errs); got != want || e.connections.Load() != connections {
			t.Errorf("%s on %d connections, want %s on %d", got, e.connections.Load(), want, connections)
		}
	}
	goes(ways[1], "error 502", 0)
	store.SetSecret(secret, map[string][]byte{"ca.crt": ca.PEM()}, true)
	for i, way := range ways {
		goes(way, "200 ok", int32(i+1))
		goes(way, "200 ok", int32(i+1))
	}
	store.SetSecret(secret, map[string][]byte{"ca.crt": fixture.Authority(t, nil, "other").PEM()}, true)
	goes(ways[1], "200 ok", 4)
	goes(ways[1], "200 ok", 4)
	p.Configure(10, time.Minute)
	goes(ways[1], "200 ok", 5)
	goes(ways[0], "200 ok", 6)
	store.SetSecret(secret, nil, false)
	goes(ways[1], "error 502", 6)
	goes(nil, "200 ok", 6)
	for _, way := range ways {
		way.Release()
	}
}

// TestTLSWithoutSecret checks that TLS settings need no Secret unless endpoints are verified. Then nothing is sent.
func TestTLSWithoutSecret(t *testing.T) {
	e := serving(t, true, func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.TLS.ServerName) })
	store, p := trust.NewStore(), pool(t)
	for _, c := range []struct {
		settings ir.BackendTLS
		want     string
	}{
		{ir.BackendTLS{Name: "app.example", SendName: true}, "200 app.example"},
		{ir.BackendTLS{Name: "app.example"}, "200 "},
		{ir.BackendTLS{Name: "app.example", SendName: true, Verify: true}, "error 502"},
	} {
		way := secure(t, p, &c.settings, store)
		s := settingsOf(ir.Proxy{Forwarding: ir.Forwarding{Protocol: ir.HTTPS}})
		f := &front{pool: p, settings: s, backend: of(e), secured: way, errs: make(chan error, 1)}
		w := httptest.NewRecorder()
		f.ServeHTTP(w, request(t, http.MethodGet, ""))
		if got := outcome(w, <-f.errs); got != c.want {
			t.Errorf("%+v: %s, want %s", c.settings, got, c.want)
		}
		way.Release()
	}
}
