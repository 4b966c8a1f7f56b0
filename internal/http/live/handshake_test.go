package live_test

import (
	"crypto/tls"
	"slices"
	"testing"

	"github.com/k8singress/k8singress/internal/http/live"
	"github.com/k8singress/k8singress/internal/model/document"
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/upstream/endpoints"
)

var (
	aes = ir.TLSPolicy{Version: ir.TLS12, Ciphers: []string{"TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"}}
	cbc = ir.TLSPolicy{Ciphers: []string{"TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA"}}
)

func tableOfHandshakes(t *testing.T) *live.Table {
	table := tableWith(t, endpoints.NewTable())
	table.Update(map[string]*document.Host{
		"picky.example": {TLS: &aes}, "old.example": {TLS: &cbc}, "plain.example": {},
		"*.wild.example": {TLS: &ir.TLSPolicy{Version: ir.TLS13}},
		"":               {TLS: &aes},
	})
	return table
}

func speaks(table *live.Table, port uint16, server, versions string) bool {
	return table.Speaks(table.HostFor(port, server), server, versions)
}

// TestVersionsOfHandshakes checks that each server name uses exactly one choice of TLS versions, in any spelling.
func TestVersionsOfHandshakes(t *testing.T) {
	table := tableOfHandshakes(t)
	speak := func(want map[string]string) {
		t.Helper()
		for host, want := range want {
			for _, versions := range []string{"tls1.2", "tls1.3", "tls1.2+tls1.3"} {
				if got := speaks(table, live.ServerPorts, host, versions); got != (versions == want) {
					t.Errorf("%q speaks %s: %t, want %s", host, versions, got, want)
				}
			}
		}
	}
	speak(map[string]string{
		"picky.example": "tls1.2", "PICKY.example.": "tls1.2", "old.example": "tls1.2+tls1.3",
		"plain.example":  "tls1.2+tls1.3",
		"a.wild.example": "tls1.3", "nobody.example": "tls1.2", "": "tls1.2",
	})
	table.SetGlobal(&ir.Global{TLS: ir.TLSPolicy{Version: ir.TLS13}})
	speak(map[string]string{"picky.example": "tls1.2", "plain.example": "tls1.3"})
}

// TestCiphersOfHandshakes checks that a host uses its own ciphers, that other hosts use the ciphers of the
// configuration, and that the configuration is not changed. HTTP/2 must not be offered where it is disabled or would
// fail.
func TestCiphersOfHandshakes(t *testing.T) {
	table := tableOfHandshakes(t)
	config := &tls.Config{NextProtos: []string{"h2", "http/1.1"},
		CipherSuites: []uint16{tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256}}
	agree := func(host string, cipher uint16, protocols ...string) {
		t.Helper()
		got := table.Handshake(table.HostFor(live.ServerPorts, host), config)
		if !slices.Equal(got.CipherSuites, []uint16{cipher}) || !slices.Equal(got.NextProtos, protocols) {
			t.Errorf("%q has the ciphers %x and the protocols %q, want %x and %q", host, got.CipherSuites,
				got.NextProtos, cipher, protocols)
		}
	}
	agree("picky.example", tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256, "h2", "http/1.1")
	agree("old.example", tls.TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA, "http/1.1")
	agree("plain.example", tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256, "h2", "http/1.1")
	agree("nobody.example", tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256, "h2", "http/1.1")
	table.SetGlobal(&ir.Global{TLS: cbc, OnlyHTTP1: true})
	agree("picky.example", tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256, "http/1.1")
	agree("plain.example", tls.TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA, "http/1.1")
}

// BenchmarkHandshakes measures the cost of the table for a handshake that uses the last of six policies.
func BenchmarkHandshakes(b *testing.B) {
	table := tableWith(b, endpoints.NewTable())
	config := new(tls.Config)
	b.ReportAllocs()
	for b.Loop() {
		host := table.HostFor(live.ServerPorts, "shop.example")
		for range 5 {
			table.Speaks(host, "shop.example", "tls1.2")
		}
		if !table.Speaks(host, "shop.example", "tls1.2+tls1.3") || table.Handshake(host, config) != config {
			b.Fatal("refused")
		}
	}
}
