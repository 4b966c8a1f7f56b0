package proxy_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/k8singress/k8singress/internal/http/proxy"
	"github.com/k8singress/k8singress/internal/model/ir"
)

// TestSettingsOfADocument checks that invalid settings are rejected with the name of the field, and that the defaults
// are valid.
func TestSettingsOfADocument(t *testing.T) {
	for change, want := range map[string]string{
		`{}`:                             "",
		`{"max_body": -1}`:               "",
		`{"connect_timeout": 0}`:         "connect_timeout, read_timeout and write_timeout must be greater than zero",
		`{"write_timeout": -1}`:          "connect_timeout, read_timeout and write_timeout must be greater than zero",
		`{"max_body": 0}`:                "max_body must be greater than zero, or -1 for no limit",
		`{"max_body": -2}`:               "max_body must be greater than zero, or -1 for no limit",
		`{"retry_on": ["error", "tea"]}`: `retry_on: unknown condition "tea"`,
		`{"host": "$status.example"}`:    "host: ",
		`{"protocol": "fastcgi", "params": {"A": "$status"}}`: "params: A: ",
	} {
		p := ir.Proxy{}.WithDefaults()
		if err := json.Unmarshal([]byte(change), &p); err != nil {
			t.Fatal(err)
		}
		got := ""
		if _, err := proxy.NewSettings(p); err != nil {
			got = err.Error()
		}
		if want == "" && got != "" || !strings.HasPrefix(got, want) {
			t.Errorf("%s: got %q, want %q", change, got, want)
		}
	}
}
