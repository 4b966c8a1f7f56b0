package proxy

import (
	"slices"

	"github.com/k8singress/k8singress/internal/http/exchange"
	"github.com/k8singress/k8singress/internal/http/extauth"
	"github.com/k8singress/k8singress/internal/http/message"
	"github.com/k8singress/k8singress/internal/model/ir"
)

// forwarded holds the header fields that describe the client to an endpoint, such as X-Forwarded-For. They have the
// same names as in ingress-nginx, and replace fields of the same names in the client's request. Fields without a value
// are not sent.
type forwarded struct {
	// values are the values of the header fields whose kinds are listed in forwardedKinds, in the same order.
	values [len(forwardedKinds)]string
	// host is the value of the Host header.
	host string
}

var forwardedKinds = [...]message.Kind{
	message.XRequestID, message.XRealIP, message.XForwardedFor, message.XForwardedHost, message.XForwardedPort,
	message.XForwardedProto,
	message.XForwardedScheme, message.XScheme, message.XOriginalForwardedFor, message.XOriginalForwardedHost,
	message.XForwardedPrefix, message.Via, message.CDNLoop,
}

// prepareFields computes the header fields that describe the client to an endpoint.
func (r *request) prepareFields() {
	r.forwarded.host = r.Host
	if r.settings.host != nil {
		r.forwarded.host = r.settings.host.Expand(r.Variable)
	}
	if host := r.HostForEndpoint(); host != "" {
		r.forwarded.host = host
	}
	c := r.Client()
	r.forwarded.values = [...]string{
		r.ID(), c.IP, r.ForwardedFor(), c.Host, c.Port, c.Proto, c.Proto, c.Proto,
		r.Fields.JoinedKind(message.XForwardedFor), r.Fields.JoinedKind(message.XForwardedHost),
		r.settings.Prefix, r.Via(), r.CDNLoop(),
	}
}

// checkVariables returns an error if a variable of the administrator that filters have used, or that endpoints get, has
// no value, because its value may decide about access.
func (r *request) checkVariables() error {
	if r.Variables == nil {
		return nil
	}
	// This computes the variables. Their values are kept until the request is sent.
	var unused message.Fields
	if r.AddForEndpoint(&unused); r.protocol == ir.FastCGI {
		r.cgiParams()
	}
	return r.VariablesFailed()
}

// maxLoops is the number of times that a request must have passed through this controller to be treated as a loop. It
// is greater than one, because one controller may run in front of another.
const maxLoops = 8

// Loops reports whether a request loops through this controller, for example because an ExternalName Service refers to
// this controller.
func Loops(r *message.Request) bool { return exchange.CountPasses(r) >= maxLoops }

// dropsName reports whether a header field of the client must not be forwarded because of its name: r.Names rejects the
// name, or an endpoint could confuse the field with a field that the controller sets.
func (r *request) dropsName(f *message.Field) bool {
	return !r.Names.Allows(f.Kind) ||
		r.SendsToEndpoint(func(name string) bool { return extauth.SameToBackends(name, f.Name) })
}

// outgoingTrailers returns the trailer fields for an endpoint. It leaves out trailers that an endpoint could confuse
// with a header field that the controller or a handler chain has set.
func (r *request) outgoingTrailers() message.Fields {
	if r.Trailers == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(r.Trailers()), func(trailer message.Field) bool {
		same := func(name string) bool { return extauth.SameToBackends(name, trailer.Name) }
		return r.SendsToEndpoint(same) ||
			slices.ContainsFunc(r.Fields, func(f message.Field) bool { return same(f.Name) })
	})
}

// outgoing appends the header fields for an endpoint to a list and returns the new list. First come the forwarded
// fields of the client's request, in their original order, and then the fields that the controller sets. Hop-by-hop
// fields are left out. Fields that the client lists in the Connection header field were already removed when the
// request arrived. They must not be removed here, because handlers may have set fields of the same names since then.
func (r *request) outgoing(to message.Fields) message.Fields {
	for i := range r.Fields {
		switch kind := r.Fields[i].Kind; {
		case kind == message.Authorization && r.WithoutAuthorization:
			continue
		case kind == message.XForwardedPrefix && r.settings.Prefix == "":
		case kind.Hop() || kind.Spoofable() || kind == message.Expect || kind.Mistakable() && r.dropsName(&r.Fields[i]):
			// Do not forward Expect, because the controller itself asks the client for the body when it needs the body.
			continue
		}
		to = append(to, r.Fields[i])
	}
	for i, value := range r.forwarded.values {
		if value != "" {
			to = append(to, forwardedKinds[i].Field(value))
		}
	}
	r.AddForEndpoint(&to)
	for _, field := range r.ForEndpoint {
		to.Set(field)
	}
	return to
}
