package k8singress

import "testing"

// TestPersists checks that only a configuration that asks for it may be resumed.
func TestPersists(t *testing.T) {
	for config, want := range map[string]bool{
		`{"admin":{"config":{"persist":true}}}`: true, `{"admin":{"config":{"persist":false}}}`: false,
		`{"admin":{"listen":":2019"}}`: false, `{`: false, "": false,
	} {
		if got := persists([]byte(config)); got != want {
			t.Errorf("%s: %v", config, got)
		}
	}
}
