package exchange_test

import (
	"errors"
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/k8singress/k8singress/internal/http/exchange"
	"github.com/k8singress/k8singress/internal/http/message"
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/tests/exchangetest"
)

// page returns one error page. status is its status, and if anyStatus is true, clients get any status of the page.
func page(target string, status int, anyStatus bool, statuses ...int) ir.ErrorHandling {
	return ir.ErrorHandling{Pages: []ir.ErrorPage{
		{Statuses: statuses, Target: target, Status: status, AnyStatus: anyStatus}}}
}

// TestPassToErrorPage checks the request for an error page, and the status that the client gets if the page has status
// 200. The head of the request follows the name of a location, if there is one. If the client is redirected or the
// request fails, its response stands in place of it.
func TestPassToErrorPage(t *testing.T) {
	const shop = " http://shop.example"
	for name, c := range map[string]struct {
		request   string
		of        ir.ErrorHandling
		forwarded bool
		want      string
	}{
		"a path": {"POST" + shop + "/a?q=1 | Content-Type: text/plain | Range: bytes=0-1 | X-A: b",
			page("/denied", 0, false, 403), false, "GET" + shop + "/denied | X-A: b, 403"},
		"HEAD": {"HEAD" + shop + "/a", page("/denied", 0, true, 403), false, "HEAD" + shop + "/denied, 200"},
		"variables": {"GET" + shop + "/a%20b?q=1",
			page("/x$uri?from=$request_uri&code=$status", 410, false, 403), false,
			"GET" + shop + "/x/a%20b?from=/a%20b?q=1&code=410, 410"},
		"a variable with a path": {"GET" + shop + "/a", page("$uri/b", 200, false, 403), false,
			"GET" + shop + "/a/b, 200"},
		"a name": {"POST" + shop + "/a?q=1 | Content-Type: text/plain", page("@x", 0, true, 403), false,
			"@x POST" + shop + "/a?q=1 | Content-Type: text/plain and a body, 200"},
		"a name, and the body was sent": {"POST" + shop + "/a?q=1 | Content-Type: text/plain",
			page("@x", 0, true, 403), true, "@x POST" + shop + "/a?q=1, 200"},
		"a URL": {"GET" + shop + "/a", page("https://$host/x?y=$uri", 0, false, 403), false,
			"302 | Location: https://shop.example/x?y=/a"},
		"a URL with a status": {"GET" + shop + "/a", page("https://a.example/", 308, false, 403), false,
			"308 | Location: https://a.example/"},
		"a URL with another status": {"GET" + shop + "/a", page("https://a.example/", 200, false, 403), false,
			"302 | Location: https://a.example/"},
		"the first page": {"GET" + shop + "/a", ir.ErrorHandling{Pages: []ir.ErrorPage{
			{Statuses: []int{404}, Target: "/no"}, {Statuses: []int{401, 403}, Target: "/first"},
			{Statuses: []int{403}, Target: "/second"}}}, false, "GET" + shop + "/first, 403"},
		"dot segments":        {"GET" + shop + "/?q=/../x", page("/x$arg_q", 0, false, 403), false, "error 400"},
		"nothing":             {"GET" + shop + "/", page("$arg_q", 0, false, 403), false, "error 500"},
		"an invalid redirect": {"GET" + shop + "/%0aX", page("x$uri", 0, false, 403), false, "error 500"},
	} {
		t.Run(name, func(t *testing.T) {
			x, w := exchangetest.New(t, c.request)
			client := x.Request
			if x.Method == http.MethodPost {
				exchangetest.SetBody(x, "text")
			}
			x.Forwarded = c.forwarded
			arrival := x.Arrival()
			x.UseDirectives(directives(t, ir.Directives{Errors: c.of}))
			err := x.PassToErrorPage(exchange.Fail(http.StatusForbidden, nil))
			if got := outcomeOf(x, w, arrival, err); got != c.want {
				t.Errorf("it is %q", got)
			}
			if failed := x.EndReroutes(arrival, true, nil); failed != nil || x.Request != client {
				t.Errorf("the request at the end is %+v, %v", x.Request, failed)
			}
		})
	}
}

// outcomeOf returns what TestPassToErrorPage compares. err is the result of PassToErrorPage.
func outcomeOf(x *exchange.Exchange, w *exchangetest.Recorder, at exchange.Arrival, err error) (outcome string) {
	switch {
	case err == nil:
		return w.String()
	case !errors.Is(err, exchange.ErrReroute):
		return "error " + strconv.Itoa(exchange.StatusOf(err))
	case x.Named != "":
		outcome = x.Named + " "
	}
	outcome += exchangetest.Head(x)
	if x.Body != nil {
		outcome += " and a body"
	}
	x.Reroute(at)
	_ = x.Head(&message.Response{Status: http.StatusOK})
	return outcome + ", " + w.String()
}

// TestErrorPageOfErrorPage checks which errors of an error page are replaced.
func TestErrorPageOfErrorPage(t *testing.T) {
	on := true
	for name, c := range map[string]struct {
		first ir.ErrorHandling
		want  bool
	}{
		"once":      {page("/a", 0, false, 403), false},
		"recursive": {ir.ErrorHandling{Pages: page("/a", 0, false, 403).Pages, Recursive: &on}, true},
	} {
		x, _ := exchangetest.New(t, "GET http://shop.example/")
		at, second := x.Arrival(), directives(t, ir.Directives{Errors: page("/b", 0, false, 404)})
		x.UseDirectives(directives(t, ir.Directives{Errors: c.first}))
		if x.HasErrorPage(http.StatusNotFound) || !x.HasErrorPage(http.StatusForbidden) {
			t.Errorf("%s: the pages are for other statuses", name)
		}
		if err := x.PassToErrorPage(exchange.Fail(http.StatusForbidden, nil)); !errors.Is(err, exchange.ErrReroute) {
			t.Fatal(err)
		}
		x.Reroute(at)
		if x.HasErrorPage(http.StatusForbidden) {
			t.Errorf("%s: the pages of the first route count", name)
		}
		x.UseDirectives(second)
		if got := x.HasErrorPage(http.StatusNotFound); got != c.want || x.AtErrorPage() == c.want {
			t.Errorf("%s: the error of a page has a page: %t", name, got)
		}
	}
}

// TestReplaces checks when the responses of endpoints are replaced. A later program only changes what it sets.
func TestReplaces(t *testing.T) {
	on, off := true, false
	intercept := func(to *bool) ir.ErrorHandling { return ir.ErrorHandling{Intercept: to} }
	for name, c := range map[string]struct {
		programs []ir.ErrorHandling
		replaced []int
		want     bool
	}{
		"only pages":     {[]ir.ErrorHandling{page("/a", 0, false, 404)}, nil, false},
		"intercepted":    {[]ir.ErrorHandling{page("/a", 0, false, 404), intercept(&on)}, nil, true},
		"another status": {[]ir.ErrorHandling{page("/a", 0, false, 403), intercept(&on)}, nil, false},
		"switched off": {
			[]ir.ErrorHandling{page("/a", 0, false, 404), intercept(&on), intercept(&off)}, nil, false,
		},
		"custom errors": {nil, []int{404}, true},
		"replaced pages": {
			[]ir.ErrorHandling{page("/a", 0, false, 404), intercept(&on), page("/", 0, false, 403)}, nil, false,
		},
		"without any pages": {[]ir.ErrorHandling{intercept(&on)}, nil, false},
	} {
		x, _ := exchangetest.New(t, "GET http://shop.example/")
		x.Replaced = c.replaced
		for _, of := range c.programs {
			x.UseDirectives(directives(t, ir.Directives{Errors: of}))
		}
		if got := x.Replaces(http.StatusNotFound); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// TestEndReroutes checks the error of a request behind an error page, and which errors are logged.
func TestEndReroutes(t *testing.T) {
	failed, other := exchange.Fail(http.StatusBadGateway, nil), exchange.Fail(http.StatusNotFound, nil)
	rejected := exchange.Rejection(http.StatusForbidden, "no")
	for name, c := range map[string]struct {
		before, err  error
		found        bool
		want, hidden error
	}{
		"a page":              {failed, nil, true, nil, failed},
		"a rejected client":   {rejected, nil, true, nil, nil},
		"a page that fails":   {failed, other, true, other, nil},
		"a page without path": {failed, nil, false, failed, nil},
	} {
		x, _ := exchangetest.New(t, "GET http://shop.example/")
		x.UseDirectives(directives(t, ir.Directives{Errors: page("/a", 0, false, 403, 502)}))
		at := x.Arrival()
		if err := x.PassToErrorPage(c.before); !errors.Is(err, exchange.ErrReroute) {
			t.Fatal(err)
		}
		x.Reroute(at)
		if got := x.EndReroutes(at, c.found, c.err); !errors.Is(got, c.want) || !errors.Is(x.Hidden, c.hidden) {
			t.Errorf("%s: %v, hidden %v", name, got, x.Hidden)
		}
	}
	x, _ := exchangetest.New(t, "GET http://shop.example/")
	if got := x.EndReroutes(x.Arrival(), false, other); !errors.Is(got, other) {
		t.Errorf("without a page: %v", got)
	}
}

// TestPanicOfErrorPage checks that an error is logged if the handler of its error page panics.
func TestPanicOfErrorPage(t *testing.T) {
	failed := exchange.Fail(http.StatusBadGateway, nil)
	x, _ := exchangetest.New(t, "GET http://shop.example/")
	x.UseDirectives(directives(t, ir.Directives{Errors: page("/a", 0, false, 502)}))
	at := x.Arrival()
	if err := x.PassToErrorPage(failed); !errors.Is(err, exchange.ErrReroute) {
		t.Fatal(err)
	}
	x.Reroute(at)
	if x.ResetAfterPanic(at); !errors.Is(x.Hidden, failed) {
		t.Errorf("the error to log is %v, want %v", x.Hidden, failed)
	}
}

// TestErrorPageFields checks the header fields of responses with error pages.
func TestErrorPageFields(t *testing.T) {
	for name, c := range map[string]struct {
		status  int
		respond func(*exchange.Exchange) error
		want    string
	}{
		"a page": {http.StatusUnauthorized, func(x *exchange.Exchange) error {
			return x.Respond(http.StatusOK, "text")
		}, "401 | WWW-Authenticate: Basic"},
		"a redirect": {http.StatusUnauthorized, func(x *exchange.Exchange) error {
			return x.Respond(http.StatusFound, "", message.Location.Field("/login"))
		}, "302 | Location: /login | WWW-Authenticate: Basic"},
		"rejected": {http.StatusUnauthorized, func(x *exchange.Exchange) error {
			return x.Respond(http.StatusNotFound, "")
		}, "404 | WWW-Authenticate: Basic"},
		"unavailable": {http.StatusServiceUnavailable, func(x *exchange.Exchange) error {
			return x.Respond(http.StatusOK, "text")
		}, "503 | Retry-After: 7 | WWW-Authenticate: Basic"},
	} {
		x, w := exchangetest.New(t, "GET http://shop.example/")
		x.Route.RetryAfter = 7 * time.Second
		x.ErrorFields = exchangetest.Fields("WWW-Authenticate: Basic")
		x.UseDirectives(directives(t, ir.Directives{Errors: page("/a", 0, false, c.status)}))
		at, route := x.Arrival(), x.Route
		if err := x.PassToErrorPage(exchange.Fail(c.status, nil)); !errors.Is(err, exchange.ErrReroute) {
			t.Fatal(err)
		}
		x.Reroute(at)
		x.Route = route
		if err := c.respond(x); err != nil || w.String() != c.want {
			t.Errorf("%s: %q, %v", name, w, err)
		}
	}
}
