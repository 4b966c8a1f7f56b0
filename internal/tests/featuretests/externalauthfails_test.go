package featuretests

import (
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/k8singress/k8singress/internal/tests/fixture"
)

// TestExternalAuthFails checks that a service that is down, slow, endless, or responds with garbage lets no client in,
// in any version of HTTP.
func TestExternalAuthFails(t *testing.T) {
	endless := "HTTP/1.1 200 OK\r\n" + strings.Repeat("X-User: "+strings.Repeat("a", 1000)+"\r\n", 100)
	hosts, status := map[string][]string{}, map[string]int{"away": 500}
	hosts["away"] = []string{"auth-url", "http://" + fixture.Address(t)}
	for name, answer := range map[string]string{
		"garbage": "SSH-2.0-OpenSSH\r\n\r\n", "empty": "", "endless": endless, "slow": "wait",
		"switch":   "HTTP/1.1 101 Switching Protocols\r\n\r\n",
		"split":    "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
		"redirect": "HTTP/1.1 302 Found\r\nLocation: /ok\r\n\r\n",
		"longbody": "HTTP/1.1 403 Forbidden\r\nContent-Length: 1000000000\r\n\r\nx",
	} {
		hosts[name], status[name] = []string{"auth-url", "http://" + speaks(t, answer), "proxy-read-timeout", "1"}, 500
	}
	status["longbody"] = 403
	for name, annotations := range map[string][]string{
		"url": {"auth-url", "nowhere"}, "missing": {"auth-url", "AUTH", "auth-proxy-set-headers", "none"},
		"foreign": {"auth-url", "AUTH", "auth-proxy-set-headers", "other/headers"},
		"hop":     {"auth-url", "AUTH", "auth-response-headers", "Connection"},
		"method":  {"auth-url", "AUTH", "auth-method", "CONNECT"},
	} {
		hosts[name], status[name] = annotations, 503
	}
	in, a := externalAuth(t, hosts)
	in.byEachAtOnce(t, func(t *testing.T, in *ingress) {
		for name, want := range status {
			if got := in.get(name+".example", "/"); got.status != want {
				t.Errorf("%s: %d %q, want %d", name, got.status, got.body, want)
			}
		}
	})
	if _, seen := a.taken(); len(seen) > 0 {
		t.Errorf("the backend got %d requests", len(seen))
	}
}

// speaks starts a service that sends the same bytes on each connection. "wait" sends nothing, and keeps the connection
// open as long as the client does.
func speaks(t *testing.T, answer string) string {
	t.Helper()
	listener := fixture.Listen(t)
	fixture.Serve(listener, func(conn net.Conn) {
		buffer := make([]byte, 64<<10)
		if _, err := conn.Read(buffer); err != nil {
			return
		}
		if answer != "wait" && answer != "" {
			if _, err := conn.Write([]byte(answer)); err != nil {
				return
			}
		}
		if answer == "" {
			return
		}
		for {
			if _, err := conn.Read(buffer); err != nil {
				return
			}
		}
	})
	return listener.Addr().String()
}

// TestExternalAuthComesAndGoes checks that a guard rejects requests when an object that it needs disappears, and works
// again when the object is back.
func TestExternalAuthComesAndGoes(t *testing.T) {
	in, a := externalAuth(t, map[string][]string{"told": {"auth-url", "AUTH", "auth-proxy-set-headers", "headers"}})
	closed := func(reason string) {
		t.Helper()
		in.becomes("told.example", "/", http.StatusServiceUnavailable, "")
		in.eventually("verdict", func() error {
			if len(in.messages("Ingress/default/told", reason)) == 0 {
				return fmt.Errorf("there is no %s", reason)
			}
			return nil
		})
	}
	for range 2 {
		closed("ConfigMapNotFound")
		a.answers(letIn)
		closed("ConfigMapNotFound")
		if _, seen := a.taken(); len(seen) > 0 {
			t.Errorf("the backend got %d requests", len(seen))
		}
		in.write("headers.yaml", configMap("headers", "X-App: shop $host {env.HOME}"))
		in.becomes("told.example", "/", http.StatusOK, "web ")
		asked, _ := a.taken()
		if got := asked[len(asked)-1].Header.Get("X-App"); got != "shop told.example {env.HOME}" {
			t.Errorf("the service gets %q", got)
		}
		in.write("headers.yaml", configMap("headers", "X-App: $nosuch"))
		closed("InvalidAnnotation")
		in.remove("headers.yaml")
	}
}

// TestExternalAuthKept checks that responses are cached by the cache key and the host.
func TestExternalAuthKept(t *testing.T) {
	kept := []string{"auth-url", "AUTH", "auth-cache-key", "$http_authorization", "auth-response-headers", "X-User"}
	in, a := externalAuth(t, map[string][]string{"kept": kept, "other": kept})
	in.byEachVersion(t, func(t *testing.T, in *ingress) {
		user := "Authorization: " + in.version
		ask := func(host, field string, want, asked int) {
			t.Helper()
			got := in.sendBy(in.client, in.origin(host)+"/", http.MethodGet, nil, field, "X_USER: mallory")
			questions, seen := a.taken()
			if got.status != want || len(questions) != asked || want == 200 &&
				seen[len(seen)-1].Header.Get("X-User") != "alice" {
				t.Errorf("%s %s: %d, want %d; the service was asked %d times, want %d", host, field, got.status, want,
					len(questions), asked)
			}
		}
		a.answers(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("X-User", "alice")
			if strings.Contains(r.Header.Get("Authorization"), "bad") {
				w.WriteHeader(http.StatusUnauthorized)
			}
		})
		ask("kept.example", user, 200, 1)
		ask("kept.example", user, 200, 1)
		ask("kept.example", user+"bad", 401, 2)
		ask("kept.example", user+"bad", 401, 2)
		ask("other.example", user, 200, 3)
	})
}

// TestGlobalAuth checks that the ConfigMap's key applies to Ingresses that have no auth-url and do not opt out.
func TestGlobalAuth(t *testing.T) {
	in, a := externalAuth(t,
		map[string][]string{
			"all": nil, "own": {"auth-url", "AUTH/own"}, "out": {"enable-global-auth", "false"}, "any": {
				"satisfy", "any", "whitelist-source-range", "127.0.0.0/8",
			},
		},
		"global-auth-url: AUTH/global", "global-auth-response-headers: X-User", "no-auth-locations: /open")
	in.byEachVersion(t, func(t *testing.T, in *ingress) {
		for host, path := range map[string]string{"all": "/global", "own": "/own", "out": "", "any": ""} {
			a.answers(letIn)
			got := in.sendBy(in.client, in.origin(host+".example")+"/", http.MethodGet, nil, "x-USER: mallory")
			asked, seen := a.taken()
			found := ""
			if len(asked) > 0 {
				found = asked[0].URL.Path
			}
			user := map[string]string{"all": "alice", "own": "mallory", "out": "mallory"}[host]
			if got.status != http.StatusOK || found != path || seen[0].Header.Get("X-User") != user {
				t.Errorf("%s: %d, the service was asked for %q, and the backend got %v", host, got.status, found, seen)
			}
		}
	})
}

// TestExternalAuthOfWebSockets checks that an allowed upgrade succeeds, and a denied one is rejected.
func TestExternalAuthOfWebSockets(t *testing.T) {
	in, a := externalAuth(t, map[string][]string{"ws": {"auth-url", "AUTH"}})
	in.byHTTP1(t, func(t *testing.T, in *ingress) {
		upgrade := []string{"Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13",
			"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA=="}
		a.answers(letIn)
		got := in.sendBy(in.client, in.origin("ws.example")+"/", http.MethodGet, nil, upgrade...)
		if asked, seen := a.taken(); got.status != 200 || len(asked) != 1 || asked[0].Header.Get("Upgrade") != "" ||
			seen[0].Header.Get("Upgrade") != "websocket" {
			t.Errorf("%d; the service got %v, the backend %v", got.status, asked, seen)
		}
		a.answers(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) })
		got = in.sendBy(in.client, in.origin("ws.example")+"/", http.MethodGet, nil, upgrade...)
		if _, seen := a.taken(); got.status != http.StatusForbidden || len(seen) != 0 {
			t.Errorf("%d, and the backend got %v", got.status, seen)
		}
	})
}

// TestExternalAuthReachesNothingInside checks that no spelling of the addresses of this machine, of the controller or
// of cloud metadata is requested.
func TestExternalAuthReachesNothingInside(t *testing.T) {
	asked := make(chan string, 1)
	_, port := endpointOf(t, func(_ http.ResponseWriter, r *http.Request) { asked <- r.Host })
	hosts := []string{"127.0.0.1", "localhost", "[::1]", "[::ffff:127.0.0.1]", "0.0.0.0", "2130706433", "127.1",
		"0x7f.0.0.1", "169.254.169.254"}
	in := newIngress(t)
	manifests := class + service("web", port, "192.0.2.1")
	for i, host := range hosts {
		name := fmt.Sprintf("inside%d", i)
		manifests += annotated(name, name+".example", "web", "auth-url", "http://"+host+":"+port,
			"proxy-connect-timeout", "1")
	}
	in.write("manifests.yaml", manifests)
	in.load(fmt.Sprintf("manifests %s\nreach_allow 192.0.2.0/24", in.folder))
	in.awaitReady()
	in.byEachVersion(t, func(t *testing.T, in *ingress) {
		for i, host := range hosts {
			if got := in.get(fmt.Sprintf("inside%d.example", i), "/"); got.status != http.StatusInternalServerError {
				t.Errorf("%s: %d", host, got.status)
			}
		}
	})
	select {
	case host := <-asked:
		t.Errorf("%s was asked", host)
	default:
	}
	// The admin API would return 200, but is never contacted, even if loopback is allowed.
	ip, one := backend(t, "one")
	in.write("admin.yaml", service("one", one, ip)+
		annotated("admin", "admin.example", "one", "auth-url", "http://"+in.admin+"/config/",
			"proxy-connect-timeout", "1"))
	in.load("manifests " + in.folder)
	in.becomes("admin.example", "/", http.StatusInternalServerError, "")
	in.byEachVersion(t, func(_ *testing.T, in *ingress) {
		in.expect("admin.example", "/", http.StatusInternalServerError, "")
	})
}
