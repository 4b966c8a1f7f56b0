package udp

import "sync/atomic"

// Loss is the reason why a datagram was not forwarded.
type Loss int

// The possible losses.
const (
	// NoEndpoint means that there was no endpoint for the datagram.
	NoEndpoint Loss = iota
	// TooManySessions means that the datagram came from a new client, but the port had its maximum number of sessions.
	TooManySessions
	// EndpointRefused means that the system or network of the endpoint rejected the datagram.
	EndpointRefused
	// EndpointBusy and ClientBusy mean that the send buffer was full.
	EndpointBusy
	ClientBusy
	// NotSendable means that the operating system refused to send the datagram.
	NotSendable
	// PortClosing means that the datagram came from a new client while the port was draining.
	PortClosing
	// NoDescriptors means that the datagram came from a new client, but the port or its namespace had used up its file
	// descriptors.
	NoDescriptors
	// Loop means that the datagram came from one of our own sockets to endpoints.
	Loop
	// Losses is the number of the constants above.
	Losses
)

// String returns the reason as a metric label.
func (l Loss) String() string {
	return [Losses]string{
		"no_endpoint", "max_sessions", "endpoint_refused", "endpoint_busy", "client_busy", "not_sendable",
		"port_closing", "no_descriptors", "loop",
	}[l]
}

// Traffic holds the metrics of a port. The forwarder updates them once per batch.
type Traffic struct {
	// Sessions is the number of current sessions. Opened and Evicted are the total numbers of sessions, and of sessions
	// that were ended to make room for others.
	Sessions, Opened, Evicted atomic.Int64
	// In counts the datagrams sent to endpoints, and Out those sent to clients.
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

// load is a number of datagrams and their total size in bytes.
type load struct{ datagrams, bytes int }

// loadOf returns the load of bytes that consist of datagrams of one size. The last datagram may be smaller.
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
