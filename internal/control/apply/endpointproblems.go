package apply

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/kinds"
	"github.com/k8singress/k8singress/internal/model/report"
	"github.com/k8singress/k8singress/internal/upstream/endpoints"
)

// EndpointProblems returns the current problems with the endpoints of backends: endpoints that are missing, not allowed
// or unhealthy. Each problem is reported on the object that refers to the backend. EndpointProblems is safe for
// concurrent use.
func (l *Live) EndpointProblems(config *ir.Config) []*report.Verdict {
	// reference identifies a backend, and the field of an object that refers to it. It is used to report a problem only
	// once if many paths of an Ingress have the same backend.
	type reference struct {
		origin         ir.Ref
		field, backend string
	}
	seen := map[reference]bool{}
	var verdicts []*report.Verdict
	add := func(origin ir.Ref, field string, b *ir.Backend, effect string) {
		ref := reference{origin, field, b.ID}
		if seen[ref] {
			return
		}
		if problem := l.endpointProblem(b, effect); problem != nil {
			seen[ref] = true
			problem.Field = field
			verdicts = append(verdicts, &report.Verdict{Object: origin, Problems: []report.Problem{*problem}})
		}
	}
	for h := range config.AllVirtualHosts() {
		for _, r := range h.Routes {
			for i := range r.Backends {
				add(r.Origin, "", r.Backends[i].Backend, withoutEndpoints(h, r, &r.Backends[i]))
			}
		}
	}
	for _, r := range config.StreamRoutes {
		for i := range r.Backends {
			b := r.Backends[i].Backend
			add(r.Origin, r.Field, b, cmp.Or(fallbackEffect(r.Backends, b, "connections go"), r.Protocol.Without()))
		}
	}
	for i := range config.Followed {
		b := config.Followed[i].Backend
		add(config.Followed[i].Service.Of(kinds.Service), "", b, "requests and connections for it fail")
	}
	return verdicts
}

// withoutEndpoints describes, for a message, what happens to the requests for backend b if it has no endpoints.
func withoutEndpoints(h *ir.VirtualHost, r *ir.Route, b *ir.WeightedBackend) string {
	if effect := fallbackEffect(r.Backends, b.Backend, "requests go"); effect != "" {
		return effect
	}
	passed := func(p ir.WeightedBackend) bool { return p.Backend.ID == b.Backend.ID }
	if h.Passthrough != nil && slices.ContainsFunc(h.Passthrough.Backends, passed) {
		return "TLS connections are closed, and requests without TLS get 503"
	}
	return "requests get 503"
}

// fallbackEffect returns the part of a message that says to which other backend requests go while the backend than is
// without endpoints, such as "requests go to the backend ID". all lists the backends of the route. goes is the start of
// the returned text. fallbackEffect returns "" if no other backend in all is a fallback.
func fallbackEffect(all []ir.WeightedBackend, than *ir.Backend, goes string) string {
	for i := range all {
		if all[i].Fallback && all[i].Backend != than {
			return goes + " to the backend " + all[i].Backend.ID
		}
	}
	return ""
}

// endpointProblem returns the current problem with the endpoints of a backend, or nil. effect is the part of the
// message that describes what happens while there are no endpoints.
func (l *Live) endpointProblem(b *ir.Backend, effect string) *report.Problem {
	none := len(l.endpoints.Backend(b.ID).Endpoints()) == 0
	refused := l.refused(b.ID)
	switch left := l.endpoints.LeftOut(b.ID); {
	case b.Missing:
		return nil
	case left > 0:
		return &report.Problem{Severity: report.Warning, Reason: report.QuotaExceeded, Message: fmt.Sprintf(
			"the backends of the namespace %s have more than %d endpoints together, so %d endpoints of the Service "+
				"%s/%s are left out: remove paths that use other Services or ports, or use more "+
				"namespaces", b.Namespace,
			endpoints.MaxPerNamespace, left,
			b.Namespace, b.Service)}
	case b.ExternalName != "":
		return l.nameProblem(b, none, refused, effect)
	case refused != "":
		message := fmt.Sprintf(
			"endpoints of the Service %s/%s are left out, because connections to their addresses are not allowed: "+
				"%s", b.Namespace, b.Service, refused)
		if none {
			message += ", so " + effect
		}
		message += "; the options reach_allow and reach_deny configure this"
		return &report.Problem{Severity: report.Warning, Reason: report.AddressNotAllowed, Message: message}
	case none:
		return &report.Problem{
			Severity: report.Info, Reason: report.NoEndpoints,
			Message: fmt.Sprintf("the Service %s/%s has no ready endpoints: %s", b.Namespace, b.Service, effect),
		}
	}
	return l.healthProblem(b)
}

// refused returns a list, for a message, of the first few endpoints of a backend that are not used because connections
// to their addresses are not allowed.
func (l *Live) refused(id string) string {
	const most = 4
	var all []string
	for i, r := range l.endpoints.Refused(id) {
		if i == most {
			all = append(all, "and more")
			break
		}
		all = append(all, fmt.Sprintf("%s (%s)", r.Address, r.Reason))
	}
	return strings.Join(all, ", ")
}

// healthProblem returns a problem if a backend has unhealthy endpoints, otherwise nil. The problem is reported in the
// admin API and as a metric, but not as an Event, because endpoints that fail now and then would create a new Event
// each time.
func (l *Live) healthProblem(b *ir.Backend) *report.Problem {
	s, _ := l.Health.State(b.ID)
	if s.Unhealthy == 0 {
		return nil
	}
	consequence := "the failing endpoints get no requests"
	if s.Unhealthy == s.Endpoints {
		consequence = "because all endpoints fail, requests are still sent to them"
	}
	return &report.Problem{
		Severity: report.Warning, Reason: report.EndpointsUnhealthy,
		Message: fmt.Sprintf("%d of the %d endpoints of the Service %s/%s fail the health check, and %s; %s: %s",
			s.Unhealthy, s.Endpoints, b.Namespace, b.Service, consequence, s.Address, s.Reason),
	}
}

// nameProblem returns the problem with an ExternalName Service, or nil. It reports a name that cannot be resolved,
// addresses to which connections are not allowed, and unhealthy endpoints. none is true if the Service has no
// endpoints. closed lists the endpoints to which connections are not allowed. effect is the part of the message that
// says what happens to requests without endpoints.
func (l *Live) nameProblem(b *ir.Backend, none bool, closed, effect string) *report.Problem {
	name, _ := l.Names.State(b.ID)
	refused := strings.Join(name.Refused, ", ")
	service := fmt.Sprintf("the name %s of the Service %s/%s", cmp.Or(name.Name, b.ExternalName),
		b.Namespace, b.Service)
	message, hint := "", ""
	switch {
	case refused != "":
		message = service + " resolves to addresses that are not allowed: " + refused
		hint = "; \"external_names all\" allows them"
	case closed != "":
		message = service + " resolves to addresses that are not allowed: " + closed
	case none && name.Err != nil:
		message = service + " has no addresses: " + name.Err.Error()
	case none:
		message = service + " has no addresses yet"
	default:
		return l.healthProblem(b)
	}
	if none {
		return &report.Problem{Severity: report.Info, Reason: report.NoEndpoints,
			Message: message + ", so " + effect + hint}
	}
	return &report.Problem{Severity: report.Warning, Reason: report.AddressNotAllowed, Message: message + hint}
}
