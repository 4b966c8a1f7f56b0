package document

import (
	"cmp"
	"iter"
)

// Reference is what a part of the document refers to a Secret for, besides the certificate of a host. It is not part of
// the JSON.
type Reference struct {
	// Secret is "namespace/name".
	Secret string
	// Origin is the object that asks for it, as "Kind/namespace/name"; Field is where in that object.
	Origin, Field string
	// CA says that ca.crt is needed, Pair that tls.crt and tls.key are.
	CA, Pair bool
	// For is what it is asked for, such as a host, and Without what becomes of that while the Secret is no good, such as
	// "403 is the answer to every request". Both are for people.
	For, Without string
}

// References yields the references of all parts that change, by a name of the part; nil for a part that refers to no Secret.
func (d *Delta) References() iter.Seq2[string, *Reference] {
	return func(yield func(string, *Reference) bool) {
		for name, h := range d.Hosts {
			if !yield("host "+name, h.reference(name)) {
				return
			}
		}
	}
}

const clientAuthField = "metadata.annotations[nginx.ingress.kubernetes.io/auth-tls-secret]"

func (h *Host) reference(name string) *Reference {
	if h == nil || h.ClientAuth == nil || h.ClientAuth.Secret == "" {
		return nil
	}
	return &Reference{
		Secret: h.ClientAuth.Secret, Origin: h.ClientAuth.Origin, Field: clientAuthField, CA: true,
		For: cmp.Or(name, "every other host"), Without: "403 is the answer to every request",
	}
}
