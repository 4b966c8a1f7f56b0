package files

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/kinds"
	"github.com/k8singress/k8singress/internal/model/report"
)

// parsed holds the objects and problems of one file.
type parsed struct {
	name    string
	objects []*found
	// problems are problems of the file as a whole, not of an object in it.
	problems []report.Problem
	// ignored is the number of ignored objects by kind. Objects are ignored if the controller does not use their kind.
	ignored map[string]int
	// broken is set if a part of the file could not be parsed, for example because it is being edited.
	broken bool
}

// found is one definition of an object in a file.
type found struct {
	ref ir.Ref
	// object is nil if the object is not valid.
	object   kinds.Object
	file     string
	line     int
	problems []report.Problem
}

// parse parses the contents of a manifest file. It accepts any bytes; errors are reported as problems in the result.
func parse(name string, data []byte) *parsed {
	p := &parsed{name: name, ignored: map[string]int{}}
	list, err := split(name, data)
	for _, t := range list {
		p.document(t)
	}
	if err != nil {
		p.fail(lineOf(err, 0), "is not JSON: "+err.Error())
	}
	p.countIgnored()
	return p
}

func (p *parsed) document(t text) {
	raw, warning, err := toJSON(t.data)
	if err != nil {
		p.fail(lineOf(err, t.line-1), "is not YAML: "+plain(err))
		return
	}
	if warning != nil {
		p.warn(lineOf(warning, t.line-1), plain(warning))
	}
	if raw = bytes.TrimSpace(raw); len(raw) > 0 && !bytes.Equal(raw, []byte("null")) {
		p.object(raw, t.begin(), "")
	}
}

// toJSON converts a YAML document to JSON. A duplicate key only causes a warning: the last value is used, as with
// kubectl.
func toJSON(data []byte) (raw []byte, warning, err error) {
	if trimmed := bytes.TrimSpace(data); bytes.HasPrefix(trimmed, []byte("{")) && json.Valid(trimmed) {
		return trimmed, nil, nil
	}
	raw, strict := yaml.YAMLToJSONStrict(data)
	if strict == nil {
		return raw, nil, nil
	}
	raw, err = yaml.YAMLToJSON(data)
	return raw, strict, err
}

// head holds the fields of a manifest that are needed before the object can be decoded.
type head struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Name      string `json:"name"`
		Namespace string `json:"namespace"`
	} `json:"metadata"`
	Items json.RawMessage `json:"items"`
}

// object decodes one object. If raw is a list, it decodes all items of the list. If the object is an item of a list,
// itemOf is the apiVersion and the kind of the items, separated by a space, because the items themselves need not
// contain them. Otherwise itemOf is "".
func (p *parsed) object(raw []byte, line int, itemOf string) {
	var h head
	if err := kjson.UnmarshalCaseSensitivePreserveInts(raw, &h); err != nil {
		p.fail(line, "is not a Kubernetes object: "+wrongType(err, raw))
		return
	}
	if h.APIVersion == "" && h.Kind == "" {
		h.APIVersion, h.Kind, _ = strings.Cut(itemOf, " ")
	}
	item, list := strings.CutSuffix(h.Kind, "List")
	switch {
	case h.APIVersion == "" || h.Kind == "":
		p.broken = true
		p.warn(line, "is not a Kubernetes object: apiVersion or kind is missing")
	case list && len(h.Items) > 0 && itemOf == "":
		p.items(h.Items, line, h.APIVersion+" "+item)
	default:
		p.typed(raw, line, identity{h.APIVersion, h.Kind, h.Metadata.Namespace, h.Metadata.Name})
	}
}

func (p *parsed) items(raw []byte, line int, itemOf string) {
	var items []json.RawMessage
	if err := kjson.UnmarshalCaseSensitivePreserveInts(raw, &items); err != nil {
		p.fail(line, "is not a list: "+wrongType(err, raw))
		return
	}
	for _, item := range items {
		p.object(item, line, itemOf)
	}
}

var typeNames = map[reflect.Kind]string{
	reflect.Struct: "a map", reflect.Map: "a map", reflect.Slice: "a list", reflect.String: "a string",
	reflect.Bool: "true or false",
}

// wrongType rewrites a decoding error so that the author of a manifest understands it: it names the field and the YAML
// type instead of the Go type.
func wrongType(err error, raw []byte) string {
	var notBase64 base64.CorruptInputError
	if errors.As(err, &notBase64) {
		return "a value in 'data' is not valid base64: to write plain text, use stringData instead"
	}
	var wrong *json.UnmarshalTypeError
	if !errors.As(err, &wrong) {
		return err.Error()
	}
	want, ok := typeNames[wrong.Type.Kind()]
	switch {
	case wrong.Type == reflect.TypeFor[[]byte]():
		want = "base64"
	case !ok:
		want = "a number"
	}
	where := strings.TrimPrefix(wrong.Field, ".")
	switch {
	case where == "":
		where = "the document"
	case wrong.Type.Kind() == reflect.String:
		where += keyOf(raw, where, wrong.Value)
	}
	message := fmt.Sprintf("%s must be %s, but has the type %s", where, want, wrong.Value)
	if wrong.Type.Kind() == reflect.String && (strings.HasPrefix(wrong.Value, "number") || wrong.Value == "bool") {
		message += ": put the value in quotes"
	}
	return message
}

// identity holds the fields of a manifest that identify the object.
type identity struct{ apiVersion, kind, namespace, name string }

func (p *parsed) typed(raw []byte, line int, id identity) {
	r, ok := readerOf(id.apiVersion, id.kind)
	if !ok {
		p.unknown(line, id)
		return
	}
	f := &found{ref: ir.Ref{Kind: id.kind, Namespace: id.namespace, Name: id.name}, file: p.name, line: line}
	if err := f.complete(r.clusterScoped); err != nil {
		p.fail(line, err.Error())
		return
	}
	p.objects = append(p.objects, f)
	object, strict, err := r.read(raw)
	if err != nil {
		p.broken = true
		f.add(report.Error, report.InvalidManifest, "", "cannot be read: "+wrongType(err, raw))
		return
	}
	for _, err := range strict {
		f.add(report.Warning, report.InvalidManifest, fieldOf(err), err.Error())
	}
	if r.successor != "" {
		f.add(report.Info, report.DeprecatedVersion, "apiVersion",
			fmt.Sprintf("%s %s is deprecated and is converted: use %s instead%s", id.apiVersion,
				id.kind, r.successor, r.changed))
	}
	f.object = object
	f.finish(raw)
}

// unknown handles an object whose kind or apiVersion is not supported. If the controller uses objects of this kind,
// unknown reports which apiVersion to use. Otherwise it counts the object as ignored.
func (p *parsed) unknown(line int, id identity) {
	row, ok := kinds.ByName(id.kind)
	group, _, grouped := strings.Cut(id.apiVersion, "/")
	if !ok || row.NoManifest || (grouped &&
		!slices.ContainsFunc(kinds.All, func(k kinds.Kind) bool { return k.GroupVersion.Group == group })) {
		p.ignored[id.kind]++
		return
	}
	p.fail(line, fmt.Sprintf("%s %s: there is no kind %s in the apiVersion %s: use the apiVersion %s",
		id.kind, id.name, id.kind, id.apiVersion, row.GroupVersion))
}

func (p *parsed) fail(line int, message string) {
	p.broken = true
	p.problems = append(p.problems, problemAt(report.Error, report.InvalidManifest, line, message))
}

func (p *parsed) warn(line int, message string) {
	p.problems = append(p.problems, problemAt(report.Warning, report.InvalidManifest, line, message))
}

func problemAt(severity report.Severity, reason report.Reason, line int, message string) report.Problem {
	field := ""
	if line > 0 {
		field = "line " + strconv.Itoa(line)
	}
	return report.Problem{Severity: severity, Reason: reason, Field: field, Message: message}
}

func (p *parsed) countIgnored() {
	if len(p.ignored) == 0 {
		return
	}
	var counts []string
	for _, kind := range slices.Sorted(maps.Keys(p.ignored)) {
		counts = append(counts, fmt.Sprintf("%s (%d)", kind, p.ignored[kind]))
	}
	p.problems = append(p.problems, problemAt(report.Info, report.IgnoredKind, 0,
		"contains objects of kinds that the controller ignores: "+strings.Join(counts, ", ")))
}

// keep does nothing if the whole file could be parsed. Otherwise, it adds the objects that were in the previous version
// of the file (before) and are missing now, so that an unfinished edit removes no objects.
func (p *parsed) keep(before *parsed) {
	if !p.broken {
		return
	}
	now := map[ir.Ref]*found{}
	for _, f := range p.objects {
		now[f.ref] = f
	}
	var kept []ir.Ref
	for _, old := range before.objects {
		switch f := now[old.ref]; {
		case old.object == nil || (f != nil && f.object != nil):
			continue
		case f != nil:
			f.object = old.object
		default:
			p.objects = append(p.objects, &found{ref: old.ref, object: old.object, file: old.file, line: old.line})
		}
		kept = append(kept, old.ref)
	}
	if len(kept) > 0 {
		p.warn(0, keptAsBefore(kept)+" until the file is fixed")
	}
}

// keptAsBefore describes, for a message, the objects whose previous version stays in use: by their names, or only by
// their number if there are many.
func keptAsBefore(kept []ir.Ref) string {
	const few = 3
	if len(kept) == 1 {
		return kept[0].String() + " keeps its previous state"
	}
	if len(kept) > few {
		return fmt.Sprintf("%d objects keep their previous state", len(kept))
	}
	var names []string
	for _, ref := range kept {
		names = append(names, ref.String())
	}
	return strings.Join(names, ", ") + " keep their previous state"
}

func (f *found) add(severity report.Severity, reason report.Reason, field, message string) {
	f.problems = append(f.problems, report.Problem{
		Severity: severity, Reason: reason, Field: field, Message: fmt.Sprintf("%s:%d: %s", f.file, f.line, message),
	})
}

func fieldOf(err error) string {
	var field kjson.FieldError
	if errors.As(err, &field) {
		return field.FieldPath()
	}
	return ""
}

var lineNumber = regexp.MustCompile(`line (\d+)(: )?`)

// lineOf returns the line number in the file to which an error refers. The YAML parser counts lines from the start of a
// YAML document, so before must be the number of lines in the file before this document.
func lineOf(err error, before int) int {
	var at *lineError
	if errors.As(err, &at) {
		return at.line
	}
	if m := lineNumber.FindStringSubmatch(err.Error()); m != nil {
		n, _ := strconv.Atoi(m[1])
		return before + n
	}
	return before + 1
}

// plain returns the message of a YAML error without its line number, which is relative to the start of the YAML
// document.
func plain(err error) string {
	message := err.Error()
	for _, prefix := range []string{"error converting YAML to JSON: ", "yaml: ", "unmarshal errors:"} {
		message = strings.TrimPrefix(message, prefix)
	}
	return strings.TrimSpace(lineNumber.ReplaceAllString(message, ""))
}

// keyOf finds the map key to which a decoding error refers. The error only contains the path of the map in the object
// (place) and the wrong JSON type of the value (kind). keyOf returns the first key whose value has this type, in
// brackets, or "" if no value has it.
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

// The function is reports whether the JSON type of a value is kind. kind may be just a type, such as "number", or be
// followed by the value, as in "number 5432".
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
