package filter_test

import (
	"errors"
	"io"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"

	"github.com/k8singress/k8singress/internal/http/callout"
	"github.com/k8singress/k8singress/internal/http/exchange"
	"github.com/k8singress/k8singress/internal/http/filter"
	"github.com/k8singress/k8singress/internal/http/message"
	"github.com/k8singress/k8singress/internal/http/mirror"
	"github.com/k8singress/k8singress/internal/model/document"
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/pattern"
	"github.com/k8singress/k8singress/internal/tests/exchangetest"
)

// filterCase is a filter with requests, which it gets in turn.
type filterCase struct {
	name string
	// settings are the settings of the filter as JSON.
	settings string
	// route is the route of the requests. Nil is the path "/" of the requested host.
	route    *exchange.Route
	requests []visit
	// invalid is part of the error with which New rejects the settings. There are no requests then.
	invalid string
}

// visit is one request with its expected outcome. Heads of requests and responses are written as in exchangetest.
type visit struct {
	// after is the time between the visit before and this one.
	after time.Duration
	// client is the address of the client. Empty is exchangetest.Client, and unixSocket is a client without an address.
	client string
	// request is the head of the request, and body its body.
	request, body string
	// next is the head of the request that the next handler of the chain gets. It is same if the filter does not change
	// the request, and empty if the next handler gets no request.
	next string
	// backend is the head of the response of the next handler. Empty is "200". If fails is not zero, the next handler
	// fails with this status instead.
	backend string
	fails   int
	// response is the head of the response to the client.
	response string
	// service is the head of the response of authentication services and mirrors. It may also be one of the constants
	// below. asked are the requests to them, without their header fields, separated by commas.
	service, asked string
	// open means that the request does not end before the end of the case.
	open bool
}

// passes returns a request that the filter does not change. gets returns a request that does not reach the next
// handler.
func passes(request string) visit { return visit{request: request, next: same, response: "200"} }

func gets(request, response string) visit { return visit{request: request, response: response} }

// rejected returns a case with settings that are not valid.
func rejected(name, settings, invalid string) filterCase {
	return filterCase{name: name, settings: settings, invalid: invalid}
}

const (
	same       = "same"
	unixSocket = "unix"
	// These are values of visit.service.
	busy = "busy"
	down = "down"
)

// at returns the route for a path of a host. kind is "prefix", "exact" or "regex".
func at(host, kind, path string) *exchange.Route {
	r := &exchange.Route{Host: host, Type: kind, Path: path, Origin: exchangetest.Ingress}
	if kind == string(ir.MatchRegex) {
		var err error
		if r.Regex, err = pattern.CompilePath(path); err != nil {
			panic(err)
		}
	}
	return r
}

// bench has the resources that filters share, and a service that all external requests reach.
type bench struct {
	shared  *filter.Shared
	mirrors *mirror.Sender
	// answer is the response of the service, as in visit. calls are the requests that it got.
	answer string
	calls  []*callout.Call
}

// newBench returns a bench with the Secret shop/users, in which alice has the password "one".
func newBench(t testing.TB) *bench {
	b := &bench{}
	call := func(_ *message.Request, call *callout.Call) (callout.Response, error) {
		// The fields are cloned because filters use a call again.
		kept := *call
		kept.Fields = append(message.Fields(nil), call.Fields...)
		b.calls = append(b.calls, &kept)
		switch b.answer {
		case busy:
			return callout.Response{}, callout.ErrBusy
		case down:
			return callout.Response{}, errors.New("the connection was refused")
		}
		response := exchangetest.Response(t, b.answer)
		return call.NewResponse(response.Status, response.Fields), nil
	}
	b.mirrors = mirror.NewSender(call, zap.NewNop())
	t.Cleanup(b.mirrors.Close)
	b.shared = filter.NewShared(call, b.mirrors)
	users := ir.Users{Secret: ir.Name{Namespace: "shop", Name: "users"}}
	missing := ir.Users{Secret: ir.Name{Namespace: "shop", Name: "missing"}}
	b.shared.Users.Update(&document.Delta{Hosts: map[string]*document.Host{"": {Routes: []*document.Route{
		{Destination: document.Destination{Users: []ir.Users{users, missing}}},
	}}}})
	b.shared.Users.SetSecret(users.Secret, map[string][]byte{"auth": []byte("alice:{PLAIN}one\n")}, true)
	b.shared.Users.SetSecret(missing.Secret, nil, false)
	return b
}

// newFilter creates a filter from its JSON.
func (b *bench) newFilter(t testing.TB, handler, settings string) filter.Filter {
	t.Helper()
	f, ok, err := filter.New(handler, []byte(settings), b.shared)
	if err != nil || !ok {
		t.Fatalf("%s %s: %t, %v", handler, settings, ok, err)
	}
	return f
}

// run creates the filter with the given handler name, and sends the requests of c to it. The clock is fake.
func (c *filterCase) run(t *testing.T, handler string) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		if c.invalid != "" {
			_, ok, err := filter.New(handler, []byte(c.settings), b.shared)
			if !ok || err == nil || !strings.Contains(err.Error(), c.invalid) {
				t.Errorf("%s: the error is %v, want %q", c.settings, err, c.invalid)
			}
			return
		}
		f := b.newFilter(t, handler, c.settings)
		for i := range c.requests {
			v := &c.requests[i]
			if v.after > 0 {
				<-time.After(v.after)
			}
			v.check(t, b, f, c.route)
		}
	})
}

// check sends the request to the filter, and compares the outcome.
func (v *visit) check(t *testing.T, b *bench, f filter.Filter, route *exchange.Route) {
	t.Helper()
	x, response := v.exchange(t, route)
	b.answer, b.calls = v.service, nil
	next := v.serve(t, x, f)
	if v.open {
		t.Cleanup(x.Close)
	} else {
		x.Close()
	}
	// Mirrors are asked in other goroutines.
	synctest.Wait()
	want := v.next
	if want == same {
		want = v.request
	}
	if got := response.String(); got != v.response || next != want {
		t.Errorf("%s %s\nthe next handler gets %q\n                 want %q\nthe client gets %q\n           want %q",
			v.client, v.request, next, want, got, v.response)
	}
	var asked []string
	for _, call := range b.calls {
		asked = append(asked, lineOf(call))
	}
	if got := strings.Join(asked, ", "); got != v.asked {
		t.Errorf("%s %s\nthe service gets %q\n            want %q", v.client, v.request, got, v.asked)
	}
}

func (v *visit) exchange(t *testing.T, route *exchange.Route) (*exchange.Exchange, *exchangetest.Recorder) {
	t.Helper()
	x, response := exchangetest.New(t, v.request)
	if route != nil {
		x.Route = route
	}
	switch v.client {
	case "":
	case unixSocket:
		exchangetest.SetClient(x, netip.Addr{})
	default:
		exchangetest.SetClient(x, netip.MustParseAddr(v.client))
	}
	if v.body != "" {
		exchangetest.SetBody(x, v.body)
	}
	return x, response
}

// serve applies the filter as a handler chain does, and returns the head of the request that the next handler gets. If
// the filter or the next handler fails, the client gets the status of the error.
func (v *visit) serve(t *testing.T, x *exchange.Exchange, f filter.Filter) (next string) {
	t.Helper()
	responded, err := f.Apply(x)
	if responded && err != nil {
		t.Errorf("%s: the filter has responded, and failed with %v", v.request, err)
	}
	if !responded && err == nil {
		next = exchangetest.Head(x)
		err = v.respond(t, x)
	}
	var failure *exchange.Failure
	if errors.As(err, &failure) {
		err = x.Writer.Head(x.Refusal(failure.Status))
	}
	if err != nil {
		t.Errorf("%s: %v", v.request, err)
	}
	return next
}

// respond is the next handler. It reads the body of the request, and responds without a body.
func (v *visit) respond(t *testing.T, x *exchange.Exchange) error {
	t.Helper()
	if x.Body != nil {
		if body, err := io.ReadAll(x.Body); err != nil || string(body) != v.body {
			t.Errorf("%s: the next handler reads %q, %v", v.request, body, err)
		}
	}
	switch {
	case v.fails != 0:
		return exchange.Fail(v.fails, nil)
	case v.backend != "":
		return x.Head(exchangetest.Response(t, v.backend))
	}
	return x.Head(&message.Response{Status: http.StatusOK})
}

// lineOf returns the first line of a request to a service, with the address that it is sent to.
func lineOf(call *callout.Call) string {
	scheme := "http"
	if call.Secure {
		scheme = "https"
	}
	return call.Method + " " + scheme + "://" + call.Address + call.Target
}
