package engine

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/k8singress/k8singress/internal/document"
	"github.com/k8singress/k8singress/internal/ir"
	"github.com/k8singress/k8singress/internal/report"
	"github.com/k8singress/k8singress/internal/settings"
)

// Status is what GET /k8singress/status answers.
type Status struct {
	// Ready says that everything there is has been applied once. Before, every request gets 503.
	Ready bool `json:"ready"`
	// Generation grows with everything that is applied.
	Generation uint64 `json:"generation"`
	// Leader says that this replica writes the status of objects.
	Leader bool `json:"leader"`
	// Objects counts the objects that the source holds, by kind.
	Objects map[string]int `json:"objects"`
	// Problems counts the problems that /k8singress/objects lists, by severity.
	Problems map[report.Severity]int `json:"problems"`
}

// Status tells how the engine is.
func (e *Engine) Status() Status {
	s := e.state.Load()
	status := Status{
		Ready: e.live.Table.Ready(), Generation: s.generation, Objects: map[string]int{},
		Leader: e.publisher != nil && e.publisher.Leader(), Problems: map[report.Severity]int{},
	}
	if objects := e.latest.Load(); objects != nil {
		status.Objects = objects.Counts()
	}
	for _, v := range e.told().Verdicts {
		for _, p := range v.Problems {
			status.Problems[p.Severity]++
		}
	}
	return status
}

// told is what has been published. Before anything has, the source may say why there is nothing to publish.
func (e *Engine) told() *report.Report {
	s := e.state.Load()
	if r, ok := e.source.(Reporter); ok && !e.live.Table.Ready() {
		return s.report.With(r.Verdicts())
	}
	return s.report
}

// Report returns the verdicts on all objects, with a word on those whose backends have no endpoints at this moment.
// Endpoints come and go without the pipeline, so that is looked up for each call.
func (e *Engine) Report() *report.Report {
	s := e.state.Load()
	silent := silence{of: map[ir.Ref]map[mute]bool{}, problem: e.endpointProblem}
	for _, h := range s.config.VirtualHosts {
		for _, r := range h.Routes {
			for i := range r.Backends {
				silent.add(r.Origin, "", r.Backends[i].Backend, without(h, r, &r.Backends[i]))
			}
		}
	}
	for _, r := range s.config.StreamRoutes {
		silent.add(r.Origin, r.Field, r.Backend, r.Protocol.Without())
	}
	return e.told().With(silent.verdicts)
}

// without says what becomes of the requests for a backend without endpoints.
func without(h *ir.VirtualHost, r *ir.Route, b *ir.WeightedBackend) string {
	for i := range r.Backends {
		if other := &r.Backends[i]; other.Fallback && other.Backend != b.Backend {
			return "its requests go to the backend " + other.Backend.ID
		}
	}
	if h.Passthrough != nil && h.Passthrough.Backend.ID == b.Backend.ID {
		return "TLS connections are closed, and requests without TLS get 503"
	}
	return "requests get 503"
}

// silence gathers the problems of endpoints, one for each object, field and backend.
type silence struct {
	of       map[ir.Ref]map[mute]bool
	verdicts []*report.Verdict
	problem  func(b *ir.Backend, without string) *report.Problem
}

// mute is the ID of a backend, and where in an object it is asked for. The field is empty for the paths of an Ingress: many lead to
// one backend.
type mute struct{ id, field string }

func (s *silence) add(origin ir.Ref, field string, b *ir.Backend, without string) {
	m := mute{b.ID, field}
	if s.of[origin][m] {
		return
	}
	problem := s.problem(b, without)
	if problem == nil {
		return
	}
	if s.of[origin] == nil {
		s.of[origin] = map[mute]bool{}
	}
	s.of[origin][m] = true
	problem.Field = field
	s.verdicts = append(s.verdicts, &report.Verdict{Object: origin, Problems: []report.Problem{*problem}})
}

// endpointProblem says what is wrong with the endpoints of a backend at this moment; it is nil when nothing is. without is what
// happens where there is none.
func (e *Engine) endpointProblem(b *ir.Backend, without string) *report.Problem {
	none := len(e.endpoints.Backend(b.ID).Endpoints()) == 0
	switch {
	case b.Missing:
		return nil
	case b.ExternalName != "":
		return e.nameProblem(b, none, without)
	case none:
		return &report.Problem{
			Severity: report.Info, Reason: report.NoEndpoints,
			Message: fmt.Sprintf("the Service %s/%s has no ready endpoints: %s", b.Namespace, b.Service, without),
		}
	}
	return e.healthProblem(b)
}

// healthProblem is that of a backend whose endpoints fail their health checks. It is told here and by a metric, and to no
// Event: endpoints that fail now and then would write a new one each time.
func (e *Engine) healthProblem(b *ir.Backend) *report.Problem {
	s, _ := e.live.Health.State(b.ID)
	if s.Unhealthy == 0 {
		return nil
	}
	consequence := "they get no requests"
	if s.Unhealthy == s.Endpoints {
		consequence = "there is no better one, so that they get requests all the same"
	}
	return &report.Problem{
		Severity: report.Warning, Reason: report.EndpointsUnhealthy,
		Message: fmt.Sprintf("%d of the %d endpoints of the Service %s/%s fail the health check, and %s; %s: %s",
			s.Unhealthy, s.Endpoints, b.Namespace, b.Service, consequence, s.Address, s.Reason),
	}
}

// nameProblem is that of a Service which stands for a name.
func (e *Engine) nameProblem(b *ir.Backend, none bool, without string) *report.Problem {
	name, _ := e.live.Names.State(b.ID)
	refused := strings.Join(name.Refused, ", ")
	service := fmt.Sprintf("the name %s of the Service %s/%s", cmp.Or(name.Name, b.ExternalName), b.Namespace, b.Service)
	message := ""
	switch {
	case refused != "":
		message = service + " leads to addresses that are left out: " + refused + "; the option external_names all allows them"
	case none && name.Err != nil:
		message = service + " has no addresses: " + name.Err.Error()
	case none:
		message = service + " has no addresses yet"
	default:
		return e.healthProblem(b)
	}
	if none {
		return &report.Problem{Severity: report.Info, Reason: report.NoEndpoints, Message: message + ": " + without}
	}
	return &report.Problem{Severity: report.Warning, Reason: report.RefusedAddress, Message: message}
}

// Document returns the live half as it was applied last.
func (e *Engine) Document() *document.Live {
	d := e.state.Load().document()
	now := *d
	now.Backends = make(map[string]*document.Backend, len(d.Backends))
	for id, b := range d.Backends {
		// Endpoints change without the pipeline.
		current := *b
		current.Endpoints = addresses(e.endpoints.Backend(id).Endpoints())
		now.Backends[id] = &current
	}
	return &now
}

// Settings returns the options of the newest Caddy configuration that uses the engine, from its Adopt on. Before the
// first one they are the zero value.
func (e *Engine) Settings() settings.Config {
	if a := e.adoption.Load(); a != nil {
		return a.settings
	}
	return settings.Config{}
}

// Generation grows with everything that is applied, with other verdicts, and with another Caddy configuration, once that
// is in effect. Endpoints alone do not count.
func (e *Engine) Generation() uint64 { return e.state.Load().generation }

// Await waits until the generation is at least this, or ctx ends.
func (e *Engine) Await(ctx context.Context, generation uint64) error {
	for {
		s := e.state.Load()
		if s.generation >= generation {
			return nil
		}
		select {
		case <-s.changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
