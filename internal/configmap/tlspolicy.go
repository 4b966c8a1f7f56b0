package configmap

import (
	"errors"
	"fmt"
	"strings"

	"github.com/k8singress/k8singress/internal/ir"
	"github.com/k8singress/k8singress/internal/values"
)

// The rows of the handshake that an Ingress cannot say.
var (
	sslProtocols = Key{
		Name:   "ssl-protocols",
		Doc:    "The versions of TLS. Older ones than 1.2 are not supported.",
		Values: "TLSv1.2, TLSv1.3 or both", Example: "TLSv1.3", Default: "TLSv1.2 TLSv1.3",
		parse: values.Into(func(c *Config) *ir.TLSVersion { return &c.Defaults.TLS.Version }, readProtocols),
	}
	useHTTP2 = Key{
		Name: "use-http2", Global: true,
		Doc:    "Offers HTTP/2 to clients. HTTP/3 is another matter.",
		Values: booleans, Example: "false", Default: "true",
		parse: values.Into(func(c *Config) *bool { return &c.Global.OnlyHTTP1 }, no),
	}
	sslRejectHandshake = Key{
		Name: "ssl-reject-handshake", Global: true,
		Doc: "Refuses the TLS handshake for names that no Ingress has, and without a name. Otherwise they are shown the default " +
			"certificate.",
		Values: booleans, Example: "true", Default: "false",
		parse: values.Into(func(c *Config) *bool { return &c.Global.RejectUnknown }, values.Bool),
	}
	sslSessionTickets = Key{
		Name: "ssl-session-tickets", Global: true,
		Doc: "Lets clients resume TLS sessions. This is always on: the keys of the tickets change every 12 hours and are forgotten soon, " +
			"which is what ingress-nginx turns tickets off for. [TLS](tls.md#session-tickets) says who shares the keys.",
		Values: "true", Example: "true", Default: "true",
		parse: func(_ *Config, value string) error {
			on, err := values.Bool(value)
			if err == nil && !on {
				return values.Remark("session tickets stay on: their keys change every 12 hours, so that old sessions stay secret")
			}
			return err
		},
	}
)

var errNoVersion = errors.New("neither TLSv1.2 nor TLSv1.3 is there, and others are not supported: both are spoken")

// readProtocols leaves out the versions that there are not, and says so.
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
		err = values.Remark(fmt.Sprintf("left out, because TLSv1.2 and TLSv1.3 are the versions there are: %s",
			values.Quote(strings.Join(others, " "))))
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
