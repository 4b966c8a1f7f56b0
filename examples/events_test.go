package examples_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	_ "github.com/k8singress/k8singress/examples/events"
	"github.com/k8singress/k8singress/internal/tests/fixture"
)

// notified is a server that gets the events of the example. It does not allow certificates for test.localhost.
type notified struct {
	mu     sync.Mutex
	events map[string]bool
}

// ServeHTTP implements http.Handler.
func (n *notified) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var event struct {
		Type, Source string
		Data         map[string]any
	}
	if err := json.NewDecoder(r.Body).Decode(&event); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	d := event.Data
	text := event.Source + " " + event.Type
	for _, key := range []string{"identifier", "severity", "object", "reason", "sans"} {
		if value, ok := d[key]; ok {
			text += fmt.Sprint(" ", value)
		}
	}
	if event.Type == "k8singress.applied" && d["duration"].(float64) > 0 {
		text += fmt.Sprintf(": %v hosts, %v backends, %v certificates, %v ports, %v listeners", d["hosts"],
			d["backends"], d["certificates"], d["ports"], d["listeners"])
	}
	n.mu.Lock()
	n.events[text] = true
	n.mu.Unlock()
	if event.Type == "cert_obtaining" && d["identifier"] == "test.localhost" {
		w.WriteHeader(http.StatusForbidden)
	}
}

// got returns all events, sorted and without duplicates.
func (n *notified) got() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Sorted(maps.Keys(n.events))
}

// await waits for all the wanted events.
func (n *notified) await(t *testing.T, want ...string) {
	t.Helper()
	fixture.Eventually(t, "the events", func() error {
		got := n.got()
		for _, text := range want {
			if !slices.Contains(got, text) {
				return fmt.Errorf("%q is missing in\n%s", text, strings.Join(got, "\n"))
			}
		}
		return nil
	})
}

// newNotified starts a server, and makes the example send its events to the server instead of the old address.
func newNotified(t *testing.T, old string) (n *notified, address string) {
	t.Helper()
	n = &notified{events: map[string]bool{}}
	server := httptest.NewServer(n)
	t.Cleanup(server.Close)
	replaceInFile(t, "examples/events/Caddyfile", "notify "+old, "notify "+server.URL)
	return n, server.URL
}

// TestEvents checks that the example sends the events of Caddy and of the controller, and that a response with the
// status 403 prevents the order for a certificate. After a reload, the events are sent to the new address.
func TestEvents(t *testing.T) {
	ports := copyWithFreePorts(t, "events")
	n, address := newNotified(t, "http://127.0.0.1:"+ports["9100"])
	// The default storage of this machine may already have the certificates.
	replaceInFile(t, "examples/events/Caddyfile", "\tevents {", "\tstorage file_system "+t.TempDir()+"\n\tevents {")
	start(t, "events")
	n.await(t,
		"k8singress cached_managed_cert [shop.localhost]",
		"k8singress cert_obtained shop.localhost",
		"k8singress cert_obtaining shop.localhost",
		"k8singress cert_obtaining test.localhost",
		"k8singress k8singress.applied: 2 hosts, 2 backends, 2 certificates, 0 ports, 0 listeners",
		"k8singress k8singress.ready",
		"k8singress k8singress.verdict error Ingress/default/cart ServiceNotFound",
		"k8singress k8singress.verdict error Ingress/default/shop ACMEFailed",
	)
	if slices.Contains(n.got(), "k8singress cert_obtained test.localhost") {
		t.Error("the certificate for test.localhost was ordered")
	}
	await(t, newClient(ports), "https://shop.localhost:8443/", "shop: /\n")

	next, _ := newNotified(t, address)
	loadFile(t, "examples/events/Caddyfile")
	replaceInFile(t, "examples/events/manifests/shop.yaml", "path: /cart", "path: /basket")
	const changed = "k8singress k8singress.applied: 1 hosts, 0 backends, 0 certificates, 0 ports, 0 listeners"
	next.await(t, changed, "k8singress cert_obtaining test.localhost")
	if slices.Contains(n.got(), changed) {
		t.Error("the handlers of the old configuration got an event after the reload")
	}
}
