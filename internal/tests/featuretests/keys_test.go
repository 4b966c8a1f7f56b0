package featuretests

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// tuned is an engine whose ConfigMap changes, with hosts that show the effect of keys with the meaning of annotations:
// a.example responds in several ways by path, shop.example has six endpoints, and pair.example two, of which the first
// one fails.
type tuned struct {
	*ingress
	fleet *fleet
	pair  *pair
	// held receives the endpoint that delays a request for /hold until it is released. sent receives when a large
	// response has been sent.
	held chan string
	goOn chan struct{}
	sent chan struct{}
}

const fleetSize = 6

func startTuned(t *testing.T) *tuned {
	t.Helper()
	k := &tuned{pair: startPair(t), held: make(chan string), goOn: make(chan struct{}), sent: make(chan struct{}, 1)}
	k.fleet = newFleet(t, fleetSize+1, func(ip string, _ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/hold" {
			k.held <- ip
			<-k.goOn
		}
	})
	ip, port := endpointOf(t, k.answer)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	_, deaf := hostPort(t, listener.Addr())
	shop := strings.NewReplacer("spec: {", "spec: {clusterIP: "+k.fleet.ip(fleetSize)+", ", "port: 80}",
		"port: "+k.fleet.port+"}").
		Replace(service("shop", k.fleet.port, k.fleet.ips(0, fleetSize)...))
	k.ingress = start(t, class+service("one", port, ip)+service("pair", k.pair.port, "127.0.0.1", "127.0.0.2")+
		service("deaf", deaf, ip)+shop+
		rule("a", "a.example", "Prefix", "/", "one")+annotated("root", "root.example", "one", "app-root", "/app")+
		annotated("pages", "pages.example", "one", "custom-http-errors", "404", "default-backend", "one")+
		annotated("deaf", "deaf.example", "deaf", "proxy-body-size", "0", "proxy-next-upstream", "off")+
		annotated("silent", "silent.example", "one", "proxy-next-upstream", "off")+
		annotated("pair", "pair.example", "pair", "connection-proxy-header", "close",
			"k8singress.io/eject-after-failures", "off")+
		strings.Replace(rule("shop", "shop.example", "Prefix", "/", "shop"), "number: 80", "number: "+k.fleet.port, 1)+
		annotated("cross", "cross.example", "one", "auth-type", "basic", "auth-secret", "other/users")+
		elsewhere("other", htpasswd("users", alicesLine)), "configmap default/global")
	return k
}

// answer is the handler of a.example's endpoint.
func (k *tuned) answer(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/cookie":
		w.Header().Set("Set-Cookie", "a=b; domain=old.example")
	case "/moved":
		w.Header().Set("Location", "http://inner.example/x")
		w.WriteHeader(http.StatusFound)
	case "/length":
		_, _ = io.Copy(io.Discard, r.Body)
		fmt.Fprint(w, r.ContentLength)
	case "/large":
		_, _ = w.Write(make([]byte, 48<<20))
		k.sent <- struct{}{}
	case "/some":
		_, _ = w.Write(make([]byte, 300<<10))
	case "/404":
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprint(w, "its own page")
	case "/silent":
		<-r.Context().Done()
	default:
		fmt.Fprint(w, "the page of ", r.Header.Get("X-Code"))
	}
}

// answers returns the visible parts of a response: its status, Location and cookie, and its body if it is short.
func (k *tuned) answers(host, path string) string {
	k.Helper()
	got := k.get(host, path)
	body := got.body
	if len(body) > 100 {
		body = fmt.Sprint(len(body), " bytes")
	}
	return strings.Join([]string{fmt.Sprint(got.status), got.header.Get("Location"),
		got.header.Get("Set-Cookie"), body}, "|")
}

// spread returns the number of endpoints that get the requests of one client.
func (k *tuned) spread() string {
	k.Helper()
	used := map[string]bool{}
	for range 4 * fleetSize {
		used[k.ask("/?user=alice")] = true
	}
	if used[k.fleet.ip(fleetSize)] {
		return fmt.Sprint(len(used), ", the Service itself")
	}
	return fmt.Sprint(len(used))
}

// spares reports whether an endpoint gets requests while it delays one.
func (k *tuned) spares() string {
	k.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		k.ask("/hold")
	}()
	busy := await(k, "the request that is held", k.held)
	counts := k.count(4 * fleetSize)
	k.goOn <- struct{}{}
	await(k, "the end of the request that was held", done)
	return fmt.Sprint(counts[busy] == 0)
}

// tries returns the status of a request if the first endpoint fails with bad.
func (k *tuned) tries(method string, bad http.HandlerFunc) string {
	k.Helper()
	k.pair.bad.Store(&bad)
	k.pair.asked.take()
	return fmt.Sprint(k.sendBy(k.client, "http://pair.example/", method, nil).status)
}

// within returns an answer. It fails the test if the answer takes as long as the default limit.
func (k *tuned) within(answer func() string) string {
	k.Helper()
	begin := time.Now()
	got := answer()
	took(k, "the answer", begin, 0)
	return got
}

// keyCases maps keys to their effects. The keys in before are set for the first response.
var keyCases = map[string]struct {
	before, after []string
	look          func(k *tuned) string
	first, then   string
}{
	"relative-redirects": {
		nil, []string{"relative-redirects=true"},
		func(k *tuned) string { return k.answers("root.example", "/") }, "302|http://root.example/app||", "302|/app||",
	},
	"proxy-cookie-domain": {
		nil, []string{"proxy-cookie-domain=old.example new.example"},
		func(k *tuned) string { return k.answers("a.example", "/cookie") }, "200||a=b; domain=old.example|",
		"200||a=b; domain=new.example|",
	},
	"proxy-redirect": {
		nil, []string{"proxy-redirect-from=http://inner.example/", "proxy-redirect-to=https://outer.example/"},
		func(k *tuned) string { return k.answers("a.example", "/moved") }, "302|http://inner.example/x||",
		"302|https://outer.example/x||",
	},
	"proxy-request-buffering": {
		nil, []string{"proxy-request-buffering=off"},
		func(k *tuned) string {
			return k.send(http.MethodPost, "/length", struct{ io.Reader }{strings.NewReader("0123456789")}).body
		}, "10", "-1",
	},
	"denylist-source-range": {
		nil, []string{"denylist-source-range=127.0.0.0/8"},
		func(k *tuned) string { return k.answers("a.example", "/") }, "200|||the page of ", "403|||",
	},
	"disable-proxy-intercept-errors": {
		nil, []string{"disable-proxy-intercept-errors=true"},
		func(k *tuned) string { return k.answers("pages.example", "/404") }, "200|||the page of 404",
		"404|||its own page",
	},
	"load-balance":     {nil, []string{"load-balance=least_conn"}, (*tuned).spares, "false", "true"},
	"upstream-hash-by": {nil, []string{"upstream-hash-by=$arg_user"}, (*tuned).spread, "6", "1"},
	"upstream-hash-by-subset": {
		[]string{"upstream-hash-by=$arg_user"}, []string{"upstream-hash-by=$arg_user", "upstream-hash-by-subset=true"},
		(*tuned).spread, "1", "3",
	},
	"upstream-hash-by-subset-size": {
		nil, []string{"upstream-hash-by=$arg_user", "upstream-hash-by-subset=true", "upstream-hash-by-subset-size=2"},
		(*tuned).spread, "6", "2",
	},
	"service-upstream": {nil, []string{"service-upstream=true"}, (*tuned).spread, "6", "1, the Service itself"},
	"proxy-next-upstream": {
		nil, []string{"proxy-next-upstream=off"},
		func(k *tuned) string { return k.tries(http.MethodGet, hangsUp) }, "200", "502",
	},
	"proxy-next-upstream-tries": {
		nil, []string{"proxy-next-upstream-tries=1"},
		func(k *tuned) string { return k.tries(http.MethodGet, hangsUp) }, "200", "502",
	},
	"proxy-next-upstream-timeout": {
		[]string{"proxy-read-timeout=1"}, []string{"proxy-read-timeout=1", "proxy-next-upstream-timeout=1"},
		func(k *tuned) string { return k.tries(http.MethodGet, hangs) }, "200", "504",
	},
	"retry-non-idempotent": {
		nil, []string{"retry-non-idempotent=true"},
		func(k *tuned) string { return k.tries(http.MethodPost, hangsUp) }, "502", "200",
	},
	"allow-cross-namespace-resources": {
		nil, []string{"allow-cross-namespace-resources=true"}, func(k *tuned) string {
			return fmt.Sprint(k.sendBy(k.client, "http://cross.example/", http.MethodGet, nil,
				basic("alice", "one")).status)
		}, "503", "200",
	},
}

// TestKeys checks that a key which corresponds to an annotation has the same effect on all Ingresses, without a
// reload.
func TestKeys(t *testing.T) {
	k := startTuned(t)
	for name, c := range keyCases {
		t.Run(name, func(t *testing.T) {
			for _, step := range []struct {
				keys []string
				want string
			}{{c.before, c.first}, {c.after, c.then}} {
				k.globalKeys(step.keys...)
				other := *k
				other.ingress = k.speaking(t, plain1)
				if got := c.look(&other); got != step.want {
					t.Errorf("with %q: %s, want %s", step.keys, got, step.want)
				}
			}
		})
	}
	k.neverReloads()
}

// settles waits until all files written before have taken effect. It writes another Ingress and waits for it.
func (in *ingress) settles() {
	in.Helper()
	const host = "a.example"
	path := fmt.Sprintf("/settled-%d", time.Now().UnixNano())
	in.write("settled.yaml", annotate(rule("settled", host, "Exact", path, "one"), "permanent-redirect",
		"https://here.example"))
	in.becomes(host, path, http.StatusMovedPermanently, "")
}

// TestKeysOfTime checks the keys that set durations. Their values differ widely from the defaults.
func TestKeysOfTime(t *testing.T) {
	k := startTuned(t)
	k.globalKeys("proxy-read-timeout=1", "proxy-send-timeout=1", "limit-rate=1", "limit-rate-after=1024")
	if got := k.within(func() string { return k.answers("silent.example", "/silent") }); got != "504|||" {
		t.Errorf("an endpoint that says nothing: %s", got)
	}
	if got := k.within(func() string {
		return fmt.Sprint(k.sendBy(k.client, "http://deaf.example/", http.MethodPost,
			strings.NewReader(string(pattern(20<<20)))).status)
	}); got != "504" {
		t.Errorf("an endpoint that takes nothing: %s", got)
	}
	// With limit-rate alone it would take five minutes.
	if got := k.within(func() string { return k.answers("a.example", "/some") }); got != "200|||307200 bytes" {
		t.Errorf("the first megabyte: %s", got)
	}
	k.globalKeys("proxy-buffering=on")
	d := k.connect()
	d.say("%s", get("/large"))
	await(t, "the end at the endpoint of an answer that nobody reads", k.sent)
}
