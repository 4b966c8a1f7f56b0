package exchange

import (
	"errors"
	"net/http"
	"slices"

	"github.com/k8singress/k8singress/internal/message"
)

// Failure is a request that is not answered by an endpoint or a filter. The server has to answer with the status.
type Failure struct {
	Status int
	Err    error
}

// Fail returns a Failure.
func Fail(status int, err error) *Failure { return &Failure{status, err} }

func (f *Failure) Error() string {
	if f.Err == nil {
		return http.StatusText(f.Status)
	}
	return f.Err.Error()
}

// Unwrap returns what went wrong.
func (f *Failure) Unwrap() error { return f.Err }

// StatusOf returns the status that an error asks for: that of a Failure, or 500.
func StatusOf(err error) int {
	var f *Failure
	if errors.As(err, &f) {
		return f.Status
	}
	return http.StatusInternalServerError
}

// ErrCut says that the head of an answer has reached the client, and its body has not. Nothing can be said any more: the
// client must notice that something is missing.
var ErrCut = errors.New("the answer ends too early")

// Changes are what filters do to the fields of an answer, in the order of the filters.
type Changes []*message.Changes

// apply makes them from the last one on: the filter that a request meets first has the last word.
func (c Changes) apply(answer *message.Response) {
	for _, change := range slices.Backward(c) {
		if change.For(answer.Status) {
			change.Apply(&answer.Fields)
		}
	}
}

// ChangeAnswer has changes made to the fields of the answer.
func (x *Exchange) ChangeAnswer(by *message.Changes) {
	if x.changes == nil {
		x.changes = x.firstChanges[:0]
	}
	x.changes = append(x.changes, by)
}

// TakeChanges returns what writes the head of an answer with the changes that have been asked for, and leaves none: who answers behind a
// handler of Caddy must not make them a second time. giveBack is to be called when that handler has returned: those that hold for every
// answer hold for an error, too.
func (x *Exchange) TakeChanges() (head func(*message.Response) error, giveBack func()) {
	always, changes, to := x.Always, x.changes, x.Writer
	x.Always, x.changes = nil, nil
	head = func(answer *message.Response) error {
		changes.apply(answer)
		x.always(always, answer)
		return to.Head(answer)
	}
	return head, func() { x.Always = slices.Concat(always, x.Always) }
}

// Head writes the head of the answer as filters have changed it, with the session cookie of the endpoint.
func (x *Exchange) Head(answer *message.Response) error {
	if x.fixed != 0 {
		x.fix(answer)
	}
	x.changes.apply(answer)
	x.always(x.Always, answer)
	if x.cookie != "" {
		answer.Fields.Add(message.SetCookie.Field(x.cookie))
	}
	return x.Writer.Head(answer)
}

// always makes changes that hold for each answer, and what the administrator has of all answers.
func (x *Exchange) always(changes Changes, answer *message.Response) {
	changes.apply(answer)
	if x.Headers != nil && x.Route != nil {
		set(&answer.Fields, x.Headers.answers, x.Variable)
	}
	x.Status = answer.Status
	answer.Close = answer.Close || x.Leave && answer.Status != http.StatusSwitchingProtocols
}

// Refuse answers a request that has failed. What filters do to answers does not hold for this one.
func (x *Exchange) Refuse(status int, fields ...message.Field) error {
	answer := &message.Response{Status: status, Fields: append(fields, x.Left...)}
	x.always(x.Always, answer)
	return x.Writer.Head(answer)
}

// Respond answers by itself, with a body that is there, or without any.
func (x *Exchange) Respond(status int, body string, fields ...message.Field) error {
	if err := x.Head(&message.Response{Status: status, Fields: fields, Length: int64(len(body))}); err != nil || body == "" {
		return err
	}
	_, err := x.Writer.Write([]byte(body))
	return err
}
