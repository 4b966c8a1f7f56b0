package configmap

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/option"
	"github.com/k8singress/k8singress/internal/model/report"
	"github.com/k8singress/k8singress/internal/tests/fixture"
	"github.com/k8singress/k8singress/internal/translate/annotations"
	"github.com/k8singress/k8singress/internal/translate/snippets"
)

// parse parses the data of the ConfigMap for all Ingresses, with the controller's default options.
func parse(data map[string]string) (*Config, []report.Problem) {
	return Parse(annotations.Settings{}, data)
}

func parsed(data map[string]string) []report.Problem {
	_, problems := parse(data)
	return problems
}

func TestGlobal(t *testing.T) {
	for _, test := range []struct {
		name, value string
		want        ir.Global
	}{
		{"use-forwarded-headers", "false", ir.Global{}},
		{"use-forwarded-headers", "", ir.Global{}},
		{"compute-full-forwarded-for", "true", ir.Global{Clients: ir.Clients{AppendForwarded: true}}},
		{"forwarded-for-header", "CF-Connecting-IP", ir.Global{Clients: ir.Clients{Header: "CF-Connecting-IP"}}},
		{"proxy-protocol-header-timeout", "2s", ir.Global{Clients: ir.Clients{ProxyTimeout: 2 * time.Second}}},
		{"proxy-protocol-header-timeout", "1.5s",
			ir.Global{Clients: ir.Clients{ProxyTimeout: 1500 * time.Millisecond}}},
		{"proxy-protocol-header-timeout", "5", ir.Global{Clients: ir.Clients{ProxyTimeout: 5 * time.Second}}},
		{"upstream-keepalive-connections", "64", ir.Global{KeepAlive: 64}},
		{"upstream-keepalive-connections", "0", ir.Global{KeepAlive: -1}},
		{"upstream-keepalive-timeout", "30", ir.Global{KeepAliveTimeout: 30 * time.Second}},
		{"client-header-timeout", "10", ir.Global{Connections: ir.ClientConnections{HeaderTimeout: 10 * time.Second}}},
		{"client-body-timeout", "5", ir.Global{Connections: ir.ClientConnections{BodyTimeout: 5 * time.Second}}},
		{"keep-alive", "30", ir.Global{Connections: ir.ClientConnections{KeepAlive: 30 * time.Second}}},
		{"keep-alive", "0", ir.Global{Connections: ir.ClientConnections{KeepAlive: -1}}},
		{"keep-alive-requests", "100", ir.Global{Connections: ir.ClientConnections{Requests: 100}}},
		{"large-client-header-buffers", "4 16k", ir.Global{Connections: ir.ClientConnections{MaxHead: 64 << 10}}},
		{"large-client-header-buffers", "8  1K", ir.Global{Connections: ir.ClientConnections{MaxHead: 8 << 10}}},
		{"http2-max-concurrent-streams", "128", ir.Global{Connections: ir.ClientConnections{Streams: 128}}},
		{"server-tokens", "true", ir.Global{ServerTokens: true}},
		{"allow-backend-server-header", "true", ir.Global{BackendServer: true}},
		{"disable-access-log", "true", ir.Global{AccessLog: ir.AccessLog{Off: true},
			StreamLog: ir.StreamLog{Off: true}}},
		{"disable-stream-access-log", "true", ir.Global{StreamLog: ir.StreamLog{Off: true}}},
		{"disable-http-access-log", "true", ir.Global{AccessLog: ir.AccessLog{Off: true}}},
		{"access-log-path", "/dev/stderr",
			ir.Global{AccessLog: ir.AccessLog{Path: "/dev/stderr"}, StreamLog: ir.StreamLog{Path: "/dev/stderr"}}},
		{"stream-access-log-path", "/x.log", ir.Global{StreamLog: ir.StreamLog{Path: "/x.log"}}},
		{"log-format-stream", "$status $upstream_addr",
			ir.Global{StreamLog: ir.StreamLog{Format: "$status $upstream_addr"}}},
		{"http-access-log-path", "/x.log", ir.Global{AccessLog: ir.AccessLog{Path: "/x.log"}}},
		{"log-format-upstream", "$status $upstream_addr",
			ir.Global{AccessLog: ir.AccessLog{Format: "$status $upstream_addr"}}},
		{"log-format-escape-json", "true", ir.Global{AccessLog: ir.AccessLog{Escape: ir.EscapeJSON}}},
		{"log-format-escape-none", "true", ir.Global{AccessLog: ir.AccessLog{Escape: ir.EscapeNone}}},
		{"skip-access-log-urls", "/healthz,\n~^/api",
			ir.Global{AccessLog: ir.AccessLog{Skip: []string{"/healthz", "~^/api"}}}},
		{"enable-access-log-for-default-backend", "true", ir.Global{AccessLog: ir.AccessLog{Unknown: true}}},
		{"otlp-collector-host", "otel.example", ir.Global{Collector: ir.Collector{Host: "otel.example"}}},
		{"otlp-collector-host", "[::1]", ir.Global{Collector: ir.Collector{Host: "::1"}}},
		{"otlp-collector-port", "55680", ir.Global{Collector: ir.Collector{Port: 55680}}},
		{"otel-max-queuesize", "10", ir.Global{Collector: ir.Collector{Queue: 10}}},
		{"otel-schedule-delay-millis", "100", ir.Global{Collector: ir.Collector{Delay: 100 * time.Millisecond}}},
		{"otel-max-export-batch-size", "5", ir.Global{Collector: ir.Collector{Batch: 5}}},
		{"otel-service-name", "edge proxy", ir.Global{Collector: ir.Collector{Service: "edge proxy"}}},
		{"otel-sampler", "TraceIdRatioBased", ir.Global{Collector: ir.Collector{Sampler: ir.SampleRatio}}},
		{"otel-sampler-ratio", "0.5", ir.Global{Collector: ir.Collector{Ratio: 0.5}}},
		{"otel-sampler-ratio", "0", ir.Global{Collector: ir.Collector{Ratio: -1}}},
		{"otel-sampler-parent-based", "false", ir.Global{Collector: ir.Collector{OwnChoice: true}}},
		{"nginx-status-ipv4-whitelist", "10.0.0.0/8, 192.0.2.1",
			ir.Global{Status: ir.StatusPage{IPv4: []string{"10.0.0.0/8", "192.0.2.1/32"}}}},
		{"nginx-status-ipv6-whitelist", "fd00::/8", ir.Global{Status: ir.StatusPage{IPv6: []string{"fd00::/8"}}}},
		{"use-gzip", "true", ir.Global{Compression: ir.Compression{Gzip: ir.Coding{On: true}}}},
		{"gzip-level", "9", ir.Global{Compression: ir.Compression{Gzip: ir.Coding{Level: 9}}}},
		{"gzip-min-length", "0", ir.Global{Compression: ir.Compression{Gzip: ir.Coding{MinSize: -1}}}},
		{"gzip-types", "Text/CSS  image/svg+xml\n*", ir.Global{
			Compression: ir.Compression{Gzip: ir.Coding{Types: []string{"*", "image/svg+xml", "text/css"}}}}},
		{"gzip-disable", "old (browser|robot)",
			ir.Global{Compression: ir.Compression{GzipDisable: "old (browser|robot)"}}},
		{"enable-brotli", "true", ir.Global{Compression: ir.Compression{Brotli: ir.Coding{On: true}}}},
		{"brotli-level", "0", ir.Global{Compression: ir.Compression{Brotli: ir.Coding{Level: -1}}}},
		{"brotli-min-length", "30", ir.Global{Compression: ir.Compression{Brotli: ir.Coding{MinSize: 30}}}},
		{"brotli-types", "text/css",
			ir.Global{Compression: ir.Compression{Brotli: ir.Coding{Types: []string{"text/css"}}}}},
		{"hide-headers", "X-Powered-By,\nX-Generator",
			ir.Global{Headers: ir.Headers{Hidden: []string{"X-Powered-By", "X-Generator"}}}},
		{"proxy-add-original-uri-header", "true", ir.Global{Headers: ir.Headers{OriginalURI: true}}},
		{"forwarded-host-header", "X-Asked-Host", ir.Global{Clients: ir.Clients{HostHeader: "X-Asked-Host"}}},
		{"enable-underscores-in-headers", "true", ir.Global{Connections: ir.ClientConnections{Underscores: true}}},
		{"ignore-invalid-headers", "false", ir.Global{Connections: ir.ClientConnections{InvalidNames: true}}},
		{"ignore-invalid-headers", "true", ir.Global{}},
		{"generate-request-id", "false", ir.Global{NoRequestID: true}},
		{"generate-request-id", "true", ir.Global{}},
		{"default-type", "application/json", ir.Global{DefaultType: "application/json"}},
		{"block-cidrs", "192.0.2.7,\n2001:db8::/32",
			ir.Global{Block: ir.Block{Networks: []string{"192.0.2.7/32", "2001:db8::/32"}}}},
		{"block-user-agents", "curl/8.0, ~*bad\\.bot ,",
			ir.Global{Block: ir.Block{UserAgents: []string{"curl/8.0", "~*bad\\.bot"}}}},
		{"block-user-agents", `"~*a b\\w", '', \~x`,
			ir.Global{Block: ir.Block{UserAgents: []string{`~*a b\w`, "", `\~x`}}}},
		{"block-referers", "~^https://spam[.]example/,\nhttp://a.example/", ir.Global{
			Block: ir.Block{Referers: []string{"~^https://spam[.]example/", "http://a.example/"}}}},
		{"worker-shutdown-timeout", "10s", ir.Global{Drain: 10 * time.Second}},
		{"worker-shutdown-timeout", "1h 30m", ir.Global{Drain: 90 * time.Minute}},
		{"worker-shutdown-timeout", "0", ir.Global{Drain: 365 * 24 * time.Hour}},
	} {
		t.Run(test.name+" "+test.value, func(t *testing.T) {
			config, problems := parse(map[string]string{test.name: test.value})
			if diff := cmp.Diff(test.want, config.Global); diff != "" || len(problems) > 0 {
				t.Errorf("%v, and (-want +got):\n%s", problems, diff)
			}
		})
	}
}

// TestSyslog checks that a syslog server takes precedence over a file, and that a host has no effect unless syslog is
// on.
func TestSyslog(t *testing.T) {
	for _, c := range []struct{ on, host, port, want string }{
		{"true", "192.0.2.1", "", ir.Syslog + "192.0.2.1:514"},
		{"true", "fd00::1", "5514", ir.Syslog + "[fd00::1]:5514"},
		{"true", "logs.example", "1", ir.Syslog + "logs.example:1"},
		{"true", "logs.example:514", "", "/x.log"},
		{"true", "", "", "/x.log"},
		{"false", "192.0.2.1", "", "/x.log"},
	} {
		config, problems := parse(map[string]string{
			"access-log-path": "/x.log", "enable-syslog": c.on, "syslog-host": c.host, "syslog-port": c.port,
		})
		if got := config.Global.AccessLog.Path; got != c.want || c.on == "true" &&
			(len(problems) > 0) == strings.HasPrefix(got, ir.Syslog) {
			t.Errorf("%+v: the path is %q, with %v", c, got, problems)
		}
	}
}

// TestTrustOfEveryone checks that a key that trusts client addresses in request headers causes a warning if
// proxy-real-ip-cidr is not set, because then every client is trusted.
func TestTrustOfEveryone(t *testing.T) {
	for key, value := range map[string]string{
		"use-forwarded-headers": "true", "enable-real-ip": "true", "use-proxy-protocol": "true\n",
	} {
		trusted, none := parsed(map[string]string{key: value, "proxy-real-ip-cidr": "0.0.0.0/0,::/0"}),
			parsed(map[string]string{key: "false"})
		if len(trusted)+len(none) > 0 {
			t.Errorf("%s: %v with networks, %v where it is off", key, trusted, none)
		}
		config, problems := parse(map[string]string{key: value})
		on := config.Global.Clients
		if !on.UseForwarded && !on.RealIP && !on.ProxyProtocol || on.Trusted != nil {
			t.Errorf("%s: the clients are %+v", key, on)
		}
		if len(problems) != 1 || problems[0].Severity != report.Warning || problems[0].Field != "data["+key+"]" ||
			!strings.Contains(problems[0].Message, "proxy-real-ip-cidr") {
			t.Errorf("%s: %v", key, problems)
		}
	}
}

func TestRefused(t *testing.T) {
	for _, test := range []struct{ name, value, message string }{
		{"use-forwarded-headers", "yes", `"yes" is neither "true" nor "false"`},
		{"use-proxy-protocol", "on", `"on" is neither`},
		{"gzip-level", "0", "is not a number from 1 to 9"},
		{"gzip-types", "text/css text", "is not a media type"},
		{"gzip-types", "text/css;q=1", "is not a media type"},
		{"gzip-disable", "(", "missing"},
		{"brotli-level", "12", "is not a number from 0 to 11"},
		{"forwarded-for-header", "X Real", "is not a valid name"},
		{"forwarded-for-header", "X\r\nY: z", "U+000D"},
		{"proxy-protocol-header-timeout", "0s", "is not a valid time"},
		{"proxy-protocol-header-timeout", "-1s", "is not a valid time"},
		{"proxy-protocol-header-timeout", "soon", "is not a valid time"},
		{"upstream-keepalive-connections", "-1", "is not a number from 0"},
		{"upstream-keepalive-timeout", "0", "set upstream-keepalive-connections to 0"},
		{"worker-shutdown-timeout", "-5s", "is not a time"},
		{"worker-shutdown-timeout", "99999999y", "is not a time"},
		{"client-header-timeout", "0", "is not a number of seconds"},
		{"client-body-timeout", "0", "is not a number of seconds"},
		{"keep-alive", "-1", "is not a number of seconds"},
		{"keep-alive-requests", "0", "is not a number from 1"},
		{"large-client-header-buffers", "32k", "is not a number and a size"},
		{"large-client-header-buffers", "4 8x", "is not a size"},
		{"large-client-header-buffers", "1 1k", "the minimum is 4k, and the maximum is 1m"},
		{"large-client-header-buffers", "64 64k", "the minimum is 4k, and the maximum is 1m"},
		{"large-client-header-buffers", "1048576 9223372036854775807", "the minimum is 4k, and the maximum is 1m"},
		{"large-client-header-buffers", "-1 8k", "is not a number of buffers"},
		{"http2-max-concurrent-streams", "0", "is not a number from 1"},
		{"retry-non-idempotent", "maybe", "is neither"},
		{"proxy-body-size", "1z", "is not a size"},
		{"proxy-read-timeout", "0", "is not a number of seconds"},
		{"load-balance", "ip_hash", "is not one of"},
		{"upstream-hash-by", "$nosuch", "there is no variable $nosuch"},
	} {
		t.Run(test.name+" "+test.value, func(t *testing.T) {
			config, problems := parse(map[string]string{test.name: test.value})
			if !reflect.DeepEqual(config, &Config{}) {
				t.Errorf("it changes something: %+v", config)
			}
			want := report.Problem{Severity: report.Error, Reason: report.InvalidEntry,
				Field: "data[" + test.name + "]"}
			if len(problems) != 1 || !strings.Contains(problems[0].Message, test.message) {
				t.Fatalf("got %v, want one with %q", problems, test.message)
			}
			want.Message = problems[0].Message
			if problems[0] != want {
				t.Errorf("got %+v, want %+v", problems[0], want)
			}
		})
	}
}

// TestTrusted checks that a list of trusted networks without a valid entry trusts no client. An empty list would trust
// every client.
func TestTrusted(t *testing.T) {
	for _, test := range []struct {
		value string
		want  []string
		bad   string
	}{
		{"", nil, ""},
		{"10.0.0.0/8", []string{"10.0.0.0/8"}, ""},
		{"0.0.0.0/0", []string{"0.0.0.0/0"}, ""},
		{"10.1.2.3/8, fd00::1/8\n192.0.2.1", []string{"10.0.0.0/8", "fd00::/8", "192.0.2.1/32"}, ""},
		{"::ffff:10.0.0.0/104,::ffff:192.0.2.1,2001:db8::1",
			[]string{"10.0.0.0/8", "192.0.2.1/32", "2001:db8::1/128"}, ""},
		{"10.0.0.0/8,10.0.0.0/33,proxy.example", []string{"10.0.0.0/8"}, `"10.0.0.0/33", "proxy.example"`},
		{"proxy.example", []string{"255.255.255.255/32"}, "no proxy is trusted"},
		{",", []string{"255.255.255.255/32"}, "no proxy is trusted"},
		{"fe80::1%eth0", []string{"255.255.255.255/32"}, "no proxy is trusted"},
	} {
		t.Run(test.value, func(t *testing.T) {
			config, problems := parse(map[string]string{"proxy-real-ip-cidr": test.value})
			if diff := cmp.Diff(test.want, config.Global.Clients.Trusted); diff != "" {
				t.Errorf("trusted (-want +got):\n%s", diff)
			}
			switch {
			case test.bad == "" && len(problems) > 0:
				t.Error(problems)
			case test.bad != "" && (len(problems) != 1 || !strings.Contains(problems[0].Message, test.bad) ||
				problems[0].Severity != report.Error):
				t.Errorf("got %v, want an error with %q", problems, test.bad)
			}
		})
	}
}

// TestAllowedResponseHeaders checks that invalid entries of the list allow no header, and that a class may have its own
// list.
func TestAllowedResponseHeaders(t *testing.T) {
	for _, test := range []struct {
		value string
		want  []string
		bad   string
	}{
		{"", nil, ""},
		{",", nil, ""},
		{"X-Own, x-new,\nX_Third", []string{"X-Own", "x-new", "X_Third"}, ""},
		{"X-Own,*,X.Own", []string{"X-Own"}, `"*" contains '*'`},
		{"transfer-encoding,Connection", nil, "transfer-encoding describes a connection"},
		{strings.Repeat("x", 129), nil, "longer than 128 bytes"},
	} {
		t.Run(test.value, func(t *testing.T) {
			config, problems := parse(map[string]string{"global-allowed-response-headers": test.value})
			if diff := cmp.Diff(test.want, config.Defaults.CustomHeaders.Allowed); diff != "" {
				t.Errorf("allowed (-want +got):\n%s", diff)
			}
			switch {
			case test.bad == "" && len(problems) > 0:
				t.Error(problems)
			case test.bad != "" && (len(problems) != 1 || !strings.Contains(problems[0].Message, test.bad)):
				t.Errorf("got %v, want one with %q", problems, test.bad)
			}
		})
	}
	config, _ := parse(map[string]string{"global-allowed-response-headers": "X-Own"})
	class, _ := ParseClass(config.Defaults, map[string]string{"global-allowed-response-headers": "X-New"})
	if diff := cmp.Diff([]string{"X-New"}, class.CustomHeaders.Allowed); diff != "" {
		t.Errorf("allowed for the class (-want +got):\n%s", diff)
	}
}

// TestDefaults checks that a key with the name of an annotation is the default for all Ingresses without this
// annotation.
func TestDefaults(t *testing.T) {
	config, problems := parse(map[string]string{
		"proxy-body-size": "8m", "proxy-read-timeout": "10s", "load-balance": "ewma", "retry-non-idempotent": "true",
		"proxy-request-buffering": "off", "service-upstream": "true", "retry-after": "30",
	})
	if len(problems) != 1 || problems[0].Severity != report.Warning || problems[0].Field != "data[proxy-read-timeout]" {
		t.Errorf("got %v, want a warning of the unit", problems)
	}
	settings, problems := annotations.Parse(config.Defaults, map[string]string{
		annotations.Prefix + "proxy-body-size": "1m", annotations.Prefix + "service-upstream": "false",
	})
	if len(problems) > 0 {
		t.Error(problems)
	}
	if diff := cmp.Diff(ir.Forwarding{MaxBody: 1 << 20, StreamRequest: true}, settings.Forwarding); diff != "" {
		t.Errorf("forwarding (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(ir.LoadBalancing{Policy: ir.PolicyEWMA}, settings.LoadBalancing); diff != "" {
		t.Errorf("load balancing (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(ir.RoutePolicy{RetryAfter: 30 * time.Second}, settings.RoutePolicy); diff != "" {
		t.Errorf("policy (-want +got):\n%s", diff)
	}
	want := ir.Attempts{Read: 10 * time.Second,
		On: []ir.RetryOn{ir.RetryOnError, ir.RetryOnTimeout, ir.RetryNonIdempotent}}
	if diff := cmp.Diff(want, settings.Attempts); diff != "" {
		t.Errorf("attempts (-want +got):\n%s", diff)
	}
}

// TestClass checks that the ConfigMap of a class takes precedence over the global one, and that it cannot set keys for
// the whole process.
func TestClass(t *testing.T) {
	config, _ := parse(map[string]string{"proxy-body-size": "8m", "proxy-buffering": "on",
		"retry-non-idempotent": "true"})
	settings, problems := ParseClass(config.Defaults, map[string]string{
		"proxy-body-size": "2m", "retry-non-idempotent": "false", "use-forwarded-headers": "true",
		"proxy-real-ip-cidr": "",
		"worker-processes":   "4", "x": "y",
	})
	if diff := cmp.Diff(ir.Forwarding{MaxBody: 2 << 20, BufferResponse: true}, settings.Forwarding); diff != "" {
		t.Errorf("forwarding (-want +got):\n%s", diff)
	}
	if settings.Attempts.On != nil {
		t.Errorf("the class says false, and yet there is %v", settings.Attempts.On)
	}
	if len(problems) != 2 || problems[0].Field != "data[use-forwarded-headers]" ||
		problems[0].Severity != report.Warning ||
		!strings.Contains(problems[0].Message, "move it to the global ConfigMap") || problems[1].Field != "data[x]" {
		t.Errorf("got %v", problems)
	}
	if config.Defaults.Forwarding.MaxBody != 8<<20 || len(config.Defaults.Attempts.On) != 3 {
		t.Errorf("the class has changed what holds for all: %+v", config.Defaults)
	}
}

// TestClassStaysClosed checks that the Ingresses of a class return 503 if an invalid key of the global ConfigMap makes
// all Ingresses return 503.
func TestClassStaysClosed(t *testing.T) {
	if settings, _ := ParseClass(annotations.Settings{Closed: true},
		map[string]string{"proxy-body-size": "1m"}); !settings.Closed {
		t.Error("a class opens what all have closed")
	}
}

func TestOtherKeys(t *testing.T) {
	for name, message := range map[string]string{
		"worker-processes":       "",
		"proxy-buffer-size":      "",
		"use-geoip2":             "is not supported yet, and has no effect",
		"jaeger-endpoint":        "as in ingress-nginx v1.15",
		"proxy-body-zise":        "did you mean proxy-body-size?",
		"whitelist-source-rnage": "did you mean whitelist-source-range?",
		"completely-different":   `the key "completely-different" does not exist, and has no effect`,
	} {
		config, problems := parse(map[string]string{name: "x"})
		if !reflect.DeepEqual(config, &Config{}) {
			t.Errorf("%s changes something: %+v", name, config)
		}
		switch {
		case message == "" && len(problems) > 0:
			t.Errorf("%s: %v", name, problems)
		case message != "" && (len(problems) != 1 || problems[0].Reason != report.UnknownKey ||
			!strings.HasSuffix(problems[0].Message, message) &&
				!strings.Contains(problems[0].Message, message)):
			t.Errorf("%s: got %v, want %q", name, problems, message)
		}
	}
}

// FuzzConfigMap checks that each value is either used or rejected with a complete problem, and that no text with
// control characters is used.
func FuzzConfigMap(f *testing.F) {
	for i := range Table {
		f.Add(Table[i].Name, Table[i].Example)
		f.Add(Table[i].Name, Table[i].Example+"{env.HOME}\r\n")
	}
	for _, name := range slices.Concat(names, []string{"", "\x00", "{env.HOME}", "proxy-body-zise"}) {
		f.Add(name, "x")
	}
	f.Fuzz(func(t *testing.T, name, value string) {
		config, problems := parse(map[string]string{name: value})
		if strings.TrimSpace(value) != "false" || fates[name] != fateLater {
			checkProblems(t, name, problems)
		}
		for _, p := range problems {
			if p.Severity == report.Error {
				checkRefused(t, name, value, p, config)
			}
		}
		if name == "proxy-real-ip-cidr" && strings.TrimSpace(value) != "" && len(config.Global.Clients.Trusted) == 0 {
			t.Error("a list of networks became everybody")
		}
		for _, text := range append(config.Global.Clients.Trusted, config.Global.Clients.Header,
			config.Defaults.LoadBalancing.HashBy) {
			if !utf8.ValidString(text) || strings.ContainsFunc(text, unicode.IsControl) {
				t.Errorf("the text %q is taken", text)
			}
		}
		again, _ := ParseClass(config.Defaults, nil)
		if diff := cmp.Diff(config.Defaults, again, cmpopts.IgnoreUnexported(snippets.HTTP{})); diff != "" {
			t.Errorf("a class that says nothing changes something (-all +class):\n%s", diff)
		}
	})
}

// checkProblems checks that each problem is complete, and that every unknown key causes one.
func checkProblems(t *testing.T, name string, problems []report.Problem) {
	t.Helper()
	for _, p := range problems {
		if p.Severity == "" || p.Reason == "" || p.Message == "" || p.Field != "data["+name+"]" {
			t.Errorf("a problem says too little: %+v", p)
		}
	}
	if Table.Find(name) == nil && len(problems) == 0 && fates[name] != fateTuning {
		t.Error("a key that nobody knows, and no word of it")
	}
}

// checkRefused checks that an invalid key leaves only the settings that its row states.
func checkRefused(t *testing.T, name, value string, problem report.Problem, config *Config) {
	t.Helper()
	want := fixture.Refused(Table.Find(name), value, problem.Message)
	if want.Defaults.Closed {
		want.Defaults.ClosedBy = problem.Field + ": " + problem.Message
	}
	r := reading{Reading: option.Reading[Config]{Settings: &want}}
	r.all(nil)
	if diff := cmp.Diff(&want, config); diff != "" {
		t.Errorf("%v, and the value leaves other settings than OnError of its row (-want +got):\n%s", problem, diff)
	}
}

// TestBlockFailsClosed checks that all Ingresses return 503 if a key that blocks requests is invalid, and that a class
// cannot have such a key.
func TestBlockFailsClosed(t *testing.T) {
	for key, values := range map[string][]string{
		"block-cidrs":       {"here", "10.0.0.0/8,10.0.0.0/33"},
		"block-user-agents": {"~(", "a,~*(?=b)", `"a`, "a\nb", "'"},
		"block-referers":    {"~[", "a\x00"},
	} {
		for _, value := range values {
			config, problems := parse(map[string]string{key: value})
			if !config.Defaults.Closed || len(problems) != 1 || !strings.HasSuffix(problems[0].Message, allRefused) {
				t.Errorf("%s: %q: closed is %v with %v", key, value, config.Defaults.Closed, problems)
			}
		}
		class, problems := ParseClass(annotations.Settings{}, map[string]string{key: "10.0.0.1"})
		if !class.Closed || len(problems) != 1 ||
			!strings.Contains(problems[0].Message, "move it to the global ConfigMap") {
			t.Errorf("%s of a class: closed is %v with %v", key, class.Closed, problems)
		}
	}
}

// TestMaintenance checks that an invalid list of clients closes no Ingress, but allows no client during maintenance,
// whatever the list for all Ingresses contains. An invalid switch closes all Ingresses.
func TestMaintenance(t *testing.T) {
	config, problems := parse(map[string]string{"maintenance": "true", "maintenance-allowlist": "192.0.2.1"})
	if got := config.Defaults.Asked.Maintenance; !got.On || !slices.Equal(got.Allow, []string{"192.0.2.1/32"}) ||
		len(problems) > 0 {
		t.Errorf("%+v, %v", got, problems)
	}
	class, problems := ParseClass(config.Defaults, map[string]string{"maintenance-allowlist": "office"})
	if got := class.Asked.Maintenance; class.Closed || !got.On || got.Allow != nil || len(problems) != 1 {
		t.Errorf("an invalid list: %+v, closed is %t, %v", got, class.Closed, problems)
	}
	if class, _ = ParseClass(config.Defaults, map[string]string{"maintenance": "yes"}); !class.Closed {
		t.Error("an invalid switch closes nothing")
	}
}
