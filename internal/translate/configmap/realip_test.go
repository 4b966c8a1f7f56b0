package configmap

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/nginx"
	"github.com/k8singress/k8singress/internal/translate/annotations"
)

// realIPCases are values of keys with their settings. The problems are parts of the messages.
var realIPCases = map[string]struct {
	data     map[string]string
	want     ir.Clients
	problems []string
}{
	"http": {
		map[string]string{"http-snippet": "set_real_ip_from 10.0.0.0/8;\nset_real_ip_from 192.0.2.1;\n" +
			"real_ip_header CF-Connecting-IP;"},
		ir.Clients{RealIP: true, Header: "CF-Connecting-IP", LastAddress: true,
			Trusted: []string{"10.0.0.0/8", "192.0.2.1/32"}}, nil,
	},
	"server in front of http": {
		map[string]string{"http-snippet": "set_real_ip_from 10.0.0.0/8; real_ip_recursive on; real_ip_header X-A;",
			"server-snippet": "set_real_ip_from 10.1.0.0/16; real_ip_header X-B;"},
		ir.Clients{RealIP: true, Header: "X-B", Trusted: []string{"10.1.0.0/16"}}, nil,
	},
	"defaults of nginx": {
		map[string]string{"server-snippet": "set_real_ip_from 10.0.0.0/8;", "forwarded-for-header": "X-A"},
		ir.Clients{RealIP: true, Header: "X-Real-IP", LastAddress: true, Trusted: []string{"10.0.0.0/8"}}, nil,
	},
	"no proxy": {
		map[string]string{"http-snippet": "real_ip_header X-A;\nreal_ip_recursive on;"}, ir.Clients{},
		[]string{"line 1: real_ip_header: it has no effect, because no proxy is trusted",
			"line 2: real_ip_recursive: it has no effect"},
	},
	"only a name": {
		map[string]string{"http-snippet": "set_real_ip_from proxy.example;"},
		ir.Clients{RealIP: true, Header: "X-Real-IP", LastAddress: true, Trusted: []string{nginx.Nowhere}},
		[]string{`line 1: "set_real_ip_from" is left out: the name "proxy.example" is not resolved`},
	},
	"everyone": {
		map[string]string{"http-snippet": "set_real_ip_from 0.0.0.0/0;"},
		ir.Clients{RealIP: true, Header: "X-Real-IP", LastAddress: true, Trusted: []string{"0.0.0.0/0"}},
		[]string{"line 1: set_real_ip_from: every client is trusted"},
	},
	"networks of a key that is off": {
		map[string]string{"http-snippet": "set_real_ip_from ::1;", "proxy-real-ip-cidr": "10.0.0.0/8"},
		ir.Clients{RealIP: true, Header: "X-Real-IP", LastAddress: true, Trusted: []string{"::1/128"}},
		[]string{"line 1: set_real_ip_from: only these networks are trusted, and not proxy-real-ip-cidr"},
	},
	"beside keys": {
		map[string]string{"http-snippet": "set_real_ip_from ::1;\nreal_ip_header X-A;\nreal_ip_recursive off;",
			"proxy-real-ip-cidr": "10.0.0.0/8", "use-forwarded-headers": "true"},
		ir.Clients{UseForwarded: true, Trusted: []string{"10.0.0.0/8", "::1/128"}},
		[]string{"line 2: real_ip_header: it has no effect, because use-forwarded-headers or enable-real-ip",
			"line 3: real_ip_recursive: it has no effect"},
	},
	"beside a key that trusts everyone": {
		map[string]string{"http-snippet": "set_real_ip_from ::1;", "enable-real-ip": "true",
			"forwarded-for-header": "X-A"},
		ir.Clients{RealIP: true, Header: "X-A", Trusted: []string{"::1/128"}},
		[]string{"line 1: set_real_ip_from: only these networks are trusted. ingress-nginx would trust all"},
	},
	"a name beside a key that trusts everyone": {
		map[string]string{"http-snippet": "set_real_ip_from proxy.example;", "enable-real-ip": "true"},
		ir.Clients{RealIP: true},
		[]string{"every client is trusted", "is not resolved"},
	},
	"server beside keys": {
		map[string]string{"server-snippet": "set_real_ip_from ::1;\nreal_ip_header X-B;\nreal_ip_recursive off;",
			"http-snippet": "set_real_ip_from ::2;", "proxy-real-ip-cidr": "10.0.0.0/8", "enable-real-ip": "true",
			"forwarded-for-header": "X-A"},
		ir.Clients{RealIP: true, Header: "X-B", LastAddress: true, Trusted: []string{"::1/128"}},
		[]string{"line 1: set_real_ip_from: only the networks in server-snippet are trusted"},
	},
	"no PROXY protocol": {
		map[string]string{"http-snippet": "set_real_ip_from ::1;\nreal_ip_header proxy_protocol;"}, ir.Clients{},
		[]string{"line 2: real_ip_header: it has no effect, because connections begin without a PROXY protocol header"},
	},
	"no PROXY protocol beside keys": {
		map[string]string{"server-snippet": "real_ip_header proxy_protocol;", "use-forwarded-headers": "true",
			"proxy-real-ip-cidr": "::1"},
		ir.Clients{UseForwarded: true, Trusted: []string{"::1/128"}},
		[]string{"line 1: real_ip_header: it has no effect, because connections begin without a PROXY protocol header"},
	},
	"PROXY protocol": {
		map[string]string{"http-snippet": "set_real_ip_from ::1;\nreal_ip_header proxy_protocol;",
			"server-snippet": "set_real_ip_from ::2;", "use-proxy-protocol": "true",
			"proxy-real-ip-cidr": "10.0.0.0/8"},
		ir.Clients{ProxyProtocol: true, Trusted: []string{"10.0.0.0/8"}},
		[]string{"line 1: set_real_ip_from: it has no effect, because use-proxy-protocol",
			"line 2: real_ip_header: it has no effect", "line 1: set_real_ip_from: it has no effect"},
	},
}

// TestRealIP checks the directives of nginx's module realip, beside the keys for the same purpose.
func TestRealIP(t *testing.T) {
	for name, c := range realIPCases {
		config, problems := Parse(annotations.Settings{}, c.data)
		if diff := cmp.Diff(c.want, config.Global.Clients); diff != "" || config.Defaults.Closed {
			t.Errorf("%s: closed is %v (-want +got):\n%s", name, config.Defaults.Closed, diff)
		}
		var got []string
		for _, p := range problems {
			got = append(got, p.Message)
		}
		if !slices.EqualFunc(got, c.problems, strings.Contains) {
			t.Errorf("%s: the problems are\n%s", name, strings.Join(got, "\n"))
		}
	}
}

// TestBesideTrustedProxies checks which key gets the warning about trusted proxies of a Caddy server.
func TestBesideTrustedProxies(t *testing.T) {
	for _, c := range []struct {
		data  map[string]string
		field string
	}{
		{map[string]string{"compute-full-forwarded-for": "true", "forwarded-for-header": "X-A"}, ""},
		{map[string]string{"use-forwarded-headers": "true", "enable-real-ip": "true"}, "data[use-forwarded-headers]"},
		{map[string]string{"enable-real-ip": "true", "proxy-real-ip-cidr": "::1"}, "data[enable-real-ip]"},
		{map[string]string{"proxy-real-ip-cidr": "::1"}, "data[proxy-real-ip-cidr]"},
		{map[string]string{"proxy-real-ip-cidr": "::1", "use-proxy-protocol": "true"}, "data[use-proxy-protocol]"},
		{map[string]string{"http-snippet": "set_real_ip_from ::1;"}, "data[http-snippet]"},
		{map[string]string{"server-snippet": "set_real_ip_from ::1;"}, "data[server-snippet]"},
	} {
		config, _ := Parse(annotations.Settings{}, c.data)
		var fields string
		for _, p := range config.BesideTrustedProxies(c.data) {
			fields += p.Field
		}
		if fields != c.field {
			t.Errorf("%v: the fields with problems are %q, want %q", c.data, fields, c.field)
		}
	}
}

// TestRealIPOfClass checks that the ConfigMap of a class cannot change the addresses of clients, and that its Ingresses
// are closed.
func TestRealIPOfClass(t *testing.T) {
	for text, closed := range map[string]bool{
		"real_ip_header X-A;": true, "# real_ip_header X-A;": false, "location /a { return 403; }": false,
	} {
		settings, problems := ParseClass(annotations.Settings{}, map[string]string{"server-snippet": text})
		if settings.Closed != closed || closed != (len(problems) == 1) {
			t.Errorf("%s: closed is %v with %v", text, settings.Closed, problems)
		}
	}
	settings, _ := ParseClass(annotations.Settings{IgnoreSnippets: true},
		map[string]string{"server-snippet": "real_ip_header X-A;"})
	if settings.Closed {
		t.Error("closed although snippets are ignored")
	}
}
