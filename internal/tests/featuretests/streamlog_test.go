package featuretests

import (
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/k8singress/k8singress/internal/tests/fixture"
)

// inLog waits until the access log has a line that matches a regular expression.
func (in *ingress) inLog(path, want string) {
	in.Helper()
	line := regexp.MustCompile("(?m)^" + want + "$")
	in.eventually("a line of the log", func() error {
		text, err := os.ReadFile(path)
		if err == nil && !line.Match(text) {
			err = fmt.Errorf("no line of %q is %s", text, want)
		}
		return err
	})
}

// TestStreamAccessLog checks that each connection of a TCP port, and each client of a UDP port, is logged as one line
// when it ends, in ingress-nginx's format and in a format of the ConfigMap.
func TestStreamAccessLog(t *testing.T) {
	ip, backendPort := backend(t, "one")
	udpIP, udpBackend := hostPort(t, udpEndpoint(t))
	path := filepath.Join(t.TempDir(), "stream.log")
	tcp, datagrams, demanding, nobody := fixture.Port(t), fixture.Port(t), fixture.Port(t), fixture.Port(t)
	in := start(t, class+exposed("one", backendPort, ip, "tcp-ports: "+tcp+":80")+
		overUDP(exposed("two", udpBackend, udpIP, "udp-ports: "+datagrams+":80"), udpBackend)+
		exposed("closed", fixture.Port(t), "127.0.0.1", "tcp-ports: "+nobody+":80")+
		tcpServices(fmt.Sprintf(`%q: "default/one:80:PROXY"`, demanding))+
		global("stream-access-log-path: "+path, `proxy-stream-responses: "1"`),
		servicePorts, "service_udp_ports 1024-65535", "tcp_services default/tcp-services",
		"configmap default/global", accessLogOn)
	in.overTCP(tcp)
	in.inLog(path, `\[127\.0\.0\.1\] \[../.../....:..:..:.. [+-]....\] TCP 200 [1-9][0-9]+ 49 [0-9]\.[0-9]{3}`)
	in.eventually("the UDP port", func() error {
		_, err := askUDP(t, datagrams)
		return err
	})
	in.inLog(path, `\[127\.0\.0\.1\] \[.*\] UDP 200 1[0-9] 1 [0-9]\.[0-9]{3}`)

	in.globalKeys("stream-access-log-path="+path, "proxy-stream-responses=1", "log-format-stream="+
		"$protocol $status $server_port $remote_addr $proxy_upstream_name $upstream_addr $upstream_bytes_sent $nothing")
	in.awaitVerdict("ConfigMap/default/global", "InvalidEntry", "$nothing")
	in.eventually("the UDP port", func() error {
		_, err := askUDP(t, datagrams)
		return err
	})
	in.inLog(path, "UDP 200 "+datagrams+` 127\.0\.0\.1 udp-default-two-80 127\.0\.0\.1:`+udpBackend+" 1 -")
	in.overTCP(tcp)
	in.inLog(path, "TCP 200 "+tcp+` 127\.0\.0\.1 tcp-default-one-80 127\.0\.0\.1:`+backendPort+" 49 -")
	for opening, line := range map[string]string{
		"GET / HTTP/1.1\r\n\r\n": `TCP 400 ` + demanding + ` 127\.0\.0\.1 - - - -`,
		"PROXY TCP4 203.0.113.7 198.51.100.1 4660 443\r\nGET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"://
		`TCP 200 ` + demanding + ` 203\.0\.113\.7 tcp-default-one-80 127\.0\.0\.1:` + backendPort + ` [0-9]+ -`,
	} {
		conn := connect(t, net.JoinHostPort("127.0.0.1", demanding))
		if _, err := io.WriteString(conn, opening); err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, conn) // It ends in either case.
		_ = conn.Close()
		in.inLog(path, line)
	}
	if answer, err := tryTCP(nobody); err == nil {
		t.Errorf("a port without an endpoint answers %q", answer)
	}
	in.inLog(path, "TCP 502 "+nobody+` 127\.0\.0\.1 tcp-default-closed-80 - - -`)
}

// TestStreamAccessLogOff checks that disable-stream-access-log disables the log of connections only, and that
// disable-access-log also disables the log of requests.
func TestStreamAccessLogOff(t *testing.T) {
	ip, backendPort := backend(t, "one")
	path, tcp := filepath.Join(t.TempDir(), "all.log"), fixture.Port(t)
	objects := class + exposed("one", backendPort, ip, "tcp-ports: "+tcp+":80") + rule("a", "b.example",
		"Prefix", "/", "one")
	const formats = "log-format-stream=of TCP|log-format-upstream=of HTTP $host"
	in := start(t, objects, servicePorts, "configmap default/global", accessLogOn)
	keys := func(more ...string) {
		t.Helper()
		in.globalKeys(append(append(strings.Split(formats, "|"), "access-log-path="+path), more...)...)
	}
	asks := func() {
		t.Helper()
		in.overTCP(tcp)
		in.get("b.example", "/")
	}
	has := func(what string, connections, requests int) {
		t.Helper()
		in.eventually("lines "+what, func() error {
			text, err := os.ReadFile(path)
			got := [2]int{strings.Count(string(text), "of TCP\n"), strings.Count(string(text), "of HTTP b.example\n")}
			if err == nil && got != [2]int{connections, requests} {
				err = fmt.Errorf("there are %v, want %d of connections and %d of requests", got, connections, requests)
			}
			return err
		})
	}
	for _, c := range []struct {
		key                   string
		connections, requests int
	}{
		{"proxy-body-size=1m", 1, 1}, {"disable-stream-access-log=true", 0, 1}, {"disable-access-log=true", 0, 0},
	} {
		keys(c.key)
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		asks()
		keys()
		// An entry that is logged after the log is enabled shows that all earlier ones have been written.
		for round := range 2 {
			asks()
			has("with "+c.key, c.connections+round+1, c.requests+round+1)
		}
	}
}
