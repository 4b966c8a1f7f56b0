package configmap

import (
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
