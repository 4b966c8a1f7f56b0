package exchange

import (
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/k8singress/k8singress/internal/http/message"
	"github.com/k8singress/k8singress/internal/upstream/balancer"
)

// ErrReplaced means that the endpoint responded with a status in Exchange.Replaced. Its response is discarded, and the
// client gets an error page instead.
var ErrReplaced = errors.New("the endpoint's error response is replaced with an error page")

// ErrRejected is the error for which errors.Is returns true if the request was rejected on purpose, because the
// configuration says so. This is no failure, whatever the status is.
var ErrRejected = errors.New("the request was rejected")

// rejection is the reason of a request that was rejected on purpose.
type rejection string

func (r rejection) Error() string { return string(r) }

// Is reports whether target is ErrRejected.
func (rejection) Is(target error) bool { return target == ErrRejected }

// Rejection returns the Failure of a request that is rejected on purpose. The log contains the reason, so it must not
// contain text from the client. A filter can use one Rejection for all of its requests.
func Rejection(status int, reason string) *Failure { return Fail(status, rejection(reason)) }

// Reject responds with an error. If an error page is configured for the status, it does not respond, but returns why,
// which makes the caller send the error page.
func (x *Exchange) Reject(why *Failure) (responded bool, err error) {
	if slices.Contains(x.Pages, why.Status) || x.HasErrorPage(why.Status) {
		return false, why
	}
	return x.RespondError(why)
}

// Page describes the error page to send for a failed request.
type Page struct {
	// Backend is the backend that serves the page.
	Backend *balancer.Backend
	// Status is the status of the failed request. If KeepStatus is true, the client gets this status, regardless of the
	// status that the backend returns with the page.
	Status     int
	KeepStatus bool
	// Own is true if the controller itself rejected the request or failed to serve it. It is false if an endpoint
	// returned the error.
	Own bool
	// KeepPath is true if the page is requested with the path of the client's request. If it is false, the path is "/".
	KeepPath bool
}

// ErrorPage returns a new Exchange that requests an error page from p.Backend and sends the page to the client of x.
// The request for the page has the method of the client's request, but no body, because the body was meant for another
// backend. Header changes that filters have registered for the response of x also apply to the page. EndErrorPage must
// be called at the end.
func (x *Exchange) ErrorPage(p *Page) *Exchange {
	x.ID()
	x.Client()
	page := &Exchange{
		Request: x.pageRequest(p), Route: x.Route, Backend: p.Backend, Clients: x.Clients, Global: x.Global,
		Peer: x.Peer, Writer: x.Writer,
		ByServer: x.ByServer, ForAllResponses: x.ForAllResponses, Headers: x.Headers, CloseConn: x.CloseConn,
		ForEndpoint: x.pageFields(p.Status), attempts: x.attempts,
		client: x.client, hasClient: true, id: x.id, hasID: true, changes: x.changes, noCookie: true,
		forResponse: x.forResponse, scripted: x.scripted, WithoutAuthorization: x.WithoutAuthorization,
	}
	if p.KeepStatus {
		page.pageStatus = p.Status
	}
	page.unavailable = p.Own && p.Status == http.StatusServiceUnavailable
	if len(x.ErrorFields) > 0 {
		// The error page keeps the error fields of the failed handler, such as WWW-Authenticate, so that the client
		// learns how to authenticate.
		page.ForAllResponses = slices.Concat(Changes{&message.Changes{Remove: x.ErrorFields, Add: x.ErrorFields}},
			x.ForAllResponses)
	}
	return page
}

// EndErrorPage adds what page, an Exchange that ErrorPage has returned, has sent and tried to x, for logs and metrics.
// Conclude must have been called for the page.
func (x *Exchange) EndErrorPage(page *Exchange) {
	x.Status, x.attempts, x.ofPage = page.Status, page.attempts, len(page.attempts)-len(x.attempts)
	if len(page.tried) > 0 {
		x.connect, x.firstByte = page.connect, page.firstByte
	}
}

// pageRequest returns the request for an error page.
func (x *Exchange) pageRequest(p *Page) *message.Request {
	request := x.requestWithoutBody()
	if !p.KeepPath {
		request.Path, request.EscapedPath, request.Query, request.ForceQuery = "/", "/", "", false
	}
	return request
}

// requestWithoutBody returns a copy of the request without its body. It drops header fields for the body, range
// requests and conditional requests, because they refer to the original resource.
func (x *Exchange) requestWithoutBody() *message.Request {
	request := *x.Request
	request.Body, request.Length, request.Trailers = nil, 0, nil
	request.Fields = withoutBody(x.Fields)
	return &request
}

// withoutBody returns a copy of the header fields of a request for requestWithoutBody.
func withoutBody(fields message.Fields) message.Fields {
	return slices.DeleteFunc(slices.Clone(fields), func(f message.Field) bool {
		return f.Kind.Hop() || f.Kind == message.ContentType || f.Kind == message.Other && notOfPage(f.Name)
	})
}

// The names of the header fields that describe an error to the backend of the error page, as in ingress-nginx.
const (
	xCode        = "X-Code"
	xFormat      = "X-Format"
	xNamespace   = "X-Namespace"
	xIngressName = "X-Ingress-Name"
	xServiceName = "X-Service-Name"
	xServicePort = "X-Service-Port"
)

var notForPages = []string{
	xCode, xFormat, xNamespace, xIngressName, xServiceName, xServicePort, "Content-Encoding", "Content-Range",
	"If-Match", "If-Modified-Since",
	"If-None-Match", "If-Range", "If-Unmodified-Since", "Range",
}

func notOfPage(name string) bool {
	return slices.ContainsFunc(notForPages, func(other string) bool { return strings.EqualFold(name, other) })
}

func (x *Exchange) pageFields(status int) message.Fields {
	fields := message.Fields{message.NewField(xCode, strconv.Itoa(status)), message.XOriginalURI.Field(x.Target)}
	for _, f := range []struct{ name, value string }{
		{xFormat, x.Fields.Get(message.Accept)}, {xNamespace, x.Variable("namespace")},
		{xIngressName, x.Variable("ingress_name")},
		{xServiceName, x.service(1)}, {xServicePort, x.service(2)},
	} {
		if f.value != "" {
			fields.Add(message.NewField(f.name, f.value))
		}
	}
	return fields
}

// setPageStatus replaces the status of an error page's response with the status of the failed request. If the original
// status of the response does not allow a body, the response is sent without one.
func (x *Exchange) setPageStatus(response *message.Response) {
	if response.Status == http.StatusNoContent || response.Status == http.StatusNotModified {
		response.Length = 0
	}
	response.Status = x.pageStatus
}
