package exchange_test

import (
	"errors"
	"net/http"
	"testing"

	"github.com/k8singress/k8singress/internal/http/exchange"
	"github.com/k8singress/k8singress/internal/http/message"
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/tests/exchangetest"
	"github.com/k8singress/k8singress/internal/upstream/balancer"
)

// TestReject checks that a rejected request gets a response without a body, unless there is an error page for the
// status.
func TestReject(t *testing.T) {
	for _, c := range []struct {
		pages     []int
		responded bool
	}{{nil, true}, {[]int{404}, true}, {[]int{404, 429}, false}} {
		x, response := exchangetest.New(t, "GET http://shop.example/")
		x.Pages = c.pages
		responded, err := x.Reject(exchange.Rejection(http.StatusTooManyRequests, "too many"))
		if responded != c.responded || response.Started() != c.responded || (err == nil) != c.responded {
			t.Errorf("with pages for %v: responded %t with %q, %v", c.pages, responded, response, err)
		}
		if err == nil {
			err = x.Refused
		}
		if exchange.StatusOf(err) != 429 || !errors.Is(err, exchange.ErrRejected) || err.Error() != "too many" {
			t.Errorf("the error is %v", err)
		}
	}
}

// TestErrorPage checks the request for an error page, and the status that the client gets with the page.
func TestErrorPage(t *testing.T) {
	const about = " | X-Namespace: shop | X-Ingress-Name: web | X-Service-Name: app | X-Service-Port: 80"
	for name, c := range map[string]struct {
		request string
		page    exchange.Page
		// asked is the head of the request for the page, and told are the fields that describe the error.
		asked, told string
		// backend is the head of the page, and response what the client gets.
		backend, response string
	}{
		"usual": {
			"POST http://shop.example/a%20b?c=d | Accept: text/html | Cookie: a=b | Content-Type: text/plain",
			exchange.Page{Status: 404}, "POST http://shop.example/ | Accept: text/html | Cookie: a=b",
			"X-Code: 404 | X-Original-URI: /a%20b?c=d | X-Format: text/html" + about, "200", "200",
		},
		"with the path": {
			"GET https://shop.example/a?c=d", exchange.Page{Status: 503, KeepPath: true},
			"GET https://shop.example/a?c=d", "X-Code: 503 | X-Original-URI: /a?c=d" + about, "503", "503",
		},
		"with the status": {
			"GET http://shop.example/", exchange.Page{Status: 403, KeepStatus: true}, "GET http://shop.example/",
			"X-Code: 403 | X-Original-URI: /" + about, "200 | X-Page: 1", "403 | X-Page: 1",
		},
		"fields about another resource": {
			"GET http://shop.example/ | X-Code: 200 | x-format: a | X-Namespace: b | X-Ingress-Name: c" +
				" | X-Service-Name: d | X-Service-Port: e | Content-Encoding: br | Content-Range: f | If-Match: g" +
				" | If-Modified-Since: h | If-None-Match: i | If-Range: j | If-Unmodified-Since: k | Range: l" +
				" | Connection: close | TE: m | X-Kept: n",
			exchange.Page{Status: 404}, "GET http://shop.example/ | X-Kept: n",
			"X-Code: 404 | X-Original-URI: /" + about, "404", "404",
		},
	} {
		t.Run(name, func(t *testing.T) {
			x, response := exchangetest.New(t, c.request)
			exchangetest.SetBody(x, "body")
			x.Trailers = func() message.Fields { return nil }
			x.Backend, c.page.Backend = balancer.New("shop/app/80"), balancer.New("shop/pages/80")
			before := exchangetest.Head(x)
			page := x.ErrorPage(&c.page)
			if got := exchangetest.Head(page); got != c.asked {
				t.Errorf("the page is requested with %q, want %q", got, c.asked)
			}
			if page.Body != nil || page.Length != 0 || page.Trailers != nil {
				t.Error("the page is requested with a body")
			}
			if got := exchangetest.Text(page.ForEndpoint); got != c.told || page.Backend != c.page.Backend {
				t.Errorf("the backend %s is told %q, want %q", page.Backend.ID(), got, c.told)
			}
			if page.ID() != x.ID() || *page.Client() != *x.Client() || exchangetest.Head(x) != before {
				t.Errorf("the page has another client or ID, or the request is %q now", exchangetest.Head(x))
			}
			if err := page.Head(exchangetest.Response(t, c.backend)); err != nil || response.String() != c.response {
				t.Errorf("the client gets %q, %v, want %q", response, err, c.response)
			}
		})
	}
}

// TestErrorPageChanges checks that the page has the header changes of the failed request, and its error fields in place
// of its own.
func TestErrorPageChanges(t *testing.T) {
	x, response := exchangetest.New(t, "GET http://shop.example/")
	x.ChangeResponse(setting("X-Filter", "1"))
	x.ForAllResponses = exchange.Changes{setting("X-All", "1")}
	x.ByServer, x.CloseConn = setting("Server", "1"), true
	x.Headers, _ = exchange.NewHeaders(&ir.Headers{Responses: []ir.Header{{Name: "X-H", Value: "$host"}}}, false)
	x.ErrorFields = exchangetest.Fields("WWW-Authenticate: Basic")
	page := x.ErrorPage(&exchange.Page{Backend: balancer.New("shop/pages/80"), Status: 401})
	err := page.Head(exchangetest.Response(t, "200 | WWW-Authenticate: Bearer"))
	const want = "200 | X-Filter: 1 | Server: 1 | X-All: 1 | WWW-Authenticate: Basic | X-H: shop.example"
	if got := response.String(); err != nil || got != want || !response.Response.Close {
		t.Errorf("the client gets %q, %v, want %q", got, err, want)
	}
}

// TestErrorPageWithoutBody checks that a page whose status forbids a body gets none, even if its status is replaced.
func TestErrorPageWithoutBody(t *testing.T) {
	for status, want := range map[int]int64{200: 7, 204: 0, 304: 0} {
		x, response := exchangetest.New(t, "GET http://shop.example/")
		page := x.ErrorPage(&exchange.Page{Backend: balancer.New("shop/pages/80"), Status: 403, KeepStatus: true})
		err := page.Head(&message.Response{Status: status, Length: 7})
		if got := response.Response; err != nil || got.Status != 403 || got.Length != want {
			t.Errorf("a page with %d becomes %d with %d bytes, %v", status, got.Status, got.Length, err)
		}
	}
}

// TestErrorPageSetsNoCookie checks that a page has no session cookie, and keeps the one that the client has.
func TestErrorPageSetsNoCookie(t *testing.T) {
	x, response := exchangetest.New(t, "GET http://shop.example/")
	pages := withSessions("shop/pages/80", ir.SessionCookie{Name: "session", Origins: []string{exchangetest.Ingress}})
	page := x.ErrorPage(&exchange.Page{Backend: pages, Status: 404})
	if _, ok := page.Next(); !ok {
		t.Fatal("there is no endpoint")
	}
	if err := page.Head(exchangetest.Response(t, "200")); err != nil || response.String() != "200" {
		t.Errorf("the client gets %q, %v", response, err)
	}
}
