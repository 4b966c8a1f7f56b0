package featuretests

import (
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"
)

// limits returns a ConfigMap that lets each test act as many clients, and sets a status code that distinguishes the
// responses of limits. more are more entries.
func limits(more ...string) string {
	return global(append(more, `use-forwarded-headers: "true"`, "proxy-real-ip-cidr: 127.0.0.0/8",
		`limit-req-status-code: "429"`, `limit-conn-status-code: "509"`)...)
}

// addressOf returns an address that no other test and no other version of HTTP uses. The limits of these tests are per
// minute, so that they do not expire during a slow test.
func (in *ingress) addressOf(n int) string {
	return fmt.Sprintf("192.0.%d.%d", slices.Index(versions, in.version), n)
}

// statuses returns the statuses of n requests of one client.
func (in *ingress) statuses(n int, host, path, client string) []int {
	in.Helper()
	var got []int
	for range n {
		got = append(got, in.sendBy(in.client, in.origin(host)+path, http.MethodGet, nil,
			"X-Forwarded-For: "+client).status)
	}
	return got
}

// TestLimitRPM checks that each client, and the Ingress as a whole, may send 1 request plus the burst at once.
// Rejected requests do not reach the checks that nginx runs after its rate limits.
func TestLimitRPM(t *testing.T) {
	ip, port := backend(t, "web")
	in := start(t, class+service("web", port, ip)+
		annotated("limited", "limited.example", "web", "limit-rpm", "1", "limit-burst-multiplier", "2",
			"limit-allowlist", "198.51.100.0/24")+
		annotated("both", "both.example", "web", "limit-rps", "1", "limit-rpm", "1", "limit-burst-multiplier", "1")+
		annotated("denied", "denied.example", "web", "limit-rpm", "1", "limit-burst-multiplier", "1",
			"allowlist-source-range", "203.0.113.1")+
		annotated("moved", "moved.example", "web", "limit-rpm", "1", "permanent-redirect", "https://www.example.com")+
		annotated("bad", "bad.example", "web", "limit-rpm", "one")+
		annotated("older", "older.example", "web", "limit-rpm", "1", "limit-burst-multiplier", "1", "limit-whitelist",
			"198.51.100.0/24")+
		limits(), "configmap default/global")
	in.byEachVersion(t, func(t *testing.T, in *ingress) {
		for _, c := range []struct {
			what, host, client string
			want               []int
		}{
			{"burst", "limited.example", in.addressOf(1), []int{200, 200, 200, 429, 429}},
			{"another Ingress", "both.example", in.addressOf(1), []int{200, 200, 429}},
			{"exempt", "limited.example", "198.51.100.7", []int{200, 200, 200, 200, 200}},
			{"exempt by the older name", "older.example", "198.51.100.7", []int{200, 200, 200, 200, 200}},
			{"not exempt by the older name", "older.example", in.addressOf(3), []int{200, 200, 429}},
			{"who may not come in", "denied.example", in.addressOf(1), []int{403, 403, 429}},
			{"redirects", "moved.example", in.addressOf(1), slices.Repeat([]int{301}, 8)},
			{"a limit that cannot be read", "bad.example", in.addressOf(1), []int{503, 503}},
		} {
			if got := in.statuses(len(c.want), c.host, "/", c.client); !slices.Equal(got, c.want) {
				t.Errorf("%s: %d, want %d", c.what, got, c.want)
			}
		}
	})
}

// TestLimitsOutliveChanges checks that a zone covers all hosts and paths of an Ingress, and keeps its state after
// changes and reloads. A new rate resets it.
func TestLimitsOutliveChanges(t *testing.T) {
	ip, port := backend(t, "web")
	manifests := func(annotations ...string) string {
		limited := annotated("limited", "a.example", "web", annotations...) +
			"  - host: b.example\n    http: {paths: [{path: /b, pathType: Prefix, backend: {service: {name: web, " +
			"port: {number: 80}}}}]}\n"
		return class + service("web", port, ip) + limited + limits()
	}
	in := start(t, manifests("limit-rpm", "1", "limit-burst-multiplier", "1"), "configmap default/global")
	const client = "192.0.2.1"
	got := append(in.statuses(1, "a.example", "/", client), in.statuses(2, "b.example", "/b", client)...)
	if !slices.Equal(got, []int{200, 200, 429}) {
		t.Fatalf("two hosts of an Ingress: %d", got)
	}
	in.write("manifests.yaml", manifests("limit-rpm", "1", "limit-burst-multiplier", "1", "permanent-redirect",
		"https://www.example.com"))
	in.becomes("a.example", "/", http.StatusMovedPermanently, "")
	in.write("manifests.yaml", manifests("limit-rpm", "1", "limit-burst-multiplier", "1", "limit-connections", "7"))
	in.eventually("no redirect any more", func() error {
		if got := in.statuses(1, "a.example", "/", client); got[0] != http.StatusTooManyRequests {
			return fmt.Errorf("%d", got)
		}
		return nil
	})
	in.load(fmt.Sprintf("manifests %s\nconfigmap default/global\nshutdown_delay 1s", in.folder))
	if got := in.statuses(1, "a.example", "/", client); got[0] != http.StatusTooManyRequests {
		t.Errorf("after a reload: %d", got)
	}
	in.write("manifests.yaml", manifests("limit-rpm", "2", "limit-burst-multiplier", "1"))
	in.eventually("another rate", func() error {
		if got := in.statuses(1, "a.example", "/", client); got[0] != http.StatusOK {
			return fmt.Errorf("%d", got)
		}
		return nil
	})
}

// TestLimitConnections checks that a request counts as a connection until its response has ended.
func TestLimitConnections(t *testing.T) {
	arrived, release := make(chan struct{}, 1), make(chan struct{})
	ip, port := endpointOf(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			w.WriteHeader(http.StatusOK)
			_ = http.NewResponseController(w).Flush()
			arrived <- struct{}{}
			<-release
		}
	})
	in := start(t, class+service("one", port, ip)+annotated("a", "a.example", "one", "limit-connections", "1")+
		limits(),
		"configmap default/global")
	in.byEachVersion(t, func(t *testing.T, in *ingress) {
		done := make(chan answer, 1)
		go func() { done <- in.send(http.MethodGet, "/slow", nil, "X-Forwarded-For: "+in.addressOf(1)) }()
		await(t, "the first request at the endpoint", arrived)
		if got := in.statuses(2, "a.example", "/", in.addressOf(1)); !slices.Equal(got, []int{509, 509}) {
			t.Errorf("beside another request: %d", got)
		}
		if got := in.statuses(1, "a.example", "/", in.addressOf(2)); got[0] != http.StatusOK {
			t.Errorf("another client: %d", got)
		}
		release <- struct{}{}
		if got := await(t, "the end of the first answer", done); got.status != http.StatusOK {
			t.Errorf("the first request: %d", got.status)
		}
		in.eventually("the first request counts no more", func() error {
			if got := in.statuses(1, "a.example", "/", in.addressOf(1)); got[0] != http.StatusOK {
				return fmt.Errorf("%d", got)
			}
			return nil
		})
	})
}

// TestLimitConnectionsOfWebSockets checks that a WebSocket counts as a connection until it is closed.
func TestLimitConnectionsOfWebSockets(t *testing.T) {
	ends := make(chan string, 1)
	in := inFront(t, sockets(t, ends), "limit-connections: 1")
	d := in.socket("/echo")
	d.say("hello\n")
	if got := d.line(); got != "hello" {
		t.Errorf("got %q", got)
	}
	if got := in.send(http.MethodGet, "/", nil); got.status != http.StatusServiceUnavailable {
		t.Errorf("beside a WebSocket: %d", got.status)
	}
	_ = d.Close()
	await(t, "the end at the endpoint", ends)
	in.eventually("the WebSocket counts no more", func() error {
		if got := in.send(http.MethodGet, "/", nil); got.status != http.StatusOK {
			return fmt.Errorf("%d", got.status)
		}
		return nil
	})
}

// TestLimitConnZoneVariable checks that the ConfigMap sets the key that identifies a client, and that clients with an
// empty key are not limited.
func TestLimitConnZoneVariable(t *testing.T) {
	ip, port := backend(t, "web")
	in := start(t, class+service("web", port, ip)+annotated("a", "a.example", "web", "limit-rpm", "1",
		"limit-burst-multiplier", "1")+
		limits("limit-conn-zone-variable: $http_x_api_key"),
		"configmap default/global")
	for _, c := range []struct {
		key  string
		want int
	}{
		{"one", 200}, {"two", 200}, {"one", 200}, {"one", 429}, {"two", 200}, {"two", 429}, {"", 200},
		{"", 200}, {"", 200},
	} {
		var headers []string
		if c.key != "" {
			headers = []string{"X-Api-Key: " + c.key}
		}
		if got := in.send(http.MethodGet, "/", nil, headers...); got.status != c.want {
			t.Errorf("%q: %d, want %d", c.key, got.status, c.want)
		}
	}
}

// TestLimitRPS checks that requests beyond the burst are rejected, and that the client gets in again a second later,
// which would take a minute with limit-rpm.
func TestLimitRPS(t *testing.T) {
	ip, port := backend(t, "web")
	in := start(t, class+service("web", port, ip)+annotated("a", "a.example", "web", "limit-rps", "1",
		"limit-burst-multiplier", "1")+
		limits(), "configmap default/global")
	in.eventually("a refusal", func() error {
		if got := in.statuses(10, "a.example", "/", "192.0.2.1"); !slices.Contains(got, http.StatusTooManyRequests) {
			return fmt.Errorf("%d", got)
		}
		return nil
	})
	refused := time.Now()
	in.eventually("the client gets in again", func() error {
		if got := in.statuses(1, "a.example", "/", "192.0.2.1"); got[0] != http.StatusOK {
			return fmt.Errorf("%d", got)
		}
		return nil
	})
	took(t, "it", refused, 0)
}
