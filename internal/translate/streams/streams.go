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

// Options are the inputs of a translation, in addition to the Kubernetes objects.
type Options struct {
	// TCP and UDP are the names of the ConfigMaps that define ports. The zero value means that there is no ConfigMap.
	TCP, UDP ir.Name
	// Services restricts the ports that annotations of Services may open.
	Services ServicePorts
	// Policy holds the settings for Services without annotations. Most holds the maximum values for annotations; zero
	// means no limit.
	Policy, Most ir.StreamPolicy
	// Reserved lists the ports on which this process itself listens. They must be checked here, because listening twice
	// on the same port in one process causes no error in Caddy.
	Reserved ReservedPorts
	// Chains are the names of the stream chains that Services can select.
	Chains []string
	// ExternalNames restricts the targets of Services of type ExternalName. The values are the same as for
	// settings.Config.ExternalNames.
	ExternalNames string
	// NoIssuer disables certificates from issuers for all namespaces. NoIssuerFor disables them for the listed
	// namespaces.
	NoIssuer    bool
	NoIssuerFor []string
}

// ServicePorts are the ports that annotations of Services may open. The zero value allows no ports.
type ServicePorts struct {
	TCP, UDP []settings.PortRange
	// Namespaces lists the namespaces whose Services may open ports. An entry is a name, or the start of a name
	// followed by a star. An empty list allows all namespaces.
	Namespaces []string
	// PerNamespace is the maximum number of ports that the Services of one namespace may open. Zero means no limit.
	PerNamespace int
	// Selector selects the namespaces whose Services may open ports, by their labels. Nil selects all namespaces.
	Selector labels.Selector
	// Folder is true if the objects come from a folder of manifests, where Namespace objects may be missing.
	Folder bool
}

// ReservedPort is a port on which this process itself listens.
type ReservedPort struct {
	Protocol ir.Protocol
	Port     uint16
	// Owner is the name of the component that listens on the port, for messages.
	Owner string
}

// ReservedPorts are the ports on which this process itself listens.
type ReservedPorts []ReservedPort

// Owner returns the owner of a port. It returns an empty string if the port is not reserved.
func (r ReservedPorts) Owner(protocol ir.Protocol, port uint16) string {
	for i := range r {
		if r[i].Protocol == protocol && r[i].Port == port {
			return r[i].Owner
		}
	}
	return ""
}

// Result holds the result of one translation: the routes of the ports, and a verdict with the problems of each object.
type Result struct {
	// Routes are the routes of all open ports, sorted by protocol and port.
	Routes   []*ir.StreamRoute
	Verdicts []*report.Verdict
	// Refs are the objects on which the result depends. They do not include Services without annotations of this
	// controller, although the result changes if such a Service gets an annotation.
	Refs []ir.Ref
}

// Translate translates the ConfigMaps and the annotations of Services into routes. A ConfigMap that does not exist gets
// a problem. If several objects define the same port, ports of this process take precedence, then ConfigMaps, then the
// oldest Service. The other definitions are rejected.
func Translate(s *snapshot.Snapshot, o Options) *Result {
	return newReading(s, o).translate()
}

// reading is the state of one call to Translate.
type reading struct {
	snapshot *snapshot.Snapshot
	options  Options
	result   *Result
	// owners maps each port to the object that was the first to define it, even if the port stays closed.
	owners map[place]owner
	// The field opened maps namespaces to the number of ports that their Services opened.
	opened map[string]int
	// services caches the parsed annotations of Services.
	services map[ir.Ref]*service
	// find is backends.Find. Tests replace it.
	find func(*snapshot.Snapshot, ir.Ref, string, ir.Protocol, backends.Options) (*ir.Backend, *report.Problem)
}

// place is a port number together with its protocol. It can be owned by only one object.
type place struct {
	protocol ir.Protocol
	port     uint16
}

// owner is the object that owns a port, and the field of the object that defines the port.
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

// Compare compares two routes by protocol, then by port.
func Compare(a, b *ir.StreamRoute) int {
	return cmp.Or(cmp.Compare(a.Protocol, b.Protocol), cmp.Compare(a.Port, b.Port))
}

// wish is a port that an object defines and that should be opened.
type wish struct {
	place
	// service is the Service to which the port forwards. target is the number or the name of the Service port.
	service ir.Ref
	target  string
	// field is the path of the field that defines the port, within its object.
	field string
	// acceptProxy and sendProxy are set if a ConfigMap entry enables the PROXY protocol for clients and for the
	// backend, respectively.
	acceptProxy bool
	sendProxy   ir.ProxyVersion
}

// The method take records an object as the owner of the port in w, and returns nil. If the port already has an owner,
// or belongs to the controller itself, take returns a problem instead.
func (r *reading) take(w *wish, of ir.Ref) *report.Problem {
	if reserved := r.options.Reserved.Owner(w.protocol, w.port); reserved != "" {
		return conflict("port %d is the %s port of the controller itself: choose another port", w.port, reserved)
	}
	first, taken := r.owners[w.place]
	switch {
	case !taken:
		r.owners[w.place] = owner{of, w.field}
		return nil
	case first.Ref == of:
		return invalid("port %d is listed twice, and the entry %s is used: remove one of the two "+
			"entries", w.port, first.field)
	case first.Kind == kinds.ConfigMap:
		return conflict("an entry of the ConfigMap in the option %s_services already uses the %s: choose another port",
			w.protocol, w.place)
	}
	winner, other := r.services[first.Ref].object, r.services[of].object
	if first.Namespace == of.Namespace {
		return conflict("the %s is already used by %s: choose another port", w.place, snapshot.Elder(winner, other))
	}
	// Do not mention the name of the Service that owns the port, because it is in another namespace.
	return conflict("the %s is already used by %s: choose another port", w.place,
		snapshot.ElderOfKind(winner, other, " of another namespace"))
}

// The method open adds the route for a port. If the Service does not exist, the route has no endpoints, because the
// Service may be created later. If the settings of the Service keep the port closed, open adds no route. It returns the
// problem with the port, or nil.
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
			"the %s stays closed, because annotations of %s configure TLS, the PROXY protocol or chains, which UDP "+
				"ports do not support: remove them, or use a separate Service for UDP", w.place, w.service)}
	}
	backend, p := r.backend(w)
	route.Backends = ir.To(backend)
	r.result.Routes = append(r.result.Routes, route)
	return p
}

// onlyTCP reports whether the Service has settings that UDP ports do not support. Its UDP ports then stay closed,
// because the settings may be required for security.
func (s *Settings) onlyTCP() bool {
	return s.TLS != nil || s.BackendTLS != nil || s.AcceptProxy || s.SendProxy != "" || len(s.Trusted) > 0 ||
		len(s.Chains) > 0
}

// Settings.tcp sets the fields of a route that apply only to TCP.
func (s *Settings) tcp(route *ir.StreamRoute, w *wish) {
	route.Policy.Responses = 0
	route.SendProxy = cmp.Or(s.SendProxy, w.sendProxy)
	if route.AcceptProxy = s.AcceptProxy || w.acceptProxy; route.AcceptProxy {
		route.Trusted = s.Trusted
	}
	route.Chains, route.TLS, route.BackendTLS = s.Chains, s.TLS, s.BackendTLS
}

// The function closed returns the problem to report for the object whose port forwards to a Service with an invalid
// annotation, and therefore stays closed. It returns nil if the object is this Service, which already has a problem.
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

// verdict returns the verdict for an object, and creates it if it does not exist yet. A verdict for a ConfigMap may
// already exist, because both tcp_services and udp_services may refer to it.
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

// isolatingPanics calls do. If do panics, it returns a problem that describes the panic.
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
