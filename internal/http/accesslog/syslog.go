package accesslog

import (
	"bytes"
	"cmp"
	"fmt"
	"net"
	"os"
	"time"
)

const (
	// priority is the syslog priority that nginx uses by default: facility local7, severity info.
	priority = 23<<3 | 6
	// maxDatagram is the maximum size, in bytes, of a log line including the syslog header. Longer lines are truncated,
	// because a UDP datagram holds at most 65,507 bytes.
	maxDatagram = 60 << 10
	// redialInterval is how long the resolved address of the server is used before its name is resolved again.
	redialInterval = time.Minute
)

// syslog sends each line in its own UDP datagram to a syslog server, in the format of RFC 3164, as nginx does. It is
// not safe for concurrent use.
type syslog struct {
	server, hostname string
	conn             net.Conn
	dialled          time.Time
	datagram         []byte
}

// newSyslog returns a syslog that sends to a server, given as host:port. It does not connect yet.
func newSyslog(server string) *syslog {
	name, _ := os.Hostname() // If there is an error, the name is empty and "-" is sent.
	return &syslog{server: server, hostname: cmp.Or(name, "-")}
}

// Write sends complete lines. If it returns an error, some of the lines may have been sent.
func (s *syslog) Write(lines []byte) (int, error) {
	if err := s.dial(); err != nil {
		return 0, err
	}
	now := time.Now().Format(time.Stamp)
	for line := range bytes.Lines(lines) {
		s.datagram = fmt.Appendf(s.datagram[:0], "<%d>%s %s nginx: %s", priority, now, s.hostname,
			bytes.TrimRight(line, "\n"))
		if _, err := s.conn.Write(s.datagram[:min(len(s.datagram), maxDatagram)]); err != nil {
			s.dialled = time.Time{}
			return 0, err
		}
	}
	return len(lines), nil
}

// dial connects to the syslog server, unless there is a connection that is not older than redialInterval. For each new
// connection, the server's name is resolved again.
func (s *syslog) dial() error {
	if s.conn != nil && time.Since(s.dialled) < redialInterval {
		return nil
	}
	conn, err := net.DialTimeout("udp", s.server, redialInterval)
	if err != nil {
		return err
	}
	if s.conn != nil {
		_ = s.conn.Close() // A UDP socket has no pending data, so an error does not matter.
	}
	s.conn, s.dialled = conn, time.Now()
	return nil
}
