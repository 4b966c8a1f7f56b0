package accesslog

import (
	"cmp"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/k8singress/k8singress/internal/ir"
)

// DefaultStreamFormat is ingress-nginx's log-format-stream.
const DefaultStreamFormat = `[$remote_addr] [$time_local] $protocol $status $bytes_sent $bytes_received $session_time`

// The values of $status for connections of TCP and UDP ports: those of nginx's stream module, where a TLS handshake that fails is 500.
const (
	// StreamServed is of a connection that an endpoint has taken, however it ended.
	StreamServed = 200
	// StreamUnread is of one whose client did not begin as the port demands: with a PROXY protocol header, or a TLS handshake.
	StreamUnread = 400
	// StreamForbidden is of one whose client may not connect.
	StreamForbidden = 403
	// StreamFailed is of one that came to a fault of our own.
	StreamFailed = 500
	// StreamNoEndpoint is of one that no endpoint has taken.
	StreamNoEndpoint = 502
	// StreamLimited is of one beyond a limit.
	StreamLimited = 503
)

// Session is a connection of a TCP port, or a client of a UDP port, that has ended.
type Session struct {
	Protocol ir.Protocol
	// Client and Server are its two ends, as far as they are known.
	Client, Server netip.AddrPort
	// Backend is the ID of the backend that it was for, and Endpoint the address of the endpoint that has taken it; empty is none.
	Backend, Endpoint string
	Status            int
	// Received and Sent count the bytes that came from the client, and that went to it.
	Received, Sent uint64
	Began          time.Time

	ended time.Time
}

// Streams is the log of TCP and UDP ports. It is immutable.
type Streams struct {
	format *format[Session]
	to     *File
}

// NewStreams returns the log that settings ask for; nil is none.
func NewStreams(of *ir.StreamLog, files *Files) *Streams {
	if of.Off {
		return nil
	}
	format := newFormat(cmp.Or(of.Format, DefaultStreamFormat), ir.EscapeDefault, func(name string) func(*Session) string {
		return streamValues[name]
	})
	return &Streams{format: format, to: files.Open(of.Path)}
}

// Note writes the line of a connection that has ended now. l may be nil.
func (l *Streams) Note(s Session) {
	if l == nil {
		return
	}
	s.ended = time.Now()
	l.format.write(&s, l.to)
}

// streamValues are nginx's variables for connections of its stream module.
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
	// What goes to one end has come from the other.
	"upstream_bytes_received": func(s *Session) string { return s.ofEndpoint(s.Sent) },
	"upstream_bytes_sent":     func(s *Session) string { return s.ofEndpoint(s.Received) },
}

// upstreamName is ingress-nginx's name for the backend of a port: "protocol-namespace-service-port".
func (s *Session) upstreamName() string {
	if s.Backend == "" {
		return ""
	}
	// The ID says UDP behind the port, and the name says it in front.
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
