package exchange

import (
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/k8singress/k8singress/internal/balancer"
	"github.com/k8singress/k8singress/internal/message"
)

// ErrReplaced says that an endpoint has answered with a status that Replaced has. Nothing of its answer reaches the client.
var ErrReplaced = errors.New("the endpoint answers with an error that an error page is asked for")

// ErrRejected says that a filter has turned a request away of which there may be many: the log has no line for each of them.
var ErrRejected = errors.New("the request is one too many")

// Reject has a filter answer with a status: by itself, or by failing where there is an error page for it.
func (x *Exchange) Reject(status int) (answered bool, err error) {
	if slices.Contains(x.Pages, status) {
		return false, Fail(status, ErrRejected)
	}
	return true, x.Respond(status, "")
}

// Page is what the client is to get in place of an error.
type Page struct {
	// Backend is who is asked for it.
	Backend *balancer.Backend
	// Status is that of the error. With KeepStatus it is that of the page, too, whatever the endpoint says.
	Status     int
	KeepStatus bool
	// KeepPath asks for the path that the client has asked for. Otherwise it is "/".
	KeepPath bool
}

// ErrorPage returns the exchange that asks for a page, whose answer the client of x gets. The method is that of the client, and there is no
// body: what the client has sent was for another backend. Changes that were asked for hold for the page.
func (x *Exchange) ErrorPage(p *Page) *Exchange {
	x.ID()
	x.Client()
	page := &Exchange{
		Request: x.pageRequest(p), Route: x.Route, Backend: p.Backend, Clients: x.Clients, Global: x.Global, Peer: x.Peer, Writer: x.Writer,
		Always: x.Always, Headers: x.Headers, Leave: x.Leave, ForEndpoint: x.errorFields(p.Status),
		client: x.client, identified: true, id: x.id, named: true, changes: x.changes, noCookie: true,
	}
	if p.KeepStatus {
		page.fixed = p.Status
	}
	if len(x.Left) > 0 {
		// A client that is to log in has to be told how.
		page.Always = slices.Concat(Changes{&message.Changes{Remove: x.Left, Add: x.Left}}, x.Always)
	}
	return page
}

// pageRequest leaves out the fields about a body, about ranges of one and about copies of one that the client has: they are about what it
// has asked for, and not about the page.
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

// The fields by which endpoints are told of an error, in the words of ingress-nginx.
const (
	xCode        = "X-Code"
	xFormat      = "X-Format"
	xNamespace   = "X-Namespace"
	xIngressName = "X-Ingress-Name"
	xServiceName = "X-Service-Name"
	xServicePort = "X-Service-Port"
)

var notForPages = []string{
	xCode, xFormat, xNamespace, xIngressName, xServiceName, xServicePort, "Content-Encoding", "Content-Range", "If-Match", "If-Modified-Since",
	"If-None-Match", "If-Range", "If-Unmodified-Since", "Range",
}

func notOfPage(name string) bool {
	return slices.ContainsFunc(notForPages, func(other string) bool { return strings.EqualFold(name, other) })
}

func (x *Exchange) errorFields(status int) message.Fields {
	fields := message.Fields{message.NewField(xCode, strconv.Itoa(status)), message.XOriginalURI.Field(x.Target)}
	for _, f := range []struct{ name, value string }{
		{xFormat, x.Fields.Get(message.Accept)}, {xNamespace, x.Variable("namespace")}, {xIngressName, x.Variable("ingress_name")},
		{xServiceName, x.service(1)}, {xServicePort, x.service(2)},
	} {
		if f.value != "" {
			fields.Add(message.NewField(f.name, f.value))
		}
	}
	return fields
}

// fix gives an answer the status of the error that it is about. One that has no body because of its own status still has none.
func (x *Exchange) fix(answer *message.Response) {
	if answer.Status == http.StatusNoContent || answer.Status == http.StatusNotModified {
		answer.Length = 0
	}
	answer.Status = x.fixed
}
