package live_test

import (
	"testing"

	"github.com/k8singress/k8singress/internal/http/live"
	"github.com/k8singress/k8singress/internal/model/document"
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/tls/trust"
	"github.com/k8singress/k8singress/internal/upstream/endpoints"
)

// TestListenerFor checks that the listener with the most specific host name is used, in any order of the listeners.
func TestListenerFor(t *testing.T) {
	all := []live.Listener{
		{Name: "all", Port: 80, Group: "g"}, {Name: "deep", Port: 80, Hostname: "**.example", Group: "g"},
		{Name: "one", Port: 80, Hostname: "*.b.example", Group: "g"},
		{Name: "below", Port: 80, Hostname: "**.b.example", Group: "g"},
		{Name: "exact", Port: 80, Hostname: "a.b.example", Group: "g"},
		{Name: "other", Port: 81, Hostname: "a.b.example", Group: "g"},
		{Name: "gone", Port: 82, Group: "nobody's"},
	}
	for range all {
		all = append(all[1:], all[0])
		table := live.NewTable(endpoints.NewTable(), trust.NewStore())
		table.UpdateGroup("g", nil)
		table.SetListeners(all)
		for name, want := range map[string]string{
			"a.b.example": "exact", "A.B.Example.": "exact", "x.b.example": "one", "y.x.b.example": "below",
			"b.example":   "deep",
			"x.c.example": "deep",
			"example":     "all", "": "all", "xb.example": "deep",
		} {
			if got := table.ListenerFor(80, name); got != want {
				t.Errorf("%q is for the listener %q, want %q", name, got, want)
			}
		}
		for _, port := range []uint16{live.ServerPorts, 82, 83} {
			if got := table.ListenerFor(port, "a.b.example"); got != "" {
				t.Errorf("port %d has the listener %s", port, got)
			}
		}
		if got := table.ListenerFor(81, "x.b.example"); got != "" {
			t.Errorf("a name that no listener of port 81 is for has %s", got)
		}
	}
}

// TestHandshakesOfListeners checks that a handshake on a listener's port uses the hosts of its group, and that a
// handshake on a server port uses the hosts of Ingresses.
func TestHandshakesOfListeners(t *testing.T) {
	table := live.NewTable(endpoints.NewTable(), trust.NewStore())
	table.Update(map[string]*document.Host{"a.example": {TLS: &ir.TLSPolicy{Version: ir.TLS12}}})
	table.UpdateGroup("g", map[string]*document.Host{"a.example": {TLS: &ir.TLSPolicy{Version: ir.TLS13},
		Passthrough: "shop/a/443"}})
	table.SetListeners([]live.Listener{{Name: "l", Port: 443, Hostname: "a.example", Group: "g"}})
	table.MarkReady()
	for port, versions := range map[uint16]string{live.ServerPorts: "tls1.2", 443: "tls1.3"} {
		if !speaks(table, port, "a.example", versions) {
			t.Errorf("port %d does not speak %s", port, versions)
		}
	}
	if speaks(table, 443, "b.example", "tls1.2+tls1.3") ||
		!speaks(table, live.ServerPorts, "b.example", "tls1.2+tls1.3") {
		t.Error("a name that no listener is for has a handshake, or one of the servers has none")
	}
	if table.PassesAny(live.ServerPorts) || !table.PassesAny(443) || passthroughOf(table, 443, "a.example") == nil {
		t.Error("the host of the listener is not passed through, or another one is")
	}
	table.RemoveGroup("g")
	table.SetListeners(nil)
	if speaks(table, 443, "a.example", "tls1.3") || table.PassesAny(443) {
		t.Error("the listener has not gone")
	}
}
