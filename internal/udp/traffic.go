package udp

import "sync/atomic"

// Loss is why a datagram was not forwarded.
type Loss int

// The losses there are.
const (
	// NoEndpoint is the loss of a datagram for which there was no endpoint.
	NoEndpoint Loss = iota
	// TooManySessions is that of a new client at a port with as many sessions as it may have.
	TooManySessions
	// EndpointRefused is that of a datagram that the endpoint's system sent back.
	EndpointRefused
	// EndpointBusy and ClientBusy are those of datagrams for which a send buffer had no room.
	EndpointBusy
	ClientBusy
	// NotSendable is that of a datagram that the system refused to send.
	NotSendable
	// PortClosing is that of a new client at a port that drains.
	PortClosing
	// NoDescriptors is that of a new client at a port, or in a namespace, with as many file descriptors as it may have.
	NoDescriptors
	// Loop is that of a datagram that comes from a socket of our own towards an endpoint.
	Loop
	// Losses is how many there are.
	Losses
)

// String returns the reason as metrics have it.
func (l Loss) String() string {
	return [Losses]string{
		"no_endpoint", "max_sessions", "endpoint_refused", "endpoint_busy", "client_busy", "not_sendable", "port_closing", "no_descriptors", "loop",
	}[l]
}

// Traffic counts the sessions and datagrams of a port. The forwarder counts by batches.
type Traffic struct {
	// Sessions are the current ones, Opened all that there ever were, and Evicted those that had to make room for others.
	Sessions, Opened, Evicted atomic.Int64
	// In went to endpoints, Out to clients.
	In, Out Tally
	Lost    [Losses]atomic.Uint64
}

// Tally counts datagrams and their bytes.
type Tally struct{ Datagrams, Bytes atomic.Uint64 }

func (t *Tally) add(l load) {
	t.Datagrams.Add(uint64(l.datagrams))
	t.Bytes.Add(uint64(l.bytes))
}

func (t *Traffic) lose(why Loss, n int) { t.Lost[why].Add(uint64(n)) }

// load is what messages carry.
type load struct{ datagrams, bytes int }

// loadOf returns the load of bytes that are datagrams of one size; the last datagram may be smaller.
func loadOf(bytes, size int) load {
	if bytes <= size {
		return load{1, bytes}
	}
	return load{(bytes + size - 1) / size, bytes}
}

func (l *load) add(other load) {
	l.datagrams += other.datagrams
	l.bytes += other.bytes
}
