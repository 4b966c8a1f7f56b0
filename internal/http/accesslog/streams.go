package accesslog

import (
	"cmp"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/k8singress/k8singress/internal/model/ir"
)

// DefaultStreamFormat is ingress-nginx's default log-format-stream.
const DefaultStreamFormat = `[$remote_addr] [$time_local] $protocol $status $bytes_sent $bytes_received $session_time`

// The values of $status for connections of TCP and UDP ports, as in nginx's stream module. A failed TLS handshake has
// the status 500.
const (
	// StreamServed means that an endpoint accepted the connection, however it ended.
	StreamServed = 200
	// StreamUnread means that the client did not send the PROXY protocol header or the TLS handshake that the port
	// requires.
	StreamUnread = 400
	// StreamForbidden means that the client is not allowed to connect.
	StreamForbidden = 403
	// StreamFailed means that the connection failed because of an internal error.
	StreamFailed = 500
	// StreamNoEndpoint means that no endpoint accepted the connection.
	StreamNoEndpoint = 502
	// StreamLimited means that a limit was exceeded.
	StreamLimited = 503
)

// Session describes a connection of a TCP port, or a client session of a UDP port, that has ended.
type Session struct {
	Protocol ir.Protocol
	// Client and Server are the addresses of the client and of the port. They are not valid if they are not known.
	Client, Server netip.AddrPort
	// Backend is the ID of the backend. Endpoint is the address of the endpoint that accepted the connection. Both are
	// empty if there was none.
	Backend, Endpoint string
	Status            int
	// Received is the number of bytes from the client, and Sent the number of bytes to the client.
	Received, Sent uint64
	Began          time.Time

	ended time.Time
}

// Streams is the access log of TCP and UDP ports. It is immutable.
type Streams struct {
	format *format[Session]
	to     *File
}

// NewStreams returns the log for the settings. Nil means that nothing is logged.
func NewStreams(of *ir.StreamLog, files *Files) *Streams {
	if of.Off {
		return nil
	}
	format := newFormat(cmp.Or(of.Format, DefaultStreamFormat), ir.EscapeDefault,
		func(name string) func(*Session) string {
			return streamValues[name]
		})
	return &Streams{format: format, to: files.Open(of.Path)}
}

// Record logs a connection that has just ended. l may be nil.
func (l *Streams) Record(s Session) {
	if l == nil {
		return
	}
	s.ended = time.Now()
	l.format.write(&s, l.to)
}

// streamValues holds the variables of nginx's stream module.
var streamValues = map[string]func(*Session) string{
	"bytes_received":      func(s *Session) string { return count(s.Received) },
	"bytes_sent":          func(s *Session) string { return count(s.Sent) },
	"hostname":            func(*Session) string { return hostname },
	"msec":                func(s *Session) string { return seconds(s.ended.UnixMilli()) },
	"pid":                 func(*Session) string { return pid },
	"protocol":            func(s *Session) string { return strings.ToUpper(string(s.Protocol)) },
	"proxy_upstream_name": (*Session).upstreamName,
	"remote_addr":         func(s *Session) string { return addressOf(s.Client) },
	"remote_port":         func(s *Session) string { return portOf(s.Client) },
	"server_addr":         func(s *Session) string { return addressOf(s.Server) },
	"server_port":         func(s *Session) string { return portOf(s.Server) },
	"session_time":        func(s *Session) string { return seconds(s.ended.Sub(s.Began).Milliseconds()) },
	"status":              func(s *Session) string { return strconv.Itoa(s.Status) },
	"time_iso8601":        func(s *Session) string { return timeISO(s.ended) },
	"time_local":          func(s *Session) string { return timeLocal(s.ended) },
	"upstream_addr":       func(s *Session) string { return s.Endpoint },
	// Bytes sent to the client were received from the endpoint, and the reverse.
	"upstream_bytes_received": func(s *Session) string { return s.ofEndpoint(s.Sent) },
	"upstream_bytes_sent":     func(s *Session) string { return s.ofEndpoint(s.Received) },
}

// upstreamName returns ingress-nginx's name for the backend of a port: "protocol-namespace-service-port".
func (s *Session) upstreamName() string {
	if s.Backend == "" {
		return ""
	}
	// The ID has UDP as a suffix, but the name has the protocol as a prefix.
	return string(s.Protocol) + "-" + strings.ReplaceAll(strings.TrimSuffix(s.Backend, "/"+string(ir.UDP)), "/", "-")
}

func (s *Session) ofEndpoint(bytes uint64) string {
	if s.Endpoint == "" {
		return ""
	}
	return count(bytes)
}

func count(n uint64) string { return strconv.FormatUint(n, 10) }

func addressOf(end netip.AddrPort) string {
	if !end.IsValid() {
		return ""
	}
	return end.Addr().Unmap().String()
}

func portOf(end netip.AddrPort) string {
	if !end.IsValid() {
		return ""
	}
	return strconv.Itoa(int(end.Port()))
}
