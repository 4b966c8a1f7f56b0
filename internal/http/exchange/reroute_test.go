package exchange_test

import (
	"errors"
	"net/http"
	"reflect"
	"slices"
	"testing"

	"github.com/k8singress/k8singress/internal/http/exchange"
	"github.com/k8singress/k8singress/internal/http/message"
	"github.com/k8singress/k8singress/internal/http/meter"
	"github.com/k8singress/k8singress/internal/http/mtls"
	"github.com/k8singress/k8singress/internal/http/variables"
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/tests/exchangetest"
	"github.com/k8singress/k8singress/internal/upstream/balancer"
)

// TestReroute checks which fields of an exchange stay when the request gets another route.
func TestReroute(t *testing.T) {
	x, _ := exchangetest.New(t, "GET http://shop.example/a")
	x.Headers = &exchange.Headers{}
	x.ByServer, x.CloseConn, x.Retained = &message.Changes{}, true, true
	x.ErrorBodies, x.Meter = true, &meter.Route{}
	x.Prepare = func(http.ResponseWriter, *http.Request) *http.Request { return nil }
	change := exchange.Changes{{}}
	x.ForAllResponses = change
	arrival, writer := x.Arrival(), x.Writer
	x.ID()
	x.Client()
	x.Backend, x.Peer, x.PassesOn, x.Status = &balancer.Backend{}, &mtls.Client{}, true, http.StatusOK
	x.Host, x.Writer, x.ForAllResponses = "other.example", &exchangetest.Recorder{}, nil
	x.ErrorFields, x.ForEndpoint = message.Fields{{}}, message.Fields{{}}
	x.Replaced, x.Pages, x.Forwarded, x.Hidden = []int{1}, []int{2}, true, exchange.ErrRejected
	x.Matched, x.Refused = x.Route, exchange.ErrRejected
	x.ChangeResponse(&message.Changes{})
	x.SetVariable("a", "1")
	set, err := variables.New([]ir.Variable{{Name: "b", Map: &ir.Map{Source: "$a"}}})
	if err != nil {
		t.Fatal(err)
	}
	x.Variables = set
	x.Variable("b")
	x.RewriteEnded, x.Unlogged = true, true
	x.UseDirectives(&exchange.Directives{})
	id := x.ID()
	x.Reroute(arrival)
	if x.Host != "shop.example" || x.Writer != writer || x.ID() != id || x.Reroutes != 1 ||
		!reflect.DeepEqual(x.ForAllResponses, change) {
		t.Errorf("the exchange is %+v", x)
	}
	kept := []string{
		"Request", "Clients", "Global", "Headers", "Writer", "ByServer", "ForAllResponses", "CloseConn", "Prepare",
		"Reroutes", "Retained", "client", "hasClient", "id", "hasID", "scripted", "Variables", "defined", "From",
		"ErrorBodies", "Meter",
	}
	fields := reflect.ValueOf(x).Elem()
	for i := range fields.NumField() {
		name := fields.Type().Field(i).Name
		if has := !fields.Field(i).IsZero(); has != slices.Contains(kept, name) {
			t.Errorf("%s is kept: %t", name, has)
		}
	}
}

// TestChangeNamespace checks the request that a route of another namespace gets: it is the rewritten request, without
// the changes of programs to its header fields. The request of the client stays for the logs.
func TestChangeNamespace(t *testing.T) {
	const sent = " | Accept: a | Content-Type: text/plain | X-Forwarded-For: 192.0.2.1"
	input := ir.Directives{InputHeaders: []ir.MoreHeaders{{
		Set:   []ir.Header{{Name: "X-Forwarded-For", Value: "10.6.6.6"}, {Name: "X-Team", Value: "b"}},
		Clear: []string{"Acc*"},
	}}, Errors: page("/page?p=1", 0, false, http.StatusNotFound)}
	forge := func(t *testing.T, x *exchange.Exchange) {
		d := directives(t, input)
		x.UseDirectives(d)
		d.ChangeRequest(x)
	}
	rewrite := func(_ *testing.T, x *exchange.Exchange) {
		x.SetPath("/b c")
		x.Query = "z=1"
	}
	fail := func(t *testing.T, x *exchange.Exchange) {
		if err := x.PassToErrorPage(exchange.Fail(http.StatusNotFound, nil)); !errors.Is(err, exchange.ErrReroute) {
			t.Error(err)
		}
	}
	type action = func(*testing.T, *exchange.Exchange)
	for name, c := range map[string]struct {
		actions      []action
		target, head string
	}{
		"nothing":       {nil, "/a?y=1", "/a?y=1" + sent},
		"a rewrite":     {[]action{rewrite}, "/b%20c?z=1", "/b%20c?z=1" + sent},
		"header fields": {[]action{forge}, "/a?y=1", "/a?y=1" + sent},
		"changed twice": {[]action{forge, rewrite, forge}, "/b%20c?z=1", "/b%20c?z=1" + sent},
		"an error page": {[]action{forge, fail}, "/page?p=1",
			"/page?p=1 | Accept: a | X-Forwarded-For: 192.0.2.1"},
		"a rewritten page": {[]action{forge, fail, rewrite}, "/b%20c?z=1",
			"/b%20c?z=1 | Accept: a | X-Forwarded-For: 192.0.2.1"},
	} {
		t.Run(name, func(t *testing.T) {
			x, _ := exchangetest.New(t, "GET http://shop.example/a?y=1"+sent)
			at, client := x.Arrival(), x.Request
			for _, do := range c.actions {
				do(t, x)
			}
			for range 2 {
				x.Reroute(at)
				x.ChangeNamespace(false)
				if head := exchangetest.Head(x); x.Target != c.target || head != "GET http://shop.example"+c.head {
					t.Errorf("the target is %s, and the request %q", x.Target, head)
				}
				// The route of the other namespace leads back.
				forge(t, x)
			}
			if err := x.EndReroutes(at, true, nil); err != nil || x.Request != client || x.Target != "/a?y=1" {
				t.Errorf("at the end, the target is %s, %v", x.Target, err)
			}
		})
	}
}

// TestResetAfterPanic checks the response to a request whose handler has panicked: it has the changes of the server,
// and not what handlers have changed.
func TestResetAfterPanic(t *testing.T) {
	for version, closes := range map[uint8]bool{1: true, 2: false} {
		x, w := exchangetest.New(t, "GET http://shop.example/a | Accept: a")
		x.Major = version
		x.ForAllResponses = exchange.Changes{{Set: []message.Field{message.NewField("X-Server", "s")}}}
		at, client, route := x.Arrival(), x.Request, x.Route
		handlers := &message.Changes{Set: []message.Field{message.NewField("X-Handler", "h")}}
		x.ChangeResponse(handlers)
		x.ForAllResponses, x.ErrorFields = exchange.Changes{handlers}, message.Fields{message.NewField("X-Error", "e")}
		x.ResponseEnds = append(x.ResponseEnds, func(err error) error { return err })
		x.Host, x.Writer, x.Request = "other.example", &exchangetest.Recorder{}, &message.Request{Conn: x.Conn}
		x.ResetAfterPanic(at)
		if err := x.Refuse(http.StatusInternalServerError); err != nil {
			t.Fatal(err)
		}
		if got := w.String(); got != "500 | X-Server: s" || w.Response.Close != closes {
			t.Errorf("HTTP/%d: %s, close: %t", version, got, w.Response.Close)
		}
		if x.Request != client || x.Host != "shop.example" || x.Route != route || !x.Retained || !client.Panicked ||
			x.ResponseEnds != nil {
			t.Errorf("the exchange is %+v", x)
		}
	}
}
