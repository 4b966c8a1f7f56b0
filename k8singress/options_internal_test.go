package k8singress

import (
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/google/go-cmp/cmp"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/settings"
)

// TestSettings checks options whose types in Options differ from the types in package settings, and an empty list,
// which is not the default.
func TestSettings(t *testing.T) {
	for raw, want := range map[string]settings.Config{
		`{}`:                               {},
		`{"http": []}`:                     {HTTP: []string{}},
		`{"configmap": "edge/controller"}`: {ConfigMap: ir.Name{Namespace: "edge", Name: "controller"}},
		`{"shutdown_delay": "90s"}`:        {ShutdownDelay: settings.Duration(90e9)},
		`{"shutdown_delay": 1}`:            {ShutdownDelay: 1},
		`{"source": {"manifests": {"dir": "x"}}}`: {Source: &settings.Source{Manifests: &settings.Manifests{Dir: "x"}}},
		`{"default_backend": "edge/errors:8080"}`: {DefaultBackend: ir.ServicePort{
			Service: ir.Name{Namespace: "edge", Name: "errors"}, Port: "8080"}},
	} {
		var app App
		if err := caddy.StrictUnmarshalJSON([]byte(raw), &app); err != nil {
			t.Errorf("%s: %v", raw, err)
			continue
		}
		if got, err := app.settings(); err != nil || cmp.Diff(want, got) != "" {
			t.Errorf("%s becomes %+v, error %v", raw, got, err)
		}
	}
}

func TestInvalidSettings(t *testing.T) {
	var app App
	if err := caddy.StrictUnmarshalJSON([]byte(`{"default_backend": "errors"}`), &app); err != nil {
		t.Fatal(err)
	}
	if _, err := app.settings(); err == nil || !strings.Contains(err.Error(), "errors") {
		t.Errorf("the error is %v", err)
	}
}
