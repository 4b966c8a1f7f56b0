package ir

import (
	"cmp"
	"fmt"
	"strings"
)

// Name is the namespace and name of an object, without its kind. The zero value refers to no object; for it, String
// returns "". Name is comparable.
type Name struct{ Namespace, Name string }

// ParseName parses a string of the form "namespace/name". Both parts must be present. It does not check whether they
// are valid names of objects.
func ParseName(s string) (Name, error) {
	namespace, name, _ := strings.Cut(s, "/")
	if namespace == "" || name == "" {
		return Name{}, fmt.Errorf("%q is not namespace/name", s)
	}
	return Name{namespace, name}, nil
}

// String returns "namespace/name", or "" for the zero value.
func (n Name) String() string {
	if n.IsZero() {
		return ""
	}
	return n.Namespace + "/" + n.Name
}

// IsZero reports whether the name refers to no object. The JSON option omitzero uses it.
func (n Name) IsZero() bool { return n == Name{} }

// Compare orders names by namespace, then by name.
func (n Name) Compare(other Name) int {
	return cmp.Or(cmp.Compare(n.Namespace, other.Namespace), cmp.Compare(n.Name, other.Name))
}

// Of converts the name to the Ref of an object with the given kind.
func (n Name) Of(kind string) Ref { return Ref{Kind: kind, Namespace: n.Namespace, Name: n.Name} }

// MarshalText returns the result of String, so that a Name is a string in JSON.
func (n Name) MarshalText() ([]byte, error) { return []byte(n.String()), nil }

// UnmarshalText parses a string in the form that MarshalText returns.
func (n *Name) UnmarshalText(text []byte) (err error) {
	*n = Name{}
	if len(text) > 0 {
		*n, err = ParseName(string(text))
	}
	return err
}
