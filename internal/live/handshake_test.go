package live_test

import (
	"testing"

	"github.com/k8singress/k8singress/internal/document"
	"github.com/k8singress/k8singress/internal/endpoints"
	"github.com/k8singress/k8singress/internal/ir"
)

// TestHandshakes: what Caddy's configuration does not have yet is served with its versions, by the policy of those.
func TestHandshakes(t *testing.T) {
	aes := ir.TLSPolicy{Version: ir.TLS12, Ciphers: []string{"TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"}}
	handshake := aes.Effective(false)
	own := handshake.Name()
	table := tableWith(t, endpoints.NewTable())
	table.Update(map[string]*document.Host{
		"picky.example": {TLS: &aes}, "plain.example": {}, "*.wild.example": {TLS: &ir.TLSPolicy{Version: ir.TLS13}}, "": {TLS: &aes},
	})
	for _, c := range []struct{ host, policy, reject string }{
		{"picky.example", own, "tls1.3"},
		{"picky.example", "tls1.2", "tls1.2+tls1.3"},
		{"PICKY.example.", own, "tls1.3"},
		{"plain.example", "tls1.2+tls1.3", own},
		{"a.wild.example", "tls1.3", "tls1.2+tls1.3"},
		{"nobody.example", own, "tls1.2+tls1.3"},
		{"", "tls1.2", "tls1.3"},
	} {
		if !table.Handshakes(c.host, c.policy) || table.Handshakes(c.host, c.reject) {
			t.Errorf("%q: %s is %t, %s is %t", c.host, c.policy, table.Handshakes(c.host, c.policy), c.reject, table.Handshakes(c.host, c.reject))
		}
	}
	if wanted := table.Wanted(); len(wanted) != 1 || wanted[0].Name() != own {
		t.Errorf("wanted are %v", wanted)
	}
	table.SetGlobal(&ir.Global{TLS: ir.TLSPolicy{Version: ir.TLS13}, OnlyHTTP1: true})
	for policy, want := range map[string]bool{"tls1.3/http1": true, "tls1.3": true, "tls1.2": false} {
		if got := table.Handshakes("plain.example", policy); got != want {
			t.Errorf("what holds for all is %s: %t", policy, got)
		}
	}
	table.Update(map[string]*document.Host{"picky.example": nil, "": nil})
	for _, h := range table.Wanted() {
		if len(h.Ciphers) > 0 {
			t.Errorf("%s is wanted by nobody", h.Name())
		}
	}
}

// BenchmarkHandshakes is what a handshake costs that comes to the last of six policies.
func BenchmarkHandshakes(b *testing.B) {
	table := tableWith(b, endpoints.NewTable())
	b.ReportAllocs()
	for b.Loop() {
		for range 5 {
			table.Handshakes("shop.example", "tls1.3/0123456789abcdef")
		}
		if !table.Handshakes("shop.example", "tls1.2+tls1.3") {
			b.Fatal("refused")
		}
	}
}
