package configmap

import (
	"strings"
	"testing"

	"github.com/k8singress/k8singress/internal/translate/annotations"
)

// TestHTTPDirectivesOfIngresses checks that directives of http-snippet with the effect of an annotation are defaults
// for all Ingresses, and that other keys take precedence.
func TestHTTPDirectivesOfIngresses(t *testing.T) {
	data := map[string]string{"http-snippet": "limit_rate 8k; limit_rate_after 4k; absolute_redirect off; satisfy any;",
		"limit-rate-after": "2"}
	config, problems := parse(data)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	d := &config.Defaults
	if d.Asked.Rate.Kilobytes != 8 || d.Asked.Rate.After != 2 || !d.RelativeRedirects || !d.Asked.SatisfyAny {
		t.Errorf("the defaults are %+v", d.Asked)
	}
	data["http-snippet"] = "proxy_ssl_protocols SSLv9;"
	if config, problems = parse(data); !config.Defaults.Closed && len(problems) == 0 {
		t.Error("an invalid value has no problem")
	}
	if config, _ = Parse(annotations.Settings{IgnoreSnippets: true}, data); config.Defaults.Closed {
		t.Error("the Ingresses are closed although snippets are ignored")
	}
}

// TestKeysInsteadOfHTTPDirectives checks that the warning about a directive of http-snippet names the key to use.
func TestKeysInsteadOfHTTPDirectives(t *testing.T) {
	const text = `gzip on; gzip_comp_level 5; gzip_disable msie6; gzip_min_length 20; gzip_types text/css;
		brotli on; brotli_comp_level 5; brotli_min_length 20; brotli_types text/css;
		client_body_timeout 5; client_header_timeout 5; keepalive_requests 5; keepalive_timeout 5;
		http2_max_concurrent_streams 5; ignore_invalid_headers on; server_tokens on; underscores_in_headers on;
		default_type text/plain; limit_req_status 429; limit_conn_status 429; large_client_header_buffers 4 8k;`
	_, problems := parse(map[string]string{"http-snippet": text})
	if len(problems) == 0 {
		t.Fatal("there are no problems")
	}
	for _, p := range problems {
		_, key, found := strings.Cut(p.Message, "use the ConfigMap key ")
		if p.Message != "more lines have problems" && (!found || Table.Find(key) == nil) {
			t.Errorf("%s", p.Message)
		}
	}
}
