package chart

import (
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/action"
)

// TestLint checks the chart with `helm lint --strict`.
func TestLint(t *testing.T) {
	lint := action.NewLint()
	lint.Strict = true
	for _, m := range lint.Run([]string{chartFolder}, nil).Messages {
		if m.Severity > 1 {
			t.Error(m)
		}
	}
}

// wrong has a value of a wrong type for each word in known-values.txt.
var wrong = map[string]any{
	"string": []any{"a"}, "integer": "seven", "scalar": []any{"a"}, "boolean": "true", "array": "a", "object": "a",
	"strings": "a",
}

// TestSchemaRefuses checks that a value of a wrong type is rejected, and that the error names the value.
func TestSchemaRefuses(t *testing.T) {
	theirs, more := readKnown(t)
	refused := values{}
	for _, k := range append(theirs, more...) {
		if value, ok := wrong[k.kind]; ok && !k.untyped(append(theirs, more...)) {
			refused = together(refused, at(k.path, value))
		}
	}
	_, err := render(refused, install{})
	if err == nil {
		t.Fatal("the schema refuses nothing")
	}
	for _, k := range append(theirs, more...) {
		pointer := "'/" + strings.ReplaceAll(strings.Join(k.path, "\x00"), "/", "~1")
		pointer = strings.ReplaceAll(pointer, "\x00", "/") + "'"
		if value, _ := find(refused, k.path); value != nil && !isMap(value) && !strings.Contains(err.Error(), pointer) {
			t.Errorf("%s: %v is not refused", k.name, value)
		}
	}
}

func isMap(value any) bool {
	_, ok := value.(values)
	return ok
}

// untyped reports whether the schema does not restrict the type at a path, or only restricts it at the paths below.
func (k *known) untyped(all []known) bool {
	for _, other := range all {
		if strings.HasPrefix(other.name, k.name+".") || other.kind == "any" &&
			strings.HasPrefix(k.name, other.name+".") {
			return true
		}
	}
	return k.kind == "any"
}

// TestOwnPartIsStrict checks that unknown names are rejected in the part of the values that only our chart has.
func TestOwnPartIsStrict(t *testing.T) {
	for name, with := range map[string]values{
		"an unknown part":               {"k8singress": values{"optoins": values{}}},
		"an unknown option":             {"k8singress": values{"options": values{"strict_path": true}}},
		"an option of another value":    {"k8singress": values{"options": values{"configmap": "a/b"}}},
		"an option of the wrong type":   {"k8singress": values{"options": values{"strict_paths": "yes"}}},
		"a chain that is a list":        {"k8singress": values{"chains": values{"staff": []any{"respond 403"}}}},
		"an unknown size of the rights": {"rbac": values{"size": "small"}},
	} {
		if _, err := render(with, install{}); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
}

// TestUnknownValues checks that an unknown value in another part is accepted, and that NOTES reports it with a
// suggestion.
func TestUnknownValues(t *testing.T) {
	r := mustRender(t, values{
		"replicaCount": 3.0,
		"controller": values{"replicCount": 3.0, "keda": values{"scaling": values{"a": "b"}},
			"Config": values{"a": "b"}},
	})
	for _, line := range []string{
		"  replicaCount: did you mean controller.replicaCount?\n",
		"  controller.replicCount: did you mean controller.replicaCount?\n",
		"  controller.Config: did you mean controller.config?\n",
		"  controller.keda.scaling",
	} {
		if !strings.Contains(r.notes+"\n", line) {
			t.Errorf("NOTES lacks %q:\n%s", line, r.notes)
		}
	}
	if r := mustRender(t, nil); strings.Contains(r.notes, " values") {
		t.Errorf("NOTES has something to say of the defaults:\n%s", r.notes)
	}
}
