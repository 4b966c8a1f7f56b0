package sni_test

import (
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"testing"

	"github.com/k8singress/k8singress/internal/tls/sni"
)

// hello returns the ClientHello of a client of crypto/tls.
func hello(t testing.TB, config *tls.Config) []byte {
	t.Helper()
	config.InsecureSkipVerify = true
	conn := &recorder{}
	if err := tls.Client(conn, config).Handshake(); !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	return conn.said.Bytes()
}

// recorder is a connection that records what is written, and ends at the first read.
type recorder struct {
	net.Conn
	said bytes.Buffer
}

func (r *recorder) Write(b []byte) (int, error) { return r.said.Write(b) }
func (*recorder) Read([]byte) (int, error)      { return 0, io.EOF }

// client is a connection on which step bytes arrive at a time, and then err.
type client struct {
	net.Conn
	said []byte
	step int
	err  error
}

func (c *client) Read(b []byte) (int, error) {
	if len(c.said) == 0 {
		return 0, c.err
	}
	n := copy(b[:min(len(b), c.step)], c.said)
	c.said = c.said[n:]
	return n, nil
}

func (*client) Write([]byte) (int, error) { panic("something is written to the client") }

// read reads a ClientHello that arrives byte by byte. It fails the test unless the returned bytes are the client's.
func read(t testing.TB, all []byte) (string, error) { return readSteps(t, all, 1) }

func readSteps(t testing.TB, all []byte, step int) (string, error) {
	t.Helper()
	buffer := make([]byte, size)
	name, n, err := sni.Read(&client{said: all, step: step, err: io.EOF}, buffer)
	if !bytes.HasPrefix(all, buffer[:n]) {
		t.Errorf("%q was read of %q", buffer[:n], all)
	}
	return name, err
}

// split splits the message of a record into records of at most size bytes.
func split(record []byte, size int) []byte {
	var all []byte
	for rest := record[5:]; len(rest) > 0; {
		n := min(size, len(rest))
		all = append(all, record[0], record[1], record[2], byte(n>>8), byte(n))
		all = append(all, rest[:n]...)
		rest = rest[n:]
	}
	return all
}

func TestNames(t *testing.T) {
	for name, config := range map[string]*tls.Config{
		"plain":     {ServerName: "shop.example"},
		"older":     {ServerName: "shop.example", MaxVersion: tls.VersionTLS12},
		"protocols": {ServerName: "shop.example", NextProtos: []string{"h2", "http/1.1"}},
		"large": {ServerName: "shop.example",
			NextProtos: []string{strings.Repeat("a", 255), strings.Repeat("b", 255)}},
		"small curves": {ServerName: "shop.example", CurvePreferences: []tls.CurveID{tls.X25519}},
	} {
		record := hello(t, config)
		for _, size := range []int{1, 2, 3, 4, 5, 7, 100, 16 << 10} {
			if got, err := read(t, split(record, size)); got != "shop.example" || err != nil {
				t.Errorf("%s in records of %d: %q, %v", name, size, got, err)
			}
		}
	}
}

// size is the size of the buffer in bytes.
const size = 16 << 10

func TestWithoutName(t *testing.T) {
	for name, config := range map[string]*tls.Config{"no name": {}, "an address": {ServerName: "192.0.2.1"}} {
		if got, err := read(t, hello(t, config)); got != "" || err != nil {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

// TestMoreBehind checks that early data, or other bytes that arrive with the ClientHello, are harmless.
func TestMoreBehind(t *testing.T) {
	all := append(hello(t, &tls.Config{ServerName: "shop.example"}), "\x17\x03\x03\x00\x05early"...)
	if got, err := readSteps(t, all, len(all)); got != "shop.example" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
}

// TestIncomplete checks that a missing, late or too long ClientHello results in the right error, and that no bytes are
// lost.
func TestIncomplete(t *testing.T) {
	all := hello(t, &tls.Config{ServerName: "shop.example"})
	broken := errors.New("broken")
	for name, c := range map[string]struct {
		said   []byte
		err    error
		buffer int
		want   error
	}{
		"nothing":       {nil, io.EOF, size, io.EOF},
		"half of it":    {all[:100], io.EOF, size, io.EOF},
		"too late":      {all[:4], os.ErrDeadlineExceeded, size, os.ErrDeadlineExceeded},
		"another error": {all[:len(all)-1], broken, size, broken},
		"too long":      {all, io.EOF, len(all) - 1, sni.ErrTooLong},
		"just fits":     {all, io.EOF, len(all), nil},
		"endless records": {split(build(grease[:2]+vector(2, strings.Repeat("x", size))), 4096), io.EOF, size,
			sni.ErrTooLong},
	} {
		buffer := make([]byte, c.buffer)
		_, n, err := sni.Read(&client{said: c.said, step: 1, err: c.err}, buffer)
		if !errors.Is(err, c.want) || n != min(len(c.said), c.buffer) || !bytes.Equal(buffer[:n], c.said[:n]) {
			t.Errorf("%s: %d bytes of %d, %v", name, n, len(c.said), err)
		}
	}
}

// build returns a ClientHello with these extensions, each including its number.
func build(extensions ...string) []byte {
	body := "\x03\x03" + strings.Repeat("r", 32) + "\x00" + vector(2, "\x13\x01") + vector(1, "\x00") + vector(2,
		strings.Join(extensions, ""))
	return []byte("\x16\x03\x01" + vector(2, "\x01"+vector(3, body)))
}

// vector returns a text with its length in front.
func vector(length int, text string) string {
	n := len(text)
	head := string([]byte{byte(n >> 16), byte(n >> 8), byte(n)})
	return head[3-length:] + text
}

func serverNames(names ...string) string {
	list := ""
	for _, name := range names {
		list += name
	}
	return "\x00\x00" + vector(2, vector(2, list))
}

func host(name string) string { return "\x00" + vector(2, name) }

// grease is an extension without a meaning (RFC 8701).
const grease = "\x0a\x0a\x00\x01\x00"

// ech is an extension with an encrypted server name, for a server with other keys (RFC 9849).
var ech = "\xfe\x0d" + vector(2, "\x00\x00\x01\x00\x01\x05"+vector(2, strings.Repeat("k", 32))+vector(2, "encrypted"))

func TestHellos(t *testing.T) {
	for name, c := range map[string]struct {
		hello []byte
		want  string
		err   error
	}{
		"as written":         {build(serverNames(host("SHOP.Example"))), "SHOP.Example", nil},
		"a dot at the end":   {build(serverNames(host("shop.example."))), "", sni.ErrNoHello},
		"grease round it":    {build(grease, serverNames(host("a.example")), "\x1a\x1a\x00\x00"), "a.example", nil},
		"outer name":         {build(ech, serverNames(host("public.example"))), "public.example", nil},
		"other kind of name": {build(serverNames("\x01"+vector(2, "x"), host("a.example"))), "a.example", nil},
		"no extensions":      {build(), "", nil},
		"two extensions": {build(serverNames(host("a.example")), serverNames(host("b.example"))), "",
			sni.ErrNoHello},
		"two names":           {build(serverNames(host("a.example"), host("b.example"))), "", sni.ErrNoHello},
		"empty name":          {build(serverNames(host(""))), "", sni.ErrNoHello},
		"no name in the list": {build(serverNames()), "", sni.ErrNoHello},
		"list too short":      {build("\x00\x00" + vector(2, "\x00\x03\x00\x00")), "", sni.ErrNoHello},
		"half an extension":   {build("\x00"), "", sni.ErrNoHello},
		"length of extension": {build("\x0a\x0a\xff\xff"), "", sni.ErrNoHello},
		"no TLS":              {[]byte("GET / HTTP/1.1\r\n\r\n"), "", sni.ErrNoHello},
		"SSLv2":               {[]byte("\x80\x2e\x01\x00\x02\x00\x15\x00\x00\x00\x10"), "", sni.ErrNoHello},
		"alert":               {[]byte("\x15\x03\x01\x00\x02\x01\x00"), "", sni.ErrNoHello},
		"empty record":        {[]byte("\x16\x03\x01\x00\x00"), "", sni.ErrNoHello},
		"record too large":    {[]byte("\x16\x03\x01\x48\x01"), "", sni.ErrNoHello},
		"another message":     {[]byte("\x16\x03\x01\x00\x04\x02\x00\x00\x00"), "", sni.ErrNoHello},
		"empty hello":         {[]byte("\x16\x03\x01\x00\x04\x01\x00\x00\x00"), "", sni.ErrNoHello},
		"alert in between": {append(split(build(serverNames(host("a.example"))), 20)[:25],
			"\x15\x03\x01\x00\x02\x01\x00"...), "", sni.ErrNoHello},
	} {
		if got, err := read(t, c.hello); got != c.want || !errors.Is(err, c.err) {
			t.Errorf("%s: %q, %v, want %q, %v", name, got, err, c.want, c.err)
		}
	}
}

// FuzzRead checks that the result does not depend on how the bytes arrive, and that the name is the same as a server
// reads in a complete handshake.
func FuzzRead(f *testing.F) {
	f.Add(hello(f, &tls.Config{ServerName: "shop.example"}))
	f.Add(split(hello(f, &tls.Config{ServerName: "shop.example", MaxVersion: tls.VersionTLS12}), 50))
	f.Add(build(grease, ech, serverNames(host("a.example"))))
	f.Add([]byte("\x80\x2e\x01"))
	f.Fuzz(func(t *testing.T, all []byte) {
		name, err := readSteps(t, all, len(all)+1)
		if slow, slowErr := read(t, all); slow != name || !errors.Is(slowErr, err) {
			t.Errorf("byte by byte %q, %v; at once %q, %v", slow, slowErr, name, err)
		}
		var theirs string
		_ = tls.Server(&replay{client{said: all, step: len(all) + 1, err: io.EOF}}, &tls.Config{
			GetCertificate: func(info *tls.ClientHelloInfo) (*tls.Certificate, error) {
				theirs = info.ServerName
				return nil, nil
			},
		}).Handshake() // It fails, because there is no certificate.
		if theirs != "" && (name != theirs || err != nil) {
			t.Errorf("the name is %q, %v, and %q for the server", name, err, theirs)
		}
	})
}

// replay is a client that accepts writes.
type replay struct{ client }

func (*replay) Write(b []byte) (int, error) { return len(b), nil }

func BenchmarkRead(b *testing.B) {
	all := hello(b, &tls.Config{ServerName: "shop.example", NextProtos: []string{"h2", "http/1.1"}})
	buffer := make([]byte, size)
	b.ReportAllocs()
	for b.Loop() {
		if name, _, err := sni.Read(&client{said: all, step: len(all)}, buffer); name != "shop.example" || err != nil {
			b.Fatal(name, err)
		}
	}
}
