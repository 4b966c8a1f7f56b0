package sni_test

import (
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/k8singress/k8singress/internal/sni"
)

// hello returns what a client of crypto/tls says first.
func hello(t testing.TB, config *tls.Config) []byte {
	t.Helper()
	config.InsecureSkipVerify = true
	conn := &recorder{}
	if err := tls.Client(conn, config).Handshake(); !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	return conn.said.Bytes()
}

// recorder is a connection to nobody.
type recorder struct{ said bytes.Buffer }

func (r *recorder) Write(b []byte) (int, error)    { return r.said.Write(b) }
func (*recorder) Read([]byte) (int, error)         { return 0, io.EOF }
func (*recorder) Close() error                     { return nil }
func (*recorder) LocalAddr() net.Addr              { return nil }
func (*recorder) RemoteAddr() net.Addr             { return nil }
func (*recorder) SetDeadline(time.Time) error      { return nil }
func (*recorder) SetReadDeadline(time.Time) error  { return nil }
func (*recorder) SetWriteDeadline(time.Time) error { return nil }

// read hands a hello over byte by byte, and fails unless nothing is said of it before the end.
func read(t testing.TB, all []byte) (string, sni.State) {
	t.Helper()
	var r sni.Reader
	for n := range all {
		if name, s := r.Read(all[:n]); s != sni.More {
			return name, s
		}
	}
	return r.Read(all)
}

// split puts the message of a record into records of so many bytes.
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
		"plain":        {ServerName: "shop.example"},
		"older":        {ServerName: "shop.example", MaxVersion: tls.VersionTLS12},
		"protocols":    {ServerName: "shop.example", NextProtos: []string{"h2", "http/1.1"}},
		"large":        {ServerName: "shop.example", NextProtos: []string{strings.Repeat("a", 255), strings.Repeat("b", 255)}},
		"small curves": {ServerName: "shop.example", CurvePreferences: []tls.CurveID{tls.X25519}},
	} {
		record := hello(t, config)
		for _, size := range []int{1, 2, 3, 4, 5, 7, 100, recordSize} {
			if got, s := read(t, split(record, size)); got != "shop.example" || s != sni.Complete {
				t.Errorf("%s in records of %d: %q, %d", name, size, got, s)
			}
		}
	}
}

const recordSize = 16 << 10

func TestWithoutName(t *testing.T) {
	for name, config := range map[string]*tls.Config{"no name": {}, "an address": {ServerName: "192.0.2.1"}} {
		if got, s := read(t, hello(t, config)); got != "" || s != sni.Complete {
			t.Errorf("%s: %q, %d", name, got, s)
		}
	}
}

// TestMoreBehind holds that early data, or whatever else comes with the hello, does not matter.
func TestMoreBehind(t *testing.T) {
	all := append(hello(t, &tls.Config{ServerName: "shop.example"}), "\x17\x03\x03\x00\x05early"...)
	var r sni.Reader
	if got, s := r.Read(all); got != "shop.example" || s != sni.Complete {
		t.Errorf("%q, %d", got, s)
	}
}

// build makes a hello with these extensions, each with its number in front.
func build(extensions ...string) []byte {
	body := "\x03\x03" + strings.Repeat("r", 32) + "\x00" + vector(2, "\x13\x01") + vector(1, "\x00") + vector(2, strings.Join(extensions, ""))
	return []byte("\x16\x03\x01" + vector(2, "\x01"+vector(3, body)))
}

// vector puts the length of a text in front of it.
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

// grease is an extension that means nothing (RFC 8701), ech one whose name is within (RFC 9849).
const (
	grease = "\x0a\x0a\x00\x01\x00"
	ech    = "\xfe\x0d\x00\x04\x00\x01\x02\x03"
)

func TestHellos(t *testing.T) {
	for name, c := range map[string]struct {
		hello []byte
		want  string
		state sni.State
	}{
		"as written":          {build(serverNames(host("SHOP.Example."))), "SHOP.Example.", sni.Complete},
		"grease round it":     {build(grease, serverNames(host("a.example")), grease), "a.example", sni.Complete},
		"outer name":          {build(ech, serverNames(host("public.example"))), "public.example", sni.Complete},
		"other kind of name":  {build(serverNames("\x01"+vector(2, "x"), host("a.example"))), "a.example", sni.Complete},
		"no extensions":       {build(), "", sni.Complete},
		"two extensions":      {build(serverNames(host("a.example")), serverNames(host("b.example"))), "", sni.Other},
		"two names":           {build(serverNames(host("a.example"), host("b.example"))), "", sni.Other},
		"empty name":          {build(serverNames(host(""))), "", sni.Other},
		"no name in the list": {build(serverNames()), "", sni.Other},
		"list too short":      {build("\x00\x00" + vector(2, "\x00\x03\x00\x00")), "", sni.Other},
		"half an extension":   {build("\x00"), "", sni.Other},
		"length of extension": {build("\x0a\x0a\xff\xff"), "", sni.Other},
		"no TLS":              {[]byte("GET / HTTP/1.1\r\n\r\n"), "", sni.Other},
		"SSLv2":               {[]byte("\x80\x2e\x01\x00\x02\x00\x15\x00\x00\x00\x10"), "", sni.Other},
		"alert":               {[]byte("\x15\x03\x01\x00\x02\x01\x00"), "", sni.Other},
		"empty record":        {[]byte("\x16\x03\x01\x00\x00"), "", sni.Other},
		"record too large":    {[]byte("\x16\x03\x01\x40\x01"), "", sni.Other},
		"another message":     {[]byte("\x16\x03\x01\x00\x04\x02\x00\x00\x00"), "", sni.Other},
		"empty hello":         {[]byte("\x16\x03\x01\x00\x04\x01\x00\x00\x00"), "", sni.Other},
		"alert in between":    {append(split(build(serverNames(host("a.example"))), 20)[:25], "\x15\x03\x01\x00\x02\x01\x00"...), "", sni.Other},
	} {
		if got, s := read(t, c.hello); got != c.want || s != c.state {
			t.Errorf("%s: %q, %d, want %q, %d", name, got, s, c.want, c.state)
		}
	}
}

// FuzzRead compares with crypto/tls: where that takes a hello, the name is the same; and however the bytes come, the
// outcome is.
func FuzzRead(f *testing.F) {
	f.Add(hello(f, &tls.Config{ServerName: "shop.example"}))
	f.Add(split(hello(f, &tls.Config{ServerName: "shop.example", MaxVersion: tls.VersionTLS12}), 50))
	f.Add(build(grease, ech, serverNames(host("a.example"))))
	f.Add([]byte("\x80\x2e\x01"))
	f.Fuzz(func(t *testing.T, all []byte) {
		var r sni.Reader
		name, s := r.Read(all)
		if slow, state := read(t, all); slow != name || state != s {
			t.Errorf("byte by byte %q, %d; at once %q, %d", slow, state, name, s)
		}
		theirs, ok := byStandard(all)
		if ok && s == sni.Complete && name != theirs {
			t.Errorf("the name is %q, and %q for crypto/tls", name, theirs)
		}
		if ok && s != sni.Complete && len(all) < recordSize {
			t.Errorf("crypto/tls reads it: the state is %d", s)
		}
	})
}

var errRead = errors.New("read")

// byStandard returns the name that crypto/tls finds.
func byStandard(all []byte) (name string, ok bool) {
	server := tls.Server(&replay{bytes.NewReader(all)}, &tls.Config{
		GetConfigForClient: func(info *tls.ClientHelloInfo) (*tls.Config, error) {
			name, ok = info.ServerName, true
			return nil, errRead
		},
	})
	_ = server.Handshake() // It fails in any case.
	return name, ok
}

// replay is a connection whose client has said something.
type replay struct{ said *bytes.Reader }

func (r *replay) Read(b []byte) (int, error)     { return r.said.Read(b) }
func (*replay) Write(b []byte) (int, error)      { return len(b), nil }
func (*replay) Close() error                     { return nil }
func (*replay) LocalAddr() net.Addr              { return nil }
func (*replay) RemoteAddr() net.Addr             { return nil }
func (*replay) SetDeadline(time.Time) error      { return nil }
func (*replay) SetReadDeadline(time.Time) error  { return nil }
func (*replay) SetWriteDeadline(time.Time) error { return nil }

func BenchmarkRead(b *testing.B) {
	all := hello(b, &tls.Config{ServerName: "shop.example", NextProtos: []string{"h2", "http/1.1"}})
	b.Run("this", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			var r sni.Reader
			if name, s := r.Read(all); name != "shop.example" || s != sni.Complete {
				b.Fatal(name, s)
			}
		}
	})
	b.Run("crypto/tls", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if name, ok := byStandard(all); name != "shop.example" || !ok {
				b.Fatal(name, ok)
			}
		}
	})
}
