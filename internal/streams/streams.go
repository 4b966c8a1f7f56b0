// Package streams turns what asks for TCP and UDP ports into the model: the tcp-services and udp-services ConfigMaps of
// ingress-nginx, and annotations of Services. It is pure.
package streams

import (
	"cmp"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/k8singress/k8singress/internal/backends"
	"github.com/k8singress/k8singress/internal/ir"
	"github.com/k8singress/k8singress/internal/kinds"
	"github.com/k8singress/k8singress/internal/panics"
	"github.com/k8singress/k8singress/internal/report"
	"github.com/k8singress/k8singress/internal/settings"
	"github.com/k8singress/k8singress/internal/snapshot"
)

// Options are what, besides the objects, decides about ports.
type Options struct {
	// TCP and UDP are the ConfigMaps with ports, or zero.
	TCP, UDP ir.Name
	// Services is for the ports that Services ask for themselves.
	Services ServicePorts
	// Policy is for the Services that do not say otherwise. Most is the most that they may ask for: of it, zero is no limit.
	Policy, Most ir.StreamPolicy
	// Reserved are the ports that the process itself listens on. In one process, Caddy shares a port among its listeners
	// without an error.
	Reserved []ReservedPort
	// ExternalNames is that of settings.Config.
	ExternalNames string
	// NoIssuer says that no issuer is asked for a certificate, NoIssuerFor are the namespaces for which none is.
	NoIssuer    bool
	NoIssuerFor []string
}

// ServicePorts are the ports that the annotations of Services may open. The zero value is none.
type ServicePorts struct {
	TCP, UDP []settings.PortRange
	// Namespaces are names, and beginnings of names with a star behind them. Without any, all namespaces may.
	Namespaces []string
	// PerNamespace is how many ports those of one namespace may have; zero is no limit.
	PerNamespace int
	// Selector selects namespaces by their labels, as for Ingresses; nil selects all.
	Selector labels.Selector
	// Folder says that the objects come from files, where a namespace may be meant that is not there.
	Folder bool
}

// ReservedPort is one port that nobody else may have.
type ReservedPort struct {
	Protocol ir.Protocol
	Port     uint16
	// Owner is what listens there, for messages.
	Owner string
}

// Result is what is asked for.
type Result struct {
	// Routes are sorted by protocol and port.
	Routes   []*ir.StreamRoute
	Verdicts []*report.Verdict
	// Refs are the objects that the result depends on, besides Services that get an annotation of our own.
	Refs []ir.Ref
}

// Translate reads the ConfigMaps and the Services. A ConfigMap that does not exist has no entries, and a verdict all the
// same. A port that belongs to another owner is refused: first to the process itself, then to a ConfigMap,
// then to the oldest Service.
func Translate(s *snapshot.Snapshot, o Options) *Result {
	return newReading(s, o).translate()
}

// reading is one translation.
type reading struct {
	snapshot *snapshot.Snapshot
	options  Options
	result   *Result
	// owners are whom ports belong to, even if those stay closed.
	owners map[place]owner
	// opened is how many ports the Services of a namespace have.
	opened map[string]int
	// services are those whose annotations have been read.
	services map[ir.Ref]*service
	// find is backends.Find.
	find func(*snapshot.Snapshot, ir.Ref, string, ir.Protocol, backends.Options) (*ir.Backend, *report.Problem)
}

// place is a port that one object can have.
type place struct {
	protocol ir.Protocol
	port     uint16
}

// owner is an object, and where in it a port is asked for.
type owner struct {
	ir.Ref
	field string
}

func (p place) String() string { return fmt.Sprintf("%s port %d", upper(p.protocol), p.port) }

func newReading(s *snapshot.Snapshot, o Options) *reading {
	return &reading{
		snapshot: s, options: o, result: &Result{}, owners: map[place]owner{}, opened: map[string]int{},
		services: map[ir.Ref]*service{}, find: backends.Find,
	}
}

func (r *reading) translate() *Result {
	r.configMap(r.options.TCP, "tcp_services", ir.TCP)
	r.configMap(r.options.UDP, "udp_services", ir.UDP)
	r.annotated()
	slices.SortFunc(r.result.Routes, Compare)
	return r.result
}

// Compare is the order of Result.Routes: by protocol, and then by port.
func Compare(a, b *ir.StreamRoute) int {
	return cmp.Or(cmp.Compare(a.Protocol, b.Protocol), cmp.Compare(a.Port, b.Port))
}

// wish is a port that an object asks for.
type wish struct {
	place
	// service and target are where it is to lead: a Service, and a port of it by number or name.
	service ir.Ref
	target  string
	// field is where it is asked for.
	field string
	// acceptProxy and sendProxy are the flags of a ConfigMap.
	acceptProxy bool
	sendProxy   ir.ProxyVersion
}

// take makes a port belong to an object, unless it belongs to another one.
func (r *reading) take(w *wish, of ir.Ref) *report.Problem {
	for _, p := range r.options.Reserved {
		if p.Protocol == w.protocol && p.Port == w.port {
			return conflict("port %d is the %s port of the controller itself: choose another one", w.port, p.Owner)
		}
	}
	first, taken := r.owners[w.place]
	switch {
	case !taken:
		r.owners[w.place] = owner{of, w.field}
		return nil
	case first.Ref == of:
		return invalid("port %d is given twice, and %s counts: remove one of them", w.port, first.field)
	case first.Kind == kinds.ConfigMap:
		return conflict("the %s belongs to an entry of the ConfigMap of %s_services: choose another one", w.place, w.protocol)
	}
	winner, other := r.services[first.Ref].object, r.services[of].object
	if first.Namespace == of.Namespace {
		return conflict("the %s belongs to %s: choose another one", w.place, snapshot.Elder(winner, other))
	}
	// Who that is, is none of their business.
	return conflict("the %s belongs to %s: choose another one", w.place, snapshot.ElderOfKind(winner, other, " of another namespace"))
}

// open makes the route of a port. A route and a problem may come together: a Service that is missing may appear.
func (r *reading) open(w *wish, of ir.Ref) *report.Problem {
	s := r.settings(w.service)
	if s.Closed {
		return closed(w.service, of)
	}
	route := &ir.StreamRoute{Protocol: w.protocol, Port: w.port, Policy: s.Policy, Origin: of, Field: w.field}
	switch {
	case w.protocol == ir.TCP:
		s.tcp(route, w)
	case s.onlyTCP():
		return &report.Problem{Severity: report.Error, Reason: report.InvalidAnnotation, Message: fmt.Sprintf(
			"the %s stays closed, because annotations of %s ask for TLS or the PROXY protocol, which are for TCP: take them off, or give UDP "+
				"a Service of its own", w.place, w.service)}
	}
	backend, p := r.backend(w)
	route.Backends = ir.To(backend)
	r.result.Routes = append(r.result.Routes, route)
	return p
}

// onlyTCP says whether a Service asks for something that no UDP port can do, and without which it may not want to be reached.
func (s *Settings) onlyTCP() bool {
	return s.TLS != nil || s.BackendTLS != nil || s.AcceptProxy || s.SendProxy != "" || len(s.Trusted) > 0
}

// tcp is what a Service says of TCP only.
func (s *Settings) tcp(route *ir.StreamRoute, w *wish) {
	route.Policy.Responses = 0
	route.SendProxy = cmp.Or(s.SendProxy, w.sendProxy)
	if route.AcceptProxy = s.AcceptProxy || w.acceptProxy; route.AcceptProxy {
		route.Trusted = s.Trusted
	}
	route.TLS, route.BackendTLS = s.TLS, s.BackendTLS
}

// closed reports to another object than the Service that the Service keeps its ports closed.
func closed(service, of ir.Ref) *report.Problem {
	if service == of {
		return nil
	}
	return &report.Problem{Severity: report.Error, Reason: report.InvalidAnnotation, Message: fmt.Sprintf(
		"the port stays closed, because an annotation of %s cannot be used: the verdict on that object names it", service)}
}

func (r *reading) backend(w *wish) (*ir.Backend, *report.Problem) {
	r.depend(w.service)
	found, p := r.find(r.snapshot, w.service, w.target, w.protocol, backends.Options{ExternalNames: r.options.ExternalNames})
	switch {
	case p == nil:
		return found, nil
	case p.Reason == report.ServiceNotFound:
		p.Message += ": " + w.protocol.Without() + " until there is one"
	default:
		p.Message += ": " + w.protocol.Without()
	}
	p.Field = ""
	return found, p
}

func (r *reading) depend(on ir.Ref) { r.result.Refs = append(r.result.Refs, on) }

// verdict returns the one on an object. Both options may name the same ConfigMap.
func (r *reading) verdict(ref ir.Ref) *report.Verdict {
	for _, v := range r.result.Verdicts {
		if v.Object == ref {
			return v
		}
	}
	v := &report.Verdict{Object: ref}
	r.result.Verdicts = append(r.result.Verdicts, v)
	return v
}

// carefully makes a panic a problem of what causes it.
func carefully(do func() *report.Problem) (p *report.Problem) {
	if caught := panics.Try(func() { p = do() }); caught != nil {
		return &report.Problem{
			Severity: report.Error, Reason: report.Quarantined,
			Message: fmt.Sprintf("the entry is left out, because reading it fails: %v", caught),
		}
	}
	return p
}

func invalid(message string, args ...any) *report.Problem {
	return &report.Problem{Severity: report.Error, Reason: report.InvalidEntry, Message: fmt.Sprintf(message, args...)}
}

func conflict(message string, args ...any) *report.Problem {
	return &report.Problem{Severity: report.Error, Reason: report.PortConflict, Message: fmt.Sprintf(message, args...)}
}
