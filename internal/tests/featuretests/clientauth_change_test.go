package featuretests

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/k8singress/k8singress/internal/tests/fixture"
)

// handshakes repeatedly opens a connection for a host and sends one request on it, until the test calls stop. stop
// fails the test if any of them failed.
func (in *ingress) handshakes(host string, who *fixture.Identity) (stop func()) {
	ctx, cancel := context.WithCancel(in.Context())
	clients := in.showing(who, host)
	var running sync.WaitGroup
	var asked atomic.Int32
	failures := make(chan error, len(clients))
	for protocol, client := range clients {
		if protocol == secure3 {
			// Its connection stays.
			continue
		}
		running.Go(func() {
			for ctx.Err() == nil {
				asked.Add(1)
				if err := in.onNewConnection(client, "https://"+host+"/"); err != nil {
					failures <- fmt.Errorf("%s over %s: %w", host, protocol, err)
					return
				}
			}
		})
	}
	return func() {
		in.Helper()
		cancel()
		running.Wait()
		close(failures)
		for err := range failures {
			in.Error(err)
		}
		if asked.Load() == 0 {
			in.Errorf("%s was not asked", host)
		}
	}
}

func (in *ingress) onNewConnection(client *http.Client, url string) error {
	defer client.CloseIdleConnections()
	request, err := http.NewRequestWithContext(in.Context(), http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if text, err := io.ReadAll(response.Body); err != nil || response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s %s: %w", response.Status, text, err)
	}
	return nil
}

// answers waits until a client gets a response with this status on a new connection.
func (in *ingress) answers(client *http.Client, host string, status int) {
	in.Helper()
	in.eventually(fmt.Sprintf("%s answers %d", host, status), func() error {
		got := in.fetch(client, "https://"+host+"/")
		client.CloseIdleConnections()
		if got.status != status {
			return fmt.Errorf("it answers %d %q", got.status, got.body)
		}
		return nil
	})
}

// TestClientAuthChangesWithoutReload checks that one host starts to request certificates, another one stops, and a
// third one trusts another certificate authority, all without a Caddy reload and without affecting other hosts.
func TestClientAuthChangesWithoutReload(t *testing.T) {
	ip, port := certificateEndpoint(t)
	first, second := fixture.Authority(t, nil, "first"), fixture.Authority(t, nil, "second")
	alice, carol := person(t, first, "alice"), person(t, second, "carol")
	open := func(name string) string { return rule(name, name+".example", "Prefix", "/", "one") }
	in := start(t, class+service("one", port, ip)+caSecret("stays", first)+open("open")+
		mutualTLSIngress("guarded", "stays"))
	in.write("ca.yaml", caSecret("ca", first))
	in.write("gains.yaml", open("gains"))
	in.write("loses.yaml", mutualTLSIngress("loses", "ca"))
	in.write("changes.yaml", mutualTLSIngress("changes", "ca"))
	nobody := func(host string) *http.Client { return in.showing(nil, host+".example")[secure2] }
	in.answers(nobody("gains"), "gains.example", http.StatusOK)
	in.answers(nobody("loses"), "loses.example", http.StatusBadRequest)
	in.answers(in.showing(alice, "changes.example")[secure1], "changes.example", http.StatusOK)
	loads := in.reloads()
	stops := []func(){
		in.handshakes("open.example", nil), in.handshakes("guarded.example", alice),
	}
	for range 3 {
		in.write("gains.yaml", mutualTLSIngress("gains", "stays"))
		in.answers(nobody("gains"), "gains.example", http.StatusBadRequest)
		in.answers(in.showing(alice, "gains.example")[secure1], "gains.example", http.StatusOK)
		in.write("loses.yaml", open("loses"))
		in.answers(nobody("loses"), "loses.example", http.StatusOK)
		in.write("changes.yaml", mutualTLSIngress("changes", "other")+caSecret("other", second))
		in.answers(in.showing(carol, "changes.example")[secure2], "changes.example", http.StatusOK)
		in.answers(in.showing(alice, "changes.example")[secure1], "changes.example", http.StatusBadRequest)
		in.write("gains.yaml", open("gains"))
		in.answers(nobody("gains"), "gains.example", http.StatusOK)
		in.write("changes.yaml", mutualTLSIngress("changes", "ca"))
		in.answers(in.showing(alice, "changes.example")[secure1], "changes.example", http.StatusOK)
		in.write("loses.yaml", mutualTLSIngress("loses", "ca"))
		in.answers(nobody("loses"), "loses.example", http.StatusBadRequest)
	}
	for _, stop := range stops {
		stop()
	}
	if now := in.reloads(); now != loads {
		t.Errorf("Caddy has loaded its configuration: %s, before %s", now, loads)
	}
}

// TestAuthorityChangesOnAnOpenConnection checks that a change of the Secret applies to the next request, not only to
// the next connection.
func TestAuthorityChangesOnAnOpenConnection(t *testing.T) {
	ip, port := certificateEndpoint(t)
	first, second := fixture.Authority(t, nil, "first"), fixture.Authority(t, nil, "second")
	in := start(t, class+service("one", port, ip)+mutualTLSIngress("a", "ca"))
	in.write("ca.yaml", caSecret("ca", first))
	for protocol, client := range in.showing(person(t, first, "alice"), "a.example") {
		status := func(want int) {
			t.Helper()
			in.eventually(protocol, func() error {
				if got := in.fetch(client, "https://a.example/"); got.status != want {
					return fmt.Errorf("%d %q, want %d", got.status, got.body, want)
				}
				return nil
			})
		}
		status(http.StatusOK)
		in.write("ca.yaml", caSecret("ca", second))
		status(http.StatusBadRequest)
		in.write("ca.yaml", caSecret("ca", first))
		status(http.StatusOK)
	}
}

// TestConnectionFromBefore checks that a client with a certificate is not rejected because of a connection or a TLS
// session from before the host requested certificates.
func TestConnectionFromBefore(t *testing.T) {
	ip, port := certificateEndpoint(t)
	root := fixture.Authority(t, nil, "root")
	in := start(t, class+service("one", port, ip)+caSecret("ca", root))
	alice := person(t, root, "alice")
	for _, protocol := range []string{secure1, secure2} {
		in.write("a.yaml", rule("a", "a.example", "Prefix", "/", "one"))
		in.answers(in.showing(nil, "a.example")[protocol], "a.example", http.StatusOK)
		client := in.showing(alice, "a.example")[protocol]
		sessions := tls.NewLRUClientSessionCache(8)
		client.Transport.(*http.Transport).TLSClientConfig.ClientSessionCache = sessions
		if got := in.fetch(client, "https://a.example/"); got.status != http.StatusOK {
			t.Fatalf("%d %q", got.status, got.body)
		}
		if session, ok := sessions.Get("a.example"); !ok || session == nil {
			t.Fatal("the server has given no session to resume")
		}
		in.write("a.yaml", mutualTLSIngress("a", "ca"))
		in.answers(in.showing(nil, "a.example")[protocol], "a.example", http.StatusBadRequest)
		refused := 0
		in.eventually(protocol, func() error {
			got := in.fetch(client, "https://a.example/")
			if got.status != http.StatusOK {
				refused++
				return fmt.Errorf("%d %q", got.status, got.body)
			}
			return nil
		})
		// A connection from before gets one more response, and then ends.
		if refused > 2 {
			t.Errorf("%s: refused %d times", protocol, refused)
		}
	}
}

// TestClientAuthWithoutTLS checks that clients cannot avoid the certificate check by plain HTTP, and that the
// certificate authority still gets the response to its challenge.
func TestClientAuthWithoutTLS(t *testing.T) {
	ip, port := certificateEndpoint(t)
	root := fixture.Authority(t, nil, "root")
	optional := mutualTLSIngress("optional", "ca", "auth-tls-verify-client", "optional")
	solver := rule("solver", "a.example", "Exact", "/.well-known/acme-challenge/token", "one")
	unasked := mutualTLSIngress("unasked", "ca", "auth-tls-verify-client", "off")
	in := start(t, class+service("one", port, ip)+caSecret("ca", root)+mutualTLSIngress("a", "ca")+optional+
		unasked+solver)
	for _, test := range []struct {
		host, path string
		status     int
		body       string
	}{
		{"a.example", "/", http.StatusBadRequest, ""},
		{"a.example", "/.well-known/acme-challenge/other", http.StatusBadRequest, ""},
		{"a.example", "/.well-known/acme-challenge/token", http.StatusOK, "NONE|||"},
		// An endpoint that does not resolve dot segments would serve a path that requires a certificate.
		{"a.example", "/x/../.well-known/acme-challenge/token", http.StatusBadRequest, ""},
		{"optional.example", "/", http.StatusOK, "NONE|||"},
		{"unasked.example", "/", http.StatusOK, "NONE|||"},
	} {
		in.byEachVersion(t, func(t *testing.T, in *ingress) {
			got := in.fetch(in.client, "http://"+in.http+test.path, "Host: "+test.host, "Ssl-Client-Verify: SUCCESS")
			if got.status != test.status || test.body != "" && got.body != test.body {
				t.Errorf("%s%s: %d %q, want %d %q", test.host, test.path, got.status, got.body, test.status, test.body)
			}
		}, secure1, secure2, secure3) // They have TLS.
	}
	over := in.showing(nil, "a.example")[secure1]
	if got := in.fetch(over, "https://a.example/.well-known/acme-challenge/token"); got.status != http.StatusOK {
		t.Errorf("an authority that was redirected gets %d", got.status)
	}
}

// TestOldestIngressSetsClientAuth checks that the oldest Ingress with auth-tls-secret applies to the whole host.
func TestOldestIngressSetsClientAuth(t *testing.T) {
	ip, port := certificateEndpoint(t)
	first, second := fixture.Authority(t, nil, "first"), fixture.Authority(t, nil, "second")
	dated := func(ingress, name, date string) string {
		return strings.Replace(ingress, "{name: "+name, "{name: "+name+", creationTimestamp: "+date, 1)
	}
	on := func(name, path, ca string) string {
		return annotate(rule(name, "a.example", "Prefix", path, "one"), "auth-tls-secret", "default/"+ca)
	}
	in := start(t, class+service("one", port, ip)+caSecret("first", first)+caSecret("second", second)+
		dated(rule("oldest", "a.example", "Prefix", "/open", "one"), "oldest", "2026-01-01T00:00:00Z")+
		dated(on("older", "/older", "first"), "older", "2026-01-02T00:00:00Z")+
		dated(on("younger", "/younger", "second"), "younger", "2026-01-03T00:00:00Z"))
	alice, eve := in.showing(person(t, first, "alice"), "a.example"), in.showing(person(t, second, "eve"), "a.example")
	for _, path := range []string{"/open", "/older", "/younger"} {
		if got := in.fetch(alice[secure2], "https://a.example"+path); got.status != http.StatusOK {
			t.Errorf("%s: %d %q", path, got.status, got.body)
		}
		if got := in.fetch(eve[secure2], "https://a.example"+path); got.status != http.StatusBadRequest {
			t.Errorf("%s: a client of the other authority gets %d", path, got.status)
		}
	}
}
