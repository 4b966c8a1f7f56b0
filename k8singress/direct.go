package k8singress

import (
	"net"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/k8singress/k8singress/internal/http/live"
	"github.com/k8singress/k8singress/internal/http/message"
	"github.com/k8singress/k8singress/internal/http/realip"
)

// direct handles the requests to one of Caddy's HTTP servers, in place of Caddy's own handling of requests. This is
// possible if the server only serves Ingresses.
type direct struct {
	answerer
	server *caddyhttp.Server
	// altSvc adds the Alt-Svc header to responses over TLS, to announce HTTP/3. It is nil if HTTP/3 is disabled.
	altSvc *message.Changes
	// before holds the hosts of the Caddy routes that precede the route to the Ingresses. Requests for these hosts are
	// served by Caddy's HTTP server.
	before hostSet
	// metrics records the requests in Caddy's HTTP metrics. It is nil if they are disabled, and until the server
	// starts.
	metrics atomic.Pointer[routeMetrics]
}

// newDirect returns a handler (d) for the requests to server. It must be called before Caddy provisions the routes of
// the server. reason is empty if the server only serves Ingresses. Otherwise, reason says why Caddy's HTTP server must
// handle the requests to the addresses of the server. Even then, d handles the requests to additional listeners, which
// have their own hosts.
//
// proxies are the settings of the server about the proxies in front of it, or nil.
func newDirect(server *caddyhttp.Server, table *live.Table, proxies *realip.Server) (d *direct, reason string) {
	d = &direct{server: server, altSvc: altSvcOf(server)}
	d.answerer = answerer{
		table: table, errors: errorLog, proxies: proxies, prepare: d.prepareForCaddy,
	}
	d.before, reason = ingressesBehind(server)
	return d, reason
}

// altSvcOf returns the change that adds the Alt-Svc header, with the same value as Caddy's HTTP server sends (RFC 9114
// section 3.1.1). It returns nil if the server has no HTTP/3.
func altSvcOf(server *caddyhttp.Server) *message.Changes {
	if len(server.TLSConnPolicies) == 0 || len(server.Protocols) > 0 && !slices.Contains(server.Protocols, "h3") {
		return nil
	}
	var all []string
	for _, listen := range server.Listen {
		if address, err := caddy.ParseNetworkAddress(listen); err == nil && !address.IsUnixNetwork() {
			_, port, _ := net.SplitHostPort(address.JoinHostPort(0))
			all = append(all, `h3=":`+port+`"; ma=2592000`)
		}
	}
	if all == nil {
		return nil
	}
	slices.Sort(all)
	return &message.Changes{Set: []message.Field{message.AltSvc.Field(strings.Join(slices.Compact(all), ","))}}
}

// challenges are the path prefixes under which certificate authorities fetch responses to the challenges that Caddy
// supports.
var challenges = [...]string{"/.well-known/acme-challenge/", "/.well-known/pki-validation/"}

// isChallenge reports whether a request may come from a certificate authority that validates a challenge: it is a GET
// or HEAD request for a file under one of the path prefixes in challenges, and its path is unambiguous. All other
// requests are routed, so that the filters and limits of their routes apply.
func isChallenge(r *message.Request) bool {
	if r.Method != http.MethodGet && r.Method != http.MethodHead || r.Path != r.EscapedPath {
		return false
	}
	for _, folder := range challenges {
		if file, ok := strings.CutPrefix(r.Path, folder); ok {
			return file != "" && file != "." && file != ".." && !strings.ContainsAny(file, "/\\;")
		}
	}
	return false
}

// notDirect returns the reason why a request must be served by Caddy's HTTP server, or an empty string if d can serve
// the request itself.
func (d *direct) notDirect(r *message.Request) (reason string) {
	switch {
	case isChallenge(r):
		return reasonChallenge
	case d.before.has(r.Host):
		return reasonRoutes
	}
	return ""
}

// serve serves one request.
func (d *direct) serve(w message.Writer, r *message.Request) {
	ofServer := r.Conn.Listener == live.ServerPorts
	if reason := d.notDirect(r); ofServer && reason != "" {
		handedOver.count(reason)
		byCaddy(d.server, d.clients(), w, r)
		return
	}
	requests.begun.Add(1)
	defer requests.ended.Add(1)
	added := d.altSvc
	if !ofServer || r.TLS() == nil || r.Major > 2 {
		added = nil
	}
	if m := d.metrics.Load(); m != nil {
		m.answer(w, r, added)
		return
	}
	_, _ = d.answer(w, r, added) // The client has got its response, even if there is an error.
}

// prepareForCaddy prepares a request for Caddy handlers in the same way as Caddy's HTTP server.
func (d *direct) prepareForCaddy(w http.ResponseWriter, r *http.Request) *http.Request {
	return caddyhttp.PrepareRequest(r, caddy.NewReplacer(), w, d.server)
}

// byCaddy lets handler, which passes requests to Caddy's HTTP server, handle a request. clients determines the client
// of the request for the access log.
func byCaddy(handler http.Handler, clients *realip.Policy, w message.Writer, r *message.Request) {
	answer := message.NewResponseWriter(w, w.Head)
	end := accountOthers(clients, w, r)
	defer func() { end(answer.Status()) }()
	handler.ServeHTTP(answer, r.ToHTTP())
	// The error is ignored, because a write only fails if the client has disconnected.
	_ = answer.Finish()
}
