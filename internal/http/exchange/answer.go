package exchange

import (
	"errors"
	"net/http"
	"slices"

	"github.com/k8singress/k8singress/internal/http/message"
)

// Failure is the error of a request to which neither an endpoint nor a filter has responded. The server responds with
// Status.
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

// Unwrap returns the cause. It may be nil.
func (f *Failure) Unwrap() error { return f.Err }

// StatusOf returns the response status for an error: the status of a Failure, otherwise 500.
func StatusOf(err error) int {
	var f *Failure
	if errors.As(err, &f) {
		return f.Status
	}
	return http.StatusInternalServerError
}

// ErrCut means that the head of a response was sent to the client, but not its whole body. The status can no longer be
// changed, so the response is aborted to let the client notice that it is incomplete.
var ErrCut = errors.New("the answer ends too early")

// Changes are changes of filters to the response fields, in the order of the filters.
type Changes []*message.Changes

// apply applies the changes in reverse order, so that the first filter of the chain overrides the others.
func (c Changes) apply(answer *message.Response) {
	for _, change := range slices.Backward(c) {
		if change.For(answer.Status) {
			change.Apply(&answer.Fields)
		}
	}
}

// ChangeAnswer adds changes to the fields of the response.
func (x *Exchange) ChangeAnswer(by *message.Changes) {
	if x.changes == nil {
		x.changes = x.firstChanges[:0]
	}
	x.changes = append(x.changes, by)
}

// TakeChanges returns a function that writes the head of a response with all changes so far, and removes these changes
// from the exchange, so that code that runs after a Caddy handler does not apply them again. The caller calls giveBack
// when the handler has returned. It restores the changes for all responses, because these also apply to error
// responses.
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

// Head writes the head of the response, with the changes of filters and the session cookie of the endpoint.
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

// always applies changes that hold for all responses, and the administrator's response headers.
func (x *Exchange) always(changes Changes, answer *message.Response) {
	changes.apply(answer)
	if x.Headers != nil && x.Route != nil {
		set(&answer.Fields, x.Headers.answers, x.Variable)
	}
	x.Status = answer.Status
	answer.Close = answer.Close || x.Leave && answer.Status != http.StatusSwitchingProtocols
}

// Refuse responds to a request that has failed. Changes of filters do not apply to this response.
func (x *Exchange) Refuse(status int, fields ...message.Field) error {
	answer := &message.Response{Status: status, Fields: append(fields, x.Left...)}
	x.always(x.Always, answer)
	return x.Writer.Head(answer)
}

// Respond writes a response with a body. The body may be empty.
func (x *Exchange) Respond(status int, body string, fields ...message.Field) error {
	if err := x.Head(&message.Response{Status: status, Fields: fields, Length: int64(len(body))}); err != nil ||
		body == "" {
		return err
	}
	_, err := x.Writer.Write([]byte(body))
	return err
}
