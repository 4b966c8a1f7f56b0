package featuretests

import (
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

var statusNumbers = regexp.MustCompile(
	`^Active connections: (\d+) \nserver accepts handled requests\n (\d+) (\d+) (\d+) \n` +
		`Reading: \d+ Writing: (\d+) Waiting: \d+ \n$`)

// TestProbes checks that unknown hosts respond to the probes of load balancers and monitors, in each version of HTTP,
// and that a host with an Ingress does not.
func TestProbes(t *testing.T) {
	ip, port := backend(t, "one")
	objects := class + service("one", port, ip) + rule("a", "a.example", "Prefix", "/", "one")
	in := start(t, objects+global(`hsts: "true"`), "configmap default/global")
	in.byEachVersion(t, func(t *testing.T, in *ingress) {
		in.expect("nobody.example", "/healthz", http.StatusOK, "")
		in.expect("nobody.example", "/healthzz", http.StatusNotFound, "")
		in.expect("a.example", "/healthz", http.StatusOK, "one /healthz")
		in.expect("a.example", "/nginx_status", http.StatusOK, "one /nginx_status")
		before := in.numbers()
		in.expect("a.example", "/", http.StatusOK, "one /")
		after := in.numbers()
		// The counters include one more request, and the status request itself.
		if before[0] < 1 || before[3] < 1 || after[3]-before[3] < 2 || after[1] < after[2] || after[4] < 1 {
			t.Errorf("the numbers are %v, and %v after one request more", before, after)
		}
		if got := in.sendBy(in.client, in.origin("nobody.example")+"/nginx_status", http.MethodPost,
			nil); got.status != http.StatusMethodNotAllowed {
			t.Errorf("POST gets %d", got.status)
		}
	})
	for _, list := range []string{"192.0.2.0/24", "127.0.0.1,x"} {
		in.write("manifests.yaml", objects+global("nginx-status-ipv4-whitelist: "+list))
		in.becomes("nobody.example", "/nginx_status", http.StatusForbidden, "")
		in.write("manifests.yaml", objects+global("nginx-status-ipv4-whitelist: 127.0.0.0/8"))
		in.eventually("the status again", func() error {
			if got := in.get("nobody.example", "/nginx_status"); got.status != http.StatusOK {
				return fmt.Errorf("it is %d", got.status)
			}
			return nil
		})
	}
}

// TestStatusOverIPv6 checks that the list of IPv6 addresses applies to clients with an IPv6 address.
func TestStatusOverIPv6(t *testing.T) {
	in := start(t, class+global("nginx-status-ipv6-whitelist: 2001:db8::/32", `use-forwarded-headers: "true"`),
		"configmap default/global")
	for client, want := range map[string]int{"2001:db8::1": http.StatusOK, "2001:db9::1": http.StatusForbidden,
		"::1": http.StatusForbidden} {
		in.eventually(client, func() error {
			got := in.sendBy(in.client, in.origin("nobody.example")+"/nginx_status", "GET", nil,
				"X-Forwarded-For: "+client)
			if got.status != want {
				return fmt.Errorf("it gets %d, want %d", got.status, want)
			}
			return nil
		})
	}
}

// numbers returns the counters on the status page.
func (in *ingress) numbers() (all []int) {
	in.Helper()
	text := in.get("nobody.example", "/nginx_status").body
	for _, digits := range statusNumbers.FindStringSubmatch(text) {
		if n, err := strconv.Atoi(digits); err == nil {
			all = append(all, n)
		}
	}
	if len(all) != 5 {
		in.Fatalf("the status is %q", text)
	}
	return all
}

// TestProbesOfAnIngressForAllHosts checks that, as in nginx, the path / of an Ingress for all hosts does not receive
// probes, and that a path for the probe's own URL does.
func TestProbesOfAnIngressForAllHosts(t *testing.T) {
	ip, port := backend(t, "one")
	every := func(paths ...string) string {
		text := strings.Replace(rule("every", "", "Prefix", "/", "one"), `host: ""`, "", 1)
		text = strings.Replace(text, "  - \n    http", "  - http", 1)
		for _, path := range paths {
			more := fmt.Sprintf(
				`paths: [{path: %q, pathType: Prefix, backend: {service: {name: one, port: {number: 80}}}}, `, path)
			text = strings.Replace(text, "paths: [", more, 1)
		}
		return text
	}
	in := start(t, class+service("one", port, ip)+every())
	in.expect("some.example", "/", http.StatusOK, "one /")
	if got := in.get("some.example", "/healthz"); got.status != http.StatusOK || got.body != "" {
		t.Errorf("/healthz gets %d %q", got.status, got.body)
	}
	in.write("manifests.yaml", class+service("one", port, ip)+every("/healthz"))
	in.becomes("some.example", "/healthz", http.StatusOK, "one /healthz")
	in.write("manifests.yaml", class+service("one", port, ip)+annotate(every(), "use-regex", "true"))
	in.becomes("some.example", "/healthz/x", http.StatusOK, "one /healthz/x")
	in.becomes("some.example", "/healthz", http.StatusOK, "one /healthz")
}
