package exchange_test

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/k8singress/k8singress/internal/http/exchange"
	"github.com/k8singress/k8singress/internal/http/message"
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/tests/exchangetest"
	"github.com/k8singress/k8singress/internal/upstream/balancer"
)

// newBackend returns the backend shop/web/80 with endpoints.
func newBackend(lb *ir.LoadBalancing, addresses ...string) *balancer.Backend {
	b := balancer.New("shop/web/80")
	b.SetPolicy(lb)
	list := make([]ir.Endpoint, 0, len(addresses))
	for _, address := range addresses {
		list = append(list, ir.Endpoint{Address: address})
	}
	b.SetEndpoints(list)
	return b
}

// toBackend returns an exchange with a backend.
func toBackend(t *testing.T, b *balancer.Backend) *exchange.Exchange {
	t.Helper()
	x, _ := exchangetest.New(t, "GET http://shop.example/")
	x.Backend = b
	return x
}

// TestNext checks that each attempt goes to another endpoint, until all were tried.
func TestNext(t *testing.T) {
	// Without earlier attempts, this policy always chooses the same endpoint.
	b := newBackend(&ir.LoadBalancing{Policy: ir.PolicyHash, HashBy: "$host"}, "a:1", "b:1", "c:1")
	x, tried := toBackend(t, b), map[string]bool{}
	for range 3 {
		address, ok := x.Next()
		if !ok || tried[address] {
			t.Errorf("%q is tried after %v", address, tried)
		}
		tried[address] = true
	}
	if address, ok := x.Next(); !ok || !tried[address] {
		t.Errorf("when all were tried, %q is tried", address)
	}
	if !x.Listed()() {
		t.Error("the endpoint is not listed")
	}
	listed := x.Listed()
	b.SetEndpoints(nil)
	if listed() {
		t.Error("a removed endpoint is listed")
	}
	if address, ok := x.Next(); ok {
		t.Errorf("a backend without endpoints has %q", address)
	}
	if address, ok := toBackend(t, nil).Next(); ok {
		t.Errorf("a request without a backend goes to %q", address)
	}
}

// TestLastAttemptIsJudged checks how an attempt affects its endpoint. There are two endpoints, and an endpoint is
// ejected after its first failure.
func TestLastAttemptIsJudged(t *testing.T) {
	conclude := func(err error) func(x *exchange.Exchange) {
		return func(x *exchange.Exchange) {
			x.Next()
			x.Conclude(err)
		}
	}
	for name, c := range map[string]struct {
		do      func(x *exchange.Exchange)
		ejected bool
	}{
		"success":         {conclude(nil), false},
		"bad gateway":     {conclude(exchange.Fail(502, nil)), true},
		"too late":        {conclude(exchange.Fail(504, nil)), true},
		"too large":       {conclude(exchange.Fail(413, nil)), false},
		"another error":   {conclude(errors.New("odd")), false},
		"no attempt":      {func(x *exchange.Exchange) { x.Conclude(exchange.Fail(502, nil)) }, false},
		"done":            {func(x *exchange.Exchange) { x.Next(); x.Done(false) }, false},
		"failed":          {func(x *exchange.Exchange) { x.Next(); x.Done(true) }, true},
		"done, then more": {func(x *exchange.Exchange) { x.Next(); x.Done(false); x.Done(true) }, false},
		"done, then concluded": {func(x *exchange.Exchange) {
			x.Next()
			x.Done(false)
			x.Conclude(exchange.Fail(502, nil))
		}, false},
		"another attempt": {func(x *exchange.Exchange) { x.Next(); x.Next() }, true},
		"ended":           {func(x *exchange.Exchange) { x.Next(); x.End() }, false},
		"the client left": {func(x *exchange.Exchange) {
			ctx, leave := context.WithCancel(x.Context())
			x.SetContext(ctx)
			x.Next()
			leave()
			x.Conclude(exchange.Fail(502, ctx.Err()))
		}, false},
		"failed after the head": {func(x *exchange.Exchange) {
			x.Next()
			x.ResponseStarted(time.Time{})
			x.Done(true)
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBackend(&ir.LoadBalancing{EjectAfter: 1}, "a:1", "b:1")
			x := toBackend(t, b)
			c.do(x)
			x.Close()
			seen := map[*balancer.Endpoint]bool{}
			for range 10 {
				choice, _ := b.Pick(nil, nil)
				seen[choice.Endpoint] = true
				if choice.Endpoint.InFlight() != 0 {
					t.Error("the attempt has not ended")
				}
			}
			if ejected := len(seen) == 1; ejected != c.ejected {
				t.Errorf("ejected: %t, want %t", ejected, c.ejected)
			}
		})
	}
}

// TestSuccessIsJudged checks that a success between two failures counts: an endpoint is ejected after two failures in
// a row.
func TestSuccessIsJudged(t *testing.T) {
	for between, ejected := range map[error]bool{nil: false, exchange.Fail(400, nil): true} {
		b := newBackend(&ir.LoadBalancing{Policy: ir.PolicyHash, HashBy: "$host", EjectAfter: 2}, "a:1", "b:1")
		var first string
		for _, err := range []error{exchange.Fail(502, nil), between, exchange.Fail(502, nil)} {
			x := toBackend(t, b)
			first, _ = x.Next()
			x.Conclude(err)
			x.Close()
		}
		if now, _ := toBackend(t, b).Next(); (now != first) != ejected {
			t.Errorf("with %v between them, the next request goes from %s to %s", between, first, now)
		}
	}
}

// TestInFlight checks that an attempt counts as a request in flight until it ends.
func TestInFlight(t *testing.T) {
	b := newBackend(nil, "a:1")
	choice, _ := b.Pick(nil, nil)
	x := toBackend(t, b)
	ctx, leave := context.WithCancel(t.Context())
	x.SetContext(ctx)
	for _, step := range []struct {
		name string
		do   func()
		want int
	}{
		{"Next", func() { x.Next() }, 1}, {"another Next", func() { x.Next() }, 1},
		{"Done", func() { x.Done(false) }, 0}, {"another Done", func() { x.Done(false) }, 0},
		{"a third Next", func() { x.Next() }, 1}, {"End", x.End, 0}, {"another End", x.End, 0},
		{"a fourth Next", func() { x.Next() }, 1}, {"Close", x.Close, 0}, {"a fifth Next", func() { x.Next() }, 1},
		{"a success", func() { x.Conclude(nil) }, 0}, {"a sixth Next", func() { x.Next() }, 1},
		{"a bad request", func() { x.Conclude(exchange.Fail(400, nil)) }, 0},
		{"a seventh Next", func() { x.Next() }, 1}, {"the client", leave, 1},
		{"its error", func() { x.Conclude(exchange.Fail(502, nil)) }, 0},
	} {
		if step.do(); choice.Endpoint.InFlight() != step.want {
			t.Errorf("after %s %d requests are in flight, want %d", step.name, choice.Endpoint.InFlight(), step.want)
		}
	}
}

// TestAttempts checks the descriptions of finished attempts.
func TestAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := toBackend(t, newBackend(nil, "a:1"))
		attempt := func(took time.Duration, end func()) {
			x.Next()
			<-time.After(took) // The test uses the fake clock of synctest.
			end()
		}
		attempt(time.Second, func() { x.Done(true) })
		attempt(2*time.Second, func() { x.SetResponseStatus(404); x.Done(false) })
		attempt(3*time.Second, func() { x.Conclude(exchange.Fail(504, nil)) })
		attempt(5*time.Second, func() { x.Failed(504); x.Failed(500) })
		attempt(4*time.Second, func() { x.SetResponseStatus(200); x.Conclude(exchange.Fail(502, nil)) })
		want := []exchange.Attempt{
			{"a:1", 502, 0, time.Second, true}, {"a:1", 404, 0, 2 * time.Second, false},
			{"a:1", 504, 0, 3 * time.Second, false}, {"a:1", 504, 0, 5 * time.Second, false},
			{"a:1", 200, 0, 4 * time.Second, false},
		}
		if got := x.Attempts(); !slices.Equal(got, want) {
			t.Errorf("the attempts are %+v, want %+v", got, want)
		}
	})
}

// TestResponseStarted checks that the response time of an endpoint is the time until the head of its response, because
// the rest may be an endless stream.
func TestResponseStarted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBackend(&ir.LoadBalancing{Policy: ir.PolicyEWMA}, "a:1", "b:1")
		x := toBackend(t, b)
		streams, _ := x.Next()
		x.ResponseStarted(time.Time{})
		x.ResponseStarted(time.Now().Add(-time.Hour))
		<-time.After(20 * time.Millisecond) // The test uses the fake clock of synctest.
		x.Done(false)
		x.ResponseStarted(time.Now().Add(-time.Hour))
		x.Next()
		x.ResponseStarted(time.Now().Add(-10 * time.Millisecond))
		x.Done(false)
		for range 10 {
			if choice, _ := b.Pick(nil, nil); choice.Endpoint.Address() != streams {
				t.Errorf("%s is chosen, which responds later than %s", choice.Endpoint.Address(), streams)
			}
		}
	})
}

// TestClientIPKeepsItsEndpoint checks that the balancer gets the address of the client, without the port.
func TestClientIPKeepsItsEndpoint(t *testing.T) {
	b := newBackend(&ir.LoadBalancing{ClientIP: time.Hour}, "a:1", "b:1", "c:1", "d:1")
	first, _ := toBackend(t, b).Next()
	for port := range uint16(10) {
		x := toBackend(t, b)
		remote := netip.AddrPortFrom(netip.MustParseAddr(exchangetest.Client), port+1)
		x.Conn = message.NewConn(remote, x.Conn.Local, nil)
		if address, _ := x.Next(); address != first {
			t.Fatalf("the client goes from %s to %s", first, address)
		}
	}
}
