package snippets_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/k8singress/k8singress/internal/http/exchange"
	"github.com/k8singress/k8singress/internal/http/variables"
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/translate/snippets"
)

// httpCases are texts for all hosts, with the JSON of their variables.
var httpCases = []struct{ name, text, want string }{
	{"nothing", "# nothing", "null"},
	{"map", `map "$Host:$uri" $Tenant {
		default "<$scheme>"; Ab 1; "" none; \default 2; \~x 3;
		~^(?<Name>.)b "$1 $NAME $host"; ~*c$ ""; volatile;
	}`, `[{"name":"tenant","map":{"source":"$host:$uri","default":"<$scheme>",
		"exact":{"":"none","ab":"1","default":"2","~x":"3"},
		"patterns":[{"pattern":"^(?<Name>.)b","value":"$1 $name $host"},{"pattern":"c$","fold":true}],` +
		`"volatile":true}}]`},
	{"map of hosts", "map $host $a { hostnames; *.example 1; .b.example 2; www.* 3; }", `[{"name":"a","map":{
		"source":"$host","exact":{"*.example":"1",".b.example":"2","www.*":"3"},"hostnames":true}}]`},
	{"empty map", "map $host $a { }", `[{"name":"a","map":{"source":"$host"}}]`},
	{"geo", "geo $a { default 0; 10.1.2.3/8 ten; 10.1.0.0/16 x; 10.1.0.0/16 one; 10.2.0.0/16 two; delete 10.2.0.0/16;" +
		" 10.1.2.3 $me; 2001:db8::/126 six; }", `[{"name":"a","geo":{"default":"0","ranges":[
		{"first":"10.0.0.0","last":"10.255.255.255","value":"ten"},
		{"first":"10.1.0.0","last":"10.1.255.255","value":"one"},
		{"first":"10.1.2.3","last":"10.1.2.3","value":"$me"},
		{"first":"2001:db8::","last":"2001:db8::3","value":"six"}]}}]`},
	{"geo of ranges", "geo $arg_a $a { ranges; 10.0.0.0-10.0.0.9 1; 10.0.0.5-10.0.0.5 2; }", `[{"name":"a","geo":{
		"address":"$arg_a","ranges":[{"first":"10.0.0.0","last":"10.0.0.9","value":"1"},
		{"first":"10.0.0.5","last":"10.0.0.5","value":"2"}]}}]`},
	{"split_clients", "split_clients \"$remote_addr$a\" $b { 0.5% x; 12.34% $y; 3% z; * \"\"; } map $uri $a { }",
		`[{"name":"b","split_clients":{"key":"$remote_addr$a","parts":[{"share":50,"value":"x"},
		{"share":1234,"value":"$y"},{"share":300,"value":"z"},{}]}},{"name":"a","map":{"source":"$uri"}}]`},
	{"the last definition counts", "map $uri $a { } geo $a { }", `[{"name":"a","geo":{}}]`},
	{"an unknown variable", "map $b $a { } map $nosuch $b { } map $uri $c { default $a; } map $uri $d { }",
		`[{"name":"d","map":{"source":"$uri"}}]`},
}

func TestHTTP(t *testing.T) {
	for _, c := range httpCases {
		h := snippets.ReadHTTP(c.text)
		if f := h.Closed(); f != nil {
			t.Errorf("%s: %s", c.name, f)
		}
		var b strings.Builder
		encoder := json.NewEncoder(&b)
		encoder.SetEscapeHTML(false)
		err := encoder.Encode(h.Variables)
		want := strings.NewReplacer("\n", "", "\t", "").Replace(c.want)
		if got := strings.TrimSpace(b.String()); err != nil || got != want {
			t.Errorf("%s:\n%s, want\n%s", c.name, got, want)
		}
	}
}

// TestHTTPFindings checks the classes of directives in a text for all hosts.
func TestHTTPFindings(t *testing.T) {
	for text, want := range map[string]string{
		"map_hash_max_size 4096;": "no effect: line 1: \"map_hash_max_size\" " +
			"has no effect",
		"proxy_cache_path /a keys_zone=a:1m;": "left out: ",
		"log_format a b;":                     "no effect: ",
		"proxy_set_header A b;":               "no effect: ",
		"client_max_body_size 1m;":            "no effect: ",
		"add_header A b;":                     "works: ",
		"limit_rate 8k;":                      "works: ",
		"proxy_ssl_verify on;":                "works: ",
		"default_type a/b;": "left out: line 1: \"default_type\" is left out: ingress-nginx's configuration already " +
			"contains it: use the ConfigMap key default-type",
		"proxy_read_timeout 5;": "no effect: line 1: \"proxy_read_timeout\" has no effect: as in ingress-nginx, only " +
			"the locations in server-snippet inherit it",
		"add_header A $later;":                          "unreadable: line 1: \"add_header\" is not valid: there is no",
		"auth_request /a;":                              "guard: ",
		"upstream a { server b; }":                      "left out: ",
		"server { listen 2443; return 308 https://a; }": "works: ",
		"server { listen 127.0.0.1:18080; location / { stub_status; } }": "left out: line 1: " +
			"\"server\" is left out: no port is opened",
		"server { listen [::]:2443 ssl; }": "left out: ",
		"server { listen 2443; location / { limit_except GET { deny all; } } }": "left out: line 1: \"server\" is " +
			"left out: no port is opened for it, because it has neither",
		"server { listen unix:/tmp/a; return 200; }":        "left out: ",
		"server { listen 8181; return 200; }":               "left out: ",
		"server { listen 81 proxy_protocol; return 200; }":  "left out: ",
		"server { listen 81; server_name ~a; return 200; }": "left out: ",
		"server { listen 81; location / { proxy_pass http://127.0.0.1:82; } }": "left out: line 1: \"server\" is " +
			"left out: no port is opened for it, because of \"proxy_pass\" in line 1: serve its content with an " +
			"Ingress",
		"server { listen 81; location / { auth_request /a; return 200; } }": "left out: line 1: \"server\" is left " +
			"out: no port is opened for it, because of \"auth_request\" in line 1",
		"server { listen 81; auth_request /a; return 200; }": "left out: ",
		"server { listen 8080 proxy_protocol; return 301 https://$host$request_uri; }": "guard: line 1: \"server\" " +
			"is not supported, and could respond in place of Ingresses, because it listens on port 8080, which is " +
			"for Ingresses: write listen with another port, such as 2443, or write an Ingress for its hosts",
		"server { listen 443; listen 2443; deny all; }": "guard: ",
		"server { listen 192.0.2.1; }":                  "guard: ",
		"server { listen [::]:80; }":                    "guard: ",
		"server { listen 0443; return 200; }":           "guard: ",
		"server { listen localhost; return 200; }":      "guard: ",
		"server { listen a:0; return 200; }":            "left out: ",
		"server { listen 65536; return 200; }":          "left out: ",
		"server { server_name a.example; deny all; }":   "guard: ",
		"deny all;":                    "works: ",
		"auth_basic Staff;":            `guard: line 1: "auth_basic" is not supported, and may reject clients`,
		"auth_basic off;":              "works: ",
		"set_real_ip_from 10.0.0.0/8;": "works: ",
		"large_client_header_buffers 4 64k;": "left out: line 1: \"large_client_header_buffers\" is left out: " +
			"ingress-nginx's configuration already contains it: use the ConfigMap key large-client-header-buffers",
		"server { listen 81; client_header_buffer_size 8k; return 200; }": "works: ",
		"set_real_ip_from unix:;": "no effect: line 1: \"set_real_ip_from\" has no effect: " +
			"clients that use a Unix socket",
		"set_real_ip_from 10.0.0.0/33;":                              "unreadable: ",
		"set_real_ip_from 10.0.0.0;\nset_real_ip_from 10.0.0.1,::1;": "unreadable: line 2: ",
		"set_real_ip_from 10.0.0.256;":                               "unreadable: ",
		"real_ip_header proxy_protocol;":                             "works: ",
		"real_ip_header \"X Y\";":                                    "unreadable: ",
		"real_ip_header A;\nreal_ip_header A;":                       "unreadable: line 2: ",
		"real_ip_recursive on;\nreal_ip_recursive on;":               "unreadable: line 2: ",
		"real_ip_recursive yes;":                                     "unreadable: ",
		"server { listen 81; set_real_ip_from ::1; return 200; }":    "left out: ",
		"set_real_ip_from proxy.example;": "left out: line 1: \"set_real_ip_from\" is left out: the name " +
			"\"proxy.example\" is not resolved",
		"geo $a { proxy 10.0.0.0/8; }": "guard: ",
		"return 403;":                  "unreadable: line 1: nginx does not allow \"return\" here",
		"include a;":                   "unreadable: ",
		"map $a {":                     "unreadable: line 1: the text is not valid nginx configuration",
		"map $uri a { }":               `unreadable: line 1: "map" is not valid: "a" is not a variable`,
		"map $uri $host { }":           "unreadable: line 1: \"map\" is not valid: the variable $host",
		"map $uri $args { }": "unreadable: line 1: \"map\" is not " +
			"valid: the variable $args exists",
		"map $uri $http_a { }": "unreadable: ",
		"map $uri $1 { }":      "unreadable: ",
		"map ${uri $a { }":     "unreadable: ",
		"map $1 $a { }": "unreadable: line 1: \"map\" is not " +
			"valid: there is no variable $1",
		"map $uri $a { x $1; }": "unreadable: line 1: \"map\" is not valid: " +
			"line 1: there is no variable $1",
		"map $uri $a {\n x; }":                  "unreadable: line 1: \"map\" is not valid: line 2: write a text",
		"map $uri $a { x y z; }":                "unreadable: ",
		"map $uri $a { x { } }":                 "unreadable: ",
		"map $uri $a { include /etc/a; }":       "unreadable: line 1: \"map\" is not valid: line 1: include would",
		"map $uri $a { default 1; default 2; }": "unreadable: ",
		"map $uri $a { x 1; X 2; }": "unreadable: line 1: \"map\" is not " +
			"valid: line 1: the text occurs",
		"map $uri $a { ~(?=a) 1; }":           "unreadable: ",
		"map $uri $a { a 1; hostnames; }":     "unreadable: ",
		"map $uri $a { hostnames; a.*.b 1; }": "unreadable: ",
		"map $a $a { }": "unreadable: line 1: \"map\" is not valid: " +
			"the variables $a and $a",
		"map $b $a { } map $uri $b { default $a; }": "unreadable: ",
		"geo $a { 10.0.0.0/33 1; }": "unreadable: line 1: \"geo\" is not valid: " +
			"line 1: \"10.0.0.0/33\" is not",
		"geo $a { fe80::1%eth0 1; }":                                   "unreadable: ",
		"geo $a { 10.0.0.1 1; ranges; }":                               "unreadable: ",
		"geo $a { ranges; 10.0.0.1 1; }":                               "unreadable: ",
		"geo $a { ranges; 10.0.0.9-10.0.0.1 1; }":                      "unreadable: ",
		"geo $a { ranges; 10.0.0.1-10.0.0.5 1; 10.0.0.3-10.0.0.9 2; }": "unreadable: ",
		"geo $a { ranges; ::1-::2 1; }":                                "unreadable: ",
		"geo $a { delete x; }":                                         "unreadable: ",
		"geo $a { 10.0.0.1; }":                                         "unreadable: ",
		"geo a $b { }":                                                 "unreadable: ",
		"split_clients $uri $a { 50% 1; 51% 2; }": "unreadable: line 1: \"split_clients\" " +
			"is not valid: the shares",
		"split_clients $uri $a { 0% 1; }":     "unreadable: ",
		"split_clients $uri $a { 1.234% 1; }": "unreadable: ",
		"split_clients $uri $a { 10 1; }":     "unreadable: ",
		"split_clients $uri $a { x 1; }":      "unreadable: ",
		"split_clients $uri $a { *; }":        "unreadable: ",
		"map $nosuch $a { }": "left out: line 1: \"map\" is left " +
			"out: there is no variable $nosuch",
		"map $uri $a { }\nmap $uri $a { }": "no effect: line 1: \"map\" has " +
			"no effect: a later line",
	} {
		h := snippets.ReadHTTP(text)
		f := h.Closed()
		if f == nil {
			f = &h.Findings[0]
		}
		if got := fmt.Sprintf("%s: %s", f.Class, f); !strings.HasPrefix(got, want) {
			t.Errorf("%s:\n%s, want\n%s", text, got, want)
		}
		for _, f := range h.Findings {
			if h.Closed() == nil && f.Class == snippets.Guard {
				t.Errorf("%s: requests are served, although %s", text, &f)
			}
		}
		closed := strings.HasPrefix(want, "guard") || strings.HasPrefix(want, "unreadable")
		if (h.Closed() != nil) != closed {
			t.Errorf("%s: requests are rejected because of %v", text, h.Closed())
		}
	}
}

const variablesOfHTTP = `map $host $tenant { } map $b $late { } map $sent_http_a $b { } geo $inside { }
	map $inside $group { } split_clients $host $variant { }`

// TestVariablesOfHTTP checks where other texts may use the variables.
func TestVariablesOfHTTP(t *testing.T) {
	h := snippets.ReadHTTP(variablesOfHTTP)
	var none *snippets.HTTP
	for text, want := range map[string]string{
		"$tenant ${Variant} $host $1 $more $ $$": "", "$late": "derived from the response",
		"$b":      "derived from the response",
		"$nosuch": "no variable $nosuch", "$tenant$a": "no variable $a",
	} {
		if err := h.CheckVariables(text, "more"); (err == nil) != (want == "") || err != nil &&
			!strings.Contains(err.Error(), want) {
			t.Errorf("%q: the error is %v", text, err)
		}
	}
	if none.CheckVariables("$tenant") == nil || none.CheckVariables("$host") != nil {
		t.Error("the variables are known without the text")
	}
	got := fmt.Sprint(h.Unknown([]string{"tenant", "Late", "x"}), none.Unknown([]string{"tenant"}))
	if got != "[x] [tenant]" {
		t.Errorf("the unknown variables are %s", got)
	}
}

// TestVariablesInPrograms checks that the snippets of locations and servers may use the variables.
func TestVariablesInPrograms(t *testing.T) {
	h := snippets.ReadHTTP(variablesOfHTTP)
	var none *snippets.HTTP
	const text = `set $a $Tenant; set $tenant 1; add_header A $late; if ($group) { return 403; } ` +
		"if ($variant = b) { break; }"
	r := h.Location(text, "")
	if f := r.Closed(false); f != nil {
		t.Fatal(f)
	}
	checkAccepted(t, r)
	if r != snippets.ReadHTTP("map $uri $other { }").Location(text, "") && r != h.Location(text, "") {
		t.Error("the result is not kept")
	}
	if r.Program.Guards() != ir.SomeClients || r.Program.Steps[3].If.OfAddress {
		t.Error("the condition on a geo does not count as a condition on the address")
	}
	if none.Location(text, "").Closed(false) == nil || h.Server("set $x $nosuch;", "").Closed(false) == nil {
		t.Error("unknown variables are accepted")
	}
	if f := h.Server("set $x $tenant;", "").Closed(false); f != nil {
		t.Error(f)
	}
}

// TestHTTPOfAnySize checks that a large map is read quickly, and that a larger text is refused.
func TestHTTPOfAnySize(t *testing.T) {
	rows := func(n int) string {
		var b strings.Builder
		b.WriteString("map $uri $a {")
		for i := range n {
			fmt.Fprintf(&b, "%d 1;", i)
		}
		return b.String() + "}"
	}
	if h := snippets.ReadHTTP(rows(8_000)); h.Closed() != nil || len(h.Variables[0].Map.Exact) != 8_000 {
		t.Error("a map of 8,000 rows is not read")
	}
	if snippets.ReadHTTP(rows(100_000)).Closed() == nil {
		t.Error("a map of 100,000 rows is read")
	}
	var chain strings.Builder
	for i := range 900 {
		fmt.Fprintf(&chain, "map $v%d $v%d { default $v%d$v%d; }\n", i+1, i, i+1, i+1)
	}
	if h := snippets.ReadHTTP(chain.String() + "map $uri $v900 { }"); h.Closed() != nil || len(h.Variables) != 901 {
		t.Error("a chain of 900 maps is not read")
	}
}

// FuzzHTTP checks that the variables, the zones and the servers of any text are accepted.
func FuzzHTTP(f *testing.F) {
	for _, c := range httpCases {
		f.Add(c.text)
	}
	for _, text := range []string{
		"server { listen 2443 ssl http2; listen [::]:2443 ssl; server_name *.a.example _; return 308 https://$host; }",
		"server { listen 18080 default_server; location /nginx_status { stub_status; allow 10.0.0.0/8; deny all; } }",
		"map $uri $a { } server { listen 81; set $b $a; location ~ ^/(?<c>.) { add_header A $c; return 200 $b; } }",
		"limit_req_zone $host zone=a:1m rate=1r/m; limit_req zone=a burst=5 nodelay; server { listen 81; return 200; }",
		"map $uri $a { } server { }",
		"geo $a { default x; } limit_conn_zone $a$host zone=b:32k; server { listen 81; limit_conn b 1; return 403; }",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		h := snippets.ReadHTTP(text)
		if f := h.Closed(); f != nil && f.Class == snippets.Unreadable && h.Variables != nil {
			t.Error("an unreadable text defines variables")
		}
		if _, err := variables.New(h.Variables); err != nil {
			t.Error(err)
		}
		for i := range h.Variables {
			name := "$" + h.Variables[i].Name
			if h.CheckVariables(name) != nil && h.Location("add_header A "+name+";", "").Closed(false) != nil {
				t.Errorf("the variable $%s is not known", h.Variables[i].Name)
			}
		}
		for _, zone := range h.Zones.Requests {
			if _, err := exchange.ParseTemplate(zone.Key); err != nil || zone.MaxClients <= 0 ||
				(zone.RequestsPerSecond > 0) == (zone.RequestsPerMinute > 0) {
				t.Errorf("the zone is %+v, %v", zone, err)
			}
		}
		for i := range h.Servers {
			checkServerAccepted(t, &h.Servers[i])
		}
	})
}

// checkServerAccepted checks that a server has ports and valid locations.
func checkServerAccepted(t *testing.T, s *snippets.HTTPServer) {
	t.Helper()
	if len(s.Listens) == 0 || slices.ContainsFunc(s.Listens, func(l snippets.Listen) bool { return l.Port == 0 }) {
		t.Errorf("the ports are %v", s.Listens)
	}
	if s.Program != nil {
		checkRoundTrip(t, s.Program)
	}
	root := false
	for i := range s.Locations {
		checkAccepted(t, s.Locations[i].Content)
		root = root || s.Locations[i].Match.Path == "/"
	}
	if !root {
		t.Error("the server does not respond to all paths")
	}
}

// TestInheritedFromHTTP checks what servers and locations inherit from a text for all hosts.
func TestInheritedFromHTTP(t *testing.T) {
	h := snippets.ReadHTTP("add_header A $tenant; more_set_headers 'M: 1'; proxy_set_header P 1; expires $tenant;\n" +
		"map $host $tenant { } deny all; sub_filter a b; limit_rate 8k; proxy_read_timeout 9; error_page 404 /e;")
	if f := h.Closed(); f != nil {
		t.Fatal(f)
	}
	const more, rest = `"more_headers":[{"set":[{"name":"M","value":"1"}]}],`, `"expires":{"template":"$tenant"},` +
		`"errors":{"pages":[{"statuses":[404],"target":"/e"}]}`
	const added = `"add_headers":[{"name":"A","value":"$tenant"}],`
	const endpoint = `"endpoint_headers":[{"name":"P","value":"1"}],`
	const otherParts = "\n" + `{"pairs":[{"from":"a","to":"b"}]}` + "\ndeny all"
	const values = "\nlimit-rate: 8\nproxy-read-timeout: 9"
	s := h.Server("add_header B 1; location /a { } location /b { allow all; proxy_read_timeout 5; expires off; }", "")
	got := []string{meaning(t, &h.Server("", "").Result), meaning(t, &s.Result)}
	for i := range s.Locations {
		got = append(got, meaning(t, s.Locations[i].Content))
	}
	const ownAdded = `"add_headers":[{"name":"B","value":"1"}],`
	for i, want := range []string{
		"{" + more + added + rest + `,"server":true}` + otherParts,
		"{" + more + ownAdded + rest + `,"server":true}` + otherParts,
		"{" + endpoint + more + ownAdded + rest + "}" + otherParts + values,
		"{" + endpoint + more + ownAdded + strings.Replace(rest, `"template":"$tenant"`, `"mode":"off"`, 1) + "}" +
			strings.Replace(otherParts, "deny", "allow", 1) + "\nproxy-read-timeout: 5\nlimit-rate: 8",
	} {
		if got[i] != want {
			t.Errorf("%d inherits\n%s\nwant\n%s", i, got[i], want)
		}
	}
	if len(h.Values) != 1 || h.Values[0].Annotation != "limit-rate" {
		t.Errorf("all Ingresses have %v", h.Values)
	}
	if snippets.ReadHTTP("map $host $a { } proxy_read_timeout 9;").ReachesPaths() {
		t.Error("a text without directives for paths reaches them")
	}
}

// TestInheritedListsAreSeparate checks that locations which inherit the same list do not overwrite each other's.
func TestInheritedListsAreSeparate(t *testing.T) {
	s := snippets.Server("proxy_set_header A 1; proxy_set_header B 1; proxy_set_header C 1; "+
		"location /a { grpc_set_header D a; } location /b { grpc_set_header E b; }", "")
	for i, want := range []string{"D", "E"} {
		fields := s.Locations[i].Content.Program.EndpointHeaders
		if last := fields[len(fields)-1]; last.Name != want {
			t.Errorf("the last field of location %d is %s, want %s", i, last.Name, want)
		}
	}
}
