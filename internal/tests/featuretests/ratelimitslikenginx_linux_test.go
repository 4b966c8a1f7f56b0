package featuretests

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/k8singress/k8singress/internal/tests/daemons"
	"github.com/k8singress/k8singress/internal/tests/fixture"
)

// limitsOfNginx is ingress-nginx's configuration for limitedHosts with the ConfigMap that limits returns. Its arguments
// are the address to listen on and the address of the endpoint.
const limitsOfNginx = `
	set_real_ip_from 127.0.0.0/8;
	real_ip_header X-Forwarded-For;
	real_ip_recursive on;
	limit_req_status 429;
	limit_conn_status 509;
	geo $remote_addr $allowlist { default 0; 192.0.2.1 1; }
	map $allowlist $limited { 0 $binary_remote_addr; 1 ""; }
	limit_req_zone $binary_remote_addr zone=a_rpm:5m rate=1r/m;
	limit_req_zone $limited zone=b_rpm:5m rate=2r/m;
	limit_req_zone $limited zone=b_rps:5m rate=100r/s;
	limit_conn_zone $limited zone=b_conn:5m;
	limit_req_zone $binary_remote_addr zone=c_rpm:5m rate=1r/m;
	limit_req_zone $binary_remote_addr zone=d_rpm:5m rate=1r/m;
	limit_conn_zone $binary_remote_addr zone=d_conn:5m;
	server {
		listen %[1]s; server_name a.example;
		location / { limit_req zone=a_rpm burst=5 nodelay; proxy_pass http://%[2]s; }
	}
	server {
		listen %[1]s; server_name b.example;
		location / {
			limit_conn b_conn 5;
			limit_req zone=b_rps burst=500 nodelay;
			limit_req zone=b_rpm burst=6 nodelay;
			proxy_pass http://%[2]s;
		}
	}
	server {
		listen %[1]s; server_name c.example;
		location / { limit_req zone=c_rpm burst=1 nodelay; deny 192.0.2.2; allow all; proxy_pass http://%[2]s; }
	}
	server {
		listen %[1]s; server_name d.example;
		location / {
			limit_conn d_conn 1;
			limit_req zone=d_rpm burst=3 nodelay;
			proxy_buffering off;
			proxy_pass http://%[2]s;
		}
	}
`

func limitedHosts() string {
	return annotated("a", "a.example", "one", "limit-rpm", "1") +
		annotated("b", "b.example", "one", "limit-rpm", "2", "limit-rps", "100", "limit-connections", "5",
			"limit-burst-multiplier", "3",
			"limit-allowlist", "192.0.2.1") +
		annotated("c", "c.example", "one", "limit-rpm", "1", "limit-burst-multiplier", "1", "denylist-source-range",
			"192.0.2.2") +
		annotated("d", "d.example", "one", "limit-rpm", "1", "limit-burst-multiplier", "3", "limit-connections", "1")
}

// TestLimitsLikeNginx sends the same requests to a controller and to nginx. Their limits are so slow that the time
// between two requests does not matter, as long as all requests take less time than a client has to wait for its next
// one.
func TestLimitsLikeNginx(t *testing.T) {
	arrived, release := make(chan struct{}, 1), make(chan struct{})
	ip, port := endpointOf(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			_ = http.NewResponseController(w).Flush()
			arrived <- struct{}{}
			<-release
		}
	})
	in := start(t, class+service("one", port, ip)+limitedHosts()+
		limits(`ssl-redirect: "false"`),
		"configmap default/global")
	nginx := fixture.Address(t)
	daemons.StartNginx(t, nginx, fmt.Sprintf(limitsOfNginx, nginx, ip+":"+port))
	// The client of in only connects to the controller.
	both := &http.Client{Timeout: deadline}
	t.Cleanup(both.CloseIdleConnections)
	ask := func(address, host, path, client string) int {
		return in.sendBy(both, "http://"+address+path, http.MethodGet, nil, "Host: "+host,
			"X-Forwarded-For: "+client).status
	}
	began, random := time.Now(), rand.New(rand.NewPCG(1, 2))
	inTime := func() bool { return time.Since(began) < 25*time.Second }
	for n := range 300 {
		host, client := string("abc"[random.IntN(3)])+".example", fmt.Sprintf("192.0.2.%d", random.IntN(9))
		ours, theirs := ask(in.http, host, "/", client), ask(nginx, host, "/", client)
		if ours != theirs && inTime() {
			t.Errorf("request %d, of %s for %s: %d, and nginx answers %d", n, client, host, ours, theirs)
		}
	}
	var got [2][]int
	for i, address := range []string{in.http, nginx} {
		first := make(chan int, 1)
		go func() { first <- ask(address, "d.example", "/slow", "192.0.2.1") }()
		await(t, "the request at the endpoint", arrived)
		for range 5 {
			got[i] = append(got[i], ask(address, "d.example", "/", "192.0.2.1"))
		}
		release <- struct{}{}
		await(t, "the end of the request", first)
	}
	if !slices.Equal(got[0], got[1]) && inTime() {
		t.Errorf("beside another request: %d, and nginx answers %d", got[0], got[1])
	}
}
