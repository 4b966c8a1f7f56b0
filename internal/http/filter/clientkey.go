package filter

import (
	"net/netip"

	"github.com/k8singress/k8singress/internal/http/exchange"
	"github.com/k8singress/k8singress/internal/http/ratelimit"
	"github.com/k8singress/k8singress/internal/model/nginx"
)

// clientKey computes the key that identifies the client of a request for a limit.
type clientKey struct {
	// template is the template of the string that identifies a client. If it is nil, the client's IP address is used.
	template *nginx.Template
}

// newClientKey returns the clientKey for a template. An empty template stands for the client's address.
func newClientKey(template string) (k clientKey, err error) {
	if template != "" {
		k.template, err = exchange.ParseTemplate(template)
	}
	return k, err
}

// of returns the key of a request, and whether the request is limited. Clients without an IP address, such as clients
// of a Unix socket, share one key. It returns an error if a variable of http-snippet cannot be computed.
func (k *clientKey) of(x *exchange.Exchange) (key ratelimit.Key, limited bool, err error) {
	if k.template != nil {
		text := k.template.Expand(x.Variable)
		return ratelimit.OfText(text), text != "", x.VariablesFailed()
	}
	address, err := netip.ParseAddr(x.Client().IP)
	if err != nil {
		return ratelimit.OfText(""), true, nil
	}
	return ratelimit.OfAddress(address), true, nil
}
