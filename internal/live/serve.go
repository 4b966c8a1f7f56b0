package live

import (
	"context"
	"net"
	"net/http"
	"strings"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/k8singress/k8singress/internal/clients"
	"github.com/k8singress/k8singress/internal/endpoints"
	"github.com/k8singress/k8singress/internal/proxy"
)

// Request is what the handlers of a chain may know of the request in their hands.
type Request struct {
	Route *Route
	// Connections are those to the endpoints.
	Connections *proxy.Pool
	// Clients tells where requests come from.
	Clients *clients.Policy
	tried   []string
}

// requestVar is the name of the request variable that holds the *Request.
const requestVar = "k8singress.request"

// FromContext returns the Request that Serve put into the context of r, or nil.
func FromContext(ctx context.Context) *Request {
	r, _ := caddyhttp.GetVar(ctx, requestVar).(*Request)
	return r
}

// Next returns the endpoint for the next attempt: one that this request has not tried, while there is one.
func (r *Request) Next() (address string, ok bool) {
	if r.Route.Backend == nil {
		return "", false
	}
	address, ok = r.Route.Backend.Pick(r.tried)
	if ok {
		r.tried = append(r.tried, address)
	}
	return address, ok
}

// Done tells how the endpoint of the last Next did.
func (r *Request) Done(bool) {}

// Backend returns the backend of the request's route.
func (r *Request) Backend() *endpoints.Backend { return r.Route.Backend }

// Outcome of a lookup.
type Outcome int

const (
	// Served means that a chain answered, or failed.
	Served Outcome = iota
	// NotReady means that the table is not complete yet.
	NotReady
	// NoHost means that nobody has the host, or nobody the path.
	NoHost
)

// Serve lets the chain of the matching route answer. With any outcome but Served nothing has been written.
func (t *Table) Serve(w http.ResponseWriter, r *http.Request) (Outcome, error) {
	if !t.ready.Load() {
		return NotReady, nil
	}
	name, path := hostname(r.Host), CleanPath(r.URL.Path)
	for {
		route := t.find(name, path)
		if route == nil {
			return NoHost, nil
		}
		i := route.chain.acquire()
		if i == nil {
			// Replaced between the lookup and here.
			continue
		}
		defer i.release()
		if isStream(r) {
			followed, end := route.streams.follow(r)
			defer end()
			r = followed
		}
		caddyhttp.SetVar(r.Context(), requestVar, &Request{Route: route, Connections: t.connections, Clients: t.Clients()})
		return Served, i.handler.ServeHTTP(w, r)
	}
}

func (t *Table) find(name, path string) *Route {
	h := t.index.Load().find(name)
	if h == nil {
		return nil
	}
	return h.find(path)
}

// hostname returns the Host of a request as the table has it: without port and trailing dot, in lower case.
func hostname(host string) string {
	if strings.IndexByte(host, ':') >= 0 {
		if name, _, err := net.SplitHostPort(host); err == nil {
			host = name
		}
	}
	host = strings.TrimSuffix(host, ".")
	for i := range len(host) {
		if c := host[i]; 'A' <= c && c <= 'Z' {
			return strings.ToLower(host)
		}
	}
	return host
}

// CleanPath resolves dot segments and merges slashes, as nginx does before it looks for a location. What it returns begins
// with a slash, also where a handler before this one left a path without.
func CleanPath(path string) string {
	if !strings.HasPrefix(path, "/") {
		path = "/" + path
	}
	if strings.Contains(path, "//") || strings.Contains(path, "/.") {
		return caddyhttp.CleanPath(path, true)
	}
	return path
}
