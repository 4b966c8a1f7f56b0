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
	// priority is what nginx sends: facility local7, severity info.
	priority = 23<<3 | 6
	// mostDatagram is how long a line may be with its head. The rest of a longer one is cut off: UDP takes 65,507 bytes.
	mostDatagram = 60 << 10
	// dialAgain is how long an address counts that a name has led to.
	dialAgain = time.Minute
)

// syslog sends lines to a server by UDP, each in a datagram in the form of RFC 3164, as nginx does. It is for one goroutine.
type syslog struct {
	server, hostname string
	conn             net.Conn
	dialled          time.Time
	datagram         []byte
}

// newSyslog returns one for a server, as host:port. It sends nothing yet.
func newSyslog(server string) *syslog {
	name, _ := os.Hostname() // Without a name, the field has the one that stands for none.
	return &syslog{server: server, hostname: cmp.Or(name, "-")}
}

// Write sends whole lines. With an error, some of them may have been sent.
func (s *syslog) Write(lines []byte) (int, error) {
	if err := s.dial(); err != nil {
		return 0, err
	}
	now := time.Now().Format(time.Stamp)
	for line := range bytes.Lines(lines) {
		s.datagram = fmt.Appendf(s.datagram[:0], "<%d>%s %s nginx: %s", priority, now, s.hostname, bytes.TrimRight(line, "\n"))
		if _, err := s.conn.Write(s.datagram[:min(len(s.datagram), mostDatagram)]); err != nil {
			s.dialled = time.Time{}
			return 0, err
		}
	}
	return len(lines), nil
}

// dial looks the server up, again after a while.
func (s *syslog) dial() error {
	if s.conn != nil && time.Since(s.dialled) < dialAgain {
		return nil
	}
	conn, err := net.DialTimeout("udp", s.server, dialAgain)
	if err != nil {
		return err
	}
	if s.conn != nil {
		_ = s.conn.Close() // Nothing waits in it.
	}
	s.conn, s.dialled = conn, time.Now()
	return nil
}
