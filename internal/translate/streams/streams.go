// Package streams translates TCP and UDP port definitions into the model. The definitions are the tcp-services and
// udp-services ConfigMaps of ingress-nginx, and annotations of Services. It does no I/O.
package streams

import (
	"cmp"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/kinds"
	"github.com/k8singress/k8singress/internal/model/report"
	"github.com/k8singress/k8singress/internal/model/settings"
	"github.com/k8singress/k8singress/internal/model/snapshot"
	"github.com/k8singress/k8singress/internal/process/panics"
	"github.com/k8singress/k8singress/internal/translate/backends"
)

// Options are the inputs of a translation besides the objects.
type Options struct {
	// TCP and UDP name the ConfigMaps that define ports. A zero name means no ConfigMap.
	TCP, UDP ir.Name
	// Services limits the ports that Services may request in their annotations.
	Services ServicePorts
	// Policy applies to Services without their own settings. Most holds the maximum values that Services may set; zero
	// values are no limit.
	Policy, Most ir.StreamPolicy
	// Reserved are the ports on which the process itself listens. Inside one process, Caddy shares a port among several
	// listeners without an error.
	Reserved []ReservedPort
	// ExternalNames has the same values as settings.Config.ExternalNames.
	ExternalNames string
	// NoIssuer turns certificates from issuers off. NoIssuerFor lists the namespaces for which they are off.
	NoIssuer    bool
	NoIssuerFor []string
}

// ServicePorts are the ports that annotations of Services may open. The zero value allows none.
type ServicePorts struct {
	TCP, UDP []settings.PortRange
	// Namespaces are names, or prefixes of names followed by a star. An empty list allows all namespaces.
	Namespaces []string
	// PerNamespace is the maximum number of ports for the Services of one namespace. Zero means no limit.
	PerNamespace int
	// Selector selects namespaces by their labels, as for Ingresses. Nil selects all namespaces.
	Selector labels.Selector
	// Folder means that the objects come from files, so the Namespace objects may be missing.
	Folder bool
}

// ReservedPort is a port that the process itself uses.
type ReservedPort struct {
	Protocol ir.Protocol
	Port     uint16
	// Owner names the user of the port in messages.
	Owner string
}

// Result holds the routes and verdicts of one translation.
type Result struct {
	// Routes are sorted by protocol and port.
	Routes   []*ir.StreamRoute
	Verdicts []*report.Verdict
	// Refs are the objects on which the result depends. Services that gain an annotation of our own are not included.
	Refs []ir.Ref
}

// Translate reads the ConfigMaps and the Services. A ConfigMap that does not exist has no entries, but gets a verdict.
// If several owners request a port, the process itself takes precedence, then a ConfigMap, then the oldest Service. The
// others are rejected.
func Translate(s *snapshot.Snapshot, o Options) *Result {
	return newReading(s, o).translate()
}

// reading is the state of one translation.
type reading struct {
	snapshot *snapshot.Snapshot
	options  Options
	result   *Result
	// owners are the owners of ports, including ports that stay closed.
	owners map[place]owner
	// opened is, by namespace, the number of ports that its Services opened.
	opened map[string]int
	// services holds the Services whose annotations have been parsed.
	services map[ir.Ref]*service
	// find is backends.Find, which tests replace.
	find func(*snapshot.Snapshot, ir.Ref, string, ir.Protocol, backends.Options) (*ir.Backend, *report.Problem)
}

// place is a port that only one object can own.
type place struct {
	protocol ir.Protocol
	port     uint16
}

// owner is the object that owns a port, and the field in it that requests the port.
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

// Compare sorts the routes of a Result: by protocol, then by port.
func Compare(a, b *ir.StreamRoute) int {
	return cmp.Or(cmp.Compare(a.Protocol, b.Protocol), cmp.Compare(a.Port, b.Port))
}

// wish is a port that an object requests.
type wish struct {
	place
	// service and target are the backend of the port: a Service, and the number or name of its port.
	service ir.Ref
	target  string
	// field is the field of the object that requests the port.
	field string
	// acceptProxy and sendProxy are the PROXY flags of a ConfigMap entry.
	acceptProxy bool
	sendProxy   ir.ProxyVersion
}

// take makes an object the owner of a port, or returns a problem if the port has another owner.
func (r *reading) take(w *wish, of ir.Ref) *report.Problem {
	for _, p := range r.options.Reserved {
		if p.Protocol == w.protocol && p.Port == w.port {
			return conflict("port %d is the %s port of the controller itself: choose another port", w.port, p.Owner)
		}
	}
	first, taken := r.owners[w.place]
	switch {
	case !taken:
		r.owners[w.place] = owner{of, w.field}
		return nil
	case first.Ref == of:
		return invalid("port %d is listed twice, and %s is used: remove one of them", w.port, first.field)
	case first.Kind == kinds.ConfigMap:
		return conflict("the %s belongs to an entry of the ConfigMap of %s_services: choose another port",
			w.place, w.protocol)
	}
	winner, other := r.services[first.Ref].object, r.services[of].object
	if first.Namespace == of.Namespace {
		return conflict("the %s belongs to %s: choose another port", w.place, snapshot.Elder(winner, other))
	}
	// The message does not name the winner, because it is in another namespace.
	return conflict("the %s belongs to %s: choose another port", w.place,
		snapshot.ElderOfKind(winner, other, " of another namespace"))
}

// open adds the route of a port. It may add a route and also return a problem, because a missing Service may be created
// later.
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
			"the %s stays closed, because annotations of %s configure TLS or the PROXY protocol, which UDP does not "+
				"support: remove them, or use a separate Service for UDP", w.place, w.service)}
	}
	backend, p := r.backend(w)
	route.Backends = ir.To(backend)
	r.result.Routes = append(r.result.Routes, route)
	return p
}

// onlyTCP reports whether a Service has settings that UDP ports do not support. The Service may not want to be
// reachable without them.
func (s *Settings) onlyTCP() bool {
	return s.TLS != nil || s.BackendTLS != nil || s.AcceptProxy || s.SendProxy != "" || len(s.Trusted) > 0
}

// tcp sets the settings of a route that apply to TCP only.
func (s *Settings) tcp(route *ir.StreamRoute, w *wish) {
	route.Policy.Responses = 0
	route.SendProxy = cmp.Or(s.SendProxy, w.sendProxy)
	if route.AcceptProxy = s.AcceptProxy || w.acceptProxy; route.AcceptProxy {
		route.Trusted = s.Trusted
	}
	route.TLS, route.BackendTLS = s.TLS, s.BackendTLS
}

// closed returns the problem of an object whose port stays closed because of the Service's annotations. It returns nil
// if the object is the Service itself, which already has a problem.
func closed(service, of ir.Ref) *report.Problem {
	if service == of {
		return nil
	}
	return &report.Problem{Severity: report.Error, Reason: report.InvalidAnnotation, Message: fmt.Sprintf(
		"the port stays closed, because an annotation of %s is invalid: see the verdict on that object",
		service)}
}

func (r *reading) backend(w *wish) (*ir.Backend, *report.Problem) {
	r.depend(w.service)
	found, p := r.find(r.snapshot, w.service, w.target, w.protocol,
		backends.Options{ExternalNames: r.options.ExternalNames})
	switch {
	case p == nil:
		return found, nil
	case p.Reason == report.ServiceNotFound:
		p.Message += ": " + w.protocol.Without() + " until it exists"
	default:
		p.Message += ": " + w.protocol.Without()
	}
	p.Field = ""
	return found, p
}

func (r *reading) depend(on ir.Ref) { r.result.Refs = append(r.result.Refs, on) }

// verdict returns the verdict on an object, and creates it if necessary. Both options may name the same ConfigMap.
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

// isolatingPanics calls do and turns a panic into a problem of the entry.
func isolatingPanics(do func() *report.Problem) (p *report.Problem) {
	if caught := panics.Try(func() { p = do() }); caught != nil {
		return &report.Problem{
			Severity: report.Error, Reason: report.Quarantined,
			Message: fmt.Sprintf("the entry has no effect, because reading it failed: %v", caught),
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
