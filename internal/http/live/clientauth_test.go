package live_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/k8singress/k8singress/internal/http/live"
	"github.com/k8singress/k8singress/internal/model/document"
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/tls/trust"
	"github.com/k8singress/k8singress/internal/upstream/endpoints"
)

// TestRequestsClientCertificates checks which handshakes request a client certificate.
func TestRequestsClientCertificates(t *testing.T) {
	store := trust.NewStore()
	table := live.NewTable(endpoints.NewTable(), store)
	on := func() *document.Host {
		return &document.Host{ClientAuth: &ir.ClientAuth{Secret: ir.Name{Namespace: "shop", Name: "ca"}, Verify: "on"}}
	}
	store.Update(&document.Delta{Hosts: map[string]*document.Host{"a": on()}})
	off := &document.Host{ClientAuth: &ir.ClientAuth{Secret: ir.Name{Namespace: "shop", Name: "ca"}, Verify: "off"}}
	check := func(want map[string]bool) {
		t.Helper()
		for name, asks := range want {
			if table.HostFor(live.ServerPorts, name).RequestsClientCert() != asks {
				t.Errorf("%q: asks %t", name, !asks)
			}
		}
	}
	table.Update(map[string]*document.Host{"open.example": {}})
	check(map[string]bool{"": false, "a.example": false, "open.example": false})
	table.Update(map[string]*document.Host{"a.example": on(), "*.w.example": on(), "x.w.example": {},
		"off.example": off})
	check(map[string]bool{
		"a.example": true, "A.Example": true, "b.w.example": true, "x.w.example": false, "w.example": false,
		"a.b.w.example": false,
		"off.example":   false, "open.example": false, "": false, "other.example": false,
	})
	table.Update(map[string]*document.Host{"": on(), "a.example": {}})
	check(map[string]bool{"": true, "other.example": true, "a.example": false, "b.w.example": true,
		"open.example": false})
	table.Update(map[string]*document.Host{"": nil, "*.w.example": nil, "off.example": nil})
	check(map[string]bool{"": false, "other.example": false, "b.w.example": false})
}

// TestStreamsOfOthersEnd checks that a stream ends when its host no longer accepts the same clients.
func TestStreamsOfOthersEnd(t *testing.T) {
	table := newTable(t)
	table.SetGlobal(&ir.Global{Drain: time.Millisecond})
	host := func(auth *ir.ClientAuth) *document.Host {
		return &document.Host{Routes: []*document.Route{endlessRoute("/")}, ClientAuth: auth}
	}
	table.Update(map[string]*document.Host{"shop.example": host(nil)})
	ended := open(t, table, "/", http.Header{"Upgrade": {"websocket"}})
	table.Update(map[string]*document.Host{"shop.example": host(nil)})
	table.Update(map[string]*document.Host{"shop.example": host(&ir.ClientAuth{Secret: ir.Name{Namespace: "shop",
		Name: "ca"}, Verify: "on"})})
	await(t, ended, "the stream goes on")
}
