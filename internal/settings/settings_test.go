package settings_test

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/k8singress/k8singress/internal/settings"
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

func TestWithDefaultsKeepsWhatIsGiven(t *testing.T) {
	given := settings.Config{
		IngressClass: "edge", ControllerName: "example.com/edge", ElectionID: "edge", Admin: settings.AdminOff, ExternalNames: "off",
		HTTP: []string{":8080"}, HTTPS: []string{":8443"},
	}
	if got := given.WithDefaults(); !reflect.DeepEqual(got, given) {
		t.Errorf("%+v became %+v", given, got)
	}
	if got := given.WithoutDefaults(); !reflect.DeepEqual(got, given) {
		t.Errorf("%+v became %+v", given, got)
	}
}
