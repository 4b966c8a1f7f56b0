package featuretests

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// TestServerAndVia checks that responses have neither field unless it is enabled, in each version of HTTP, and that a
// change also applies to open connections. The same is true for Via in requests to endpoints.
func TestServerAndVia(t *testing.T) {
	ip, port := endpointOf(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Via", r.Header.Get("Via"))
		if r.URL.Path == "/named" {
			w.Header().Set("Server", "mine")
		}
	})
	objects := class + service("one", port, ip) + rule("a", "a.example", "Prefix", "/", "one")
	in := start(t, objects+global(`hsts: "true"`), "configmap default/global")
	for _, c := range []struct {
		data, option               string
		named, unnamed, none, seen []string
	}{
		{`hsts: "true"`, "", nil, nil, nil, nil},
		{`server-tokens: "true"`, "", []string{"k8singress"}, []string{"k8singress"}, []string{"k8singress"}, nil},
		{`allow-backend-server-header: "true"`, "via", []string{"mine"}, nil, nil, []string{"1.1 k8singress"}},
		{`hsts: "true"`, "via endpoints", nil, nil, nil, nil},
		{`hsts: "true"`, "via endpoints answers", nil, nil, nil, []string{"1.1 k8singress"}},
		{
			"allow-backend-server-header: \"true\"\n  server-tokens: \"true\"", "",
			[]string{"mine"}, []string{"k8singress"}, []string{"k8singress"}, nil,
		},
	} {
		in.write("manifests.yaml", objects+global(c.data))
		in.load("manifests " + in.folder + "\nconfigmap default/global\n" + c.option)
		for _, version := range versions {
			by, want := in.speaking(t, version), ""
			if strings.Contains(c.option, "endpoints") {
				want = strings.TrimPrefix(protocols[version], "HTTP/") + " k8singress"
			}
			for _, ask := range []struct {
				path, host string
				server     []string
			}{{"/named", "a.example", c.named}, {"/", "a.example", c.unnamed}, {"/", "none.example", c.none}} {
				by.eventually(fmt.Sprintf("%s %s%s with %s %s", version, ask.host, ask.path, c.data, c.option),
					func() error {
						got := by.get(ask.host, ask.path).header
						if !slices.Equal(got["Server"], ask.server) || !slices.Equal(got["Via"], c.seen) {
							return fmt.Errorf("Server is %q, Via is %q", got["Server"], got["Via"])
						}
						if seen := got.Get("X-Via"); ask.host == "a.example" && seen != want {
							return fmt.Errorf("Via is %q at the endpoint, want %q", seen, want)
						}
						return nil
					})
			}
		}
	}
}
