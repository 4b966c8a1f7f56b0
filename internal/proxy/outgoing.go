package proxy

import (
	"slices"

	"github.com/k8singress/k8singress/internal/exchange"
	"github.com/k8singress/k8singress/internal/extauth"
	"github.com/k8singress/k8singress/internal/message"
)

// forwarded is what an endpoint is sent about the client, in the words of ingress-nginx. It replaces whatever the client has written
// there itself. Fields without a value are left out.
type forwarded struct {
	// values are those of forwardedKinds.
	values [len(forwardedKinds)]string
	// host is the Host field.
	host string
}

var forwardedKinds = [...]message.Kind{
	message.XRequestID, message.XRealIP, message.XForwardedFor, message.XForwardedHost, message.XForwardedPort, message.XForwardedProto,
	message.XForwardedScheme, message.XScheme, message.XOriginalForwardedFor, message.XOriginalForwardedHost, message.XForwardedPrefix, message.Via,
}

// prepareFields prepares what endpoints are sent of a request.
func (r *request) prepareFields() {
	r.forwarded.host = r.Host
	if r.settings.host != nil {
		r.forwarded.host = r.settings.host.Expand(r.Variable)
	}
	c := r.Client()
	r.forwarded.values = [...]string{
		r.ID(), c.IP, r.ForwardedFor(), c.Host, c.Port, c.Proto, c.Proto, c.Proto,
		r.Fields.JoinedKind(message.XForwardedFor), r.Fields.JoinedKind(message.XForwardedHost), r.settings.Prefix, r.Via(),
	}
}

// mostLoops is how often a request may have come through this controller: one may stand in front of another.
const mostLoops = 8

// Loops says that a request goes round in circles, as when an ExternalName leads back here.
func Loops(r *message.Request) bool { return exchange.Rounds(r) >= mostLoops }

// mistaken says whether a field does not go on because of its name: it never does where an endpoint could take it for what is told here.
func (r *request) mistaken(f *message.Field) bool {
	return !r.Names.Let(f.Kind) || r.SendsToEndpoint(func(name string) bool { return extauth.SameToBackends(name, f.Name) })
}

// outgoingTrailers returns the fields behind the body that an endpoint gets. It leaves out those that an endpoint could take for a field in
// front of the body: one that the controller sets, or any other, which a handler chain may have set.
func (r *request) outgoingTrailers() message.Fields {
	if r.Trailers == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(r.Trailers()), func(trailer message.Field) bool {
		same := func(name string) bool { return extauth.SameToBackends(name, trailer.Name) }
		return r.SendsToEndpoint(same) || slices.ContainsFunc(r.Fields, func(f message.Field) bool { return same(f.Name) })
	})
}

// outgoing adds the fields that an endpoint gets: those of the client that go on, in its order, and what is told of it. Fields about
// the connection are none of them, and what Connection names has been taken out where the request came in: filters may have set
// fields of the same names since.
func (r *request) outgoing(to message.Fields) message.Fields {
	for i := range r.Fields {
		switch kind := r.Fields[i].Kind; {
		case kind == message.XForwardedPrefix && r.settings.Prefix == "":
		case kind.Hop() || kind.Spoofable() || kind == message.Expect || kind.Mistakable() && r.mistaken(&r.Fields[i]):
			// An Expect is answered here: the body is asked for when it is wanted.
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
