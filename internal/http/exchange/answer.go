package exchange

import (
	"cmp"
	"errors"
	"net/http"
	"slices"

	"github.com/k8singress/k8singress/internal/http/message"
)

// Failure is the error of a request that got no response from an endpoint or a filter. The server responds with Status.
type Failure struct {
	Status int
	Err    error
	// Undecided is true if a filter could not decide whether to accept the request. No error page of a program replaces
	// such a response, because the page may pass the request to an endpoint.
	Undecided bool
}

// Fail returns a Failure.
func Fail(status int, err error) *Failure { return &Failure{Status: status, Err: err} }

// FailUndecided returns a Failure for a request about which a filter could not decide.
func FailUndecided(status int, err error) *Failure { return &Failure{status, err, true} }

func (f *Failure) Error() string {
	if f.Err == nil {
		return http.StatusText(f.Status)
	}
	return f.Err.Error()
}

// Unwrap returns the cause. It may be nil.
func (f *Failure) Unwrap() error { return f.Err }

// StatusOf returns the response status for an error: the status of the Failure that err wraps, or 500 if it wraps none.
func StatusOf(err error) int {
	var f *Failure
	if errors.As(err, &f) {
		return f.Status
	}
	return http.StatusInternalServerError
}

// ClientGone is the status that nginx logs for a client that closes its connection before it gets the response.
const ClientGone = 499

// ErrAborted means that the client gets no error status: the connection or stream is aborted instead. Usually, the head
// of a response was sent, but not the whole body, so the client must notice that the response is incomplete. A filter
// can also return an error that wraps ErrAborted in order to send no response.
var ErrAborted = errors.New("the response was aborted before its end")

// Changes are the header changes that filters make to a response, in the order of the filters.
type Changes []*message.Changes

// apply applies the changes in reverse order, so that the first filter of a chain overrides later filters.
func (c Changes) apply(response *message.Response) {
	for _, change := range slices.Backward(c) {
		if change.For(response.Status) {
			change.Apply(&response.Fields)
		}
	}
}

// ChangeResponse registers changes to the header fields of the response. They are applied when the head of the response
// is written.
func (x *Exchange) ChangeResponse(by *message.Changes) {
	if x.changes == nil {
		x.changes = x.firstChanges[:0]
	}
	x.changes = append(x.changes, by)
}

// TakeChanges must be called before a Caddy handler runs. It removes the header changes that filters have registered so
// far. The function head writes the head of the handler's response, with these changes applied. When the handler has
// returned, the caller must call giveBack, which registers again the changes that also apply to error responses.
func (x *Exchange) TakeChanges() (head func(*message.Response) error, giveBack func()) {
	// The changes are copied because changes that are registered later use the memory of firstChanges again.
	forAll, changes, to, directives := x.ForAllResponses, slices.Clone(x.changes), x.Writer, x.forResponse
	x.ForAllResponses, x.changes, x.forResponse = nil, nil, nil
	head = func(response *message.Response) error {
		changes.apply(response)
		x.changeAlways(forAll, response)
		directives.apply(x, response)
		return to.Head(response)
	}
	return head, func() {
		x.ForAllResponses = slices.Concat(forAll, x.ForAllResponses)
		x.forResponse = slices.Concat(directives, x.forResponse)
	}
}

// Head writes the head of the response. It applies the header changes of filters and adds the session cookie for the
// endpoint.
func (x *Exchange) Head(response *message.Response) error {
	if x.pageStatus != 0 {
		x.setPageStatus(response)
	}
	if x.unavailable {
		x.addRetryAfter(response)
	}
	x.changes.apply(response)
	x.changeAlways(x.ForAllResponses, response)
	if x.cookie != "" {
		response.Fields.Add(message.SetCookie.Field(x.cookie))
	}
	x.forResponse.apply(x, response)
	x.endError(response)
	return x.Writer.Head(response)
}

// changeAlways applies changes to the response, and then sets the response header fields that the administrator has
// configured. It also stores the status of the response in x.Status.
func (x *Exchange) changeAlways(changes Changes, response *message.Response) {
	x.Status = cmp.Or(x.callStatus, response.Status)
	if x.ByServer != nil {
		x.ByServer.Apply(&response.Fields)
	}
	changes.apply(response)
	if x.Headers != nil && x.Route != nil {
		e := x.expansion()
		set(&response.Fields, x.Headers.responses, &e)
	}
	response.Close = response.Close || x.CloseConn && response.Status != http.StatusSwitchingProtocols
}

// Respond writes a complete response with the given status and body. The status stays even if the request is for an
// error page, when there is no body and the response redirects or rejects the request.
func (x *Exchange) Respond(status int, body string, fields ...message.Field) error {
	if body == "" && status >= http.StatusMultipleChoices {
		x.pageStatus = 0
	}
	response := &message.Response{Status: status, Fields: fields, Length: int64(len(body))}
	x.addRetryAfter(response)
	if err := x.Head(response); err != nil || body == "" {
		return err
	}
	_, err := x.Writer.Write([]byte(body))
	return err
}
