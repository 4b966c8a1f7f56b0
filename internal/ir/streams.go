package ir

import "time"

// StreamRoute sends the connections of one port to its backends.
type StreamRoute struct {
	Protocol Protocol
	Port     uint16
	// ServerNames are the names in TLS handshakes (SNI) that the route is for; none are all connections of the port.
	ServerNames []string
	// Backends share the connections, or the clients of UDP, by their weights. There is at least one.
	Backends []WeightedBackend
	Origin   Origin
	// Field is where in its origin the port is asked for.
	Field string
	// AcceptProxy says that clients send a PROXY protocol header. Those are the peers in Trusted, as CIDRs, and connections
	// of others are closed; empty is everybody.
	AcceptProxy bool
	Trusted     []string
	// SendProxy is the header that an endpoint gets first.
	SendProxy ProxyVersion
	Policy    StreamPolicy
	// TLS is for a port where the TLS of clients ends. Nil passes all bytes on.
	TLS *StreamTLS
	// BackendTLS is for endpoints that speak TLS. Nil is for those that do not.
	BackendTLS *BackendTLS
}

// ProxyVersion is one of the PROXY protocol. Empty is none.
type ProxyVersion string

// The versions of the PROXY protocol: a line of text, and a binary header, which has room for more than addresses.
const (
	ProxyV1 ProxyVersion = "v1"
	ProxyV2 ProxyVersion = "v2"
)

// StreamPolicy is how the connections of a port are passed on. What is zero has a default. It can be compared.
type StreamPolicy struct {
	// IdleTimeout is for how long nothing may move in either direction. Zero is 600 s for TCP, ingress-nginx's
	// proxy-stream-timeout, and 60 s for UDP.
	IdleTimeout time.Duration `json:"idle_timeout,omitempty"`
	// ConnectTimeout is how long one endpoint has to accept. Zero is 5 s.
	ConnectTimeout time.Duration `json:"connect_timeout,omitempty"`
	// Tries is how many endpoints are asked at most, within TriesTimeout: ingress-nginx's proxy-stream-next-upstream-*. Zero
	// is 3, and 600 s; 1 asks no other one.
	Tries        int           `json:"tries,omitempty"`
	TriesTimeout time.Duration `json:"tries_timeout,omitempty"`
	// Responses is after how many datagrams for each one of a client its session ends: nginx's proxy_responses. Zero ends it
	// when it is idle.
	Responses int `json:"responses,omitempty"`
	// MaxConnections is how many connections, or clients of UDP, the port has at once. Zero is no limit for TCP.
	MaxConnections int `json:"max_connections,omitempty"`
}

// StreamTLS says where the certificate of a port comes from: a Secret, or an issuer.
type StreamTLS struct {
	Secret Name `json:"secret,omitzero"`
	// Host is the name that issuers are asked for where there is no Secret.
	Host string `json:"host,omitempty"`
}

// Without says what becomes of what clients send to a port of this protocol while it leads to nobody.
func (p Protocol) Without() string {
	if p == UDP {
		return "datagrams are dropped"
	}
	return "connections are closed"
}
