package configmap

import (
	"errors"
	"fmt"
	"strings"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/nginx"
)

// The ConfigMap keys for TLS handshakes. Keys that set the default of an annotation with the same name are not listed
// here.
var (
	sslProtocols = Key{
		Name:   "ssl-protocols",
		Doc:    "The TLS versions that clients may use. Versions before 1.2 are not supported.",
		Values: "TLSv1.2, TLSv1.3 or both", Example: "TLSv1.3", Default: "TLSv1.2 TLSv1.3",
		Parse: nginx.Into(func(c *Config) *ir.TLSVersion { return &c.Defaults.TLS.Version }, readProtocols),
		Lines: true,
	}
	useHTTP2 = Key{
		Name: "use-http2", Scope: process,
		Doc: "Offers HTTP/2 to clients over TLS. With `false`, only HTTP/1.1 is offered by ALPN. HTTP/3 is not " +
			"affected.",
		Values: booleans, Example: "false", Default: "true",
		Parse: nginx.Into(func(c *Config) *bool { return &c.Global.OnlyHTTP1 }, nginx.No),
	}
	sslRejectHandshake = Key{
		Name: "ssl-reject-handshake", Scope: process,
		Doc: "Rejects TLS handshakes without a server name, or with a server name that is not a host of an Ingress. " +
			"With `false`, these clients get the default certificate.",
		Values: booleans, Example: "true", Default: "false",
		Parse: nginx.Into(func(c *Config) *bool { return &c.Global.RejectUnknown }, nginx.Bool),
	}
	sslSessionTickets = Key{
		Name: "ssl-session-tickets", Scope: process,
		Doc: "Allows clients to resume TLS sessions with session tickets, which are always enabled here. " +
			"ingress-nginx disables session tickets by default, because nginx never changes the keys that encrypt " +
			"them. Here the keys are replaced every 12 hours, and old keys are deleted soon after. " +
			"[TLS](tls.md#session-tickets) describes which replicas share the keys.",
		Values: "true", Example: "true", Default: "true",
		Parse: func(_ *Config, value string) error {
			on, err := nginx.Bool(value)
			if err == nil && !on {
				return nginx.Remark(
					"session tickets stay on: their keys change every 12 hours, which protects old sessions")
			}
			return err
		},
	}
)

var errNoVersion = errors.New(
	"the value contains neither TLSv1.2 nor TLSv1.3, and other versions are not supported: both are offered")

// readProtocols reads a list of TLS versions. Unknown versions are ignored, and the error lists them.
func readProtocols(value string) (ir.TLSVersion, error) {
	spoken := map[string]bool{}
	var others []string
	for _, word := range strings.Fields(value) {
		switch word {
		case "TLSv1.2", "TLSv1.3":
			spoken[word] = true
		default:
			others = append(others, word)
		}
	}
	var err error
	if len(others) > 0 {
		err = nginx.Remark(fmt.Sprintf("these TLS versions are ignored, because only TLSv1.2 and TLSv1.3 are "+
			"supported: %s",
			nginx.Quote(strings.Join(others, " "))))
	}
	switch {
	case len(spoken) == 0:
		return "", errNoVersion
	case !spoken["TLSv1.3"]:
		return ir.TLS12, err
	case !spoken["TLSv1.2"]:
		return ir.TLS13, err
	}
	return "", err
}
