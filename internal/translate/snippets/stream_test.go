package snippets_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/k8singress/k8singress/internal/translate/snippets"
)

func TestStreamEntries(t *testing.T) {
	for _, test := range []struct {
		name, text string
		tcp, udp   []string
	}{
		{"a Service", "server { listen 6379; proxy_pass redis.shop.svc.cluster.local:6379; }",
			[]string{`"6379": shop/redis:6379`}, nil},
		{"UDP", "server { listen 53 udp; proxy_pass dns.infra.svc:5353; }", nil, []string{`"53": infra/dns:5353`}},
		{"both on an address", "server { listen 10.0.0.1:53; listen [::]:53 udp; proxy_pass dns.infra.svc:53; }",
			[]string{`"53": infra/dns:53`}, []string{`"53": infra/dns:53`}},
		{"an upstream", "upstream db { server pg.shop.svc:5432 weight=2; server pg2.shop.svc:5432; }\n" +
			"server { listen 5432; proxy_pass db; }", []string{`"5432": shop/pg:5432`}, nil},
		{"the example of ingress-nginx", "server {\n  listen 8000;\n  proxy_pass 127.0.0.1:80;\n}\n",
			[]string{`"8000": NAMESPACE/SERVICE:80`}, nil},
		{"no target", "server { listen 1; return ok; }", []string{`"1": NAMESPACE/SERVICE:PORT`}, nil},
		{"PROXY from clients", "server { listen 1 proxy_protocol; proxy_pass a.b.svc:2; }",
			[]string{`"1": b/a:2:PROXY`}, nil},
		{"PROXY to endpoints", "server { listen 1; proxy_protocol on; proxy_pass a.b.svc:2; }",
			[]string{`"1": b/a:2::PROXY`}, nil},
		{"PROXY on both sides", "server { listen 1 proxy_protocol; proxy_protocol on; proxy_pass a.b.svc:2; }",
			[]string{`"1": b/a:2:PROXY:PROXY`}, nil},
		{"a Unix socket", "server { listen unix:/tmp/a; proxy_pass a.b.svc:2; }", nil, nil},
		{"no server", "map $a $b { default 1; }", nil, nil},
		{"not a snippet", "server { listen 1", nil, nil},
		{"empty directives", "upstream { server; } upstream a {} server { listen; proxy_pass; }", nil, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			tcp, udp := snippets.StreamEntries(test.text)
			if diff := cmp.Diff([][]string{test.tcp, test.udp}, [][]string{tcp, udp}); diff != "" {
				t.Errorf("entries (-want +got):\n%s", diff)
			}
		})
	}
}
