package ir

import (
	"cmp"
	"fmt"
	"strings"
)

// Name is the name of an object in its namespace, without its kind. The zero value names none, and is empty text. It can be
// compared.
type Name struct{ Namespace, Name string }

// ParseName reads what String returns. Neither part may be empty. Whether an object can have the name is not checked.
func ParseName(s string) (Name, error) {
	namespace, name, _ := strings.Cut(s, "/")
	if namespace == "" || name == "" {
		return Name{}, fmt.Errorf("%q is not namespace/name", s)
	}
	return Name{namespace, name}, nil
}

// String returns "namespace/name".
func (n Name) String() string {
	if n.IsZero() {
		return ""
	}
	return n.Namespace + "/" + n.Name
}

// IsZero says that it names no object. JSON asks it for omitzero.
func (n Name) IsZero() bool { return n == Name{} }

// Compare orders names by namespace first.
func (n Name) Compare(other Name) int {
	return cmp.Or(cmp.Compare(n.Namespace, other.Namespace), cmp.Compare(n.Name, other.Name))
}

// Of returns the Ref of the object with this name and a kind.
func (n Name) Of(kind string) Ref { return Ref{Kind: kind, Namespace: n.Namespace, Name: n.Name} }

// MarshalText is what JSON calls: documents have String.
func (n Name) MarshalText() ([]byte, error) { return []byte(n.String()), nil }

// UnmarshalText reads what MarshalText returns.
func (n *Name) UnmarshalText(text []byte) (err error) {
	*n = Name{}
	if len(text) > 0 {
		*n, err = ParseName(string(text))
	}
	return err
}
