package message

import (
	"slices"
	"strings"
)

// maxNominated is the maximum number of field names that a message may list in its Connection fields. It is limited so
// that a message cannot cause much work.
const maxNominated = 32

// RemoveNominated removes the fields that the Connection fields list, because they are meant for the next hop only. A
// field is kept if spare returns true for its kind: otherwise a client could remove fields that describe the length of
// the body, or fields with which a trusted proxy describes the client. RemoveNominated returns false, and removes
// nothing, if the Connection fields list too many names.
func (f *Fields) RemoveNominated(spare func(Kind) bool) bool {
	if !slices.ContainsFunc(*f, func(field Field) bool { return field.Kind == Connection }) {
		return true
	}
	return f.removeNominated(spare)
}

// removeNominated is RemoveNominated for a message with a Connection field. It is a function of its own, because other
// messages need no memory for the names.
func (f *Fields) removeNominated(spare func(Kind) bool) bool {
	var names [maxNominated]Field
	nominated := names[:0]
	for i := range *f {
		if (*f)[i].Kind != Connection {
			continue
		}
		for name := range strings.SplitSeq((*f)[i].Value, ",") {
			name = strings.Trim(name, " \t")
			if kind := KindOf(name); name != "" && !spare(kind) {
				if len(nominated) == maxNominated {
					return false
				}
				nominated = append(nominated, Field{Name: name, Kind: kind})
			}
		}
	}
	for _, field := range nominated {
		f.Remove(field.Kind, field.Name)
	}
	return true
}

// NotRemovable reports whether a client may not remove fields of this kind by listing them in the Connection field. It
// is the argument of RemoveNominated for requests.
func NotRemovable(k Kind) bool { return !k.Removable() }
