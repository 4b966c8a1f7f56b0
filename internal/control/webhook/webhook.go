// Package webhook is the validating admission webhook: an HTTPS server that answers the API server's AdmissionReviews.
// Package admission decides about the Ingress; this package limits the bodies, the number of reviews, their memory and
// their time. It keeps nothing of a review, and sends no requests.
package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sync/semaphore"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/k8singress/k8singress/internal/process/panics"
	"github.com/k8singress/k8singress/internal/translate"
	"github.com/k8singress/k8singress/internal/translate/admission"
)

// path is the path of ingress-nginx's webhook, which existing ValidatingWebhookConfigurations contain.
const path = "/networking/v1/ingresses"

// warnEvery is the minimum interval between two warnings in the log about reviews that got no answer.
const warnEvery = time.Minute

// The limits of all reviews together. A review that exceeds maxTime gets an error instead of an answer, so
// failurePolicy in the ValidatingWebhookConfiguration decides. This is safe: the controller treats an Ingress that is
// stored as strictly as the webhook does.
const (
	maxReviews = 10
	maxTime    = time.Second
	// maxMemory is the estimated memory for decoding and reviewing all bodies. It is enough for any body within the
	// limits. perValue is the part of it for each value that is decoded. A review reserves it in steps of memoryStep.
	maxMemory  = 72 << 20
	perValue   = 192
	memoryStep = 64 << 10
)

// Handler answers AdmissionReviews. It is safe for concurrent use.
type Handler struct {
	log     *zap.Logger
	leaving func() bool
	view    atomic.Pointer[translate.View]
	slots   chan struct{}
	pacer   *pacer
	// A review enters large before it reads more than largeBody bytes, and takes its part of memory while it reads.
	large  *largeReviews
	memory *semaphore.Weighted
	counts *counters
	// warned is the time of the last warning about a failed review, in nanoseconds since 1970.
	warned atomic.Int64
}

// NewHandler returns a handler that answers with 503 until SetView is called. While leaving returns true, responses ask
// the API server to close the connection.
func NewHandler(leaving func() bool, log *zap.Logger) *Handler {
	return &Handler{
		log: log, leaving: leaving, slots: make(chan struct{}, maxReviews),
		pacer: newPacer(), large: newLargeReviews(), memory: semaphore.NewWeighted(maxMemory), counts: newCounters(),
	}
}

// SetView sets the translation that Ingresses are reviewed against. Reviews that have begun use the previous one.
func (h *Handler) SetView(v *translate.View) { h.view.Store(v) }

// serve answers one review. It returns an error if there was no decision, and has sent it.
func (h *Handler) serve(w http.ResponseWriter, r *http.Request) error {
	begin := time.Now()
	if h.leaving() {
		w.Header().Set("Connection", "close")
	}
	var answer *admissionv1.AdmissionReview
	err := panics.Run("webhook/review", func() (err error) {
		answer, err = h.handle(w, r, begin)
		return err
	})
	if err != nil {
		h.fail(w, err)
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(answer); err != nil {
		h.log.Debug("cannot send the answer to an admission review", zap.Error(err))
	}
	return nil
}

// fail sends an error. The API server then does what failurePolicy says.
func (h *Handler) fail(w http.ResponseWriter, err error) {
	status, text := http.StatusInternalServerError, "the review failed: see the log of the controller"
	if r := (*refused)(nil); errors.As(err, &r) {
		status, text = r.status, r.text
	}
	level := zap.DebugLevel
	if h.counts.failed(status) == noAnswer && h.mayWarn() {
		level = zap.WarnLevel
	}
	h.log.Log(level, "an admission review failed", zap.Int("status", status), zap.Error(err))
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Content-Length", strconv.Itoa(len(text)))
	w.WriteHeader(status)
	_, _ = io.WriteString(w, text) // The client has gone if this fails.
}

// mayWarn reports whether the last warning was long ago. Other failures are logged at debug level, because clients can
// cause any number of them.
func (h *Handler) mayWarn() bool {
	last, now := h.warned.Load(), time.Now().UnixNano()
	return time.Duration(now-last) >= warnEvery && h.warned.CompareAndSwap(last, now)
}

var (
	errPath   = &refused{http.StatusNotFound, "unknown path: the path is " + path}
	errMethod = &refused{http.StatusMethodNotAllowed, "the method must be POST"}
	errLarge  = &refused{http.StatusRequestEntityTooLarge, "the AdmissionReview is larger than 9 MiB"}
	errBusy   = &refused{http.StatusTooManyRequests, "too many reviews at a time: try again"}
	errLate   = &refused{http.StatusServiceUnavailable, "the review took longer than 1 second"}
	errEarly  = &refused{http.StatusServiceUnavailable, "the Ingresses have not been read yet"}
	// The client causes these errors, so they do not count as failures of the webhook.
	errNoBody = &refused{http.StatusRequestTimeout, "the body has not arrived within 1 second"}
	errGone   = &refused{http.StatusRequestTimeout, "the client has closed the connection"}
)

func (h *Handler) handle(w http.ResponseWriter, r *http.Request, begin time.Time) (
	*admissionv1.AdmissionReview, error,
) {
	// The deadline also limits how long net/http waits for a body that is not needed.
	if err := http.NewResponseController(w).SetReadDeadline(begin.Add(maxTime)); err != nil {
		return nil, err
	}
	switch {
	case r.URL.Path != path:
		return nil, errPath
	case r.Method != http.MethodPost:
		return nil, errMethod
	case r.ContentLength > maxBody:
		return nil, errLarge
	}
	select {
	case h.slots <- struct{}{}:
		defer func() { <-h.slots }()
	default:
		return nil, errBusy
	}
	view := h.view.Load()
	if view == nil {
		return nil, errEarly
	}
	ctx, cancel := context.WithDeadline(r.Context(), begin.Add(maxTime))
	defer cancel()
	answer, err := h.review(ctx, view, r, begin)
	if errors.Is(err, errLate) && r.Context().Err() != nil {
		err = errGone
	}
	return answer, err
}

// review reads and decodes the body of a review, and decides about it.
func (h *Handler) review(ctx context.Context, v *translate.View, r *http.Request, begin time.Time) (
	*admissionv1.AdmissionReview, error,
) {
	w := &work{pacer: h.pacer, ended: ctx.Done()}
	body := &reading{Handler: h, decoder: newDecoder(w)}
	defer body.end()
	if err := body.read(ctx, r); err != nil {
		return nil, err
	}
	if err := w.start(); err != nil {
		return nil, err
	}
	q, err := body.decoder.end()
	if err != nil {
		return nil, err
	}
	started := time.Now()
	answer := &admission.Answer{}
	if q.reviewable() {
		answer = admission.Review(v, q.Object.ingress(), q.OldObject.ingress(), func() bool { return w.rest() != nil })
	}
	if answer == nil {
		return nil, errLate
	}
	h.count(q, answer, v, started, begin)
	return response(q, answer), nil
}

// response returns the answer in the form that the API server expects. As in ingress-nginx, the status of a refusal is
// 400.
func response(q *request, a *admission.Answer) *admissionv1.AdmissionReview {
	r := &admissionv1.AdmissionResponse{UID: types.UID(q.UID), Allowed: a.Refusal == "", Warnings: a.Warnings}
	if !r.Allowed {
		r.Result = &metav1.Status{Status: metav1.StatusFailure, Code: http.StatusBadRequest,
			Reason: metav1.StatusReasonBadRequest, Message: a.Refusal}
	}
	return &admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: admissionv1.SchemeGroupVersion.String(), Kind: "AdmissionReview"},
		Response: r,
	}
}

func (h *Handler) count(q *request, a *admission.Answer, v *translate.View, started, begin time.Time) {
	h.counts.reviewed(a.Refusal == "", Last{
		Ingresses: v.Ingresses, Reviewed: time.Since(started), Total: time.Since(begin),
	})
	if a.Refusal != "" {
		h.log.Info("an Ingress was refused", zap.String("namespace", q.Object.Metadata.Namespace),
			zap.String("name", q.Object.Metadata.Name), zap.String("reason", a.Refusal))
	}
}
