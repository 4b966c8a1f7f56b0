package message

import (
	"slices"
	"strings"
)

// Field is one header or trailer field.
type Field struct {
	// Name is the name as it was sent. Value has no surrounding white space.
	Name, Value string
	// Kind identifies the field if its name is well-known. It is determined once, when the field is read, so that later
	// code does not have to compare names.
	Kind Kind
}

// NewField returns a field with this name and value. It determines the kind of the field.
func NewField(name, value string) Field { return Field{name, value, KindOf(name)} }

// Is reports whether a field has this name, ignoring case. kind must be KindOf(name).
func (f *Field) Is(kind Kind, name string) bool {
	return f.Kind == kind && (names[kind] != "" || strings.EqualFold(f.Name, name))
}

// Fields is a list of header or trailer fields in the order in which they were sent.
type Fields []Field

// Get returns the value of the first field of the given kind, or an empty string.
func (f Fields) Get(kind Kind) string {
	value, _ := f.Lookup(kind)
	return value
}

// Lookup returns the value of the first field of the given kind, and whether there is such a field.
func (f Fields) Lookup(kind Kind) (string, bool) {
	for i := range f {
		if f[i].Kind == kind {
			return f[i].Value, true
		}
	}
	return "", false
}

// Has reports whether there is a field of the given kind.
func (f Fields) Has(kind Kind) bool {
	_, ok := f.Lookup(kind)
	return ok
}

// Contains reports whether there is a field with this name, ignoring case. kind must be KindOf(name).
func (f Fields) Contains(kind Kind, name string) bool {
	return slices.ContainsFunc(f, func(field Field) bool { return field.Is(kind, name) })
}

// Count returns the number of fields of the given kind.
func (f Fields) Count(kind Kind) int {
	n := 0
	for i := range f {
		if f[i].Kind == kind {
			n++
		}
	}
	return n
}

// Joined returns the values of all fields with this name, and whether there is such a field. It ignores the case of the
// name. The values are joined by ", ", except for Cookie, whose separator is "; ".
func (f Fields) Joined(name string) (string, bool) { return f.joined(KindOf(name), name) }

// JoinedKind returns the values of all fields of the given kind, joined as by Joined.
func (f Fields) JoinedKind(kind Kind) string {
	value, _ := f.joined(kind, "")
	return value
}

func (f Fields) joined(kind Kind, name string) (value string, found bool) {
	for i := range f {
		if f[i].Is(kind, name) {
			value, found = f[i].join(value, found), true
		}
	}
	return value, found
}

// join appends the value of the field to the values of earlier fields. found is false if there is no earlier field.
func (f *Field) join(values string, found bool) string {
	switch {
	case !found:
		return f.Value
	case f.Kind == Cookie:
		return values + "; " + f.Value
	}
	return values + ", " + f.Value
}

// Variable returns the values of all fields to which a variable such as nginx's $http_NAME refers, joined as by Joined.
// name is the part of the variable's name behind the prefix. As in nginx, its underscores stand for hyphens and
// underscores in the name of the field, and case is ignored.
func (f Fields) Variable(name string) string {
	value, found := "", false
	for i := range f {
		if isVariable(name, f[i].Name) {
			value, found = f[i].join(value, found), true
		}
	}
	return value
}

// isVariable reports whether a variable with this name refers to a field.
func isVariable(name, field string) bool {
	if len(name) != len(field) {
		return false
	}
	for i := range len(name) {
		if name[i]|0x20 != field[i]|0x20 && (name[i] != '_' || field[i] != '-') {
			return false
		}
	}
	return true
}

// HasToken reports whether a token occurs in the fields of the given kind, whose values must be comma-separated lists.
// It ignores case.
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

// Set replaces the first field with the same name as field, and removes other fields with this name. If there is no
// such field, Set appends field.
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

// Add appends a field.
func (f *Fields) Add(field Field) { *f = append(*f, field) }

// Remove removes all fields with this name, ignoring case. kind must be KindOf(name).
func (f *Fields) Remove(kind Kind, name string) {
	*f = slices.DeleteFunc(*f, func(field Field) bool { return field.Is(kind, name) })
}

// RemoveKind removes all fields of the given kind.
func (f *Fields) RemoveKind(kind Kind) {
	*f = slices.DeleteFunc(*f, func(field Field) bool { return field.Kind == kind })
}

// WeakenETag makes the ETag of a response weak, as nginx does if it changes the bytes of the response. It removes an
// ETag that is not valid.
func (f *Fields) WeakenETag() {
	const name = "ETag"
	switch tag, ok := f.Joined(name); {
	case !ok || strings.HasPrefix(tag, "W/"):
	case strings.HasPrefix(tag, `"`):
		f.Set(NewField(name, "W/"+tag))
	default:
		f.Remove(Other, name)
	}
}

// Allowed removes the fields whose names must not be forwarded, according to the argument, and returns the remaining
// fields. It modifies f.
func (f Fields) Allowed(names Names) Fields {
	return slices.DeleteFunc(f, func(field Field) bool { return !names.Allows(field.Kind) })
}

// TrailerFields removes all fields that are not allowed in trailers, and returns the remaining fields. Fields for
// routing, authentication, message framing and so on are only valid in the header (RFC 9110 6.5.1), so only fields of
// the kind Other remain. It modifies f.
func (f Fields) TrailerFields() Fields {
	return slices.DeleteFunc(f, func(field Field) bool { return field.Kind != Other })
}

// Changes describes how the header fields of a response are changed before the response is sent to the client. The
// changes are applied in the order Remove, Set, Add, Default.
type Changes struct {
	Remove []Field
	Set    []Field
	Add    []Field
	// Each field in Default is added if the response has no field of the same kind.
	Default []Field
	// If ByAddHeader is true, the changes apply only to responses with the status codes to which nginx's directive
	// add_header applies: most successful responses and redirects, but not errors.
	ByAddHeader bool
}

// For reports whether the changes apply to a response with this status.
func (c *Changes) For(status int) bool { return !c.ByAddHeader || ByAddHeader(status) }

// ByAddHeader reports whether nginx's directive add_header applies to responses with this status.
func ByAddHeader(status int) bool {
	switch status {
	case 200, 201, 204, 206, 301, 302, 303, 304, 307, 308:
		return true
	}
	return false
}

// Apply makes the changes to f, the header fields of a response.
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
