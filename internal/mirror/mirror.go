// Package mirror sends copies of requests to services that Ingresses name, and throws the answers away. No request waits for its copy, and
// none fails because of it: what has no room is dropped, and counted.
package mirror

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/k8singress/k8singress/internal/budget"
	"github.com/k8singress/k8singress/internal/callout"
	"github.com/k8singress/k8singress/internal/message"
	"github.com/k8singress/k8singress/internal/panics"
)

const (
	// MostBody is how long the body of a request may be that is copied.
	MostBody = 1 << 20
	// mostAtOnce is how many copies may be under way. Each namespace has its part of that, and of the memory for bodies, and each Ingress
	// has its part of the namespace's.
	mostAtOnce = 512
	// mostTime is how long a copy may take with its answer, of which mostAnswer bytes are read.
	mostTime, connectTime = 10 * time.Second, 5 * time.Second
	mostAnswer            = 1 << 20
)

// Service is how mirrors are called.
var Service = &callout.Service{
	Purpose: "mirror", Connect: connectTime, Read: mostTime, Write: mostTime, Drain: mostAnswer, Dispensable: true,
}

// Reason is why a request is not copied.
type Reason string

// The reasons.
const (
	// Busy is that as many copies are under way, or as many connections open, as may be.
	Busy Reason = "busy"
	// Body is that the body is too long, has no room, or has not come to its end.
	Body Reason = "body"
	// URL is that the URL leads nowhere for this request.
	URL Reason = "url"
)

// Sender sends copies. Its methods may be called from any goroutine.
type Sender struct {
	ask           func(*message.Request, *callout.Call) (callout.Answer, error)
	slots, memory *budget.Budget
	log           *zap.Logger
	sent, dropped *prometheus.CounterVec

	// over ends what is under way.
	over   context.Context //nolint:containedctx // Copies outlive their requests.
	cancel context.CancelFunc
	mu     sync.Mutex
	closed bool
	// running counts the goroutines, one for each copy.
	running panics.Group
}

// NewSender returns a sender that calls mirrors by ask. What goes wrong is said to log, for who looks for it.
func NewSender(ask func(*message.Request, *callout.Call) (callout.Answer, error), log *zap.Logger) *Sender {
	s := &Sender{
		ask: ask, log: log, slots: budget.New(mostAtOnce), memory: budget.Mirrors.Budget(),
		sent: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "k8singress_mirrored_requests_total", Help: "How many copies of requests were sent to a mirror, by what came of it.",
		}, []string{"result"}),
		dropped: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "k8singress_mirrored_requests_dropped_total",
			Help: "How many requests with a mirror were not copied, by reason: too many copies under way, a body that is too long, has no room " +
				"or breaks off, or a URL that leads nowhere.",
		}, []string{"reason"}),
	}
	for _, result := range []string{answered, failed} {
		s.sent.WithLabelValues(result)
	}
	for _, why := range []Reason{Busy, Body, URL} {
		s.dropped.WithLabelValues(string(why))
	}
	s.over, s.cancel = context.WithCancel(context.Background()) //nolint:forbidigo // Copies outlive their requests, and end with Close.
	return s
}

const answered, failed = "answered", "failed"

// Collectors returns the metrics.
func (s *Sender) Collectors() []prometheus.Collector {
	return []prometheus.Collector{s.sent, s.dropped}
}

// Drop notes that a request is not copied.
func (s *Sender) Drop(why Reason) { s.dropped.WithLabelValues(string(why)).Inc() }

// Close ends all copies that are under way. There are no others from then on.
func (s *Sender) Close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.cancel()
	s.running.Wait()
}

// Send sends a copy for an Ingress of the namespace of the call, in a goroutine of its own.
func (s *Sender) Send(call *callout.Call, ingress string) { s.send(call, ingress, func() {}) }

// send has release called when the copy is over, or dropped.
func (s *Sender) send(call *callout.Call, ingress string, release func()) {
	slot := s.slots.Share(call.Namespace, ingress)
	if !slot.Take(1) {
		release()
		s.Drop(Busy)
		return
	}
	run := func() {
		defer release()
		defer slot.Give(1)
		s.run(call, ingress)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		slot.Give(1)
		release()
		return
	}
	s.running.Go("mirror/copy", run)
}

func (s *Sender) run(call *callout.Call, ingress string) {
	ctx, cancel := context.WithTimeout(s.over, mostTime)
	defer cancel()
	var r message.Request
	r.SetContext(ctx)
	_, err := s.ask(&r, call)
	switch {
	case err == nil:
		s.sent.WithLabelValues(answered).Inc()
		return
	case errors.Is(err, callout.ErrBusy):
		s.Drop(Busy)
	default:
		s.sent.WithLabelValues(failed).Inc()
	}
	s.log.Debug("a request was not mirrored", zap.String("namespace", call.Namespace), zap.String("ingress", ingress), zap.Error(err))
}
