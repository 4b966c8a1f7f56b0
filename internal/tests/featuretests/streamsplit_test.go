package featuretests

import (
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/k8singress/k8singress/internal/tests/fixture"
)

// answersOver counts the first lines that TLS connections to a host receive.
func (in *ingress) answersOver(way, host string, roots *x509.CertPool, connections int) map[string]int {
	in.Helper()
	counts := map[string]int{}
	for range connections {
		conn, err := in.reachBy(connect(in, way), host, roots)
		if err != nil {
			in.Fatal(err)
		}
		line, _ := conn.reader.ReadString('\n')
		counts[strings.TrimSpace(line)]++
		conn.Close()
	}
	return counts
}

// TestSharesOfConnections checks that the TLS connections of a host and of a port are split by weight. If no backend
// has a weight, connections are closed and not sent elsewhere: passed-through TLS never ends at the ingress.
func TestSharesOfConnections(t *testing.T) {
	one, two := newTLSEnd(t, "one", "shop.example"), newTLSEnd(t, "two", "shop.example")
	in, port := newIngress(t), fixture.Port(t)
	in.load("source none")
	serve := func(weights ...any) {
		t.Helper()
		split := fmt.Sprintf(`[{"backend":"shop/one/443","weight":%d},{"backend":"shop/two/443","weight":%d}]`,
			weights...)
		document := fmt.Appendf(nil, `{"apps":{"k8singress":{"live":{
			"hosts":{"shop.example":{"routes":[],"passthrough_split":%s}},
			"backends":{"shop/one/443":{"endpoints":[%q]},"shop/two/443":{"endpoints":[%q]}},
			"ports":{"tcp/%[4]s":{"origin":"ConfigMap/shop/services","server":
				{"listen":["tcp/127.0.0.1:%[4]s"],
				"routes":[{"handle":[{"handler":"k8singress","split":%[1]s}]}]}}}}}}}`,
			split, one.ip+":"+one.port, two.ip+":"+two.port, port)
		if status, text := in.put(document); status != http.StatusOK {
			t.Fatalf("PUT: %d %s", status, text)
		}
	}
	serve(3, 1)
	one.roots.AddCert(two.authority)
	for _, way := range []string{in.https, "127.0.0.1:" + port} {
		counts := in.answersOver(way, "shop.example", one.roots, 200)
		if got := counts["one shop.example"]; got < 148 || got > 152 || counts["two shop.example"] != 200-got {
			t.Errorf("of 200 connections to %s, %v", way, counts)
		}
	}
	serve(0, 0)
	if conn, err := net.Dial("tcp", "127.0.0.1:"+port); err == nil {
		conn.Close()
		t.Error("the port is open")
	}
	if conn, err := in.reach("shop.example", nil); err == nil || !strings.Contains(err.Error(), "EOF") &&
		!strings.Contains(err.Error(), "reset") {
		t.Errorf("got %v, %v", conn, err)
	}
	if got := in.message("ConfigMap/shop/services", "Quarantined"); !strings.Contains(got,
		"all weights of the split are zero") {
		t.Errorf("said of the port is %q", got)
	}
	if got := in.message("/", "Quarantined"); !strings.Contains(got, "shop.example") ||
		!strings.Contains(got, "passthrough_split") {
		t.Errorf("said of the host is %q", got)
	}
}
