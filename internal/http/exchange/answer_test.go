package exchange_test

import (
	"errors"
	"fmt"
	"net/http"
	"testing"

	"github.com/k8singress/k8singress/internal/http/exchange"
	"github.com/k8singress/k8singress/internal/http/message"
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/tests/exchangetest"
)

func TestFailures(t *testing.T) {
	cause := errors.New("no route")
	for name, c := range map[string]struct {
		err    error
		status int
		text   string
	}{
		"with a cause":    {exchange.Fail(502, cause), 502, "no route"},
		"without a cause": {exchange.Fail(404, nil), 404, "Not Found"},
		"wrapped":         {fmt.Errorf("chain: %w", exchange.Fail(403, cause)), 403, "chain: no route"},
		"another error":   {cause, 500, "no route"},
	} {
		if status := exchange.StatusOf(c.err); status != c.status || c.err.Error() != c.text {
			t.Errorf("%s: %d %q, want %d %q", name, status, c.err, c.status, c.text)
		}
	}
	if err := exchange.Fail(http.StatusBadGateway, cause); !errors.Is(err, cause) {
		t.Errorf("%v does not wrap its cause", err)
	}
	if status := exchange.StatusOf(nil); status != http.StatusInternalServerError {
		t.Errorf("without an error the status is %d", status)
	}
}

// setting returns changes that set one header field.
func setting(name, value string) *message.Changes {
	return &message.Changes{Set: []message.Field{message.NewField(name, value)}}
}

// TestResponseChanges checks which changes a response and a refusal have, and which of two changes of one field counts.
func TestResponseChanges(t *testing.T) {
	byAdministrator, _ := exchange.NewHeaders(&ir.Headers{Responses: []ir.Header{
		{Name: "X-From", Value: "$request_method"}, {Name: "X-Gone", Value: "$http_x_none"},
	}}, false)
	for name, c := range map[string]struct {
		prepare func(x *exchange.Exchange)
		// backend is the response of the endpoint, and response what the client gets. refused is what the client gets
		// if the request fails with 503.
		backend, response, refused string
	}{
		"no changes": {func(*exchange.Exchange) {}, "200 | X-From: endpoint", "200 | X-From: endpoint", "503"},
		"a filter": {func(x *exchange.Exchange) { x.ChangeResponse(setting("X-From", "filter")) },
			"404 | x-from: endpoint | X-Other: a", "404 | X-From: filter | X-Other: a", "503"},
		"the first filter counts": {func(x *exchange.Exchange) {
			for _, name := range []string{"1", "2", "3", "4", "5"} {
				x.ChangeResponse(setting("X-From", name))
			}
		}, "200", "200 | X-From: 1", "503"},
		"like add_header": {func(x *exchange.Exchange) {
			x.ChangeResponse(&message.Changes{Add: exchangetest.Fields("X-From: filter"), ByAddHeader: true})
		}, "404", "404", "503"},
		"for all responses": {func(x *exchange.Exchange) {
			x.ForAllResponses = exchange.Changes{setting("X-From", "first"), setting("X-From", "second")}
			x.ChangeResponse(setting("X-From", "filter"))
		}, "200", "200 | X-From: first", "503 | X-From: first"},
		"the server": {func(x *exchange.Exchange) {
			x.ByServer = setting("X-From", "server")
			x.ChangeResponse(setting("X-From", "filter"))
		}, "200", "200 | X-From: server", "503 | X-From: server"},
		"a filter for all responses and the server": {func(x *exchange.Exchange) {
			x.ByServer, x.ForAllResponses = setting("X-From", "server"), exchange.Changes{setting("X-From", "filter")}
		}, "200", "200 | X-From: filter", "503 | X-From: filter"},
		"the administrator": {func(x *exchange.Exchange) {
			x.Headers, x.ForAllResponses = byAdministrator, exchange.Changes{setting("X-From", "filter")}
		}, "200 | X-Gone: endpoint", "200 | X-From: GET", "503 | X-From: GET"},
		"the administrator without a route": {func(x *exchange.Exchange) { x.Headers, x.Route = byAdministrator, nil },
			"200 | X-Gone: endpoint", "200 | X-Gone: endpoint", "503"},
		"fields of an error": {func(x *exchange.Exchange) {
			x.ErrorFields = exchangetest.Fields("WWW-Authenticate: Basic")
		}, "401", "401", "503 | WWW-Authenticate: Basic"},
	} {
		t.Run(name, func(t *testing.T) {
			x, response := exchangetest.New(t, "GET http://shop.example/")
			c.prepare(x)
			if err := x.Head(exchangetest.Response(t, c.backend)); err != nil || response.String() != c.response {
				t.Errorf("the client gets %q, %v, want %q", response, err, c.response)
			}
			if x.Status != response.Response.Status {
				t.Errorf("the recorded status is %d", x.Status)
			}
			x, response = exchangetest.New(t, "GET http://shop.example/")
			c.prepare(x)
			response.Response = x.Refusal(http.StatusServiceUnavailable)
			if response.String() != c.refused || x.Status != http.StatusServiceUnavailable {
				t.Errorf("a client that is refused gets %q, want %q; the recorded status is %d", response,
					c.refused, x.Status)
			}
		})
	}
}

// TestRefusalFields checks that the fields of the caller precede those of the failed handler.
func TestRefusalFields(t *testing.T) {
	x, response := exchangetest.New(t, "GET http://shop.example/")
	x.ErrorFields = exchangetest.Fields("X-A: 2")
	response.Response = x.Refusal(http.StatusUnauthorized, message.NewField("X-A", "1"))
	if got := response.String(); got != "401 | X-A: 1 | X-A: 2" {
		t.Errorf("the client gets %q", got)
	}
}

// TestCloseConn checks which responses tell the client to close the connection.
func TestCloseConn(t *testing.T) {
	for _, c := range []struct {
		closes, byEndpoint bool
		status             int
		want               bool
	}{
		{false, false, 200, false}, {true, false, 200, true}, {false, true, 200, true}, {true, false, 101, false},
	} {
		x, response := exchangetest.New(t, "GET http://shop.example/")
		x.CloseConn = c.closes
		if err := x.Head(&message.Response{Status: c.status, Close: c.byEndpoint}); err != nil {
			t.Fatal(err)
		}
		if response.Response.Close != c.want {
			t.Errorf("%+v: the connection is closed: %t", c, response.Response.Close)
		}
	}
}

// TestTakeChanges checks that the changes of filters before a Caddy handler apply to its response, those of filters
// behind it do not, and errors get the changes for all responses of both.
func TestTakeChanges(t *testing.T) {
	x, response := exchangetest.New(t, "GET http://shop.example/")
	x.ChangeResponse(setting("X-Before", "1"))
	x.ForAllResponses = exchange.Changes{setting("X-Before-All", "1")}
	head, giveBack := x.TakeChanges()
	x.ChangeResponse(setting("X-Behind", "1"))
	x.ForAllResponses = exchange.Changes{setting("X-Behind-All", "1")}
	if err := head(exchangetest.Response(t, "200")); err != nil {
		t.Fatal(err)
	}
	if got := response.String(); got != "200 | X-Before: 1 | X-Before-All: 1" || x.Status != http.StatusOK {
		t.Errorf("the client gets %q, and the recorded status is %d", got, x.Status)
	}
	giveBack()
	response.Response = x.Refusal(http.StatusBadGateway)
	if got := response.String(); got != "502 | X-Behind-All: 1 | X-Before-All: 1" {
		t.Errorf("a client that is refused gets %q", got)
	}
}

func TestRespond(t *testing.T) {
	for body, length := range map[string]int64{"": 0, "hello": 5} {
		x, response := exchangetest.New(t, "GET http://shop.example/")
		x.ChangeResponse(setting("X-From", "filter"))
		if err := x.Respond(http.StatusAccepted, body, message.NewField("X-A", "b")); err != nil {
			t.Fatal(err)
		}
		if got := response.String(); got != "202 | X-A: b | X-From: filter" || response.Body.String() != body ||
			response.Response.Length != length {
			t.Errorf("the client gets %q with %q, of %d bytes", got, response.Body.String(), response.Response.Length)
		}
	}
}

// closed is a writer for a client that has disconnected.
type closed struct{ message.Writer }

var errClosed = errors.New("the client has disconnected")

func (closed) Head(*message.Response) error { return errClosed }

// TestRespondFails checks that no body is written after a head that could not be written.
func TestRespondFails(t *testing.T) {
	x, _ := exchangetest.New(t, "GET http://shop.example/")
	x.Writer = closed{}
	if err := x.Respond(http.StatusOK, "hello"); !errors.Is(err, errClosed) {
		t.Errorf("the error is %v", err)
	}
}
