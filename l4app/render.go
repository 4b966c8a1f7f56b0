// Package l4app serves TCP and UDP ports. It converts the definition of a port (an ir.StreamRoute) to the configuration
// of a caddy-l4 server. It opens and closes ports without affecting other ports. It also contains the caddy-l4 handler
// that forwards connections to the endpoints of a backend.
package l4app

import (
	"encoding/json"
	"strconv"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/mholt/caddy-l4/layer4"

	"github.com/k8singress/k8singress/internal/model/document"
	"github.com/k8singress/k8singress/internal/model/ir"
)

const (
	// datagramIdle is the default idle timeout of UDP clients: if a client has sent and received no datagrams for this
	// time, its session ends. It is short because each session uses a socket, and most clients send only one request.
	datagramIdle = time.Minute
)

// Render returns the configuration of the port for a TCP or UDP route. The port listens on the addresses in bind, or on
// all addresses if bind is empty.
//
// If the route requires a PROXY protocol header, connections without a header are rejected, because their client's real
// address is unknown.
func Render(r *ir.StreamRoute, bind []string) *document.Port {
	server := layer4.Server{Listen: addresses(r, bind)}
	if r.Protocol == ir.UDP {
		server.IdleTimeout = caddy.Duration(datagramIdle)
	}
	port := &document.Port{StreamBackends: document.StreamsTo(r.Backends), Origin: r.Origin}
	handler := Handler{StreamBackends: port.StreamBackends, Policy: r.Policy}
	var handlers []json.RawMessage
	if r.Protocol == ir.TCP {
		if r.AcceptProxy {
			handlers = append(handlers, document.EncodeModule("handler", "k8singress_proxy_protocol",
				ProxyAccept{Trusted: r.Trusted}))
		}
		for _, name := range r.Chains {
			handlers = append(handlers, document.EncodeModule("handler", "k8singress_chain", StreamChain{Name: name}))
		}
		if port.TLS = r.TLS; r.TLS != nil {
			handlers = append(handlers, document.EncodeModule("handler", "k8singress_tls", TLS{StreamTLS: *r.TLS}))
		}
		handler.ProxyProtocol, handler.TLS, port.BackendTLS = r.SendProxy, r.BackendTLS, r.BackendTLS
	}
	server.Routes = layer4.RouteList{{HandlersRaw: append(handlers,
		document.EncodeModule("handler", "k8singress", handler))}}
	port.Server = document.Encode(server)
	return port
}

func addresses(r *ir.StreamRoute, bind []string) []string {
	port := strconv.Itoa(int(r.Port))
	if len(bind) == 0 {
		return []string{caddy.JoinNetworkAddress(string(r.Protocol), "", port)}
	}
	var all []string
	for _, host := range bind {
		all = append(all, caddy.JoinNetworkAddress(string(r.Protocol), host, port))
	}
	return all
}
