package featuretests

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"testing"
)

var handedOverLine = regexp.MustCompile(`(?m)^k8singress_handed_over_total\{reason="([a-z0-9_]+)"\} (\d+)$`)

// handedOver returns the counters by reason. They cover the whole process, so tests compare differences.
func (in *ingress) handedOver() map[string]int {
	in.Helper()
	counts := map[string]int{}
	for _, match := range handedOverLine.FindAllStringSubmatch(in.metrics(), -1) {
		counts[match[1]], _ = strconv.Atoi(match[2])
	}
	if len(counts) == 0 {
		in.Fatal("there are no counters")
	}
	return counts
}

// TestHandedOver checks that our own servers handle the requests of ordinary clients, and that each request handed
// over to other servers is counted.
func TestHandedOver(t *testing.T) {
	in := inFront(t, func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.Proto, r.URL.Path) })
	by := map[string]*ingress{}
	for _, version := range direct {
		by[version] = in.speaking(t, version)
	}
	ask := func(version, path string) {
		t.Helper()
		by[version].expect("a.example", path, http.StatusOK, "")
	}
	for _, c := range []struct {
		name  string
		do    func()
		wants map[string]int
	}{
		{"ordinary clients", func() {
			ask(plain1, "/")
			ask(plain1, "/.well-known/openid-configuration")
			ask(secure1, "/")
			ask(secure2, "/.well-known/security.txt")
			ask(secure3, "/")
		}, nil},
		{"HTTP/2 in the clear", func() {
			ask(plain2, "/")
			ask(plain2, "/")
		}, map[string]int{"h2c": 1}},
		{"challenges", func() {
			ask(plain1, "/.well-known/acme-challenge/token")
			ask(secure2, "/.well-known/pki-validation/file.txt")
		}, map[string]int{"acme_challenge": 2}},
		{"a server with access logs", func() {
			in.change(func(server map[string]any) { server["logs"] = map[string]any{} })
			ask(plain1, "/")
			ask(secure2, "/")
		}, map[string]int{"logs": 2}},
	} {
		before := in.handedOver()
		c.do()
		for reason, n := range in.handedOver() {
			if n -= before[reason]; n != c.wants[reason] {
				t.Errorf("%s: %d were handed over because of %s, want %d", c.name, n, reason, c.wants[reason])
			}
		}
	}
}

// change loads the running configuration with another HTTP and HTTPS server.
func (in *ingress) change(by func(server map[string]any)) {
	in.Helper()
	var tree map[string]any
	in.adminJSON("/config/", &tree)
	for name, server := range tree["apps"].(map[string]any)["http"].(map[string]any)["servers"].(map[string]any) {
		if name != "k8singress_health" {
			by(server.(map[string]any))
		}
	}
	config, err := json.Marshal(tree)
	if err != nil {
		in.Fatal(err)
	}
	in.reload(config)
}
