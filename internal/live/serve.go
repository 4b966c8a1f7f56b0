package live

import (
	"context"
	"net"
	"net/http"
	"strings"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/k8singress/k8singress/internal/mtls"
)

// FromContext returns the Request that Serve put into the context of r, or nil.
func FromContext(ctx context.Context) *Request {
	r, _ := caddyhttp.GetVar(ctx, requestVar).(*Request)
	return r
}

// Outcome of a lookup.
type Outcome int

const (
	// Served means that a chain answered, or failed.
	Served Outcome = iota
	// NotReady means that the table is not complete yet.
	NotReady
	// NoHost means that no route matches the host and the path.
	NoHost
)

// Serve lets the chain of the matching route answer. With any outcome but Served nothing has been written.
func (t *Table) Serve(w http.ResponseWriter, r *http.Request) (Outcome, error) {
	if !t.ready.Load() {
		return NotReady, nil
	}
	name, path := hostname(r.Host), CleanPath(r.URL.Path)
	for {
		x := t.index.Load()
		h, route := x.find(name), (*Route)(nil)
		if h != nil {
			route = h.find(path, r)
		}
		// First: without TLS there is no certificate to ask for.
		if r.TLS == nil && route != nil && route.redirect != nil && t.redirect(w, r, route.redirect) {
			return Served, nil
		}
		if r.TLS != nil && h.passing() > 0 {
			// The TLS of the host ends elsewhere, and this connection was made for another one.
			mtls.Misdirected.Write(w, r)
			return Served, nil
		}
		var client *mtls.Client
		if x.asking > 0 {
			var refused bool
			if client, refused = x.admit(w, r, name, h, route); refused {
				return Served, nil
			}
		}
		if route == nil {
			return NoHost, nil
		}
		to := route.to()
		i := to.chain.acquire()
		if i == nil {
			// Replaced between the lookup and here.
			continue
		}
		request := &Request{
			Route: route, to: to, Connections: t.connections, policy: t.Clients(), global: t.Global(), peer: client, w: w, r: r,
		}
		return Served, request.serveOn(i)
	}
}

func (q *Request) serveOn(i *instance) error {
	defer i.release()
	r, client, route := q.r, q.peer, q.Route
	if isStream(r) || client != nil && isCall(r) {
		followed, end := route.streams.follow(r, stream{i.parts, r.TLS, client != nil && route.answersChallenges(r)})
		defer end()
		r = followed
		q.r = r
	}
	// Whatever happens to the chain, its last attempt does not stay under way.
	defer q.end()
	caddyhttp.SetVar(r.Context(), requestVar, q)
	err := i.handler.ServeHTTP(q.w, r)
	q.conclude(err)
	return err
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
