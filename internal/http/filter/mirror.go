package filter

import (
	"strings"

	"golang.org/x/net/http/httpguts"

	"github.com/k8singress/k8singress/internal/http/callout"
	"github.com/k8singress/k8singress/internal/http/exchange"
	"github.com/k8singress/k8singress/internal/http/extauth"
	"github.com/k8singress/k8singress/internal/http/message"
	"github.com/k8singress/k8singress/internal/http/mirror"
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/nginx"
)

// mirroring sends a copy of each request to another service, without delaying the request.
type mirroring struct {
	mirrors *mirror.Sender
	url     *callout.URL
	// host is the Host header of the copy. If it is nil, the host in the URL is used.
	host        *nginx.Template
	withoutBody bool
}

func newMirror(of ir.Mirror, shared *Shared) (_ Filter, err error) {
	h := &mirroring{mirrors: shared.Mirrors, withoutBody: of.WithoutBody}
	if h.url, err = callout.ParseURL(of.URL); err != nil {
		return nil, err
	}
	if of.Host != "" {
		h.host, err = exchange.ParseTemplate(of.Host)
	}
	return h, err
}

func (h *mirroring) Apply(x *exchange.Exchange) (bool, error) {
	call, ok := h.call(x)
	if !ok {
		h.mirrors.Drop(mirror.URL)
		return false, nil
	}
	ingress := ir.ParseRef(x.Route.Origin).Name
	if h.withoutBody || x.Body == nil || x.Length == 0 {
		h.mirrors.Send(call, ingress)
		return false, nil
	}
	if body := h.mirrors.SendWith(call, ingress, x.Body, x.Length); body != nil {
		x.Body = body
		x.AtEnd(body.End)
	}
	return false, nil
}

// call returns the copy of the request, without its body. It shares no pooled memory with the request, because the
// request may end before the copy is sent. ok is false if the URL or Host header has no valid value for this request.
func (h *mirroring) call(x *exchange.Exchange) (call *callout.Call, ok bool) {
	call = &callout.Call{Service: mirror.Service, Namespace: ir.ParseRef(x.Route.Origin).Namespace, Method: x.Method}
	host := hostOf(x)
	if host == "" && h.url.NamesClientsHost() || h.url.Fill(call, host, x.Variable) != nil {
		return nil, false
	}
	if h.url.Literal() && x.Query != "" {
		// Like nginx, append the client's query if the URL has no variables.
		separator := "?"
		if strings.Contains(call.Target, "?") {
			separator = "&"
		}
		call.Target += separator + x.Query
	}
	if h.host != nil {
		call.Host = h.host.Expand(x.Variable)
	}
	call.Fields = copiedFields(x)
	return call, x.VariablesFailed() == nil && call.Host != "" && httpguts.ValidHostHeader(call.Host)
}

// copiedFields returns the header fields of the copy: the request's header fields that would be sent to an endpoint,
// and the header fields that the controller adds to describe the client.
func copiedFields(x *exchange.Exchange) message.Fields {
	c := x.Client()
	own := [...]message.Field{
		message.XRequestID.Field(x.ID()), message.XRealIP.Field(c.IP), message.XForwardedFor.Field(x.ForwardedFor()),
		message.XForwardedHost.Field(c.Host), message.XForwardedPort.Field(c.Port),
		message.XForwardedProto.Field(c.Proto),
		message.XForwardedScheme.Field(c.Proto), message.XScheme.Field(c.Proto),
		message.Via.Field(x.Via()), message.CDNLoop.Field(x.CDNLoop()),
	}
	to := make(message.Fields, 0, len(x.Fields)+len(own))
	for i := range x.Fields {
		if f := &x.Fields[i]; mayForward(x, f) && x.Names.Allows(f.Kind) && !isReplaced(x, f) {
			to = append(to, *f)
		}
	}
	for i := range own {
		if own[i].Value != "" {
			to = append(to, own[i])
		}
	}
	x.AddForEndpoint(&to)
	return to
}

// isReplaced reports whether a service could confuse a header field of the client with a header field that the
// administrator sets.
func isReplaced(x *exchange.Exchange, f *message.Field) bool {
	return f.Kind.Mistakable() &&
		x.SendsToEndpoint(func(name string) bool { return extauth.SameToBackends(name, f.Name) })
}
