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
	requests []requestCase
	// invalid is part of the error with which New rejects the settings. There are no requests then.
	invalid string
}

// requestCase is one request with its expected outcome. Heads of requests and responses are written as in exchangetest.
type requestCase struct {
	// after is the time between the previous request and this request.
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
func passes(request string) requestCase {
	return requestCase{request: request, next: same, response: "200"}
}

func gets(request, response string) requestCase {
	return requestCase{request: request, response: response}
}

// rejected returns a case with settings that are not valid.
func rejected(name, settings, invalid string) filterCase {
	return filterCase{name: name, settings: settings, invalid: invalid}
}

const (
	same = "same"
	// rerouted stands before the head of a request for which the filter wants another route. aborted stands in place of
	// the head if the client gets no response.
	rerouted   = "rerouted: "
	aborted    = "aborted"
	unixSocket = "unix"
	// These are values of requestCase.service.
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

// environment has the resources that filters share, and a service that all external requests reach.
type environment struct {
	shared  *filter.Shared
	mirrors *mirror.Sender
	// answer is the response of the service, as in requestCase. calls are the requests that it got.
	answer string
	calls  []*callout.Call
}

// newEnvironment returns an environment with the Secret shop/users, in which alice has the password "one".
func newEnvironment(t testing.TB) *environment {
	env := &environment{}
	call := func(_ *message.Request, call *callout.Call) (callout.Response, error) {
		// The fields are cloned because filters use a call again.
		kept := *call
		kept.Fields = append(message.Fields(nil), call.Fields...)
		env.calls = append(env.calls, &kept)
		switch env.answer {
		case busy:
			return callout.Response{}, callout.ErrBusy
		case down:
			return callout.Response{}, errors.New("the connection was refused")
		}
		response := exchangetest.Response(t, env.answer)
		return call.NewResponse(response.Status, response.Fields), nil
	}
	env.mirrors = mirror.NewSender(call, zap.NewNop())
	t.Cleanup(env.mirrors.Close)
	env.shared = filter.NewShared(call, env.mirrors)
	users := ir.Users{Secret: ir.Name{Namespace: "shop", Name: "users"}}
	missing := ir.Users{Secret: ir.Name{Namespace: "shop", Name: "missing"}}
	env.shared.Users.Update(&document.Delta{Hosts: map[string]*document.Host{"": {Routes: []*document.Route{
		{Destination: document.Destination{Users: []ir.Users{users, missing}}},
	}}}})
	env.shared.Users.SetSecret(users.Secret, map[string][]byte{"auth": []byte("alice:{PLAIN}one\n")}, true)
	env.shared.Users.SetSecret(missing.Secret, nil, false)
	return env
}

// newFilter creates a filter from its JSON.
func (e *environment) newFilter(t testing.TB, handler, settings string) filter.Filter {
	t.Helper()
	f, ok, err := filter.New(handler, []byte(settings), e.shared)
	if err != nil || !ok {
		t.Fatalf("%s %s: %t, %v", handler, settings, ok, err)
	}
	return f
}

// run creates the filter with the given handler name, and sends the requests of c to it. The clock is fake.
func (c *filterCase) run(t *testing.T, handler string) {
	synctest.Test(t, func(t *testing.T) {
		env := newEnvironment(t)
		if c.invalid != "" {
			_, ok, err := filter.New(handler, []byte(c.settings), env.shared)
			if !ok || err == nil || !strings.Contains(err.Error(), c.invalid) {
				t.Errorf("%s: the error is %v, want %q", c.settings, err, c.invalid)
			}
			return
		}
		f := env.newFilter(t, handler, c.settings)
		for i := range c.requests {
			r := &c.requests[i]
			if r.after > 0 {
				<-time.After(r.after)
			}
			r.check(t, env, f, c.route)
		}
	})
}

// check sends the request to the filter, and compares the outcome.
func (r *requestCase) check(t *testing.T, env *environment, f filter.Filter, route *exchange.Route) {
	t.Helper()
	x, response := r.exchange(t, route)
	env.answer, env.calls = r.service, nil
	next := r.serve(t, x, f)
	if r.open {
		t.Cleanup(x.Close)
	} else {
		x.Close()
	}
	// Mirrors are asked in other goroutines.
	synctest.Wait()
	want := r.next
	if want == same {
		want = r.request
	}
	if got := response.String(); got != r.response || next != want {
		t.Errorf("%s %s\nthe next handler gets %q\n                 want %q\nthe client gets %q\n           want %q",
			r.client, r.request, next, want, got, r.response)
	}
	var asked []string
	for _, call := range env.calls {
		asked = append(asked, lineOf(call))
	}
	if got := strings.Join(asked, ", "); got != r.asked {
		t.Errorf("%s %s\nthe service gets %q\n            want %q", r.client, r.request, got, r.asked)
	}
}

func (r *requestCase) exchange(t *testing.T, route *exchange.Route) (*exchange.Exchange, *exchangetest.Recorder) {
	t.Helper()
	x, response := exchangetest.New(t, r.request)
	if route != nil {
		x.Route = route
	}
	switch r.client {
	case "":
	case unixSocket:
		exchangetest.SetClient(x, netip.Addr{})
	default:
		exchangetest.SetClient(x, netip.MustParseAddr(r.client))
	}
	if r.body != "" {
		exchangetest.SetBody(x, r.body)
	}
	return x, response
}

// serve applies the filter as a handler chain does, and returns the head of the request that the next handler gets. If
// the filter or the next handler fails, the client gets the status of the error.
func (r *requestCase) serve(t *testing.T, x *exchange.Exchange, f filter.Filter) (next string) {
	t.Helper()
	responded, err := f.Apply(x)
	if responded && err != nil {
		t.Errorf("%s: the filter has responded, and failed with %v", r.request, err)
	}
	if !responded && err == nil {
		next = exchangetest.Head(x)
		err = r.respond(t, x)
	}
	var failure *exchange.Failure
	switch {
	case errors.As(err, &failure):
		err = x.Writer.Head(x.Refusal(failure.Status))
	case errors.Is(err, exchange.ErrReroute):
		return rerouted + exchangetest.Head(x)
	case errors.Is(err, exchange.ErrAborted):
		return aborted
	}
	if err != nil {
		t.Errorf("%s: %v", r.request, err)
	}
	return next
}

// respond is the next handler. It reads the body of the request, and responds without a body.
func (r *requestCase) respond(t *testing.T, x *exchange.Exchange) error {
	t.Helper()
	if x.Body != nil {
		if body, err := io.ReadAll(x.Body); err != nil || string(body) != r.body {
			t.Errorf("%s: the next handler reads %q, %v", r.request, body, err)
		}
	}
	switch {
	case r.fails != 0:
		return exchange.Fail(r.fails, nil)
	case r.backend != "":
		return x.Head(exchangetest.Response(t, r.backend))
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
