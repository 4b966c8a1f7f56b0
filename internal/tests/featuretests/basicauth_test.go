package featuretests

import (
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
)

// alicesLine is a line of an htpasswd file. The password is "one".
const alicesLine = "alice:{SHA}/gW83NxJKAEngaXxoqd8u1OY4QY=\n"

// basic returns an Authorization header with a name and a password.
func basic(name, password string) string {
	return "Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte(name+":"+password))
}

// htpasswd returns a Secret in the namespace default with a file of users.
func htpasswd(name string, lines ...string) string {
	return opaque(name, map[string][]byte{"auth": []byte(strings.Join(lines, ""))})
}

// seenBy starts an endpoint that counts requests, and responds with the Authorization header that it gets.
func seenBy(t testing.TB) (ip, port string, seen *atomic.Int32) {
	t.Helper()
	seen = new(atomic.Int32)
	ip, port = endpointOf(t, func(w http.ResponseWriter, r *http.Request) {
		seen.Add(1)
		_, _ = io.Copy(io.Discard, r.Body)
		fmt.Fprintf(w, "%q", r.Header.Values("Authorization"))
	})
	return ip, port, seen
}

// TestBasicAuth checks that a client with a valid name and password gets access, and that the backend sees neither.
func TestBasicAuth(t *testing.T) {
	ip, port, seen := seenBy(t)
	in := start(t, class+service("web", port, ip)+htpasswd("users", alicesLine, "carol:{PLAIN}three:3\n")+
		opaque("map", map[string][]byte{"dan": []byte("{PLAIN}four")})+
		annotated("file", "file.example", "web", "auth-type", "basic", "auth-secret", "users", "auth-realm",
			"Shop, members only")+
		annotated("map", "map.example", "web", "auth-type", "basic", "auth-secret", "default/map",
			"auth-secret-type", "auth-map")+
		annotate(rule("free", "free.example", "Prefix", "/.well-known/acme-challenge", "web"), "auth-type", "basic",
			"auth-secret", "users")+
		annotated("open", "open.example", "web"))
	in.byEachVersion(t, func(t *testing.T, in *ingress) {
		for _, c := range []struct {
			host, header, challenge string
		}{
			{"file.example", "", `Basic realm="Shop, members only"`},
			{"file.example", basic("alice", "two"), `Basic realm="Shop, members only"`},
			{"map.example", basic("alice", "one"), `Basic realm=""`},
			{"file.example", basic("alice", "one"), ""},
			{"file.example", basic("carol", "three"), ""},
			{"map.example", basic("dan", "four"), ""},
		} {
			before := seen.Load()
			got := in.sendBy(in.client, in.origin(c.host)+"/", http.MethodPost, strings.NewReader("body"),
				headers(c.header)...)
			want := answer{status: http.StatusOK, body: "[]"}
			if c.challenge != "" {
				want.status, want.body = http.StatusUnauthorized, got.body
			}
			challenges := got.header.Values("WWW-Authenticate")
			if got.status != want.status || got.body != want.body || strings.Join(challenges, "|") != c.challenge {
				t.Errorf("%s, %s: %d %q %q", c.host, c.header, got.status, got.body, challenges)
			}
			if asked := seen.Load() > before; asked != (c.challenge == "") {
				t.Errorf("%s, %s: the backend was asked: %v", c.host, c.header, asked)
			}
		}
		for _, host := range []string{"open.example", "free.example"} {
			got := in.sendBy(in.client, in.origin(host)+"/.well-known/acme-challenge/x", http.MethodGet, nil,
				basic("alice", "two"))
			if got.body != fmt.Sprintf("[%q]", strings.TrimPrefix(basic("alice", "two"), "Authorization: ")) {
				t.Errorf("without a password: %s: %d %s", host, got.status, got.body)
			}
		}
	})
	for _, secret := range []string{"gW83NxJ", "carol", "three", "dan", "four"} {
		for _, path := range []string{"/k8singress/objects", "/k8singress/status", "/k8singress/config", "/config/"} {
			if text := in.adminText(path); strings.Contains(text, secret) {
				t.Errorf("%q stands in %s", secret, path)
			}
		}
	}
}

// headers returns lines without the empty ones.
func headers(lines ...string) []string {
	return slices.DeleteFunc(lines, func(line string) bool { return line == "" })
}

// adminText returns the response body of the admin API.
func (in *ingress) adminText(path string) string {
	in.Helper()
	response, err := in.admins.Get("http://" + in.admin + path)
	if err != nil {
		in.Fatal(err)
	}
	got := read(in, response)
	if got.status != http.StatusOK || got.body == "" {
		in.Fatalf("%s: %d %q", path, got.status, got.body)
	}
	return got.body
}

// TestBasicAuthNeverOpens checks every way in which the Secret can be invalid: the backend sees only requests with the
// password. A change requires neither a reload nor another document.
func TestBasicAuthNeverOpens(t *testing.T) {
	ip, port, seen := seenBy(t)
	guarded := func(annotations ...string) string {
		return annotated("web", "shop.example", "web", append([]string{"auth-type", "basic"}, annotations...)...)
	}
	others := class + service("web", port, ip) + elsewhere("other", htpasswd("users", alicesLine)) +
		htpasswd("good", alicesLine)
	in := start(t, others+guarded("auth-secret", "users"))
	var speaking []*ingress
	for _, version := range versions {
		speaking = append(speaking, in.speaking(t, version))
	}
	try := func(in *ingress, status int) error {
		for _, header := range []string{"", basic("alice", "two"), basic("alice", "one")} {
			want := status
			if status == http.StatusOK && header != basic("alice", "one") {
				want = http.StatusUnauthorized
			}
			got := in.sendBy(in.client, in.origin("shop.example")+"/", http.MethodGet, nil, headers(header)...)
			if got.status != want {
				return fmt.Errorf("%q: %d, want %d", header, got.status, want)
			}
		}
		return nil
	}
	expect := func(what string, status int, reasons ...string) {
		t.Helper()
		in.eventually(what, func() error { return try(in, status) })
		in.awaitReasons("Ingress/default/web", reasons...)
		before := seen.Load()
		for _, in := range speaking {
			if err := try(in, status); err != nil {
				t.Errorf("%s, %s: %v", what, in.version, err)
			}
		}
		if status != http.StatusOK && seen.Load() != before {
			t.Errorf("%s: the backend has been asked", what)
		}
	}
	expect("missing", http.StatusServiceUnavailable, "SecretNotFound")
	for what, lines := range map[string]string{"garbage": "\x00\xff\n:\nalice\n", "empty": "",
		"an unknown hash": "alice:one\n"} {
		in.write("secret.yaml", htpasswd("users", lines))
		expect(what, http.StatusServiceUnavailable, "InvalidUsers")
	}
	in.write("secret.yaml", opaque("users", map[string][]byte{"alice": []byte("{PLAIN}one")}))
	expect("no file", http.StatusServiceUnavailable, "InvalidUsers")
	in.write("secret.yaml", htpasswd("users", alicesLine))
	expect("mended", http.StatusOK)
	in.write("secret.yaml", htpasswd("users", "alice:{PLAIN}three\n"))
	expect("another password", http.StatusUnauthorized)
	in.write("secret.yaml", htpasswd("users", alicesLine, "bob:unknown\n"))
	expect("one of two", http.StatusOK, "InvalidUsers")
	in.remove("secret.yaml")
	expect("deleted", http.StatusServiceUnavailable, "SecretNotFound")
	in.write("secret.yaml", htpasswd("users", alicesLine))
	expect("restored", http.StatusOK)
	for what, annotations := range map[string][]string{
		"another namespace": {"auth-secret", "other/users"}, "no Secret": nil, "no name": {"auth-secret", "a/b/c"},
		"an unknown type of Secret": {"auth-secret", "good", "auth-secret-type", "file"},
	} {
		in.write("manifests.yaml", others+guarded(annotations...))
		expect(what, http.StatusServiceUnavailable, "InvalidAnnotation")
	}
	if n := in.reloads(); n != "0" {
		t.Errorf("%s reloads", n)
	}
}

// TestSatisfyAny checks that either an allowed address or a password is enough, and that the backend never gets a
// password.
func TestSatisfyAny(t *testing.T) {
	ip, port, _ := seenBy(t)
	anyOf := func(name string, annotations ...string) string {
		return annotated(name, name+".example", "web",
			append([]string{"auth-type", "basic", "auth-secret", "users", "satisfy", "any"}, annotations...)...)
	}
	in := start(t, class+service("web", port, ip)+htpasswd("users", alicesLine)+
		anyOf("allow", "allowlist-source-range", "192.0.2.0/24", "denylist-source-range", "192.0.2.66")+
		anyOf("deny", "denylist-source-range", "192.0.2.66")+anyOf("alone")+
		strings.Replace(anyOf("both", "allowlist-source-range", "192.0.2.0/24"), `"any"`, `"all"`, 1)+
		strings.Replace(anyOf("missing", "allowlist-source-range", "192.0.2.0/24"), `"users"`, `"missing"`, 1)+
		global(`use-forwarded-headers: "true"`, "proxy-real-ip-cidr: 127.0.0.0/8"),
		"configmap default/global")
	const inside, denied, outside = "192.0.2.1", "192.0.2.66", "198.51.100.1"
	in.byEachVersion(t, func(t *testing.T, in *ingress) {
		for _, c := range []struct {
			host, client            string
			without, wrong, correct int
		}{
			{"allow", inside, http.StatusOK, http.StatusOK, http.StatusOK},
			{"allow", denied, http.StatusUnauthorized, http.StatusUnauthorized, http.StatusOK},
			{"allow", outside, http.StatusUnauthorized, http.StatusUnauthorized, http.StatusOK},
			{"deny", inside, http.StatusUnauthorized, http.StatusUnauthorized, http.StatusOK},
			{"deny", denied, http.StatusUnauthorized, http.StatusUnauthorized, http.StatusOK},
			{"alone", inside, http.StatusUnauthorized, http.StatusUnauthorized, http.StatusOK},
			{"both", inside, http.StatusUnauthorized, http.StatusUnauthorized, http.StatusOK},
			{"both", outside, http.StatusForbidden, http.StatusForbidden, http.StatusForbidden},
			{"missing", inside, http.StatusOK, http.StatusOK, http.StatusOK},
			{"missing", outside, http.StatusServiceUnavailable, http.StatusServiceUnavailable,
				http.StatusServiceUnavailable},
		} {
			for header, status := range map[string]int{"": c.without, basic("alice", "two"): c.wrong,
				basic("alice", "one"): c.correct} {
				got := in.sendBy(in.client, in.origin(c.host+".example")+"/", http.MethodGet, nil,
					headers("X-Forwarded-For: "+c.client, header)...)
				if got.status != status || status == http.StatusOK && got.body != "[]" {
					t.Errorf("%s from %s with %q: %d %q, want %d", c.host, c.client, header, got.status,
						got.body, status)
				}
				if asked := got.header.Get("WWW-Authenticate") != ""; asked != (status == http.StatusUnauthorized) {
					t.Errorf("%s from %s with %q: asked for a password: %v", c.host, c.client, header, asked)
				}
			}
		}
	})
}

// TestWebSocketsEndWithTheirUser checks that a WebSocket ends after the drain time when its password is no longer
// valid. Changes of other users do not end it.
func TestWebSocketsEndWithTheirUser(t *testing.T) {
	ip, port := endpointOf(t, sockets(t, make(chan string, 10)))
	in := start(t, class+quickly+service("one", port, ip)+
		guardedBy("nginx.ingress.kubernetes.io/auth-type: basic, nginx.ingress.kubernetes.io/auth-secret: users"),
		"configmap default/global")
	in.write("secret.yaml", htpasswd("users", alicesLine))
	admits := func(name, password string, status int) {
		t.Helper()
		in.eventually("the users", func() error {
			if got := in.sendBy(in.client, in.origin("a.example")+"/", http.MethodGet, nil,
				basic(name, password)); got.status != status {
				return fmt.Errorf("%s: %d", name, got.status)
			}
			return nil
		})
	}
	admits("alice", "one", http.StatusOK)
	stream := in.asAlice("/echo")
	in.write("secret.yaml", htpasswd("users", alicesLine, "carol:{PLAIN}three\n"))
	admits("carol", "three", http.StatusOK)
	stream.echoed()
	in.write("secret.yaml", htpasswd("users", "carol:{PLAIN}three\n"))
	stream.ends()
	admits("alice", "one", http.StatusUnauthorized)
	admits("carol", "three", http.StatusOK)
}

// TestUserInVariables checks that variables and error pages still have the user of a request after its password was
// verified, although the backend does not get the password.
func TestUserInVariables(t *testing.T) {
	ip, port := endpointOf(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/replaced" {
			w.WriteHeader(http.StatusGone)
		}
		fmt.Fprintf(w, "%s %q %q", r.URL.Path, r.Header.Values("X-WebAuth-User"), r.Header.Values("Authorization"))
	})
	const user = "proxy_set_header X-WEBAUTH-USER $remote_user; add_header X-User $remote_user;"
	guarded := func(name, path, to, snippet string) string {
		return annotate(rule(name, "shop.example", "Prefix", path, to), "auth-type", "basic", "auth-secret", "users",
			"configuration-snippet", snippet)
	}
	in := start(t, class+allowingSnippets()+service("web", port, ip)+service("none", "80")+
		htpasswd("users", alicesLine)+guarded("web", "/", "web", user)+
		guarded("none", "/none", "none", "error_page 503 = /page;")+
		annotate(rule("replaced", "shop.example", "Prefix", "/replaced", "web"), "auth-type", "basic",
			"auth-secret", "users", "custom-http-errors", "410", "default-backend", "web"), "configmap default/global")
	in.byEachVersion(t, func(t *testing.T, in *ingress) {
		for path, want := range map[string]string{
			"/": `/ ["alice"] []`, "/none": `/page ["alice"] []`,
		} {
			got := in.fetch(in.client, in.origin("shop.example")+path, basic("alice", "one"), "X-WebAuth-User: admin")
			if got.status != http.StatusOK || got.body != want || got.header.Get("X-User") != "alice" {
				t.Errorf("%s: %d %s, X-User %q, want %s", path, got.status, got.body, got.header.Get("X-User"), want)
			}
		}
		replaced := in.fetch(in.client, in.origin("shop.example")+"/replaced", basic("alice", "one"))
		if replaced.body != `/ [] []` {
			t.Errorf("an error page of the default backend: %d %s", replaced.status, replaced.body)
		}
		if got := in.fetch(in.client, in.origin("shop.example")+"/none"); got.status != http.StatusUnauthorized {
			t.Errorf("without a password: %d %s", got.status, got.body)
		}
	})
}

// TestPasswordBesideExternalAuth checks both kinds of authentication on one host. With satisfy any, the service is
// queried for requests without a valid password, and the backend accepts only the service's user headers. With both
// required, the service sees the password, and may replace the Authorization header.
func TestPasswordBesideExternalAuth(t *testing.T) {
	both := []string{"auth-type", "basic", "auth-secret", "users", "auth-url", "AUTH/",
		"auth-response-headers", "X-User"}
	in, a := externalAuth(t, map[string][]string{
		"any": append([]string{"satisfy", "any"}, both...), "all": slices.Clone(both),
		"word": append(slices.Clone(both[:6]), "auth-response-headers", "X-User,authorization"),
	})
	in.write("secret.yaml", htpasswd("users", alicesLine))
	service := func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Pass") == "" {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		w.Header().Set("X-User", "bob")
		w.Header().Set("Authorization", "Bearer word")
	}
	in.eventually("the users", func() error {
		if got := in.get("all.example", "/"); got.status != http.StatusUnauthorized {
			return fmt.Errorf("%d", got.status)
		}
		return nil
	})
	right, wrong := basic("alice", "one"), basic("alice", "two")
	for _, c := range []struct {
		host, header, pass  string
		status, asked       int
		user, authorization string
	}{
		{"any", right, "", http.StatusOK, 0, "", ""},
		{"any", wrong, "X-Pass: 1", http.StatusOK, 1, "bob", ""},
		{"any", wrong, "", http.StatusUnauthorized, 1, "", ""},
		{"any", "", "", http.StatusUnauthorized, 1, "", ""},
		{"all", right, "X-Pass: 1", http.StatusOK, 1, "bob", ""},
		{"all", right, "", http.StatusForbidden, 1, "", ""},
		{"all", wrong, "X-Pass: 1", http.StatusUnauthorized, 0, "", ""},
		{"word", right, "X-Pass: 1", http.StatusOK, 1, "bob", "Bearer word"},
	} {
		a.answers(service)
		got := in.sendBy(in.client, "http://"+c.host+".example/", http.MethodGet, nil,
			headers("X-User: mallory", c.header, c.pass)...)
		asked, seen := a.taken()
		if got.status != c.status || len(asked) != c.asked || len(seen) > 0 != (c.status == http.StatusOK) {
			t.Errorf("%+v: %d, the service is asked %d times, and the backend %d", c, got.status, len(asked), len(seen))
			continue
		}
		if challenged := got.header.Get("WWW-Authenticate") != ""; challenged != (c.status == http.StatusUnauthorized) {
			t.Errorf("%+v: asked for a password: %v", c, challenged)
		}
		for _, r := range asked {
			if r.Header.Get("Authorization") != strings.TrimPrefix(c.header, "Authorization: ") {
				t.Errorf("%+v: the service gets %q", c, r.Header["Authorization"])
			}
		}
		for _, r := range seen {
			if r.Header.Get("X-User") != c.user || strings.Join(r.Header["Authorization"], "|") != c.authorization {
				t.Errorf("%+v: the backend gets %v", c, r.Header)
			}
		}
	}
}
