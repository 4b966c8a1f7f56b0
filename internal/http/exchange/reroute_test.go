package exchange_test

import (
	"net/http"
	"reflect"
	"slices"
	"testing"

	"github.com/k8singress/k8singress/internal/http/exchange"
	"github.com/k8singress/k8singress/internal/http/message"
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
	}
	fields := reflect.ValueOf(x).Elem()
	for i := range fields.NumField() {
		name := fields.Type().Field(i).Name
		if has := !fields.Field(i).IsZero(); has != slices.Contains(kept, name) {
			t.Errorf("%s is kept: %t", name, has)
		}
	}
}
