package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/k8singress/k8singress/internal/document"
	"github.com/k8singress/k8singress/internal/front"
	"github.com/k8singress/k8singress/internal/report"
	"github.com/k8singress/k8singress/internal/settings"
)

// ErrNotReady is why requests get 503 before everything there is has been applied once.
var ErrNotReady = errors.New("the Ingresses are not known yet")

// Status is what GET /k8singress/status answers.
type Status struct {
	// Ready says that everything there is has been applied once, and that the servers of the options http and https run. Before, every
	// request gets 503 or finds no server.
	Ready bool `json:"ready"`
	// Reason is why Ready is false.
	Reason string `json:"reason,omitempty"`
	// Generation grows with everything that is applied.
	Generation uint64 `json:"generation"`
	// Leader says that this replica writes the status of objects.
	Leader bool `json:"leader"`
	// Objects counts the objects that the source holds, by kind.
	Objects map[string]int `json:"objects"`
	// Problems counts the problems that /k8singress/objects lists, by severity.
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

// Ready returns nil if clients may send requests to this process, or else the reason.
func (e *Engine) Ready() error {
	if !e.live.Table.Ready() {
		return ErrNotReady
	}
	if option := missingServer(e.Settings(), front.Process().Runs); option != "" {
		return fmt.Errorf("no server runs for the option %s", option)
	}
	return nil
}

// unready returns the text of Ready, with the reason why the structure could not be completed.
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

// published returns the report that was published last. Before the first one, the source may say why there is none.
func (e *Engine) published() *report.Report {
	s := e.state.Load()
	if r, ok := e.source.(Reporter); ok && !e.live.Table.Ready() {
		return s.report.With(r.Verdicts())
	}
	return s.report
}

// Report returns the verdicts on all objects, with a problem for those whose backends have no endpoints at this moment.
// Endpoints come and go without the pipeline, so they are looked up for each call.
func (e *Engine) Report() *report.Report {
	return e.published().With(e.live.EndpointProblems(e.state.Load().config))
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

// ErrHasSource is why Load refuses a document.
var ErrHasSource = errors.New("this process follows a cluster or a folder of manifests, and takes no documents; " +
	"set \"source none\" for one that does")

// Load serves a document in place of what was served before. It waits until the document is in effect.
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
		return errors.New("the engine has ended")
	}
}

// serveDocument applies a document that came from outside.
func (l *loop) serveDocument(d *document.Live) {
	l.apply(document.Diff(l.document(), d), nil)
	l.document = func() *document.Live { return d }
	l.publish()
}
