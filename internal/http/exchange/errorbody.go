package exchange

import (
	"net/http"
	"slices"

	"github.com/k8singress/k8singress/internal/http/errorbody"
	"github.com/k8singress/k8singress/internal/http/message"
)

// beginError adds a body to an error response of the controller, and returns it. The caller must write it after the
// head of the response. It returns nil if there is no body.
func (x *Exchange) beginError(response *message.Response) []byte {
	if !x.ErrorBodies || response.Status < http.StatusBadRequest {
		return nil
	}
	e := errorbody.Error{Status: response.Status, Reason: x.ErrorReason, ID: x.ID()}
	body, call := e.Begin(response, x.Request)
	if call {
		x.callStatus = response.Status
	}
	return body
}

// endError must be called directly before the head of a response is written. It gives an error response to a gRPC call
// the status 200: gRPC clients ignore the gRPC status in responses with another status. Logs and metrics have the
// status of the error, so that they show failures.
func (x *Exchange) endError(response *message.Response) {
	if x.callStatus != 0 {
		response.Status = http.StatusOK
	}
}

// RespondError responds with an error of the controller, and sets Refused. The header changes of filters apply to the
// response. The status stays even if the request is for an error page. If ErrorRoutes is set, RespondError does not
// respond, but returns why, which makes Caddy's error routes respond.
func (x *Exchange) RespondError(why *Failure) (responded bool, err error) {
	x.pageStatus = 0
	if x.ErrorRoutes {
		return false, why
	}
	x.Refused = why
	response := &message.Response{Status: why.Status}
	body := x.beginError(response)
	x.addRetryAfter(response)
	if err := x.Head(response); err != nil || len(body) == 0 {
		return true, err
	}
	return true, x.writeError(body)
}

// writeError writes the body of an error response of the controller.
func (x *Exchange) writeError(body []byte) error {
	x.own = true
	_, err := x.Writer.Write(body)
	return err
}

// FromEndpoint returns the number of body bytes of the last endpoint that were forwarded to the client. It is 0 if the
// client got an error of the controller itself. It is also 0 if the last route has not tried an endpoint, because its
// filters have responded. Previous routes may have tried some.
func (x *Exchange) FromEndpoint() int64 {
	tried := len(x.tried) > 0 || x.ofPage > 0
	if x.own || !tried || x.Writer == nil {
		return 0
	}
	return x.Writer.Sent()
}

// Refusal returns the head of the response to a failed request, without writing it. It leaves out the header changes
// that filters have registered with ChangeResponse, because these do not apply to error responses.
func (x *Exchange) Refusal(status int, fields ...message.Field) *message.Response {
	response := &message.Response{Status: status, Fields: append(fields, x.ErrorFields...)}
	x.refuse(response)
	return response
}

// Refuse responds to a failed request with the head that Refusal returns, and a body.
func (x *Exchange) Refuse(status int, fields ...message.Field) error {
	response := &message.Response{Status: status, Fields: slices.Concat(fields, x.ErrorFields)}
	body := x.beginError(response)
	x.refuse(response)
	x.endError(response)
	if err := x.Writer.Head(response); err != nil || len(body) == 0 {
		return err
	}
	return x.writeError(body)
}

// refuse changes the header fields of the response to a failed request.
func (x *Exchange) refuse(response *message.Response) {
	x.addRetryAfter(response)
	x.changeAlways(x.ForAllResponses, response)
	x.forResponse.apply(x, response)
}
