package configmap

import (
	"slices"
	"strings"
	"testing"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/report"
	"github.com/k8singress/k8singress/internal/translate/annotations"
)

// TestHTTPSnippet checks which values may contain the variables of http-snippet. auth-url, before it in the alphabet,
// is a value of the ConfigMap.
func TestHTTPSnippet(t *testing.T) {
	data := map[string]string{
		"http-snippet": "map $host $tenant { default a; }\nmap $status $failed { ~^5 1; }\nproxy_cache_path /a " +
			"keys_zone=a:1m;",
		"global-auth-url":     "http://auth.example/$tenant",
		"upstream-hash-by":    "$tenant$http_a",
		"log-format-upstream": "$tenant $failed $request_time $nosuch",
		"proxy-redirect-to":   "/$failed",
	}
	config, problems := Parse(annotations.Settings{}, data)
	if config.Defaults.Closed || len(config.Global.Variables) != 2 || config.Global.Variables[0].Name != "tenant" {
		t.Errorf("closed is %v, and the variables are %v", config.Defaults.Closed, config.Global.Variables)
	}
	if got := config.Defaults.Asked.Balancing.HashBy; got != data["upstream-hash-by"] {
		t.Errorf("the hash is of %q", got)
	}
	var got []string
	for _, p := range problems {
		got = append(got, p.Field+": "+p.Message)
	}
	want := []string{
		`data[http-snippet]: line 3: "proxy_cache_path" is left out: responses are not cached`,
		"data[log-format-upstream]: these variables are not supported and have the value -: $nosuch",
		"data[proxy-redirect-to]: the variable $failed is derived from the response",
	}
	if !slices.EqualFunc(got, want, strings.HasPrefix) {
		t.Errorf("the problems are\n%s", strings.Join(got, "\n"))
	}
	headers, bad := ReadHeaders(map[string]string{"X-A": "$tenant", "X-B": "$failed", "X-C": "$nosuch"},
		config.Defaults.HTTP)
	if len(bad) != 2 || !slices.Equal(headers, []ir.Header{{Name: "X-A", Value: "$tenant"}}) {
		t.Errorf("the headers are %v, and %v are invalid", headers, bad)
	}
	own, problems := annotations.Parse(config.Defaults, map[string]string{
		"nginx.ingress.kubernetes.io/upstream-vhost": "$tenant.example",
		"nginx.ingress.kubernetes.io/auth-url":       "http://a/$nosuch",
	})
	if own.Forwarding.Host != "$tenant.example" || len(problems) != 1 {
		t.Errorf("the host is %q, and the problems are %v", own.Forwarding.Host, problems)
	}
}

// TestHTTPSnippetFailsClosed checks that all Ingresses get 503 because of an invalid http-snippet, unless snippets are
// ignored, and that a class cannot have one.
func TestHTTPSnippetFailsClosed(t *testing.T) {
	for text, closed := range map[string]bool{
		"auth_request /a;": true, "map $host $a { x;": true, "server { return 403; }": true, "false": false,
		"gzip on;": false,
		"server { listen 2443; return 308 https://$host; }": false, "deny all; add_header A b;": false,
	} {
		data := map[string]string{"http-snippet": text}
		config, problems := Parse(annotations.Settings{}, data)
		if config.Defaults.Closed != closed || closed && (len(problems) != 1 || problems[0].Severity != report.Error) {
			t.Errorf("%s: closed is %v with %v", text, config.Defaults.Closed, problems)
		}
		if config, _ = Parse(annotations.Settings{IgnoreSnippets: true}, data); config.Defaults.Closed {
			t.Errorf("%s: closed although snippets are ignored", text)
		}
		if class, problems := ParseClass(annotations.Settings{}, data); class.HTTP != nil || len(problems) != 1 {
			t.Errorf("%s: a class has variables, and %v", text, problems)
		}
	}
}

// TestServerSnippetFindings checks that each line of server-snippet without effect is reported, also for the values of
// annotations in its locations.
func TestServerSnippetFindings(t *testing.T) {
	_, problems := Parse(annotations.Settings{}, map[string]string{
		"http-snippet": "geo $a { }",
		"server-snippet": "server_tokens off;\nlocation /a {\n  proxy_cache a;\n  proxy_next_upstream no;\n}\n" +
			"set $b $a;",
	})
	var got []string
	for _, p := range problems {
		got = append(got, string(p.Severity)+" "+p.Field+": "+p.Message)
	}
	want := []string{
		`info data[server-snippet]: line 1: "server_tokens" has no effect`,
		`warning data[server-snippet]: line 3: "proxy_cache" is left out`,
		"error data[server-snippet]: line 4: ",
	}
	if !slices.EqualFunc(got, want, strings.HasPrefix) {
		t.Errorf("the problems are\n%s", strings.Join(got, "\n"))
	}
}

// TestLargeHeaders checks that a snippet with larger request headers than it can have is reported, unless the key
// allows them.
func TestLargeHeaders(t *testing.T) {
	const text = "server_tokens on;\nlarge_client_header_buffers 4 64k;"
	own := map[string]string{"nginx.ingress.kubernetes.io/server-snippet": text}
	for key, limit := range map[string]string{"": "64k", "4 8k": "64k", "4 32k": "128k", "4 64k": ""} {
		config, problems := Parse(annotations.Settings{}, map[string]string{
			"large-client-header-buffers": key, "server-snippet": text,
			"annotations-risk-level": "Critical", "allow-snippet-annotations": "true",
		})
		_, ownProblems := annotations.Parse(config.Defaults, own)
		for name, of := range map[string][]report.Problem{"the ConfigMap": problems, "an Ingress": ownProblems} {
			got := ""
			for _, p := range of {
				if _, size, found := strings.Cut(p.Message, "allows headers of "); found {
					got, _, _ = strings.Cut(size, " ")
				}
			}
			if got != limit {
				t.Errorf("%s with the key %q: the limit is %q in %v", name, key, got, of)
			}
		}
	}
}

// TestLogFormatWithSnippets checks that the access log may contain the variables that snippets set. If only snippets of
// Ingresses may set a variable, there is a warning.
func TestLogFormatWithSnippets(t *testing.T) {
	const format, allowed = "log-format-upstream", "allowed"
	for name, c := range map[string]struct {
		data map[string]string
		want string
	}{
		"location-snippet": {map[string]string{format: "$tier", "location-snippet": "set $tier free;"}, ""},
		"server-snippet":   {map[string]string{format: "$tier", "server-snippet": "set $tier free;"}, ""},
		"neither": {map[string]string{format: "$tier", "location-snippet": "set $other free;"},
			"error these variables are not supported and have the value -: $tier"},
		"an Ingress": {map[string]string{format: "$tier $host", allowed: ""},
			"warning these variables have the value -, unless the snippet of an Ingress sets them: $tier"},
		"a variable of nginx": {map[string]string{format: "$tier $sent_http_a", allowed: ""},
			"error these variables are not supported and have the value -: $sent_http_a"},
	} {
		if _, ok := c.data[allowed]; ok {
			delete(c.data, allowed)
			c.data["annotations-risk-level"], c.data["allow-snippet-annotations"] = "Critical", "true"
		}
		config, problems := Parse(annotations.Settings{}, c.data)
		got := ""
		for _, p := range problems {
			got += string(p.Severity) + " " + p.Message
		}
		if got != c.want || config.Global.AccessLog.Format != c.data[format] {
			t.Errorf("%s: the problems are %q, and the format is %q", name, got, config.Global.AccessLog.Format)
		}
	}
}
