// Package mirror sends copies of requests to the services in the mirror-target annotations of Ingresses, and discards
// the responses. A request neither waits for its copy nor fails because of it. Copies that exceed a limit are dropped
// and counted.
package mirror

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/k8singress/k8singress/internal/http/callout"
	"github.com/k8singress/k8singress/internal/http/message"
	"github.com/k8singress/k8singress/internal/process/budget"
	"github.com/k8singress/k8singress/internal/process/panics"
)

const (
	// MaxBody is the maximum size, in bytes, of the body of a mirrored request.
	MaxBody = 1 << 20
	// maxInFlight is the maximum number of copies in flight. Like the memory for their bodies, it is divided among the
	// namespaces, and within a namespace among its Ingresses.
	maxInFlight = 512
	// maxTime is the maximum time for sending a copy and reading its response. connectTime is the timeout for new
	// connections. maxResponse is the maximum number of bytes to read from the response.
	maxTime, connectTime = 10 * time.Second, 5 * time.Second
	maxResponse          = 1 << 20
)

// Service holds the settings for sending the copies of mirrored requests.
var Service = &callout.Service{
	Purpose: "mirror", Connect: connectTime, Read: maxTime, Write: maxTime, Drain: maxResponse, Dispensable: true,
}

// Reason is the reason why the copy of a request was dropped.
type Reason string

// The reasons why a copy is dropped.
const (
	// Busy means that the limit on copies in flight or on connections was reached.
	Busy Reason = "busy"
	// Body means that the request body is too long, exceeds the memory budget, or was not read completely.
	Body Reason = "body"
	// URL means that the configured URL, with its variables replaced, is not valid for this request.
	URL Reason = "url"
)

// Sender sends the copies of mirrored requests. It is safe for concurrent use.
type Sender struct {
	call          func(*message.Request, *callout.Call) (callout.Response, error)
	slots, memory *budget.Budget
	log           *zap.Logger
	sent, dropped *prometheus.CounterVec

	// over is the context of all copies in flight. Close cancels this context.
	over   context.Context //nolint:containedctx // Copies outlive their requests.
	cancel context.CancelFunc
	mu     sync.Mutex
	closed bool
	// running tracks the goroutines that send copies. Each copy has its own goroutine.
	running panics.Group
}

// NewSender returns a Sender that uses call to send copies. It logs failures to log at debug level.
func NewSender(call func(*message.Request, *callout.Call) (callout.Response, error), log *zap.Logger) *Sender {
	s := &Sender{
		call: call, log: log, slots: budget.New(maxInFlight), memory: budget.Mirrors.Budget(),
		sent: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "k8singress_mirrored_requests_total",
			Help: "The number of request copies that were sent to mirrors, by result.",
		}, []string{"result"}),
		dropped: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "k8singress_mirrored_requests_dropped_total",
			Help: "The number of requests that were not mirrored, by reason: too many copies are in progress " +
				"(busy); the body is too long or incomplete, or there is no memory for it (body); or the URL of the " +
				"mirror is invalid (url).",
		}, []string{"reason"}),
	}
	for _, result := range []string{resultAnswered, resultFailed} {
		s.sent.WithLabelValues(result)
	}
	for _, why := range []Reason{Busy, Body, URL} {
		s.dropped.WithLabelValues(string(why))
	}
	s.over, s.cancel = context.WithCancel(
		context.Background()) //nolint:forbidigo // Copies outlive their requests, and end with Close.
	return s
}

const resultAnswered, resultFailed = "answered", "failed"

// Collectors returns the metrics about mirrored requests.
func (s *Sender) Collectors() []prometheus.Collector {
	return []prometheus.Collector{s.sent, s.dropped}
}

// Drop counts a copy that the caller has dropped for the given reason.
func (s *Sender) Drop(why Reason) { s.dropped.WithLabelValues(string(why)).Inc() }

// Close cancels all copies in flight and waits until their goroutines have returned. After Close, no more copies are
// sent.
func (s *Sender) Close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.cancel()
	s.running.Wait()
}

// Send sends a copy without a body in a new goroutine. ingress is the name of an Ingress in the namespace
// call.Namespace.
func (s *Sender) Send(call *callout.Call, ingress string) { s.send(call, ingress, func() {}) }

// send sends a copy in a new goroutine. It calls release when the copy has been sent or dropped.
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
	ctx, cancel := context.WithTimeout(s.over, maxTime)
	defer cancel()
	var r message.Request
	r.SetContext(ctx)
	_, err := s.call(&r, call)
	switch {
	case err == nil:
		s.sent.WithLabelValues(resultAnswered).Inc()
		return
	case errors.Is(err, callout.ErrBusy):
		s.Drop(Busy)
	default:
		s.sent.WithLabelValues(resultFailed).Inc()
	}
	s.log.Debug("a request was not mirrored", zap.String("namespace", call.Namespace), zap.String("ingress", ingress),
		zap.Error(err))
}
