package engine

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/k8singress/k8singress/internal/http/front"
	"github.com/k8singress/k8singress/internal/model/document"
	"github.com/k8singress/k8singress/internal/model/report"
	"github.com/k8singress/k8singress/internal/model/settings"
	"github.com/k8singress/k8singress/internal/upstream/balancer"
)

// ErrNotReady is the error of Ready until all objects have been applied for the first time. Until then, requests get
// the status 503.
var ErrNotReady = errors.New("the Ingresses have not been read yet")

// Status is the response of GET /k8singress/status.
type Status struct {
	// Ready means that all objects have been applied once, and that the HTTP servers that the options http and https
	// require are running. Otherwise requests get 503, or cannot connect.
	Ready bool `json:"ready"`
	// Reason is the reason why Ready is false.
	Reason string `json:"reason,omitempty"`
	// Generation is a number that increases when a change is applied.
	Generation uint64 `json:"generation"`
	// Leader means that this replica writes the status of objects.
	Leader bool `json:"leader"`
	// Objects is the number of Kubernetes objects that were read, by kind.
	Objects map[string]int `json:"objects"`
	// Problems is the number of problems in the response of GET /k8singress/objects, by severity.
	Problems map[report.Severity]int `json:"problems"`
}

// Status returns the state of the engine.
func (e *Engine) Status() Status {
	s := e.state.Load()
	reason := e.unready()
	status := Status{
		Ready: reason == "", Reason: reason, Generation: s.generation, Objects: map[string]int{},
		Leader: e.publisher != nil && e.publisher.Leader(), Problems: map[report.Severity]int{},
	}
	if objects := e.latest.Load(); objects != nil {
		status.Objects = objects.Counts()
	}
	for _, v := range e.published().Verdicts {
		for _, p := range v.Problems {
			status.Problems[p.Severity]++
		}
	}
	return status
}

// Ready returns nil if clients may send requests to this process, otherwise an error with the reason.
func (e *Engine) Ready() error {
	if !e.live.Table.Ready() {
		return ErrNotReady
	}
	if option := missingServer(e.Settings(), front.Process().Runs); option != "" {
		return fmt.Errorf("no server is running for the option %s", option)
	}
	return nil
}

// unready returns the error of Ready as a string, or "" if the process is ready. If the required servers and settings
// could not be added to Caddy's configuration, the string ends with the reason.
func (e *Engine) unready() string {
	err := e.Ready()
	if err == nil {
		return ""
	}
	if failure := e.patchFailure.Load(); failure != nil {
		return fmt.Sprintf("%v: %s", err, *failure)
	}
	return err.Error()
}

// published returns the last published report. Until the process is ready, the problems that the source reports are
// added, because they may explain the delay.
func (e *Engine) published() *report.Report {
	s := e.state.Load()
	if r, ok := e.source.(Reporter); ok && !e.live.Table.Ready() {
		return s.report.With(r.Verdicts())
	}
	return s.report
}

// Report returns the problems of all objects. Each call checks which backends have no endpoints at the moment, because
// endpoints change without a new translation.
func (e *Engine) Report() *report.Report {
	return e.published().With(e.live.EndpointProblems(e.state.Load().config))
}

// Document returns the live configuration that is in effect: hosts, routes, backends and ports.
func (e *Engine) Document() *document.Live {
	d := e.state.Load().document()
	now := *d
	now.Backends = make(map[string]*document.Backend, len(d.Backends))
	for id, b := range d.Backends {
		// Set the current endpoints. The endpoints in the rendered configuration may be old, because changes of
		// endpoints are applied without rendering it again.
		current := *b
		current.Endpoints = addresses(e.endpoints.Backend(id).Endpoints())
		now.Backends[id] = &current
	}
	return &now
}

// Endpoints yields the endpoints of all HTTP and TCP backends, and removed endpoints that still process requests. An
// address may occur more than once.
func (e *Engine) Endpoints() iter.Seq[*balancer.Endpoint] { return e.endpoints.Endpoints() }

// Settings returns the options of the newest Caddy configuration that uses the engine, or the zero value before the
// first call of Adopt.
func (e *Engine) Settings() settings.Config {
	if a := e.adoption.Load(); a != nil {
		return a.settings
	}
	return settings.Config{}
}

// Generation returns a number that increases with each applied change, with each change of the reported problems, and
// when a new Caddy configuration takes effect. Changes of endpoints alone do not increase it.
func (e *Engine) Generation() uint64 { return e.state.Load().generation }

// Await waits until Generation returns the given number or a higher one. If ctx ends first, it returns an error.
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

// ErrHasSource is returned by Load if the engine reads objects from a cluster or a folder.
var ErrHasSource = errors.New(
	"this process watches a cluster or a folder of manifests, so it cannot load a configuration: to load one, set " +
		"\"source none\" in the Caddyfile")

// Load replaces the live configuration of an engine that reads no Kubernetes objects, and waits until the new
// configuration is in effect.
func (e *Engine) Load(ctx context.Context, d *document.Live) error {
	if e.HasSource() {
		return ErrHasSource
	}
	l := load{document: d, served: make(chan struct{})}
	select {
	case e.loads <- l:
		<-l.served
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-e.done:
		return errors.New("the controller has stopped")
	}
}

// serveDocument applies a live configuration that was passed to Load or is part of the Caddy configuration.
func (l *loop) serveDocument(d *document.Live) {
	begin := time.Now()
	delta := document.Diff(l.document(), d)
	l.apply(delta, nil)
	l.recordDelta(delta)
	l.emitApplied(delta, begin)
	l.document = func() *document.Live { return d }
	l.findFollowed()
	l.publish()
}
