package exchange

import (
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/k8singress/k8singress/internal/upstream/balancer"
)

// placeholders maps the names of Caddy placeholders, without braces, to functions that return their values. A value is
// nil if the placeholder is not set for the request.
var placeholders = map[string]func(*Served) any{
	"http.k8singress.namespace": ofRoute(func(s *Served) string { return s.Ingress().Namespace }),
	"http.k8singress.ingress":   ofRoute(func(s *Served) string { return s.Ingress().Name }),
	"http.k8singress.host":      ofRoute(func(s *Served) string { return s.Route.Host }),
	"http.k8singress.path":      ofRoute(func(s *Served) string { return s.Route.Path }),
	"http.k8singress.service":   ofRoute((*Served).Service),
	"http.k8singress.port":      ofRoute((*Served).Port),
	"http.k8singress.endpoint":  ofRoute((*Served).Address),

	// These are the placeholders of Caddy's reverse_proxy, with the same types.
	"http.reverse_proxy.status_code":           ofResponse(func(a *Attempt) any { return a.Status }),
	"http.reverse_proxy.status_text":           ofResponse(statusText),
	"http.reverse_proxy.upstream.address":      ofEndpoint(networkAddressOf),
	"http.reverse_proxy.upstream.duration":     ofAttempt(func(a *Attempt) any { return a.Took }),
	"http.reverse_proxy.upstream.duration_ms":  ofAttempt(func(a *Attempt) any { return milliseconds(a.Took) }),
	"http.reverse_proxy.upstream.fails":        ofEndpoint(func(e *balancer.Endpoint) any { return e.Failures() }),
	"http.reverse_proxy.upstream.host":         ofEndpoint(func(e *balancer.Endpoint) any { return hostOf(e) }),
	"http.reverse_proxy.upstream.hostport":     ofEndpoint(func(e *balancer.Endpoint) any { return e.Address() }),
	"http.reverse_proxy.upstream.latency":      ofResponse(func(a *Attempt) any { return a.Latency }),
	"http.reverse_proxy.upstream.latency_ms":   ofResponse(func(a *Attempt) any { return milliseconds(a.Latency) }),
	"http.reverse_proxy.upstream.max_requests": ofEndpoint(func(*balancer.Endpoint) any { return 0 }),
	"http.reverse_proxy.upstream.port":         ofEndpoint(func(e *balancer.Endpoint) any { return portOf(e) }),
	"http.reverse_proxy.upstream.requests":     ofEndpoint(func(e *balancer.Endpoint) any { return e.InFlight() }),
}

// Placeholders returns the values of Caddy placeholders for one request. It computes a value when it is used.
type Placeholders struct {
	// x is the exchange of the request until End is called. After that, served describes the request.
	x      *Exchange
	served Served
}

// Placeholders returns the placeholders of the request. The caller must call their method End before the exchange is
// used for another request.
func (x *Exchange) Placeholders() *Placeholders { return &Placeholders{x: x} }

// Value returns the value of the placeholder with this name, without braces. A placeholder of the controller is empty
// if the request has no route. ok is false if the placeholder is unknown, or if Caddy's reverse_proxy may still set it.
// Value is a caddy.ReplacerFunc.
func (p *Placeholders) Value(name string) (value any, ok bool) {
	of := placeholders[name]
	if of == nil {
		return nil, false
	}
	served := p.served
	if p.x != nil {
		served = p.x.Served()
	}
	if served.Route != nil {
		value = of(&served)
	}
	if value == nil && strings.HasPrefix(name, "http.k8singress.") {
		// Without a value, some Caddy handlers would send the name of the placeholder to the client.
		return "", true
	}
	return value, value != nil
}

// End keeps the values that the placeholders have at the end of the request, and forgets the exchange. If p is nil, End
// does nothing.
func (p *Placeholders) End() {
	if p != nil {
		p.served, p.x = p.x.Served(), nil
	}
}

func ofRoute(value func(*Served) string) func(*Served) any {
	return func(s *Served) any { return value(s) }
}

// ofEndpoint returns the function for a placeholder that is set when an endpoint has been chosen.
func ofEndpoint(value func(*balancer.Endpoint) any) func(*Served) any {
	return func(s *Served) any {
		if s.Endpoint == nil {
			return nil
		}
		return value(s.Endpoint)
	}
}

// ofAttempt returns the function for a placeholder that is set when an endpoint has got the request.
func ofAttempt(value func(*Attempt) any) func(*Served) any {
	return func(s *Served) any {
		if s.Endpoint == nil {
			return nil
		}
		return value(&s.Attempt)
	}
}

// ofResponse returns the function for a placeholder that is set when an endpoint has responded.
func ofResponse(value func(*Attempt) any) func(*Served) any {
	return func(s *Served) any {
		if s.Attempt.Latency == 0 {
			return nil
		}
		return value(&s.Attempt)
	}
}

func statusText(a *Attempt) any { return strconv.Itoa(a.Status) + " " + http.StatusText(a.Status) }

func milliseconds(d time.Duration) float64 { return d.Seconds() * 1e3 }

func networkAddressOf(e *balancer.Endpoint) any { return "tcp/" + e.Address() }

func hostOf(e *balancer.Endpoint) string {
	host, _, _ := net.SplitHostPort(e.Address())
	return host
}

func portOf(e *balancer.Endpoint) string {
	_, port, _ := net.SplitHostPort(e.Address())
	return port
}
