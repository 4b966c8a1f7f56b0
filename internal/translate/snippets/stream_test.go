package snippets_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/k8singress/k8singress/internal/translate/snippets"
)

// written returns findings as a user reads them.
func written(findings []snippets.Finding) (lines []string) {
	for _, f := range findings {
		lines = append(lines, f.String())
	}
	return lines
}

func TestStream(t *testing.T) {
	const (
		tcp = `line 1: "server" is left out: add %s to the ConfigMap of the option tcp_services`
		udp = `line 1: "server" is left out: add %s to the ConfigMap of the option udp_services`
	)
	entry := func(text, entry string) string { return strings.Replace(text, "%s", entry, 1) }
	for _, test := range []struct {
		name, text string
		want       []string
	}{
		{"a Service", "server { listen 6379; proxy_pass redis.shop.svc.cluster.local:6379; }",
			[]string{entry(tcp, `"6379": shop/redis:6379`)}},
		{"UDP", "server { listen 53 udp; proxy_pass dns.infra.svc:5353; }", []string{entry(udp, `"53": `+
			`infra/dns:5353`)}},
		{"both, for IPv4 and IPv6", "server { listen 0.0.0.0:53; listen [::]:53; listen [::]:53 udp; proxy_pass " +
			"a.b.svc:53; }",
			[]string{entry(tcp, `"53": b/a:53`) + ", and " + `add "53": b/a:53 to the ConfigMap of the option ` +
				`udp_services`}},
		{"an upstream and its server", "server { listen 5432; proxy_pass db; }\n" +
			"upstream db {\n least_conn;\n server pg.shop.svc:5432 weight=2;\n server pg2.shop.svc:5432; }", []string{
			entry(tcp, `"5432": shop/pg:5432`),
			`line 3: "least_conn" is left out: endpoints are chosen by round robin, or by client with ` +
				`sessionAffinity: ClientIP of the Service`,
			`line 5: "server" is left out: a port forwards to one Service: let its selector select all pods`,
		}},
		{"the example of ingress-nginx", "server {\n  listen 8000;\n  proxy_pass 127.0.0.1:80;\n}\n", []string{
			entry(tcp, `"8000": NAMESPACE/SERVICE:80`),
			`line 3: "proxy_pass" is left out: "127.0.0.1:80" is not the name of a Service, such as ` +
				`db.shop.svc.cluster.local:5432: write a Service in place of NAMESPACE/SERVICE`,
		}},
		{"a target in a variable", "server { listen 1; proxy_pass $name; }", []string{
			entry(tcp, `"1": NAMESPACE/SERVICE:PORT`),
			`line 1: "proxy_pass" is left out: "$name" is not the name of a Service, such as ` +
				`db.shop.svc.cluster.local:5432: write a Service in place of NAMESPACE/SERVICE`,
		}},
		{"no target", "server { listen 1; return ok; }",
			[]string{`line 1: "server" is left out: an entry for a port names a Service, and this server has no ` +
				`proxy_pass`}},
		{"PROXY from clients", "server { listen 1 proxy_protocol; proxy_pass a.b.svc:2; }",
			[]string{entry(tcp, `"1": b/a:2:PROXY`)}},
		{"PROXY to endpoints", "server { listen 1; proxy_protocol on; proxy_pass a.b.svc:2; }",
			[]string{entry(tcp, `"1": b/a:2::PROXY`)}},
		{"PROXY on both sides", "server { listen 1 proxy_protocol; proxy_protocol on; proxy_pass a.b.svc:2; }",
			[]string{entry(tcp, `"1": b/a:2:PROXY:PROXY`)}},
		{"a Unix socket", "server { listen unix:/tmp/a; proxy_pass a.b.svc:2; }", []string{
			`line 1: "server" is left out: it listens on no port that an entry for TCP or UDP ports can open`,
			`line 1: "listen" is left out: clients cannot reach a socket without a port`,
		}},
		{"a range of ports", "server { listen 1-9; proxy_pass a.b.svc:2; }", []string{
			`line 1: "server" is left out: it listens on no port that an entry for TCP or UDP ports can open`,
			`line 1: "listen" is left out: write one entry for each port, from 1 to 65535`,
		}},
		{"an address of the pod only", "server { listen 127.0.0.1:1; proxy_pass a.b.svc:2; }", []string{
			entry(tcp, `"1": b/a:2`),
			`line 1: "listen" is left out: the entry opens the port on all addresses of the controller, not only on ` +
				`"127.0.0.1"`,
		}},
		{"Lua", "server {\n listen 1;\n content_by_lua_file a;\n}",
			[]string{"line 3: the text contains Lua code: use a handler chain (annotation k8singress.io/chains)"}},
		{"other directives", "map $a $b { default 1; }\ninclude a;", []string{
			`line 1: "map" is left out: no setting of TCP and UDP ports replaces it`,
			`line 2: "include" is left out: nginx would read another file, which does not exist here: write its ` +
				`content instead`,
		}},
		{"guards and settings", "server {\n listen 1 ssl;\n proxy_pass a.b.svc:2;\n deny all;\n proxy_timeout 3h;\n" +
			" tcp_nodelay on;\n proxy_timout 1;\n}", []string{
			entry(tcp, `"1": b/a:2`),
			`line 2: "listen" is left out: the entry does not terminate TLS: use the annotation ` +
				`k8singress.io/stream-tls-secret of the Service`,
			`line 4: "deny" is left out: an entry opens its port for all clients: restrict them with a NetworkPolicy`,
			`line 5: "proxy_timeout" is left out: use the ConfigMap key proxy-stream-timeout`,
			`line 6: "tcp_nodelay" is left out: no setting of TCP and UDP ports replaces it`,
			`line 7: there is no directive "proxy_timout"; did you mean proxy_timeout?`,
		}},
		{"not a snippet", "server { listen 1",
			[]string{`line 1: the text is not valid nginx configuration: the text ends inside a directive: add ";"`}},
		{"empty directives", "upstream { server; } upstream a {} server { listen; proxy_pass; } server {\n" +
			" listen; proxy_pass a; }", []string{
			`line 1: "server" is left out: an entry for a port names a Service, and this server has no proxy_pass`,
			`line 1: "server" is left out: it listens on no port that an entry for TCP or UDP ports can open`,
			`line 2: "listen" is left out: clients cannot reach a socket without a port`,
		}},
		{"nothing", "", nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, written(snippets.Stream(test.text, false))); diff != "" {
				t.Errorf("findings (-want +got):\n%s", diff)
			}
		})
	}
}

// TestStreamIsBounded checks that reading a text with thousands of errors takes little time: it suggests names for the
// first errors only.
func TestStreamIsBounded(t *testing.T) {
	for _, text := range []string{
		strings.Repeat("nosuchname;", 5000), "server { " + strings.Repeat("nosuchname;", 5000) + "proxy_pass a; }",
		"upstream a { " + strings.Repeat("nosuchname;", 5000) + " }",
	} {
		if got := len(snippets.Stream(text, false)); got < 20 || got > 25 {
			t.Errorf("%.20q: got %d findings", text, got)
		}
	}
}

// TestMainSnippet checks what the author of a main-snippet reads about each line.
func TestMainSnippet(t *testing.T) {
	for text, want := range map[string][]string{
		"": nil,
		"load_module modules/ngx_http_a_module.so;\nenv A=b;\nworker_shutdown_timeout 1m;\nworker_processes 8;\n" +
			"worker_rlimit_nofile 9;\nevents { worker_connections 9; }\nerror_log /dev/stderr debug;": {
			`line 1: "load_module" is left out: modules of nginx cannot be loaded: use a handler chain (annotation ` +
				`k8singress.io/chains)`,
			`line 2: "env" is left out: nothing here reads environment variables for a snippet`,
			`line 3: "worker_shutdown_timeout" is left out: use the ConfigMap key worker-shutdown-timeout`,
			`line 4: "worker_processes" has no effect: the controller is one process that uses all processors ` +
				`of its pod`,
			`line 5: "worker_rlimit_nofile" has no effect: the limit on open files decides how many connections ` +
				`there can be`,
			`line 6: "events" is left out: it configures a part of nginx that does not exist here`,
			`line 7: "error_log" has no effect: the ConfigMap configures the access log, and the Caddyfile the ` +
				`error log`,
		},
		"worker_proceses 1;\nworker_processes;\nadd_header A b;\ninclude a;\nperl_set $a b;": {
			`line 1: there is no directive "worker_proceses"; did you mean worker_processes?`,
			`line 2: "worker_processes" has 0 arguments, and nginx expects: 1`,
			`line 3: nginx does not allow "add_header" here, but in: http (http-snippet), server (server-snippet), ` +
				`location (configuration-snippet), if in location`,
			`line 4: "include" is not supported: nginx would read another file, which does not exist here: write its ` +
				`content instead`,
			`line 5: "perl_set" is not supported: code in other languages does not run here: use a handler chain ` +
				`(annotation k8singress.io/chains)`,
		},
		"env A": {`line 1: the text is not valid nginx configuration: the text ends inside a directive: add ";"`},
	} {
		if diff := cmp.Diff(want, written(snippets.Main(text))); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
	}
}
