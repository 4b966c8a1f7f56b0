package streams

import (
	"github.com/k8singress/k8singress/internal/ir"
	"github.com/k8singress/k8singress/internal/nginx"
)

const booleans = "true or false"

// The rows of the PROXY protocol, which is for TCP.
var (
	streamAcceptProxy = Annotation{
		Name: prefix + "stream-accept-proxy",
		Doc: "Clients send a PROXY protocol header, of version 1 or 2, with their address. A connection without one is closed. " +
			"The flag in the ConfigMap says the same.",
		Values: booleans, Example: "true", Default: "false",
		Parse: nginx.Into(func(s *Settings) *bool { return &s.AcceptProxy }, nginx.Bool), OnError: (*Settings).close, Meanwhile: staysClosed,
	}
	streamTrustedProxies = Annotation{
		Name: prefix + "stream-trusted-proxies",
		Doc: "The networks of the proxies that may send the header of stream-accept-proxy. Connections from elsewhere are closed; all are, if " +
			"none of the networks can be read.",
		Values: "networks and addresses, with commas between them", Example: "10.0.0.0/8,fd00::/8", Default: "all addresses",
		Parse:   nginx.Into(func(s *Settings) *[]string { return &s.Trusted }, nginx.Networks),
		OnError: (*Settings).close, Meanwhile: staysClosed,
	}
	streamProxyProtocol = Annotation{
		Name: prefix + "stream-proxy-protocol",
		Doc: "The endpoints get a PROXY protocol header of this version first, with the address of the client. The flag in the ConfigMap asks " +
			"for v1.",
		Values: "v1 or v2", Example: "v2", Default: "no header",
		Parse: nginx.Into(func(s *Settings) *ir.ProxyVersion { return &s.SendProxy }, func(value string) (ir.ProxyVersion, error) {
			version, err := nginx.OneOf(string(ir.ProxyV1), string(ir.ProxyV2))(value)
			return ir.ProxyVersion(version), err
		}),
		OnError: (*Settings).close, Meanwhile: staysClosed,
	}
)
