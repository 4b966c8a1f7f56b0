package annotations

import (
	"reflect"
	"testing"

	"github.com/k8singress/k8singress/internal/model/report"
)

// TestBooleans checks each boolean annotation with several values. The values true and false have different effects, in
// lower and upper case. An empty value has no effect. Any other value is an error and has no effect either, but if the
// annotation is a guard, requests get 503.
func TestBooleans(t *testing.T) {
	for i := range Table {
		row := &Table[i]
		if row.Values != booleans {
			continue
		}
		t.Run(row.Name, func(t *testing.T) {
			read := func(value string) (*Settings, []report.Problem) {
				settings, problems := Parse(Settings{}, map[string]string{Key(row.Name): value})
				failed := false
				for _, p := range problems {
					failed = failed || p.Severity == report.Error
				}
				if good := value != "maybe" && value != "yes"; failed == good {
					t.Errorf("%q: %v", value, problems)
				}
				return settings, problems
			}
			yes, _ := read("true")
			no, _ := read("false")
			if reflect.DeepEqual(yes, no) {
				t.Error("true and false are the same")
			}
			for value, want := range map[string]*Settings{"TRUE": yes, "FALSE": no, " true ": yes} {
				if got, _ := read(value); !reflect.DeepEqual(got, want) {
					t.Errorf("%q is another thing: %+v", value, got)
				}
			}
			none, _ := Parse(Settings{}, nil)
			if got, problems := read(""); !reflect.DeepEqual(got, none) || len(problems) > 0 {
				t.Errorf("an empty value: %+v, %v", got, problems)
			}
			for _, value := range []string{"maybe", "yes"} {
				if got, _ := read(value); row.OnError == nil && !reflect.DeepEqual(got, none) {
					t.Errorf("%q changes something: %+v", value, got)
				}
			}
		})
	}
}
