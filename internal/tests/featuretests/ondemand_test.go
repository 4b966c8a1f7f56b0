package featuretests

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
)

// TestOnDemandTLS checks that the first handshake for a name gets a certificate, if a rule without a host or with a
// wildcard serves the name, and the URL of Caddy's global option on_demand_tls allows it.
func TestOnDemandTLS(t *testing.T) {
	ip, port := backend(t, "one")
	var asked atomic.Int64
	asks := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		switch name := r.URL.Query().Get("domain"); {
		case strings.HasPrefix(name, "fails"):
			w.WriteHeader(http.StatusInternalServerError)
		case strings.HasPrefix(name, "moved"):
			http.Redirect(w, r, "/other?domain=yes.example", http.StatusFound)
		}
	}))
	t.Cleanup(asks.Close)
	in := newIngress(t)
	ca := newAuthority(in)
	in.write("manifests.yaml", class+service("web", port, ip)+
		annotated("shops", "*.shops.example", "web", "k8singress.io/on-demand-tls", "true")+
		annotated("any", "", "web", "k8singress.io/on-demand-tls", "true")+
		rule("one", "one.example", "Prefix", "/", "web"))
	in.loadCaddyfile(fmt.Sprintf("{\nadmin %s\nstorage file_system %s\non_demand_tls {\nask %s\n}\nk8singress {\n"+
		"http %s\nhttps %s\nmanifests %s\nissuer acme {\ndir %s\ntrusted_roots %s\n}\n}\n}\n", in.admin, t.TempDir(),
		asks.URL, in.http, in.https, in.folder, ca.Directory, ca.Root))
	in.awaitReady()
	roots := ca.roots()
	want := map[string]int{}
	for _, name := range []string{"a.shops.example", "customer.example", "www.customer.example",
		strings.Repeat("a.", 100) + "example"} {
		for range 2 {
			if _, err := in.verified(roots, name); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		want[name] = 1
	}
	for _, name := range []string{"fails.example", "moved.example", "one.example"} {
		for range 2 {
			if got := in.certificate(name); got[0] != "Kubernetes Ingress Controller Fake Certificate" {
				t.Errorf("%s has the certificate %v", name, got)
			}
		}
	}
	if got := ca.taken().Orders; fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("the authority took the orders %v", got)
	}
	if got := asked.Load(); got != int64(len(want))+2 {
		t.Errorf("there were %d questions", got)
	}
}
