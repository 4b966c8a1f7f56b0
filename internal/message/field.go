package message

import (
	"slices"
	"strings"
)

// Field is one header field, or one of those behind a body.
type Field struct {
	// Name is as it was sent, Value without the white space around it.
	Name, Value string
	// Kind is found once, while the head is read, so that nothing compares names later. It does not depend on the case of the name.
	Kind Kind
}

// NewField returns a field with its kind.
func NewField(name, value string) Field { return Field{name, value, KindOf(name)} }

// Is says whether a field has a name, in any case. kind is that of the name.
func (f *Field) Is(kind Kind, name string) bool {
	return f.Kind == kind && (names[kind] != "" || strings.EqualFold(f.Name, name))
}

// Fields are header fields in their order.
type Fields []Field

// Get returns the first value of a kind, or nothing.
func (f Fields) Get(kind Kind) string {
	value, _ := f.Lookup(kind)
	return value
}

// Lookup returns the first value of a kind, and whether there is one.
func (f Fields) Lookup(kind Kind) (string, bool) {
	for i := range f {
		if f[i].Kind == kind {
			return f[i].Value, true
		}
	}
	return "", false
}

// Has says whether there is a field of a kind.
func (f Fields) Has(kind Kind) bool {
	_, ok := f.Lookup(kind)
	return ok
}

// Count returns how many fields there are of a kind.
func (f Fields) Count(kind Kind) int {
	n := 0
	for i := range f {
		if f[i].Kind == kind {
			n++
		}
	}
	return n
}

// Joined returns the values of a name, in any case, with ", " in between, and whether there is any.
func (f Fields) Joined(name string) (string, bool) { return f.joined(KindOf(name), name) }

// JoinedKind returns the values of a kind with ", " in between.
func (f Fields) JoinedKind(kind Kind) string {
	value, _ := f.joined(kind, "")
	return value
}

func (f Fields) joined(kind Kind, name string) (string, bool) {
	var value string
	found := false
	for i := range f {
		switch {
		case !f[i].Is(kind, name):
		case found:
			value += ", " + f[i].Value
		default:
			value, found = f[i].Value, true
		}
	}
	return value, found
}

// HasToken says whether a comma-separated list has a token in it, in any case. The list may be in several fields.
func (f Fields) HasToken(kind Kind, token string) bool {
	for i := range f {
		if f[i].Kind == kind && hasToken(f[i].Value, token) {
			return true
		}
	}
	return false
}

func hasToken(list, token string) bool {
	if strings.EqualFold(list, token) {
		return true
	}
	for part := range strings.SplitSeq(list, ",") {
		if strings.EqualFold(strings.Trim(part, " \t"), token) {
			return true
		}
	}
	return false
}

// Set puts one field in place of all with its name.
func (f *Fields) Set(field Field) {
	for i := range *f {
		if (*f)[i].Is(field.Kind, field.Name) {
			(*f)[i] = field
			rest := (*f)[i+1:]
			rest.Remove(field.Kind, field.Name)
			*f = (*f)[:i+1+len(rest)]
			return
		}
	}
	*f = append(*f, field)
}

// Add adds a field behind the others.
func (f *Fields) Add(field Field) { *f = append(*f, field) }

// Remove takes out all fields with a name. kind is that of the name.
func (f *Fields) Remove(kind Kind, name string) {
	*f = slices.DeleteFunc(*f, func(field Field) bool { return field.Is(kind, name) })
}

// RemoveKind takes out all fields of a kind.
func (f *Fields) RemoveKind(kind Kind) {
	*f = slices.DeleteFunc(*f, func(field Field) bool { return field.Kind == kind })
}

// Valid takes out the fields of a client that do not go on because of their names.
func (f Fields) Valid(names Names) Fields {
	return slices.DeleteFunc(f, func(field Field) bool { return !names.Let(field.Kind) })
}

// Unknown takes out all fields but those that nothing in this house knows. Those that say who asks, what for, how a message ends or what
// is to be done with it have to stand in front of the body, where they have been checked: RFC 9110 6.5.1.
func (f Fields) Unknown() Fields {
	return slices.DeleteFunc(f, func(field Field) bool { return field.Kind != Other })
}

// Changes are what filters do to the fields of an answer on its way to the client. They are data, and take effect in the order
// remove, set, add, default.
type Changes struct {
	Remove []Field
	Set    []Field
	Add    []Field
	// Default are added where there is no field of their kind.
	Default []Field
	// ByAddHeader makes them for the answers only that nginx's add_header changes: those that are neither errors nor interim.
	ByAddHeader bool
}

// For says whether the changes are made to answers with a status.
func (c *Changes) For(status int) bool {
	switch status {
	case 200, 201, 204, 206, 301, 302, 303, 304, 307, 308:
		return true
	}
	return !c.ByAddHeader
}

// Apply changes fields.
func (c *Changes) Apply(f *Fields) {
	for i := range c.Remove {
		f.Remove(c.Remove[i].Kind, c.Remove[i].Name)
	}
	for _, field := range c.Set {
		f.Set(field)
	}
	*f = append(*f, c.Add...)
	for _, field := range c.Default {
		if !f.Has(field.Kind) {
			f.Add(field)
		}
	}
}
