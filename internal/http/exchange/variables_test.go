package exchange_test

import (
	"testing"

	"github.com/k8singress/k8singress/internal/http/exchange"
)

func TestParseTemplate(t *testing.T) {
	for _, text := range []string{"$host", "${http_x_user}", "$cookie_a_B$arg_q", "$https", "a$1"} {
		if _, err := exchange.ParseTemplate(text, "1"); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
	for _, text := range []string{"$nosuch", "$http_", "a$1", "${http_x-y}", "$status", "$fastcgi_script_name"} {
		if _, err := exchange.ParseTemplate(text); err == nil {
			t.Errorf("%q is read as a template", text)
		}
	}
}
