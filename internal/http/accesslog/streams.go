package accesslog

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/nginx"
)

// DefaultStreamFormat is ingress-nginx's default log-format-stream.
const DefaultStreamFormat = `[$remote_addr] [$time_local] $protocol $status $bytes_sent $bytes_received $session_time`

// Values of $status for connections to TCP and UDP ports, as in nginx's stream module. A failed TLS handshake is logged
// with status 500.
const (
	// StreamServed means that an endpoint accepted the connection, regardless of how the connection ended.
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

// Session describes a finished connection to a TCP port, or a finished client session of a UDP port.
type Session struct {
	Protocol ir.Protocol
	// Client is the address of the client, and Server is the address that the client connected to. An unknown address
	// is the zero AddrPort.
	Client, Server netip.AddrPort
	// Backend is the ID of the backend. Endpoint is the address of the endpoint that accepted the connection. Both are
	// empty if no endpoint accepted the connection.
	Backend, Endpoint string
	Status            int
	// Received is the number of bytes received from the client. Sent is the number of bytes sent to the client.
	Received, Sent uint64
	Began          time.Time

	ended time.Time
}

// Streams is the access log of TCP and UDP ports. It is immutable.
type Streams struct {
	format *format[Session]
	to     *File
}

// NewStreams returns the access log for the given settings, or nil if this log is disabled.
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

// Record logs a connection that has just ended. If l is nil, Record does nothing.
func (l *Streams) Record(s Session) {
	if l == nil {
		return
	}
	s.ended = time.Now()
	l.format.write(&s, l.to)
}

// streamValues maps the names of the variables of nginx's stream module to functions that return their values.
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
	// The bytes sent to the client are the bytes received from the endpoint, and vice versa.
	"upstream_bytes_received": func(s *Session) string { return s.ofEndpoint(s.Sent) },
	"upstream_bytes_sent":     func(s *Session) string { return s.ofEndpoint(s.Received) },
}

// StreamVariables returns the sorted names of all variables for the log of TCP and UDP ports. No other variables are
// available there.
func StreamVariables() []string { return slices.Sorted(maps.Keys(streamValues)) }

// UnknownStreamVariables returns the variables in format that the log of TCP and UDP ports does not support.
func UnknownStreamVariables(format string) []string {
	split := nginx.SplitTemplate(format)
	return split.Unknown(func(name string) bool { return streamValues[name] != nil })
}

// upstreamName returns ingress-nginx's name for the backend of a port: "protocol-namespace-service-port".
func (s *Session) upstreamName() string {
	if s.Backend == "" {
		return ""
	}
	// The ID of a UDP backend ends with the protocol, but the name always starts with it. So move the protocol to the
	// start.
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
