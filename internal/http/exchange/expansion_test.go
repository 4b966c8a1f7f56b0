package exchange_test

import (
	"strings"
	"testing"

	"github.com/k8singress/k8singress/internal/http/message"
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/tests/exchangetest"
)

// TestLargeValues checks that a program cannot use a long variable so often that a message needs a lot of memory. A
// field that is too large is left out, and the client's field with the same name is removed.
func TestLargeValues(t *testing.T) {
	const limit = 1 << 20
	var fields []ir.Header
	var added []ir.AddedHeader
	var auth []ir.SetVariable
	for range 100 {
		fields = append(fields, ir.Header{Name: "X-User", Value: strings.Repeat("$long", 10)})
		added = append(added, ir.AddedHeader{Name: "X-Added", Value: "$long"})
		auth = append(auth, ir.SetVariable{Name: "long", Value: "$long$long"})
	}
	x, response := exchangetest.New(t, "GET http://shop.example/ | X-User: mallory")
	x.SetVariable("long", strings.Repeat("x", 64<<10))
	d := directives(t, ir.Directives{EndpointHeaders: fields, AddHeaders: added, AuthVariables: auth,
		InputHeaders: []ir.MoreHeaders{{Set: fields}}, MoreHeaders: []ir.MoreHeaders{{Set: fields}}})
	x.UseDirectives(d)
	d.ChangeRequest(x)
	forEndpoint := exchangetest.Fields("X-User: mallory")
	x.AddForEndpoint(&forEndpoint)
	if err := x.Respond(200, ""); err != nil {
		t.Fatal(err)
	}
	for name, of := range map[string]message.Fields{"the controller": x.Fields, "the endpoint": forEndpoint,
		"the client": response.Response.Fields} {
		if size := len(exchangetest.Text(of)); size > limit+1000 || strings.Contains(exchangetest.Text(of), "mallory") {
			t.Errorf("%s gets %d bytes", name, size)
		}
	}
	x.SetAuthVariables(200, nil)
	if size := len(x.Variable("long")); size > limit {
		t.Errorf("a variable has %d bytes", size)
	}
}
