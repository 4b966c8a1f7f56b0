package filter_test

import (
	"net/http"
	"testing"

	"github.com/k8singress/k8singress/internal/tests/exchangetest"
)

var internalCases = []filterCase{
	{name: "a client", settings: `{}`, requests: []requestCase{gets("GET http://shop.example/", "404")}},
	{name: "a client of all namespaces", settings: `{"everywhere": true}`,
		requests: []requestCase{gets("GET http://shop.example/", "404")}},
}

// TestInternal checks which routes may pass requests to an internal location.
func TestInternal(t *testing.T) {
	for _, c := range []struct {
		settings, from string
		passes         bool
	}{
		{`{}`, "", false}, {`{}`, "shop", true}, {`{}`, "other", false}, {`{"everywhere": true}`, "other", true},
	} {
		f := newEnvironment(t).newFilter(t, "k8singress_internal", c.settings)
		x, w := exchangetest.New(t, "GET http://shop.example/")
		x.From = c.from
		responded, err := f.Apply(x)
		if err != nil || responded == c.passes || responded && w.Response.Status != http.StatusNotFound {
			t.Errorf("%s from %q: %t, %v, %s", c.settings, c.from, responded, err, w)
		}
	}
}
