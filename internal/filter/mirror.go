package filter

import (
	"strings"

	"golang.org/x/net/http/httpguts"

	"github.com/k8singress/k8singress/internal/callout"
	"github.com/k8singress/k8singress/internal/exchange"
	"github.com/k8singress/k8singress/internal/extauth"
	"github.com/k8singress/k8singress/internal/ir"
	"github.com/k8singress/k8singress/internal/message"
	"github.com/k8singress/k8singress/internal/mirror"
	"github.com/k8singress/k8singress/internal/nginx"
)

// mirroring sends a copy of each request to another service. The request goes on at once, whatever becomes of the copy.
type mirroring struct {
	mirrors *mirror.Sender
	url     *callout.URL
	// host is nil for that of the URL.
	host        *nginx.Template
	withoutBody bool
}

func newMirror(of ir.Mirror, shared *Shared) (_ Filter, err error) {
	h := &mirroring{mirrors: shared.Mirrors, withoutBody: of.WithoutBody}
	if h.url, err = callout.ParseURL(of.URL); err != nil {
		return nil, err
	}
	if of.Host != "" {
		h.host, err = nginx.ParseTemplate(of.Host)
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

// call is the head of the copy. As the request may be over before it is sent, nothing in it is used again. ok is false where the URL, or
// the host, says nothing for this request.
func (h *mirroring) call(x *exchange.Exchange) (call *callout.Call, ok bool) {
	call = &callout.Call{Service: mirror.Service, Namespace: ir.ParseRef(x.Route.Origin).Namespace, Method: x.Method}
	host := hostOf(x)
	if host == "" && h.url.NamesClientsHost() || h.url.Fill(call, host, x.Variable) != nil {
		return nil, false
	}
	if h.url.Literal() && x.Query != "" {
		// As nginx does it where no variable says what is asked for.
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
	return call, call.Host != "" && httpguts.ValidHostHeader(call.Host)
}

// copiedFields are the fields of the copy: those of the request that would reach an endpoint, and what endpoints are told of the client.
func copiedFields(x *exchange.Exchange) message.Fields {
	c := x.Client()
	own := [...]message.Field{
		message.XRequestID.Field(x.ID()), message.XRealIP.Field(c.IP), message.XForwardedFor.Field(x.ForwardedFor()),
		message.XForwardedHost.Field(c.Host), message.XForwardedPort.Field(c.Port), message.XForwardedProto.Field(c.Proto),
		message.XForwardedScheme.Field(c.Proto), message.XScheme.Field(c.Proto), message.Via.Field(x.Via()),
	}
	to := make(message.Fields, 0, len(x.Fields)+len(own))
	for i := range x.Fields {
		if f := &x.Fields[i]; goesOut(x, f) && x.Names.Let(f.Kind) && !isReplaced(x, f) {
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

// isReplaced says whether a service could take a field of the client for one that the administrator sets.
func isReplaced(x *exchange.Exchange, f *message.Field) bool {
	return f.Kind.Mistakable() && x.SendsToEndpoint(func(name string) bool { return extauth.SameToBackends(name, f.Name) })
}
