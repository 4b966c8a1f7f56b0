package streams

import (
	"iter"

	"github.com/k8singress/k8singress/internal/ir"
	"github.com/k8singress/k8singress/internal/kinds"
)

// Settings are the annotations of one Service as typed values. They hold for all ports that lead to it.
type Settings struct {
	// TCPPorts and UDPPorts are those that the Service itself asks for.
	TCPPorts, UDPPorts []Listed
	Policy             ir.StreamPolicy
	// What follows is for TCP only.
	AcceptProxy bool
	Trusted     []string
	SendProxy   ir.ProxyVersion
	TLS         *ir.StreamTLS
	BackendTLS  *ir.BackendTLS
	// Closed keeps the ports closed: an annotation that cannot be read may say who gets in.
	Closed bool

	// given says that there are annotations of the table at all.
	given bool
	// tls and backend are what was asked for, before all of it is known. Secrets are names in the namespace of the Service.
	tls     ir.StreamTLS
	backend ir.BackendTLS
	overTLS bool
}

// Listed is one entry of a list of ports.
type Listed struct {
	Port uint16
	// Target is the port of the Service, by number or name.
	Target string
}

// secrets are those that the settings name.
func (s *Settings) secrets() iter.Seq[ir.Ref] {
	return func(yield func(ir.Ref) bool) {
		if s.TLS != nil && !s.TLS.Secret.IsZero() && !yield(s.TLS.Secret.Of(kinds.Secret)) {
			return
		}
		if s.BackendTLS != nil && !s.BackendTLS.Secret.IsZero() {
			yield(s.BackendTLS.Secret.Of(kinds.Secret))
		}
	}
}
