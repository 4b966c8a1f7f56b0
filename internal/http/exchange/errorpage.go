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

// ErrReplaced means that an endpoint has responded with a status in Replaced. No part of its response is sent to the
// client.
var ErrReplaced = errors.New("the endpoint returned an error status that an error page replaces")

// ErrRejected means that a filter has rejected the request, and that there may be many such requests. They are not
// logged individually.
var ErrRejected = errors.New("a filter rejected the request")

// Reject responds with a status. If there is an error page for the status, it returns a failure instead, so that the
// client gets the page.
func (x *Exchange) Reject(status int) (responded bool, err error) {
	if slices.Contains(x.Pages, status) {
		return false, Fail(status, ErrRejected)
	}
	return true, x.Respond(status, "")
}

// Page describes the error page for a failed request.
type Page struct {
	// Backend is the backend that serves the page.
	Backend *balancer.Backend
	// Status is the status of the error. If KeepStatus is true, the page is sent with this status, whatever status the
	// backend returns.
	Status     int
	KeepStatus bool
	// KeepPath requests the page with the path of the client's request. Otherwise the path is "/".
	KeepPath bool
}

// ErrorPage returns the exchange that requests an error page. Its response goes to the client of x. It uses the
// client's method, but no body, because the client sent the body for another backend. Changes to the response of x also
// apply to the page.
func (x *Exchange) ErrorPage(p *Page) *Exchange {
	x.ID()
	x.Client()
	page := &Exchange{
		Request: x.pageRequest(p), Route: x.Route, Backend: p.Backend, Clients: x.Clients, Global: x.Global,
		Peer: x.Peer, Writer: x.Writer,
		ForAllResponses: x.ForAllResponses, Headers: x.Headers, CloseConn: x.CloseConn,
		ForEndpoint: x.pageFields(p.Status),
		client:      x.client, hasClient: true, id: x.id, hasID: true, changes: x.changes, noCookie: true,
	}
	if p.KeepStatus {
		page.pageStatus = p.Status
	}
	if len(x.ErrorFields) > 0 {
		// The error page keeps the fields of the failed handler, such as WWW-Authenticate, so that the client learns
		// how to authenticate.
		page.ForAllResponses = slices.Concat(Changes{&message.Changes{Remove: x.ErrorFields, Add: x.ErrorFields}},
			x.ForAllResponses)
	}
	return page
}

// pageRequest returns the request for a page. It leaves out fields about the body, ranges and conditional requests,
// because they refer to the original resource and not to the page.
func (x *Exchange) pageRequest(p *Page) *message.Request {
	request := *x.Request
	request.Body, request.Length, request.Trailers = nil, 0, nil
	if !p.KeepPath {
		request.Path, request.EscapedPath, request.Query, request.ForceQuery = "/", "/", "", false
	}
	request.Fields = slices.DeleteFunc(slices.Clone(x.Fields), func(f message.Field) bool {
		return f.Kind.Hop() || f.Kind == message.ContentType || f.Kind == message.Other && notOfPage(f.Name)
	})
	return &request
}

// The fields that describe an error to the backend, with ingress-nginx's names.
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

// setPageStatus replaces the status of a page by the status of the error. A response whose own status allows no body
// still has no body.
func (x *Exchange) setPageStatus(response *message.Response) {
	if response.Status == http.StatusNoContent || response.Status == http.StatusNotModified {
		response.Length = 0
	}
	response.Status = x.pageStatus
}
