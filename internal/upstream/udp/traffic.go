package udp

import "sync/atomic"

// Loss is the reason why a datagram was dropped.
type Loss int

// The possible losses.
const (
	// NoEndpoint means that no endpoint was available for the datagram.
	NoEndpoint Loss = iota
	// TooManySessions means that the datagram came from a new client, but the port already had its maximum number of
	// sessions.
	TooManySessions
	// EndpointRefused means that an ICMP message reported that the endpoint cannot be reached.
	EndpointRefused
	// EndpointBusy and ClientBusy mean that the send buffer of the socket to the endpoint, or to the clients, was full.
	EndpointBusy
	ClientBusy
	// NotSendable means that the operating system refused to send the datagram.
	NotSendable
	// PortClosing means that the datagram came from a new client while the port was draining.
	PortClosing
	// NoDescriptors means that the datagram came from a new client, but the port or its namespace had used up its file
	// descriptors.
	NoDescriptors
	// Loop means that the datagram came from one of our own sockets that are connected to endpoints.
	Loop
	// Losses is the number of values of the type Loss.
	Losses
)

// String returns the reason as a metric label.
func (l Loss) String() string {
	return [Losses]string{
		"no_endpoint", "max_sessions", "endpoint_refused", "endpoint_busy", "client_busy", "not_sendable",
		"port_closing", "no_descriptors", "loop",
	}[l]
}

// Traffic holds the metrics of a UDP port. The forwarder updates them once per batch of datagrams.
type Traffic struct {
	// Sessions is the current number of sessions. Opened is the total number of sessions so far. Evicted is the number
	// of sessions that were ended early in favor of a new client.
	Sessions, Opened, Evicted atomic.Int64
	// In counts the datagrams to endpoints, and Out counts the datagrams to clients.
	In, Out Tally
	Lost    [Losses]atomic.Uint64
}

// Tally counts datagrams and the bytes in them.
type Tally struct{ Datagrams, Bytes atomic.Uint64 }

func (t *Tally) add(l load) {
	t.Datagrams.Add(uint64(l.datagrams))
	t.Bytes.Add(uint64(l.bytes))
}

func (t *Traffic) lose(why Loss, n int) { t.Lost[why].Add(uint64(n)) }

// load is a number of datagrams with their total size in bytes.
type load struct{ datagrams, bytes int }

// loadOf returns the number and the total size of the datagrams in a message with the given number of bytes. size is
// the size of each datagram; the last datagram may be smaller.
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
