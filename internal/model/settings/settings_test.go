package settings_test

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/k8singress/k8singress/internal/model/settings"
)

func TestDefaults(t *testing.T) {
	if got := (settings.Config{}).WithDefaults(); !reflect.DeepEqual(got, settings.Defaults()) {
		t.Errorf("the zero value becomes %+v, want the defaults", got)
	}
	if got := settings.Defaults().WithoutDefaults(); !reflect.DeepEqual(got, settings.Config{}) {
		t.Errorf("the defaults become %+v, want the zero value", got)
	}
}

func TestOffIsNotTheDefault(t *testing.T) {
	off := settings.Config{HTTP: []string{}}
	encoded, err := json.Marshal(off)
	if err != nil || string(encoded) != `{"http":[]}` {
		t.Fatalf("encoded as %s, %v", encoded, err)
	}
	var decoded settings.Config
	if err := json.Unmarshal(encoded, &decoded); err != nil {
		t.Fatal(err)
	}
	if got := decoded.WithDefaults(); got.HTTP == nil || len(got.HTTP) != 0 || len(got.HTTPS) != 1 {
		t.Errorf("http %q, https %q; want none and the default", got.HTTP, got.HTTPS)
	}
}

func TestWithDefaultsKeepsExplicitValues(t *testing.T) {
	given := settings.Config{
		IngressClass: "edge", ControllerName: "example.com/edge", ElectionID: "edge", Admin: settings.AdminOff,
		ExternalNames: "off",
		HostOwnership: "namespace",
		HTTP:          []string{":8080"}, HTTPS: []string{":8443"},
		Health: ":10254", ShutdownDelay: 1, ShutdownTimeout: 2,
	}
	if got := given.WithDefaults(); !reflect.DeepEqual(got, given) {
		t.Errorf("%+v became %+v", given, got)
	}
	if got := given.WithoutDefaults(); !reflect.DeepEqual(got, given) {
		t.Errorf("%+v became %+v", given, got)
	}
}

func TestDuration(t *testing.T) {
	for text, want := range map[string]time.Duration{`"90s"`: 90 * time.Second, `"0s"`: 0,
		`1500000000`: 1500 * time.Millisecond} {
		var got settings.Duration
		if err := json.Unmarshal([]byte(text), &got); err != nil || got != settings.Duration(want) {
			t.Errorf("%s: %v %v, want %v", text, time.Duration(got), err, want)
		}
	}
	for _, text := range []string{`"soon"`, `""`, `"10"`, `true`, `{}`} {
		if err := json.Unmarshal([]byte(text), new(settings.Duration)); err == nil {
			t.Errorf("%s is taken", text)
		}
	}
}

func TestPortRange(t *testing.T) {
	for text, want := range map[string]settings.PortRange{
		"5432": {First: 5432, Last: 5432}, "1-65535": {First: 1, Last: 65535}, "5-5": {First: 5, Last: 5},
	} {
		got, err := settings.ParsePortRange(text)
		if err != nil || got != want || !got.Has(want.First) || !got.Has(want.Last) {
			t.Errorf("%s is %v and %v", text, got, err)
		}
		if again, err := settings.ParsePortRange(got.String()); err != nil || again != got {
			t.Errorf("%s is written as %s, which is %v and %v", text, got, again, err)
		}
	}
	for _, text := range []string{"", "0", "65536", "-1", "1-", "-", "2-1", "0-5", "1-65536", "1-2-3", "+1",
		" 1", "pg", "*"} {
		if got, err := settings.ParsePortRange(text); err == nil {
			t.Errorf("%q is taken for %v", text, got)
		}
	}
	r := settings.PortRange{First: 5000, Last: 5999}
	if r.Has(4999) || r.Has(6000) || !r.Has(5500) {
		t.Errorf("%s has other ports than its own", r)
	}
}

// TestAdmissionWebhook checks that the webhook has exactly one source of its certificate, which works with the source
// of objects.
func TestAdmissionWebhook(t *testing.T) {
	type webhook = settings.AdmissionWebhook
	for _, c := range []struct {
		webhook *webhook
		fails   bool
	}{
		{nil, false},
		{&webhook{Certificate: "a", Key: "b"}, false},
		{&webhook{Configuration: "a"}, false},
		{&webhook{}, true},
		{&webhook{Certificate: "a"}, true},
		{&webhook{Key: "b", Configuration: "a"}, true},
		{&webhook{Certificate: "a", Key: "b", Configuration: "a"}, true},
	} {
		cluster := &settings.Source{Kubernetes: &settings.Kubernetes{}}
		if err := (settings.Config{Source: cluster, AdmissionWebhook: c.webhook}).Check(); (err != nil) != c.fails {
			t.Errorf("%+v: %v", c.webhook, err)
		}
	}
	files, own := &webhook{Certificate: "a", Key: "b"}, &webhook{Configuration: "a"}
	folder := &settings.Source{Manifests: &settings.Manifests{Dir: "a"}}
	for _, c := range []struct {
		source  *settings.Source
		webhook *webhook
		fails   bool
	}{{folder, files, false}, {folder, own, true}, {nil, files, true}, {nil, own, true}, {nil, nil, false}} {
		err := (settings.Config{Source: c.source, AdmissionWebhook: c.webhook}).Check()
		if (err != nil) != c.fails {
			t.Errorf("%+v with %+v: %v", c.webhook, c.source, err)
		}
	}
}
