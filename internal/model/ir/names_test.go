package ir_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/k8singress/k8singress/internal/model/ir"
)

func TestParseName(t *testing.T) {
	for text, want := range map[string]ir.Name{
		"a/b": {Namespace: "a", Name: "b"}, "a/b/c": {Namespace: "a", Name: "b/c"}, "": {}, "a": {}, "a/": {}, "/b": {},
	} {
		got, err := ir.ParseName(text)
		if got != want || (err != nil) != want.IsZero() {
			t.Errorf("%q is %+v, %v, want %+v", text, got, err, want)
		}
		if err == nil && got.String() != text {
			t.Errorf("%q is printed as %q", text, got)
		}
	}
	if _, err := ir.ParseName("a"); err == nil || err.Error() != `"a" is not namespace/name` {
		t.Errorf("the error is %v", err)
	}
}

func TestParseServicePort(t *testing.T) {
	service := ir.Name{Namespace: "a", Name: "b"}
	for text, want := range map[string]ir.ServicePort{
		"a/b": {Service: service}, "a/b:80": {Service: service, Port: "80"},
		"a/b:http": {Service: service, Port: "http"},
		"a/b:":     {}, "a:80": {}, "": {}, ":80": {},
	} {
		got, err := ir.ParseServicePort(text)
		if got != want || (err != nil) != want.IsZero() {
			t.Errorf("%q is %+v, %v, want %+v", text, got, err, want)
		}
		if err == nil && got.String() != text {
			t.Errorf("%q is printed as %q", text, got)
		}
	}
	if _, err := ir.ParseServicePort("a"); err == nil ||
		err.Error() != `"a" is not namespace/name or namespace/name:port` {
		t.Errorf("the error is %v", err)
	}
}

func TestParseRef(t *testing.T) {
	for text, want := range map[string]ir.Ref{
		"Ingress/a/b":       {Kind: "Ingress", Namespace: "a", Name: "b"},
		"IngressClass/b":    {Kind: "IngressClass", Name: "b"},
		"File/a/b/web.yaml": {Kind: "File", Namespace: "a", Name: "b/web.yaml"},
	} {
		got := ir.ParseRef(text)
		if got != want || got.String() != text {
			t.Errorf("%q is %+v, printed as %q", text, got, got)
		}
	}
}

// TestNamesInJSON checks that references are strings in JSON, and are read again as the same references.
func TestNamesInJSON(t *testing.T) {
	type references struct {
		Name ir.Name        `json:"name,omitzero"`
		Port ir.ServicePort `json:"port,omitzero"`
		Ref  ir.Ref         `json:"ref,omitzero"`
	}
	for want, r := range map[string]references{
		`{}`: {},
		`{"name":"a/b","port":"a/c:80","ref":"Ingress/a/d"}`: {
			Name: ir.Name{Namespace: "a", Name: "b"},
			Port: ir.ServicePort{Service: ir.Name{Namespace: "a", Name: "c"}, Port: "80"},
			Ref:  ir.Ref{Kind: "Ingress", Namespace: "a", Name: "d"},
		},
	} {
		text, err := json.Marshal(r)
		if err != nil || string(text) != want {
			t.Errorf("%+v is %s, %v, want %s", r, text, err, want)
		}
		var again references
		if err := json.Unmarshal(text, &again); err != nil || again != r {
			t.Errorf("%s is read as %+v, %v", text, again, err)
		}
	}
	for _, text := range []string{`{"name":"a"}`, `{"port":"a"}`, `{"port":"a/b:"}`} {
		if err := json.Unmarshal([]byte(text), &references{}); err == nil {
			t.Errorf("%s is read", text)
		}
	}
}

func TestOrderOfNames(t *testing.T) {
	names := []ir.Name{{Namespace: "b", Name: "a"}, {Namespace: "a", Name: "c"}, {Namespace: "a", Name: "b"}, {}}
	slices.SortFunc(names, ir.Name.Compare)
	want := []ir.Name{{}, {Namespace: "a", Name: "b"}, {Namespace: "a", Name: "c"}, {Namespace: "b", Name: "a"}}
	if !slices.Equal(names, want) {
		t.Errorf("the order is %v", names)
	}
	file, keys := ir.Users{Secret: want[1]}, ir.Users{Secret: want[1], Map: true}
	users := []ir.Users{{Secret: want[2]}, keys, file}
	slices.SortFunc(users, ir.Users.Compare)
	if !slices.Equal(users, []ir.Users{file, keys, {Secret: want[2]}}) {
		t.Errorf("the order is %v", users)
	}
}
