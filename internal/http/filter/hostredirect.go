package filter

import (
	"fmt"
	"strings"

	"golang.org/x/net/http/httpguts"

	"github.com/k8singress/k8singress/internal/http/exchange"
	"github.com/k8singress/k8singress/internal/http/message"
	"github.com/k8singress/k8singress/internal/model/ir"
)

// hostRedirect redirects requests to another host. The path and query stay the same, except for a trailing slash.
type hostRedirect struct{ ir.HostRedirect }

func newHostRedirect(of ir.HostRedirect) (Filter, error) {
	if of.Status < 300 || of.Status > 399 || !httpguts.ValidHostHeader(of.Host) {
		return nil, fmt.Errorf("status_code %d and host %q do not define a redirect", of.Status, of.Host)
	}
	return &hostRedirect{of}, nil
}

// Apply redirects the request. The Location contains a port only if the client sent one, because the port of the
// connection may be a different one behind a load balancer. As in ingress-nginx, one slash at the end of the URL is
// removed, even if it belongs to the query.
func (h *hostRedirect) Apply(x *exchange.Exchange) (bool, error) {
	client := x.Client()
	port := strings.TrimPrefix(client.Host, client.Hostname())
	target := strings.TrimSuffix(x.Target, "/")
	return true, x.Respond(h.Status, "", message.Location.Field(client.Proto+"://"+h.Host+port+target))
}
