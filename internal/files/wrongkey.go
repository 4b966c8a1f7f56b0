package files

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// keyOf is the first key, in brackets, of the map at a place in an object whose value is of a type, as JSON calls it, and no
// string: the error about such a value names the map only. It is empty where there is no such map.
func keyOf(raw []byte, place, kind string) string {
	for name := range strings.SplitSeq(place, ".") {
		var object map[string]json.RawMessage
		if json.Unmarshal(raw, &object) != nil {
			return ""
		}
		raw = object[name]
	}
	var object map[string]any
	if json.Unmarshal(raw, &object) != nil {
		return ""
	}
	for _, key := range slices.Sorted(maps.Keys(object)) {
		if is(object[key], kind) {
			return "[" + key + "]"
		}
	}
	return ""
}

// is says whether a value is of a type, such as "number" or "number 5432".
func is(value any, kind string) bool {
	switch value.(type) {
	case float64:
		return strings.HasPrefix(kind, "number")
	case bool:
		return kind == "bool"
	case []any:
		return kind == "array"
	case map[string]any:
		return kind == "object"
	}
	return false
}
