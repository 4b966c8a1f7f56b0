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

// TakeChanges returns what writes the head of an answer with the changes that have been asked for, and leaves none.
func (x *Exchange) TakeChanges() (head func(*message.Response) error) {
	taken, to := slices.Concat(x.Always, x.changes), x.Writer
	x.changes = nil
	return func(answer *message.Response) error {
		taken.apply(answer)
		x.Status = answer.Status
		return to.Head(answer)
	}
}

// Head writes the head of the answer as filters have changed it, with the session cookie of the endpoint.
func (x *Exchange) Head(answer *message.Response) error {
	if x.fixed != 0 {
		x.fix(answer)
	}
	x.changes.apply(answer)
	x.always(answer)
	if x.cookie != "" {
		answer.Fields.Add(message.SetCookie.Field(x.cookie))
	}
	return x.Writer.Head(answer)
}

// always makes the changes that hold for each answer.
func (x *Exchange) always(answer *message.Response) {
	x.Always.apply(answer)
	if x.Headers != nil && x.Route != nil {
		set(&answer.Fields, x.Headers.answers, x.Variable)
	}
	x.Status = answer.Status
	answer.Close = answer.Close || x.Leave && answer.Status != http.StatusSwitchingProtocols
}

// Refuse answers a request that has failed. What filters do to answers does not hold for this one.
func (x *Exchange) Refuse(status int, fields ...message.Field) error {
	answer := &message.Response{Status: status, Fields: append(fields, x.Left...)}
	x.always(answer)
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
