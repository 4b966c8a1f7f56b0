package featuretests

import (
	"context"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/k8singress/k8singress/internal/tests/fixture"
)

// fleet holds the endpoints of one Service: servers on one port of several loopback addresses. Each responds with its
// address.
type fleet struct {
	testing.TB
	port    string
	handler func(ip string, w http.ResponseWriter, r *http.Request)
	servers map[string]*httptest.Server
	// asked counts the requests by address, whether or not they got a response.
	asked map[string]*atomic.Int32
}

// newFleet starts n servers. If handler is not nil, it runs before the response is written.
func newFleet(t testing.TB, n int, handler func(ip string, w http.ResponseWriter, r *http.Request)) *fleet {
	t.Helper()
	f := &fleet{TB: t, handler: handler, servers: map[string]*httptest.Server{}, asked: map[string]*atomic.Int32{}}
	t.Cleanup(func() {
		for _, server := range f.servers {
			server.Close()
		}
	})
	f.port = fixture.Port(t)
	for i := range n {
		f.asked[f.ip(i)] = new(atomic.Int32)
		f.up(f.ip(i))
	}
	return f
}

func (*fleet) ip(i int) string { return fmt.Sprintf("127.0.3.%d", i+1) }

func (f *fleet) ips(first, behind int) []string {
	var all []string
	for i := first; i < behind; i++ {
		all = append(all, f.ip(i))
	}
	return all
}

func (f *fleet) listen(ip string) net.Listener {
	f.Helper()
	l, err := net.Listen("tcp", net.JoinHostPort(ip, f.port))
	if err != nil {
		f.Fatal(err)
	}
	return l
}

// up makes an endpoint respond to requests.
func (f *fleet) up(ip string) {
	f.Helper()
	f.down(ip)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if f.handler != nil {
			f.handler(ip, w, r)
		}
		f.asked[ip].Add(1)
		fmt.Fprint(w, ip)
	}))
	server.Listener.Close()
	server.Listener = f.listen(ip)
	server.Start()
	f.servers[ip] = server
}

// down makes an endpoint refuse connections.
func (f *fleet) down(ip string) {
	if server := f.servers[ip]; server != nil {
		server.CloseClientConnections()
		server.Close()
		delete(f.servers, ip)
	}
}

// resetting is a listener that closes each connection at once, and counts the connections.
type resetting struct {
	net.Listener
	count *atomic.Int32
}

func (l resetting) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		l.count.Add(1)
		_ = c.Close()
	}
}

// broken makes an endpoint close every connection, so that attempts can be counted.
func (f *fleet) broken(ip string) {
	f.Helper()
	f.down(ip)
	f.asked[ip].Store(0)
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.Listener.Close()
	server.Listener = resetting{f.listen(ip), f.asked[ip]}
	server.Start()
	f.servers[ip] = server
}

// fleetOf starts a fleet for one Service "web", and an ingress that routes the host "shop.example" to it.
func fleetOf(t testing.TB, n int, handler func(string, http.ResponseWriter, *http.Request),
	annotations ...string) (*ingress, *fleet) {
	t.Helper()
	f := newFleet(t, n, handler)
	return start(t, class+service("web", f.port, f.ips(0, n)...)+annotated("web", "shop.example", "web",
		annotations...)), f
}

// ask sends a request to shop.example, with alternating names and values of headers, and returns the endpoint that
// responds.
func (in *ingress) ask(path string, headers ...string) string {
	in.Helper()
	return in.askWith(in.client, path, headers...).body
}

func (in *ingress) askWith(client *http.Client, path string, headers ...string) answer {
	in.Helper()
	return in.askAs(client, "shop.example", path, headers...)
}

// askAs sends a request to a host, with alternating names and values of headers.
func (in *ingress) askAs(client *http.Client, host, path string, headers ...string) answer {
	in.Helper()
	var lines []string
	for i := 0; i < len(headers); i += 2 {
		lines = append(lines, headers[i]+": "+headers[i+1])
	}
	got := in.sendBy(client, in.origin(host)+path, http.MethodGet, nil, lines...)
	if got.status != http.StatusOK {
		in.Fatalf("%s: %d %s", path, got.status, got.body)
	}
	return got
}

// count sends n requests, and returns the number of responses of each endpoint.
func (in *ingress) count(n int) map[string]int {
	in.Helper()
	counts := map[string]int{}
	for range n {
		counts[in.ask("/")]++
	}
	return counts
}

// from returns a client that connects from its own loopback address.
func from(in *ingress, i int) *http.Client {
	in.Helper()
	dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 4, byte(i+1))}}
	transport := &http.Transport{DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return dialer.DialContext(ctx, network, in.http)
	}}
	in.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: deadline}
}

func TestRoundRobinIsEven(t *testing.T) {
	in, f := fleetOf(t, 3, nil)
	counts := in.count(30)
	for _, ip := range f.ips(0, 3) {
		if counts[ip] != 10 {
			t.Errorf("%s has %d of 30 requests", ip, counts[ip])
		}
	}
}

// respondAfter waits for a time, or until the client has disconnected.
func respondAfter(d time.Duration, r *http.Request) {
	select {
	case <-r.Context().Done():
	case <-time.After(d):
	}
}

// TestEWMAPrefersTheFastOne checks that a slow endpoint gets few requests. It is so slow that the other endpoint is
// faster on a busy machine as well.
func TestEWMAPrefersTheFastOne(t *testing.T) {
	in, f := fleetOf(t, 2, func(ip string, _ http.ResponseWriter, r *http.Request) {
		if ip == "127.0.3.1" {
			respondAfter(time.Second, r)
		}
	}, "load-balance", "ewma")
	if counts := in.count(20); counts[f.ip(0)] > 5 || counts[f.ip(0)] == 0 {
		t.Errorf("the slow endpoint has %d of 20 requests", counts[f.ip(0)])
	}
}

// TestEWMAMeasuresTheHeadOfAStream checks that the duration of a download, an event stream or a WebSocket does not make
// its endpoint look slow.
func TestEWMAMeasuresTheHeadOfAStream(t *testing.T) {
	in, f := fleetOf(t, 2, func(ip string, w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/stream":
			_ = http.NewResponseController(w).Flush()
			respondAfter(1500*time.Millisecond, r)
		case ip == "127.0.3.2":
			respondAfter(500*time.Millisecond, r)
		}
	}, "load-balance", "ewma")
	in.count(4)
	for in.ask("/stream") != f.ip(0) {
	}
	if counts := in.count(20); counts[f.ip(0)] < 15 {
		t.Errorf("the endpoint that answers at once has %d of 20 requests after a stream", counts[f.ip(0)])
	}
}

func TestLeastConnLeavesABusyOneAlone(t *testing.T) {
	held, end := make(chan string, 2), make(chan struct{})
	in, _ := fleetOf(t, 2, func(ip string, _ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/hold" {
			held <- ip
			<-end
		}
	}, "load-balance", "least_conn")
	var holding sync.WaitGroup
	holding.Go(func() { in.ask("/hold") })
	busy := fixture.Receive(t, "the request that is held", held)
	counts := in.count(20)
	close(end)
	holding.Wait()
	if counts[busy] > 0 {
		t.Errorf("the busy endpoint has %d of 20 requests", counts[busy])
	}
}

func TestRandom(t *testing.T) {
	in, f := fleetOf(t, 3, nil, "load-balance", "random")
	counts, repeated, before := map[string]int{}, 0, ""
	for range 90 {
		now := in.ask("/")
		if counts[now]++; now == before {
			repeated++
		}
		before = now
	}
	for _, ip := range f.ips(0, 3) {
		if counts[ip] < 10 {
			t.Errorf("%s has %d of 90 requests", ip, counts[ip])
		}
	}
	if repeated == 0 {
		t.Error("they take turns")
	}
}

// keyed maps variables of upstream-hash-by to functions that send a request with a key.
var keyed = map[string]func(in *ingress, key int) string{
	"$request_uri": func(in *ingress, key int) string { return in.ask(fmt.Sprintf("/%d?q=1", key)) },
	"$http_x_user": func(in *ingress, key int) string { return in.ask("/", "X-User", fmt.Sprint("user ", key)) },
	"$cookie_user": func(in *ingress, key int) string { return in.ask("/", "Cookie", fmt.Sprint("a=b; user=", key)) },
	"$arg_user":    func(in *ingress, key int) string { return in.ask(fmt.Sprintf("/?a=b&user=%d", key)) },
	"$remote_addr": func(in *ingress, key int) string { return in.askWith(from(in, key), "/").body },
	"${host}$arg_a-$arg_b": func(in *ingress, key int) string {
		return in.ask(fmt.Sprintf("/?a=%d&b=%d", key%7, key/7))
	},
}

func TestUpstreamHashBy(t *testing.T) {
	const keys = 60
	for variable, ask := range keyed {
		t.Run(variable, func(t *testing.T) {
			in, f := fleetOf(t, 4, nil, "upstream-hash-by", variable)
			homes, used := map[int]string{}, map[string]int{}
			for key := range keys {
				homes[key] = ask(in, key)
				if used[homes[key]]++; ask(in, key) != homes[key] {
					t.Errorf("the key %d has two endpoints", key)
				}
			}
			if len(used) != 4 {
				t.Errorf("%d keys are on %v", keys, used)
			}
			// If one leaves, its keys move, and no others.
			gone := f.ip(2)
			in.write("manifests.yaml", class+service("web", f.port, f.ip(0), f.ip(1), f.ip(3))+
				annotated("web", "shop.example", "web", "upstream-hash-by", variable))
			in.gone(gone, func() string { return ask(in, keyOf(homes, gone)) })
			for key := range keys {
				now := ask(in, key)
				if moved := now != homes[key]; moved != (homes[key] == gone) {
					t.Errorf("the key %d was on %s and is on %s", key, homes[key], now)
				}
			}
		})
	}
}

func keyOf(homes map[int]string, ip string) int {
	for _, key := range slices.Sorted(maps.Keys(homes)) {
		if homes[key] == ip {
			return key
		}
	}
	return 0
}

// gone waits until a removed endpoint gets no more requests.
func (in *ingress) gone(ip string, ask func() string) {
	in.Helper()
	in.eventually(ip+" has left", func() error {
		if ask() == ip {
			return fmt.Errorf("it still answers")
		}
		return nil
	})
}

func TestUpstreamHashBySubset(t *testing.T) {
	in, _ := fleetOf(t, 6, nil, "upstream-hash-by", "$arg_user", "upstream-hash-by-subset", "true",
		"upstream-hash-by-subset-size", "2")
	all := map[string]bool{}
	for user := range 40 {
		own := map[string]bool{}
		for range 22 {
			ip := in.ask(fmt.Sprintf("/?user=%d", user))
			own[ip], all[ip] = true, true
		}
		if len(own) != 2 {
			t.Errorf("user %d has the endpoints %v", user, slices.Sorted(maps.Keys(own)))
		}
	}
	if len(all) != 6 {
		t.Errorf("all users together have the endpoints %v", slices.Sorted(maps.Keys(all)))
	}
}

// TestServiceSessionAffinity checks sessionAffinity of the Service: the address of a client selects the endpoint.
func TestServiceSessionAffinity(t *testing.T) {
	f := newFleet(t, 4, nil)
	in := start(t, class+strings.Replace(service("web", f.port, f.ips(0, 4)...), "spec: {",
		"spec: {sessionAffinity: ClientIP, sessionAffinityConfig: {clientIP: {timeoutSeconds: 600}}, ", 1)+
		rule("web", "shop.example", "Prefix", "/", "web"))
	used := map[string]bool{}
	for i := range 8 {
		client := from(in, i)
		home := in.askWith(client, "/").body
		used[home] = true
		for range 5 {
			if now := in.askWith(client, "/").body; now != home {
				t.Fatalf("client %d goes from %s to %s", i, home, now)
			}
		}
	}
	if len(used) != 4 {
		t.Errorf("8 clients are on %d endpoints", len(used))
	}
}

// TestServiceUpstream checks that requests are sent to the address of the Service, not to its endpoints.
func TestServiceUpstream(t *testing.T) {
	f := newFleet(t, 3, nil)
	virtual := strings.NewReplacer("spec: {", "spec: {clusterIP: "+f.ip(2)+", ", "port: 80}", "port: "+f.port+"}").
		Replace(service("web", f.port, f.ips(0, 2)...))
	of := func(annotations ...string) string {
		return class + virtual + strings.Replace(annotated("web", "shop.example", "web", annotations...), "number: 80",
			"number: "+f.port, 1)
	}
	in := start(t, of("service-upstream", "true"))
	if counts := in.count(10); counts[f.ip(2)] != 10 {
		t.Errorf("10 requests went to %v", counts)
	}
	in.write("manifests.yaml", of())
	in.gone(f.ip(2), func() string { return in.ask("/") })
	if counts := in.count(10); counts[f.ip(0)] != 5 || counts[f.ip(1)] != 5 {
		t.Errorf("10 requests without service-upstream went to %v", counts)
	}
}

func TestZoneHints(t *testing.T) {
	f := newFleet(t, 3, nil)
	slice := service("web", f.port, f.ips(0, 3)...)
	for i, zone := range []string{"a", "b", "a"} {
		address := "addresses: [" + f.ip(i) + "]"
		slice = strings.Replace(slice, address, address+"\n  hints: {forZones: [{name: "+zone+"}]}", 1)
	}
	manifests := class + slice + rule("web", "shop.example", "Prefix", "/", "web")
	in := start(t, manifests, "zone a")
	if counts := in.count(10); counts[f.ip(0)] != 5 || counts[f.ip(2)] != 5 {
		t.Errorf("in zone a: %v", counts)
	}
	in.load("manifests " + in.folder + "\nzone b")
	in.eventually("zone b", func() error {
		if counts := in.count(4); counts[f.ip(1)] != 4 {
			return fmt.Errorf("requests go to %v", counts)
		}
		return nil
	})
}
