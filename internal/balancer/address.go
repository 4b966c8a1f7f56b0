package balancer

import (
	"errors"
	"net/netip"

	"github.com/k8singress/k8singress/internal/nginx"
)

// ErrNoEndpoint is why a connection, or a datagram, goes nowhere when Pick returns no endpoint.
var ErrNoEndpoint = errors.New("there is no endpoint that is ready")

// Address is the Asker for a TCP or UDP client, of which nothing is known but its address.
type Address netip.AddrPort

// Hash implements Asker.
func (Address) Hash(*nginx.Template) string { return "" }

// Cookie implements Asker.
func (Address) Cookie(string) string { return "" }

// ClientIP implements Asker.
func (a Address) ClientIP() string {
	if address := netip.AddrPort(a).Addr(); address.IsValid() {
		return address.Unmap().WithZone("").String()
	}
	return ""
}

var _ Asker = Address{}
