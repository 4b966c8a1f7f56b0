package featuretests

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/k8singress/k8singress/internal/tests/daemons"
	"github.com/k8singress/k8singress/internal/tests/differential"
	"github.com/k8singress/k8singress/internal/tests/fixture"
)

// likeIngressNginx is ingress-nginx's configuration of nginx for all Ingresses, as far as it affects requests. It
// lingers after each connection, so that clients can read the response to a request that was not read. Its argument is
// the endpoint's address.
const likeIngressNginx = `
	lingering_close always;
	client_max_body_size 1m;
	client_header_buffer_size 1k;
	large_client_header_buffers 4 8k;
	underscores_in_headers off;
	ignore_invalid_headers on;
	keepalive_requests 1000;
	map $http_upgrade $connection_upgrade { default upgrade; '' ''; }
	map $http_x_request_id $req_id { default $http_x_request_id; '' $request_id; }
	upstream upstream_balancer { server %s; keepalive 320; }
`

// likePathOfIngressNginx is ingress-nginx's configuration of nginx for a path of an Ingress without annotations, as far
// as it affects requests. The large buffer is for the endpoint's response.
const likePathOfIngressNginx = `
	port_in_redirect off;
	proxy_set_header Host $http_host;
	proxy_set_header Upgrade $http_upgrade;
	proxy_set_header Connection $connection_upgrade;
	proxy_set_header X-Request-ID $req_id;
	proxy_set_header X-Real-IP $remote_addr;
	proxy_set_header X-Forwarded-For $remote_addr;
	proxy_set_header X-Forwarded-Host $http_host;
	proxy_set_header X-Forwarded-Port $server_port;
	proxy_set_header X-Forwarded-Proto $scheme;
	proxy_set_header X-Forwarded-Scheme $scheme;
	proxy_set_header X-Scheme $scheme;
	proxy_set_header X-Original-Forwarded-For $http_x_forwarded_for;
	proxy_set_header Proxy "";
	proxy_http_version 1.1;
	proxy_buffering off;
	proxy_buffer_size 64k;
	proxy_buffers 4 64k;
	proxy_request_buffering on;
	proxy_next_upstream error timeout;
	proxy_pass http://upstream_balancer;
	proxy_redirect off;
`

// TestLikeNginx sends requests to a controller and to nginx, each in front of an endpoint that responds with the
// request it got.
func TestLikeNginx(t *testing.T) {
	ip, port := endpointOf(t, describeSeen)
	in := start(t, class+service("one", port, ip)+rule("a", "", "Prefix", "/", "one"))
	nginx := fixture.Address(t)
	daemons.StartNginx(t, nginx, fmt.Sprintf(likeIngressNginx, ip+":"+port)+
		fmt.Sprintf("server { listen %s; location / { %s } }", nginx, likePathOfIngressNginx))
	comparison := &differential.Comparison{
		Ours: in.http, Theirs: nginx, Rows: unlikeNginx, Requests: 10_000,
		Tell: func(response *http.Response, _ []byte, _ error) string {
			return fmt.Sprintf("%dxx\n%s", response.StatusCode/100, differential.SeenOf(response))
		},
	}
	comparison.Run(t)
}

// loopback matches the addresses of clients, which differ each time.
var loopback = regexp.MustCompile(`127\.0\.0\.\d+`)

// notCompared are fields that each proxy sets to its own value or writes differently.
var notCompared = []string{"Content-Length", "Cdn-Loop", "X-Forwarded-Port"}

func describeSeen(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // The proxy has cut the request off.
	}
	if id := r.Header.Get("X-Request-Id"); len(id) == 32 {
		r.Header.Set("X-Request-Id", "its own")
	}
	r.Header.Set("Connection", strings.ToLower(r.Header.Get("Connection")))
	target := r.RequestURI
	if differential.Digest(target) != target {
		// The digest only shows that the target differs.
		target = unescaped(target)
	}
	var lines strings.Builder
	fmt.Fprintf(&lines, "Method: %s\nTarget: %s\nHost: %s\nLength: %d\nBody: %q\n", r.Method,
		differential.Digest(target), r.Host,
		r.ContentLength, differential.Digest(string(body)))
	for _, name := range slices.Sorted(maps.Keys(r.Header)) {
		if !slices.Contains(notCompared, name) {
			value := loopback.ReplaceAllString(strings.Join(r.Header[name], " | "), "client")
			fmt.Fprintf(&lines, "%s: %s\n", name, differential.Digest(value))
		}
	}
	w.Header().Set(differential.Seen, differential.Quote(lines.String()))
	_, _ = io.WriteString(w, "seen")
}
