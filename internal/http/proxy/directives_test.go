package proxy_test

import (
	"fmt"
	"net/http"
	"net/http/fcgi"
	"net/http/httptest"
	"testing"

	"github.com/k8singress/k8singress/internal/http/exchange"
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/tests/fixture"
)

// TestDirectivesOfPrograms checks that endpoints of each protocol get the header fields of a program, in place of the
// fields that the controller sets, and that the program hides fields of their responses.
func TestDirectivesOfPrograms(t *testing.T) {
	directives, err := exchange.NewDirectives(&ir.Directives{
		EndpointHeaders: []ir.Header{
			{Name: "Host", Value: "$arg_b.example"}, {Name: "X-Real-IP", Value: "of $host"},
			{Name: "X-User", Value: "alice"},
			{Name: "X-Forwarded-For"},
		},
		Hide: []string{"X-Hidden"}, AddHeaders: []ir.AddedHeader{{Name: "X-Copy", Value: "$upstream_http_x_hidden"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Hidden", "secret")
		w.Header().Set("X-Got", fmt.Sprint(r.Host, r.Header["X-Real-Ip"], r.Header["X-User"],
			r.Header["X-Forwarded-For"], r.Header.Get("X-Scheme")))
	})
	plain := httptest.NewServer(handler)
	defer plain.Close()
	application := fixture.Listen(t)
	go func() { _ = fcgi.Serve(application, handler) }()
	for protocol, e := range map[ir.BackendProtocol]*endpoint{
		ir.HTTP: {Listener: plain.Listener}, ir.GRPC: {Listener: speaking2(t, false, handler).Listener},
		ir.FastCGI: {Listener: application},
	} {
		forwarding := ir.Forwarding{Protocol: protocol, Host: "vhost.example"}
		f := inFront(t, settingsOf(ir.Proxy{Forwarding: forwarding}), of(e))
		f.directives = directives
		r, w := request(t, http.MethodGet, ""), httptest.NewRecorder()
		r.Header["X-User"] = []string{"mallory"}
		f.ServeHTTP(w, r)
		if err := <-f.errs; err != nil {
			t.Errorf("%s: %v", protocol, err)
		}
		const want = "c.example[of shop.example] [alice] []http"
		if got := w.Header().Get("X-Got"); got != want {
			t.Errorf("%s: the endpoint gets %s, want %s", protocol, got, want)
		}
		if hidden, copied := w.Header().Get("X-Hidden"), w.Header().Get("X-Copy"); hidden != "" || copied != "secret" {
			t.Errorf("%s: the client gets X-Hidden %q and X-Copy %q", protocol, hidden, copied)
		}
	}
}
