package featuretests

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
)

// staff is a chain that allows the user alice. The passwords are "one" and "two".
const (
	staffOne = "chain staff {\nbasic_auth {\nalice $2a$04$gj/bX30T0AM0c9ZeaJEwwue8hVgrfiCESbqSco7I3wq0wWM48.IzW\n}\n}\n"
	staffTwo = "chain staff {\nbasic_auth {\nalice $2a$04$3QfBDxUgPnGN6btFyB6HZe9AeER4IT/mqdwegjUFOwB40zkBh7Dqm\n}\n}\n"
)

// startChains serves manifests as a document in which requests for the given hosts run through chains.
func startChains(t *testing.T, manifests, chains string, through map[string][]string) *ingress {
	t.Helper()
	in := start(t, manifests)
	document := in.document()
	in.load("source none\n" + chains)
	if status, text := in.put(behind(t, document, through)); status != http.StatusOK {
		t.Fatalf("PUT: %d %s", status, text)
	}
	return in
}

// behind inserts chains in front of the handlers of the given hosts.
func behind(t *testing.T, document []byte, through map[string][]string) []byte {
	t.Helper()
	var whole map[string]any
	if err := json.Unmarshal(document, &whole); err != nil {
		t.Fatal(err)
	}
	app := whole["apps"].(map[string]any)["k8singress"].(map[string]any)
	hosts := app["live"].(map[string]any)["hosts"].(map[string]any)
	for host, chains := range through {
		for _, route := range hosts[host].(map[string]any)["routes"].([]any) {
			first := route.(map[string]any)["chain"].([]any)[0].(map[string]any)
			var handlers []any
			for _, name := range chains {
				handlers = append(handlers, map[string]string{"handler": "k8singress_chain", "name": name})
			}
			first["handle"] = append(handlers, first["handle"].([]any)...)
		}
	}
	changed, err := json.Marshal(whole)
	if err != nil {
		t.Fatal(err)
	}
	return changed
}

// as sends a request with a body and with alice's password, if it is not empty.
func (in *ingress) as(password, method, host, path, body string) answer {
	in.Helper()
	request, err := http.NewRequestWithContext(in.Context(), method, in.origin(host)+path, strings.NewReader(body))
	if err != nil {
		in.Fatal(err)
	}
	if password != "" {
		request.SetBasicAuth("alice", password)
	}
	response, err := in.client.Do(request)
	if err != nil {
		in.Fatal(err)
	}
	return read(in, response)
}

// admits returns an error unless this password, and no other, reaches the backend.
func (in *ingress) admits(password string) error {
	in.Helper()
	for _, try := range []string{"", "one", "two"} {
		want := http.StatusUnauthorized
		if try == password {
			want = http.StatusOK
		}
		if got := in.as(try, http.MethodGet, "staff.example", "/", ""); got.status != want {
			return fmt.Errorf("password %q: %d %s, want %d", try, got.status, got.body, want)
		}
	}
	return nil
}

func TestChainOfBasicAuth(t *testing.T) {
	ip, port := backend(t, "one")
	in := startChains(t, class+service("one", port, ip)+rule("staff", "staff.example", "Prefix", "/", "one")+
		rule("open", "open.example", "Prefix", "/", "one"), staffOne, map[string][]string{"staff.example": {"staff"}})
	in.byEachVersion(t, func(t *testing.T, in *ingress) {
		if err := in.admits("one"); err != nil {
			t.Error(err)
		}
		in.expect("open.example", "/", http.StatusOK, "one /")
		if got := in.get("staff.example", "/"); !strings.HasPrefix(got.header.Get("WWW-Authenticate"), "Basic ") {
			t.Errorf("browsers do not ask for a password: %d %v", got.status, got.header)
		}
	})
}

// TestPlaceholderInChain checks that placeholders in the administrator's text are expanded, and placeholders in the
// Ingress are not.
func TestPlaceholderInChain(t *testing.T) {
	t.Setenv("CHAIN_SECRET", "expanded")
	ip, port := backend(t, "one")
	rewriting := strings.Replace(rule("web", "shop.example", "ImplementationSpecific", "/v1/(.*)", "one"),
		"{name: web}",
		`{name: web, annotations: {nginx.ingress.kubernetes.io/rewrite-target: "/{env.CHAIN_SECRET}/$1"}}`, 1)
	in := startChains(t, class+service("one", port, ip)+rewriting,
		"chain mark {\nheader X-Mark \"{env.CHAIN_SECRET} {http.request.host}\"\n}\n",
		map[string][]string{"shop.example": {"mark"}})
	in.byEachVersion(t, func(t *testing.T, in *ingress) {
		got := in.get("shop.example", "/v1/users")
		if mark := got.header.Get("X-Mark"); mark != "expanded shop.example" {
			t.Errorf("the chain's header is %q", mark)
		}
		if got.status != http.StatusOK || got.body != "one /%7Benv.CHAIN_SECRET%7D/users" {
			t.Errorf("the backend answers %d %q", got.status, got.body)
		}
	})
}

// TestChainsOfOnePath checks that both chains of a path run, in order, although Caddy numbers the groups of both from
// the same start.
func TestChainsOfOnePath(t *testing.T) {
	ip, port := backend(t, "one")
	chain := "chain %[1]s {\nhandle /never {\nrespond no\n}\nhandle {\nheader +X-Seen %[1]s\n}\n}\n"
	in := startChains(t, class+service("one", port, ip)+rule("web", "shop.example", "Prefix", "/", "one"),
		fmt.Sprintf(chain, "first")+fmt.Sprintf(chain, "second"),
		map[string][]string{"shop.example": {"first", "second", "first"}})
	in.byEachVersion(t, func(t *testing.T, in *ingress) {
		got := in.get("shop.example", "/")
		if seen := got.header.Values("X-Seen"); !slices.Equal(seen, []string{"first", "second", "first"}) ||
			got.body != "one /" {
			t.Errorf("%v %q", seen, got.body)
		}
	})
}

// TestChainChangesTheMethod checks that a client that sends HEAD gets no body, even if a chain sends GET to the
// backend. The client would take the body for the start of the next response.
func TestChainChangesTheMethod(t *testing.T) {
	ip, port := backend(t, "one")
	in := startChains(t, class+service("one", port, ip)+rule("web", "shop.example", "Prefix", "/", "one"),
		"chain get {\nmethod GET\n}\n", map[string][]string{"shop.example": {"get"}})
	conn, err := net.Dial("tcp", in.http)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprint(conn,
		"HEAD /1 HTTP/1.1\r\nHost: shop.example\r\n\r\nGET /2 HTTP/1.1\r\nHost: shop.example\r\n"+
			"Connection: close\r\n\r\n")
	answers := bufio.NewReader(conn)
	for _, c := range []struct{ method, body string }{{http.MethodHead, ""}, {http.MethodGet, "one /2"}} {
		response, err := http.ReadResponse(answers, &http.Request{Method: c.method})
		if err != nil {
			t.Fatalf("%s: %v", c.method, err)
		}
		body, err := io.ReadAll(response.Body)
		_ = response.Body.Close()
		if err != nil || string(body) != c.body {
			t.Errorf("%s: the body is %q, %v, want %q", c.method, body, err, c.body)
		}
	}
}

func TestRespondingChain(t *testing.T) {
	ip, port := backend(t, "one")
	in := startChains(t, class+service("one", port, ip)+rule("web", "shop.example", "Prefix", "/", "one"),
		"chain limits {\n@put method PUT\nrespond @put \"not here\" 405\nrequest_body {\nmax_size 8\n}\n}\n",
		map[string][]string{"shop.example": {"limits"}})
	for _, c := range []struct {
		method, body string
		status       int
	}{
		{http.MethodPut, "", http.StatusMethodNotAllowed},
		{http.MethodPost, "12345678", http.StatusOK},
		{http.MethodPost, "123456789", http.StatusRequestEntityTooLarge},
	} {
		in.byEachVersion(t, func(t *testing.T, in *ingress) {
			if got := in.as("", c.method, "shop.example", "/", c.body); got.status != c.status {
				t.Errorf("%s %s: %d %s, want %d", c.method, c.body, got.status, got.body, c.status)
			}
		})
	}
}

// TestChainWithForwardAuth checks a chain with forward_auth, which forwards the requests that another server allows.
func TestChainWithForwardAuth(t *testing.T) {
	ip, port := backend(t, "one")
	guard := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, password, _ := r.BasicAuth(); password != "one" {
			w.WriteHeader(http.StatusForbidden)
		}
	}))
	t.Cleanup(guard.Close)
	in := startChains(t, class+service("one", port, ip)+rule("staff", "staff.example", "Prefix", "/", "one"),
		"chain guard {\nforward_auth "+guard.Listener.Addr().String()+" {\nuri /check\n}\n}\n",
		map[string][]string{"staff.example": {"guard"}})
	in.byEachVersion(t, func(t *testing.T, in *ingress) {
		if got := in.as("", http.MethodGet, "staff.example", "/x", ""); got.status != http.StatusForbidden {
			t.Errorf("without a password: %d %s", got.status, got.body)
		}
		if got := in.as("one", http.MethodGet, "staff.example", "/x", ""); got.status != http.StatusOK ||
			got.body != "one /x" {
			t.Errorf("with the password: %d %s", got.status, got.body)
		}
	})
}

// TestChainKeepsItsFields checks that a client cannot remove a request header that a chain has set by naming the
// header in Connection.
func TestChainKeepsItsFields(t *testing.T) {
	ip, port := endpointOf(t, func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "user %s, of the client %q", r.Header.Get("X-User"), r.Header.Get("X-Own"))
	})
	in := startChains(t, class+service("one", port, ip)+rule("staff", "staff.example", "Prefix", "/", "one"),
		"chain user {\nrequest_header X-User alice\n}\n", map[string][]string{"staff.example": {"user", "user"}})
	in.byHTTP1(t, func(t *testing.T, in *ingress) {
		d := in.connect()
		d.say(
			"GET / HTTP/1.1\r\nHost: staff.example\r\nConnection: X-User, X-Own\r\nX-User: mallory\r\nX-Own: 1\r\n\r\n")
		if got := d.hear(http.MethodGet); got != `200 user alice, of the client ""` {
			t.Errorf("got %q", got)
		}
	})
}

// TestChainIsAnotherAfterReload checks that routes use the chain of the new Caddyfile after a reload, and that a
// chain's handlers are never skipped.
func TestChainIsAnotherAfterReload(t *testing.T) {
	const mark = "chain mark {\nheader X-Mark %s\n}\n"
	ip, port := backend(t, "one")
	in := startChains(t, class+service("one", port, ip)+rule("staff", "staff.example", "Prefix", "/", "one")+
		rule("open", "open.example", "Prefix", "/", "one"), staffOne+fmt.Sprintf(mark, "1"),
		map[string][]string{"staff.example": {"staff"}, "open.example": {"mark"}})
	if err := in.admits("one"); err != nil {
		t.Fatal(err)
	}
	in.load("source none\n" + staffTwo + fmt.Sprintf(mark, "2"))
	in.eventually("the second password", func() error { return in.admits("two") })

	// A removed chain still protects its routes.
	in.load("source none\n" + fmt.Sprintf(mark, "3"))
	in.eventually("the reload", func() error {
		if err := in.admits("two"); err != nil {
			in.Fatal(err)
		}
		if got := in.get("open.example", "/").header.Get("X-Mark"); got != "3" {
			return fmt.Errorf("the mark is %q", got)
		}
		return nil
	})
	if err := in.admits("two"); err != nil {
		t.Error(err)
	}
	in.load("source none\n" + staffOne + fmt.Sprintf(mark, "4"))
	in.eventually("the first password", func() error { return in.admits("one") })
}

func TestMissingChain(t *testing.T) {
	ip, port := backend(t, "one")
	in := startChains(t, class+service("one", port, ip)+rule("staff", "staff.example", "Prefix", "/", "one")+
		rule("open", "open.example", "Prefix", "/", "one"), staffOne, map[string][]string{"staff.example": {"stuff"}})
	if got := in.as("one", http.MethodGet, "staff.example", "/secret",
		""); got.status != http.StatusServiceUnavailable {
		t.Errorf("it is served without the chain: %d %s", got.status, got.body)
	}
	if got := in.reasons("Ingress/default/staff"); !slices.Equal(got, []string{"Quarantined"}) {
		t.Errorf("the reasons are %v", got)
	}
	in.expect("open.example", "/", http.StatusOK, "one /")
}

// TestBadChainIsRefused checks that Caddy rejects a configuration with an invalid chain, and keeps the previous one.
func TestBadChainIsRefused(t *testing.T) {
	in := newIngress(t)
	for _, c := range []struct{ name, routes, says string }{
		{"a password that is no hash", `[{"handle":[{"handler":"authentication","providers":{"http_basic":{
			"accounts":[{"username":"alice","password":"secret"}],"hash":{"algorithm":"none"}}}}]}]`,
			"the chain staff"},
		{"a handler that there is not", `[{"handle":[{"handler":"nothing"}]}]`, "nothing"},
		{"no list", `{"handler":"headers"}`, "decoding the routes of chain staff"},
		{"itself", `[{"handle":[{"handler":"k8singress_chain","name":"staff"}]}]`, "cannot contain another chain"},
		{"itself, further inside", `[{"handle":[{"handler":"subroute","routes":[
			{"handle":[{"handler":"k8singress_chain","name":"staff"}]}]}]}]`, "cannot contain another chain"},
		{"the Ingresses", `[{"handle":[{"handler":"k8singress"}]}]`, "cannot be part of a chain"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, port, err := net.SplitHostPort(in.http)
			if err != nil {
				t.Fatal(err)
			}
			err = caddy.Load(fmt.Appendf(nil,
				`{"admin":{"listen":%q},"apps":{"k8singress":{"http":[":%s"],"https":[],"chains":{"staff":%s}}}}`,
				in.admin, port, c.routes), true)
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("the error is %v, want %q in it", err, c.says)
			}
		})
	}
}

// TestChainBehindFilters checks that response headers of the filters in front of a chain, and of the administrator,
// are set exactly once, whichever handler responds.
func TestChainBehindFilters(t *testing.T) {
	ip, port := endpointOf(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/check" {
			w.Header().Add("Set-Cookie", "a=1")
			return
		}
		fmt.Fprint(w, "web")
	})
	host := func(name, chain string) string {
		return annotated(name, name+".example", "web", "auth-url", "http://"+net.JoinHostPort(ip, port)+"/check",
			"auth-always-set-cookie", "true",
			"k8singress.io/chains", chain, "enable-cors", "true")
	}
	in := start(t, class+service("web", port, ip)+host("through", "mark")+host("answers", "own")+host("fails", "none")+
		configMap("answers", "X-Ask: $request_method $host")+
		global("add-headers: default/answers"), "configmap default/global",
		"chain mark {\nheader X-Mark yes\n}\nchain own {\nrespond own 202\n}\nchain none {\nerror no 418\n}")
	in.byEachVersion(t, func(t *testing.T, in *ingress) {
		for name, want := range map[string]struct {
			status int
			mark   string
		}{"through": {200, "yes"}, "answers": {202, ""}, "fails": {418, ""}} {
			got := in.get(name+".example", "/")
			if cookies := got.header["Set-Cookie"]; got.status != want.status ||
				got.header.Get("X-Mark") != want.mark ||
				!slices.Equal(cookies, []string{"a=1"}) ||
				!slices.Equal(got.header["X-Ask"], []string{"GET " + name + ".example"}) ||
				!slices.Equal(got.header["Access-Control-Allow-Origin"], []string{"*"}) {
				t.Errorf("%s: %d with %v", name, got.status, got.header)
			}
		}
	})
}
