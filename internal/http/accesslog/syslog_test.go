package accesslog

import (
	"net"
	"regexp"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/tests/fixture"
)

// TestSyslog checks that each line is sent in one datagram in the format of nginx, and that long lines are truncated.
func TestSyslog(t *testing.T) {
	server, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	to := NewFiles(zap.NewNop()).Open(ir.Syslog + server.LocalAddr().String())
	to.write([]byte("one\n"))
	to.write([]byte("two " + strings.Repeat("x", maxDatagram) + "\n"))
	head := regexp.MustCompile(`^<190>[A-Z][a-z]{2} [ 1-3][0-9] \d\d:\d\d:\d\d \S+ nginx: `)
	for _, want := range []string{"one", "two xxx"} {
		datagram := make([]byte, 1<<16)
		if err := server.SetReadDeadline(time.Now().Add(fixture.Patience)); err != nil {
			t.Fatal(err)
		}
		n, _, err := server.ReadFrom(datagram)
		if err != nil {
			t.Fatal(err)
		}
		line := string(datagram[:n])
		if rest := head.ReplaceAllString(line, ""); rest == line || !strings.HasPrefix(rest, want) || n > maxDatagram {
			t.Errorf("a datagram of %d bytes is %.200q", n, line)
		}
	}
}

// TestSyslogWithoutServer checks that lines that cannot be sent are counted.
func TestSyslogWithoutServer(t *testing.T) {
	files := NewFiles(zap.NewNop())
	to := files.Open(ir.Syslog + "a.invalid:514")
	to.write([]byte("one\n"))
	fixture.Holds(t, "a dropped line", func() bool { return files.dropped.Load() == 1 })
}
