package ir

import "time"

// StreamRoute sends the TCP connections or UDP clients of one port to its backends.
type StreamRoute struct {
	Protocol Protocol
	Port     uint16
	// ServerNames lists the server names in TLS handshakes (SNI) that the route matches. If it is empty, the route
	// matches all connections of the port.
	ServerNames []string
	// Backends share the TCP connections or UDP clients by weight. There is at least one backend.
	Backends []WeightedBackend
	Origin   Origin
	// Field is the path of the field that defines the port, within the object in Origin.
	Field string
	// AcceptProxy requires a PROXY protocol header from clients. Trusted lists the peers, as CIDRs, that may send it.
	// Connections of other peers are closed. If Trusted is empty, all peers may send it.
	AcceptProxy bool
	Trusted     []string
	// SendProxy is the version of the PROXY protocol header that is sent to endpoints.
	SendProxy ProxyVersion
	Policy    StreamPolicy
	// Chains are the names of the stream chains through which a TCP connection passes, after the PROXY protocol header
	// and before TLS is terminated.
	Chains []string
	// TLS is the source of the certificate if the port terminates TLS. If it is nil, TLS is not terminated: all bytes
	// are forwarded unchanged.
	TLS *StreamTLS
	// BackendTLS configures TLS connections to endpoints. Nil connects without TLS.
	BackendTLS *BackendTLS
}

// ProxyVersion is a version of the PROXY protocol. Empty means that no header is sent.
type ProxyVersion string

// The versions of the PROXY protocol. Version 1 is a line of text. Version 2 is a binary header, which can carry more
// than addresses.
const (
	ProxyV1 ProxyVersion = "v1"
	ProxyV2 ProxyVersion = "v2"
)

// StreamPolicy configures how the connections of a port are forwarded. Zero fields use defaults. It is comparable.
type StreamPolicy struct {
	// IdleTimeout is how long a connection may be idle in both directions before it is closed. Zero means 600 s for TCP
	// (ingress-nginx's proxy-stream-timeout) and 60 s for UDP.
	IdleTimeout time.Duration `json:"idle_timeout,omitempty"`
	// ConnectTimeout is the time limit for connecting to one endpoint. Zero means 5 s.
	ConnectTimeout time.Duration `json:"connect_timeout,omitempty"`
	// Tries is the maximum number of endpoints to try, including the first one; zero means 3. TriesTimeout is the time
	// limit for all of them; zero means 600 s (ingress-nginx's proxy-stream-next-upstream-*).
	Tries        int           `json:"tries,omitempty"`
	TriesTimeout time.Duration `json:"tries_timeout,omitempty"`
	// Responses is the number of response datagrams that are expected for each datagram of the client (nginx's
	// proxy_responses). A UDP session ends when they have been received. With zero, a session ends only after
	// IdleTimeout.
	Responses int `json:"responses,omitempty"`
	// MaxConnections is the maximum number of concurrent TCP connections or UDP clients of the port. Zero means no
	// limit for TCP, and 16384 clients for UDP.
	MaxConnections int `json:"max_connections,omitempty"`
}

// StreamTLS refers to the source of the certificate of a port: a Secret or an issuer.
type StreamTLS struct {
	Secret Name `json:"secret,omitzero"`
	// Host is the host name for which an issuer provides a certificate if there is no Secret.
	Host string `json:"host,omitempty"`
}

// Without describes what happens to the traffic of a port with this protocol while the port has no backend. The result
// is a phrase for messages.
func (p Protocol) Without() string {
	if p == UDP {
		return "datagrams are dropped"
	}
	return "connections are closed"
}
