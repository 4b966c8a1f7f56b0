package l4app

import (
	"bufio"
	"io"
	"net"
	"net/netip"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/pires/go-proxyproto"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/tests/fixture"
)

// proxiedEndpoint starts an endpoint that requires a PROXY protocol header, sends the client address in it, and then
// echoes what it receives.
func proxiedEndpoint(t *testing.T) string {
	t.Helper()
	listener := fixture.Listen(t)
	proxied := &proxyproto.Listener{Listener: listener,
		ConnPolicy: func(proxyproto.ConnPolicyOptions) (proxyproto.Policy, error) {
			return proxyproto.REQUIRE, nil
		}}
	fixture.Serve(proxied, func(conn net.Conn) {
		_, _ = io.WriteString(conn, conn.RemoteAddr().String()+">"+conn.LocalAddr().String()+"\n")
		_, _ = io.Copy(conn, conn)
	})
	return listener.Addr().String()
}

func address(text string) *net.TCPAddr { return net.TCPAddrFromAddrPort(netip.MustParseAddrPort(text)) }

// proxied returns a route whose clients and endpoints use the PROXY protocol.
func proxied(t *testing.T, w *world, out ir.ProxyVersion, trusted ...string) *ir.StreamRoute {
	r := route(ir.TCP, freePort(t), "a")
	r.AcceptProxy, r.SendProxy, r.Trusted = true, out, trusted
	w.set(r, proxiedEndpoint(t))
	return r
}

func binaryHeader(t *testing.T, source, destination string) string {
	t.Helper()
	data, err := proxyproto.HeaderProxyFromAddrs(2, address(source), address(destination)).Format()
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// without are headers that name no client.
var without = map[string]string{
	"v1 unknown":        "PROXY UNKNOWN\r\n",
	"v1 unknown, more":  "PROXY UNKNOWN ffff::1 ffff::2 1 2\r\n",
	"v2 local":          string(proxyproto.SIGV2) + "\x20\x00\x00\x00",
	"v2 local, more":    string(proxyproto.SIGV2) + "\x20\x11\x00\x05abcde",
	"v2 unspecified":    string(proxyproto.SIGV2) + "\x21\x00\x00\x03\x04\x00\x00",
	"v2 of a Unix peer": string(proxyproto.SIGV2) + "\x21\x31\x00\xd8" + strings.Repeat("\x00", 216),
}

func TestHeadersAccepted(t *testing.T) {
	own := "the peer's own"
	cases := map[string]struct{ header, client string }{
		"v1":      {"PROXY TCP4 192.0.2.1 192.0.2.2 1111 2222\r\n", "192.0.2.1:1111>192.0.2.2:2222\n"},
		"v1 IPv6": {"PROXY TCP6 2001:db8::1 2001:db8::2 1111 2222\r\n", "[2001:db8::1]:1111>[2001:db8::2]:2222\n"},
		"v2":      {binaryHeader(t, "192.0.2.1:1111", "192.0.2.2:2222"), "192.0.2.1:1111>192.0.2.2:2222\n"},
		"v2 IPv6": {binaryHeader(t, "[2001:db8::1]:1111", "[2001:db8::2]:2222"),
			"[2001:db8::1]:1111>[2001:db8::2]:2222\n"},
		"v2 mixed":    {binaryHeader(t, "192.0.2.1:1111", "[2001:db8::2]:2222"), "192.0.2.1:1111>[2001:db8::2]:2222\n"},
		"v2 with TLV": {long(t, 4000), "192.0.2.1:1111>192.0.2.2:2222\n"},
	}
	for name, text := range without {
		cases[name] = struct{ header, client string }{text, own}
	}
	for _, version := range []ir.ProxyVersion{ir.ProxyV1, ir.ProxyV2} {
		w := newWorld(t)
		r := proxied(t, w, version)
		for name, c := range cases {
			for how, send := range map[string]func(net.Conn, string){"at once": atOnce, "byte by byte": byteByByte} {
				t.Run(string(version)+"/"+name+"/"+how, func(t *testing.T) {
					conn := dial(t, r)
					want := c.client
					if want == own {
						want = conn.LocalAddr().String() + ">" + conn.RemoteAddr().String() + "\n"
					}
					send(conn, c.header+"first")
					expect(t, conn, want+"first")
					send(conn, "second")
					expect(t, conn, "second")
				})
			}
		}
	}
}

// long returns a header with extra data of the given size.
func long(t *testing.T, size int) string {
	t.Helper()
	h := proxyproto.HeaderProxyFromAddrs(2, address("192.0.2.1:1111"), address("192.0.2.2:2222"))
	if err := h.SetTLVs([]proxyproto.TLV{{Type: proxyproto.PP2_TYPE_NOOP, Value: make([]byte, size)}}); err != nil {
		t.Fatal(err)
	}
	data, err := h.Format()
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func atOnce(conn net.Conn, text string) { _, _ = io.WriteString(conn, text) }

func byteByByte(conn net.Conn, text string) {
	// The socket sends each byte separately, because Go disables Nagle's algorithm by default.
	_, _ = io.CopyBuffer(struct{ io.Writer }{conn}, iotest.OneByteReader(strings.NewReader(text)), make([]byte, 1))
}

func TestHeadersRejected(t *testing.T) {
	for name, text := range map[string]string{
		"none":                "no header at all, just bytes that go on for a while\r\n",
		"nearly":              "PROXYjunk TCP4 192.0.2.1 192.0.2.2 1111 2222\r\n",
		"no address":          "PROXY TCP4 nobody 192.0.2.2 1111 2222\r\n",
		"no port":             "PROXY TCP4 192.0.2.1 192.0.2.2 66666 2222\r\n",
		"no end":              "PROXY TCP4 " + strings.Repeat("1", 200),
		"line feed alone":     "PROXY TCP4 192.0.2.1 192.0.2.2 1111 2222\n",
		"v2, version 3":       string(proxyproto.SIGV2) + "\x31\x11\x00\x0c" + strings.Repeat("\x00", 12),
		"v2, no such command": string(proxyproto.SIGV2) + "\x2f\x11\x00\x0c" + strings.Repeat("\x00", 12),
		"v2, no such family":  string(proxyproto.SIGV2) + "\x21\x77\x00\x0c" + strings.Repeat("\x00", 12),
		"v2, too short":       string(proxyproto.SIGV2) + "\x21\x11\x00\x03abc",
		"v2, too long":        string(proxyproto.SIGV2) + "\x21\x11\xff\xff",
		"TLS":                 "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			conn := dial(t, proxied(t, w, ir.ProxyV1))
			send(t, conn, text)
			expectEnd(t, conn)
		})
	}
}

// TestHeaderTimeout checks that a peer must send its header within the timeout.
func TestHeaderTimeout(t *testing.T) {
	for name, text := range map[string]string{"nothing": "", "half": "PROXY TCP4 192.0.2.1",
		"half of v2": string(proxyproto.SIGV2)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			r := proxied(t, w, "")
			begin := time.Now()
			conn := dial(t, r)
			send(t, conn, text)
			expectEnd(t, conn)
			if took := time.Since(begin); took < ir.ProxyTimeout-100*time.Millisecond ||
				took > ir.ProxyTimeout+patience/4 {
				t.Errorf("it took %v", took)
			}
		})
	}
}

// TestPeerClosesEarly checks that a connection closed without data is not a failure, and that one closed within the
// header is.
func TestPeerClosesEarly(t *testing.T) {
	w := newWorld(t)
	r := proxied(t, w, "")
	for want, text := range []string{"", "PROXY TCP4 192.0.2.1"} {
		conn := dial(t, r)
		send(t, conn, text)
		if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
			t.Fatal(err)
		}
		expectEnd(t, conn)
		if n := w.failed(r, noHeader); n != want {
			t.Errorf("after %q there are %d failures", text, n)
		}
	}
}

func TestTrustedPeers(t *testing.T) {
	for name, test := range map[string]struct {
		trusted []string
		want    bool
	}{
		"everybody":   {nil, true},
		"the network": {[]string{"2001:db8::/32", "127.0.0.0/8"}, true},
		"the address": {[]string{"127.0.0.1"}, true},
		"others":      {[]string{"192.0.2.0/24", "::1/128"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			conn := dial(t, proxied(t, w, ir.ProxyV1, test.trusted...))
			send(t, conn, "PROXY TCP4 192.0.2.1 192.0.2.2 1111 2222\r\n")
			if !test.want {
				expectEnd(t, conn)
				return
			}
			expect(t, conn, "192.0.2.1:1111>192.0.2.2:2222\n")
		})
	}
}

// TestHeaderWithoutProxyProtocol checks that a port without the PROXY protocol forwards bytes that look like a header.
func TestHeaderWithoutProxyProtocol(t *testing.T) {
	w := newWorld(t)
	r := route(ir.TCP, freePort(t), "a")
	w.set(r, named(t, ""))
	conn := dial(t, r)
	send(t, conn, "PROXY TCP4 192.0.2.1 192.0.2.2 1111 2222\r\n")
	expect(t, conn, "PROXY TCP4 192.0.2.1 192.0.2.2 1111 2222\r\n")
}

func TestSendProxyOfPlainClient(t *testing.T) {
	for _, version := range []ir.ProxyVersion{ir.ProxyV1, ir.ProxyV2} {
		w := newWorld(t)
		r := route(ir.TCP, freePort(t), "a")
		r.SendProxy = version
		w.set(r, proxiedEndpoint(t))
		conn := dial(t, r)
		expect(t, conn, conn.LocalAddr().String()+">"+conn.RemoteAddr().String()+"\n")
	}
}

// TestUniqueID checks that a version 2 header contains an ID that differs for each connection.
func TestUniqueID(t *testing.T) {
	w := newWorld(t)
	r := route(ir.TCP, freePort(t), "a")
	r.SendProxy = ir.ProxyV2
	ids := make(chan string, 2)
	w.set(r, backend(t, func(conn *net.TCPConn) {
		h, err := proxyproto.Read(bufio.NewReader(conn))
		if err != nil {
			t.Error(err)
			close(ids)
			return
		}
		tlvs, err := h.TLVs()
		if err != nil || len(tlvs) != 1 || tlvs[0].Type != proxyproto.PP2_TYPE_UNIQUE_ID || len(tlvs[0].Value) > 128 {
			t.Errorf("the header has %v, %v", tlvs, err)
			close(ids)
			return
		}
		ids <- string(tlvs[0].Value)
	}))
	expectEnd(t, dial(t, r))
	expectEnd(t, dial(t, r))
	if a, b := fixture.Receive(t, "the first identifier", ids),
		fixture.Receive(t, "the second identifier", ids); a == b || a == "" {
		t.Errorf("the identifiers are %q and %q", a, b)
	}
}
