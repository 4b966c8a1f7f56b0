package k8singress

import (
	"bytes"
	"cmp"
	"encoding/json"
	"net/http"
	"slices"

	"github.com/caddyserver/caddy/v2"
)

// upstreamsPath is the path in Caddy's admin API of the list of upstreams.
const upstreamsPath = "/reverse_proxy/upstreams"

// upstreamsRoute returns a route that adds the endpoints of this controller to Caddy's list of upstreams. Caddy's own
// route has a pattern without a method, so for GET requests this route takes precedence.
func upstreamsRoute() caddy.AdminRoute {
	return caddy.AdminRoute{Pattern: "GET " + upstreamsPath, Handler: caddy.AdminHandlerFunc(listUpstreams)}
}

// upstream is an element of the list of upstreams. It has the JSON fields of Caddy's list.
type upstream struct {
	Address     string `json:"address"`
	NumRequests int    `json:"num_requests"`
	Fails       int    `json:"fails"`
}

// listUpstreams responds with the upstreams of Caddy's reverse_proxy handlers and the endpoints of this controller. An
// address in both lists, or of several backends, is listed once, with the sums of the numbers.
func listUpstreams(w http.ResponseWriter, r *http.Request) error {
	all, err := caddysUpstreams(r)
	if err != nil {
		return err
	}
	if e := started.engine(); e != nil {
		for endpoint := range e.Endpoints() {
			all = append(all, upstream{endpoint.Address(), endpoint.InFlight(), endpoint.Failures()})
		}
	}
	slices.SortStableFunc(all, func(a, b upstream) int { return cmp.Compare(a.Address, b.Address) })
	list := []upstream{}
	for _, u := range all {
		if n := len(list); n > 0 && list[n-1].Address == u.Address {
			list[n-1].NumRequests += u.NumRequests
			list[n-1].Fails += u.Fails
			continue
		}
		list = append(list, u)
	}
	return writeJSON(w, list)
}

// caddysUpstreams returns the list from Caddy's own route. Caddy does not export the list in any other way.
func caddysUpstreams(r *http.Request) (list []upstream, err error) {
	module, err := caddy.GetModule("admin.api.reverse_proxy")
	if err != nil {
		return nil, err
	}
	for _, route := range module.New().(caddy.AdminRouter).Routes() {
		if route.Pattern != upstreamsPath {
			continue
		}
		response := &recorded{header: http.Header{}}
		if err := route.Handler.ServeHTTP(response, r); err != nil {
			return nil, err
		}
		return list, json.Unmarshal(response.body.Bytes(), &list)
	}
	return nil, nil
}

// recorded is a response that is kept in memory.
type recorded struct {
	header http.Header
	body   bytes.Buffer
}

func (r *recorded) Header() http.Header         { return r.header }
func (r *recorded) WriteHeader(int)             {}
func (r *recorded) Write(p []byte) (int, error) { return r.body.Write(p) }
