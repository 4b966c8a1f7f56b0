package featuretests

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// quickly is a ConfigMap that ends streams without a drain time.
var quickly = global("worker-shutdown-timeout: 10ms")

// echoed fails the test unless the WebSocket echoes a message.
func (d *dialed) echoed() {
	d.Helper()
	d.say("hello\n")
	if got := d.line(); got != "hello" {
		d.Fatalf("the WebSocket says %q", got)
	}
}

// asAlice opens a WebSocket as alice with the password "one".
func (in *ingress) asAlice(path string) *dialed {
	in.Helper()
	d := in.connect()
	d.say("%s", get(path, append([]string{"Authorization: Basic YWxpY2U6b25l"}, upgrade...)...))
	if got := d.head(http.MethodGet); got.StatusCode != http.StatusSwitchingProtocols {
		in.Fatalf("got %s", got.Status)
	}
	return d
}

// guardedBy returns the Ingress of a.example with annotations.
func guardedBy(annotations string) string {
	return strings.Replace(rule("a", "a.example", "Prefix", "/", "one"), "{name: a}",
		"{name: a, annotations: {"+annotations+"}}", 1)
}

// TestWebSocketsEndWhenOthersGetIn checks that a WebSocket ends after the drain time when a guard of its path is
// added, changed or removed, because its client has to authenticate again. Nothing else ends a WebSocket.
func TestWebSocketsEndWhenOthersGetIn(t *testing.T) {
	const (
		chain  = "k8singress.io/chains: staff"
		closed = "k8singress.io/chains: none-such"
		other  = `nginx.ingress.kubernetes.io/proxy-read-timeout: "7"`
	)
	for name, c := range map[string]struct {
		before, same, after string
		status              int
	}{
		"a chain comes":  {"", other, chain + ", " + other, http.StatusUnauthorized},
		"a chain goes":   {chain, chain + ", " + other, other, http.StatusOK},
		"it is closed":   {"", other, closed, http.StatusServiceUnavailable},
		"one more chain": {chain, chain + ", " + other, "k8singress.io/chains: 'staff, mark'", http.StatusUnauthorized},
	} {
		t.Run(name, func(t *testing.T) {
			ip, port := endpointOf(t, sockets(t, make(chan string, 10)))
			in := start(t, class+quickly+service("one", port, ip), "configmap default/global",
				strings.TrimSuffix(staffOne, "\n"), "chain mark {\nheader X-Mark 1\n}")
			in.write("a.yaml", guardedBy(c.before)+rule("probe", "a.example", "Prefix", "/probe", "one"))
			in.eventually("the Ingress", func() error {
				if got := in.as("one", http.MethodGet, "a.example", "/", ""); got.status != http.StatusOK {
					return fmt.Errorf("it answers %d", got.status)
				}
				return nil
			})
			stream, probe := in.asAlice("/echo"), in.socket("/probe")
			in.write("a.yaml", guardedBy(c.same))
			probe.ends()
			stream.echoed()
			in.write("a.yaml", guardedBy(c.after))
			stream.ends()
			in.becomes("a.example", "/", c.status, "")
		})
	}
}

// TestWebSocketsEndWithTheirChain checks that a WebSocket ends when a reload changes the chain with its name, and
// continues when the reload does not change the chain.
func TestWebSocketsEndWithTheirChain(t *testing.T) {
	ip, port := endpointOf(t, sockets(t, make(chan string, 10)))
	in := newIngress(t)
	in.write("manifests.yaml", class+quickly+service("one", port, ip)+guardedBy("k8singress.io/chains: staff"))
	load := func(chains string) { in.load("manifests " + in.folder + "\nconfigmap default/global\n" + chains) }
	load(staffOne)
	in.eventually("the Ingress", func() error {
		if got := in.as("one", http.MethodGet, "a.example", "/", ""); got.status != http.StatusOK {
			return fmt.Errorf("it answers %d", got.status)
		}
		return nil
	})
	stream := in.asAlice("/echo")
	generation := in.status().Generation
	load(staffOne + "chain mark {\nheader X-Mark 1\n}\n")
	in.eventually("the reload", func() error {
		if now := in.status().Generation; now == generation {
			return fmt.Errorf("the generation is %d", now)
		}
		return nil
	})
	// The next change ends the streams that have to end.
	in.write("probe.yaml", rule("probe", "a.example", "Prefix", "/probe", "one"))
	in.eventually("the probe", func() error { return in.check("a.example", "/probe", http.StatusOK, "") })
	probe := in.socket("/probe")
	in.remove("probe.yaml")
	probe.ends()
	stream.echoed()
	load(staffTwo)
	stream.ends()
	if got := in.as("two", http.MethodGet, "a.example", "/", ""); got.status != http.StatusOK {
		t.Errorf("the new password: %d", got.status)
	}
}

// TestReloadRepairsAChain checks a document that names a chain which is missing in the Caddyfile. After a reload adds
// the chain, the path works and the warning disappears.
func TestReloadRepairsAChain(t *testing.T) {
	ip, port := backend(t, "one")
	in := startChains(t, class+service("one", port, ip)+rule("staff", "staff.example", "Prefix", "/", "one"), "",
		map[string][]string{"staff.example": {"staff"}})
	in.expect("staff.example", "/", http.StatusServiceUnavailable, "")
	if got := in.reasons("Ingress/default/staff"); len(got) != 1 || got[0] != "Quarantined" {
		t.Errorf("the reasons are %v", got)
	}
	in.load("source none\n" + staffOne)
	in.eventually("the chain", func() error { return in.admits("one") })
	in.eventually("no word on it", func() error {
		if got := in.reasons("Ingress/default/staff"); len(got) > 0 {
			return fmt.Errorf("the reasons are %v", got)
		}
		return nil
	})
}
