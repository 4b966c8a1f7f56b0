package live_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/k8singress/k8singress/internal/http/exchange"
	"github.com/k8singress/k8singress/internal/http/live"
	"github.com/k8singress/k8singress/internal/model/document"
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/upstream/balancer"
	"github.com/k8singress/k8singress/internal/upstream/endpoints"
)

func init() { caddy.RegisterModule(scripted{}) }

// scripted is a handler that runs the script in the request context.
type scripted struct{}

type script func(x *exchange.Exchange) error

type scriptKey struct{}

func (scripted) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.handlers.test_scripted", New: func() caddy.Module { return new(scripted) }}
}

func (scripted) ServeHTTP(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	return live.ChainRunFrom(r.Context()).Apply(r.Context().Value(scriptKey{}).(script), w, r, next)
}

// Apply runs the script, and responds with 200 unless it fails.
func (s script) Apply(x *exchange.Exchange) (responded bool, err error) {
	if err := s(x); err != nil {
		return false, err
	}
	return true, x.Respond(http.StatusOK, "")
}

const (
	backendID = "shop/web/80"
	ingress   = "Ingress/shop/front"
)

// shop is a table with one route, /cart of shop.example, and its backend.
type shop struct {
	t        *testing.T
	table    *live.Table
	backends *endpoints.Table
}

func newShop(t *testing.T, lb *ir.LoadBalancing, addresses ...string) *shop {
	t.Helper()
	s := &shop{t: t, backends: endpoints.NewTable()}
	s.table = tableWith(t, s.backends)
	s.backends.Configure(backendID, lb)
	var list []ir.Endpoint
	for _, address := range addresses {
		list = append(list, ir.Endpoint{Address: address})
	}
	s.backends.Set(backendID, list)
	update(t, s.table, hostOf(&document.Route{
		Type: "prefix", Path: "/cart", Origin: ingress,
		Destination: document.Destination{Backend: backendID,
			Chain: []byte(`[{"handle":[{"handler":"test_scripted"}]}]`)},
	}))
	return s
}

// answer holds the header of the response that a client gets.
type answer struct{ Header http.Header }

func (a *answer) Cookies() []*http.Cookie {
	var all []*http.Cookie
	for _, line := range a.Header.Values("Set-Cookie") {
		if cookie, err := http.ParseSetCookie(line); err == nil {
			all = append(all, cookie)
		}
	}
	return all
}

// visit serves a request with a script.
func (s *shop) visit(change func(*http.Request), do script) (*answer, error) {
	s.t.Helper()
	r := httptest.NewRequest(http.MethodGet, "http://shop.example/cart/7?id=9&Size=a%20b", nil)
	r.RemoteAddr = "192.0.2.7:4711"
	r = r.WithContext(context.WithValue(s.t.Context(), scriptKey{}, do))
	w := httptest.NewRecorder()
	r = caddyhttp.PrepareRequest(r, caddy.NewReplacer(), w, &caddyhttp.Server{})
	if change != nil {
		change(r)
	}
	_, err := serve(s.table, w, r)
	return &answer{w.Header()}, err
}

// underWay returns the number of requests in flight to the only remaining endpoint.
func (s *shop) underWay() int {
	s.t.Helper()
	choice, ok := s.backends.Backend(backendID).Pick(nil, nil)
	if !ok {
		s.t.Fatal("no endpoint")
	}
	return choice.Endpoint.InFlight()
}

func TestAttempts(t *testing.T) {
	s := newShop(t, nil, "a:1", "b:1", "c:1")
	_, err := s.visit(nil, func(r *exchange.Exchange) error {
		asked := map[string]bool{}
		for range 3 {
			address, ok := r.Next()
			if !ok || asked[address] {
				t.Errorf("%q is asked after %v", address, asked)
			}
			asked[address] = true
			r.Done(false)
			r.Done(true)
		}
		if _, ok := r.Next(); !ok {
			t.Error("when all were asked, none is asked again")
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	s.backends.Set(backendID, nil)
	_, _ = s.visit(nil, func(r *exchange.Exchange) error {
		if address, ok := r.Next(); ok {
			t.Errorf("a backend without endpoints has %s", address)
		}
		r.Done(true)
		return nil
	})
}

// TestLastAttemptIsJudged checks how an attempt without a call of Done affects its endpoint. There are two endpoints,
// and an endpoint is ejected after its first failure.
func TestLastAttemptIsJudged(t *testing.T) {
	for name, c := range map[string]struct {
		do      script
		ejected bool
	}{
		"answered": {func(r *exchange.Exchange) error { r.Next(); return nil }, false},
		"done": {func(r *exchange.Exchange) error { r.Next(); r.Done(false); return exchange.Fail(502, nil) },
			false},
		"failed":         {func(r *exchange.Exchange) error { r.Next(); r.Done(true); return nil }, true},
		"asked again":    {func(r *exchange.Exchange) error { r.Next(); r.Next(); return nil }, true},
		"bad gateway":    {func(r *exchange.Exchange) error { r.Next(); return exchange.Fail(502, nil) }, true},
		"too late":       {func(r *exchange.Exchange) error { r.Next(); return exchange.Fail(504, nil) }, true},
		"too large":      {func(r *exchange.Exchange) error { r.Next(); return exchange.Fail(413, nil) }, false},
		"something else": {func(r *exchange.Exchange) error { r.Next(); return errors.New("odd") }, false},
		"panic":          {func(r *exchange.Exchange) error { r.Next(); panic(http.ErrAbortHandler) }, false},
		"nothing":        {func(*exchange.Exchange) error { return exchange.Fail(502, nil) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := newShop(t, &ir.LoadBalancing{EjectAfter: 1}, "a:1", "b:1")
			func() {
				defer func() { _ = recover() }()
				_, _ = s.visit(nil, c.do)
			}()
			seen := map[*balancer.Endpoint]bool{}
			for range 10 {
				choice, _ := s.backends.Backend(backendID).Pick(nil, nil)
				seen[choice.Endpoint] = true
				if choice.Endpoint.InFlight() != 0 {
					t.Error("the attempt is still under way")
				}
			}
			if ejected := len(seen) == 1; ejected != c.ejected {
				t.Errorf("ejected: %t, want %t", ejected, c.ejected)
			}
		})
	}
}

// TestClientDisconnects checks that an endpoint is not blamed if the client disconnects.
func TestClientDisconnects(t *testing.T) {
	s := newShop(t, &ir.LoadBalancing{EjectAfter: 1}, "a:1", "b:1")
	ctx, leave := context.WithCancel(t.Context())
	do := script(func(r *exchange.Exchange) error {
		r.Next()
		leave()
		return exchange.Fail(http.StatusBadGateway, ctx.Err())
	})
	r := httptest.NewRequestWithContext(context.WithValue(ctx, scriptKey{}, do), http.MethodGet,
		"http://shop.example/cart", nil)
	w := httptest.NewRecorder()
	_, _ = serve(s.table, w, caddyhttp.PrepareRequest(r, caddy.NewReplacer(), w, &caddyhttp.Server{}))
	seen := map[*balancer.Endpoint]bool{}
	for range 10 {
		choice, _ := s.backends.Backend(backendID).Pick(nil, nil)
		seen[choice.Endpoint] = true
	}
	if len(seen) != 2 {
		t.Error("an endpoint is ejected because the client left")
	}
}

func TestUnderWay(t *testing.T) {
	s := newShop(t, nil, "a:1")
	_, _ = s.visit(nil, func(r *exchange.Exchange) error {
		for range 2 {
			r.Next()
			if n := s.underWay(); n != 1 {
				t.Errorf("%d are under way, want 1", n)
			}
		}
		r.Done(false)
		if n := s.underWay(); n != 0 {
			t.Errorf("after Done %d are under way", n)
		}
		r.Next()
		return nil
	})
	if n := s.underWay(); n != 0 {
		t.Errorf("after the request %d are under way", n)
	}
}

func TestClientAddressKeepsItsEndpoint(t *testing.T) {
	s := newShop(t, &ir.LoadBalancing{ClientIP: 1 << 40}, "a:1", "b:1", "c:1", "d:1")
	ask := func(port string) (got string) {
		_, _ = s.visit(func(r *http.Request) { r.RemoteAddr = "192.0.2.9:" + port }, func(r *exchange.Exchange) error {
			got, _ = r.Next()
			return nil
		})
		return got
	}
	first := ask("1")
	for range 10 {
		if got := ask("2"); got != first {
			t.Fatalf("the client goes from %s to %s", first, got)
		}
	}
}

// TestStreamIsNotSlow checks that only the time until the response head is measured, because the rest may be an
// endless stream.
func TestStreamIsNotSlow(t *testing.T) {
	s := newShop(t, &ir.LoadBalancing{Policy: ir.PolicyEWMA}, "a:1", "b:1")
	var streams string
	_, err := s.visit(nil, func(r *exchange.Exchange) error {
		streams, _ = r.Next()
		r.ResponseStarted(time.Time{})
		<-time.After(20 * time.Millisecond)
		r.Done(false)
		r.Next()
		r.ResponseStarted(time.Now().Add(-10 * time.Millisecond))
		r.Done(false)
		return nil
	})
	for range 10 {
		_, again := s.visit(nil, func(r *exchange.Exchange) error {
			if address, _ := r.Next(); address != streams {
				t.Errorf("%s is asked, which takes longer than %s to answer", address, streams)
			}
			r.Done(false)
			return nil
		})
		err = errors.Join(err, again)
	}
	if err != nil {
		t.Fatal(err)
	}
}
