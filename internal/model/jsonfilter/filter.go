// Package jsonfilter reads a JSON text piece by piece, and keeps only the parts that a caller needs. The text as a
// whole is never in memory. Within its limits, a Filter accepts the same texts as encoding/json, except texts that
// readers understand differently, such as an object that has a field twice.
package jsonfilter

import (
	"errors"
	"fmt"
)

// Shape describes which parts of a value are kept. The zero Shape keeps the whole value. Each of the other shapes
// applies to one type of JSON value, and any other value is kept as a whole, so that the caller finds the wrong type.
type Shape[T any] struct {
	// Fields are the fields of an object that are kept. All others are left out. As in encoding/json, the case of their
	// names does not matter.
	Fields []Field[T]
	// Elements is the shape of the elements of a list. Take gets each element, and what is kept of the list is empty.
	Elements *Shape[T]
	// Members is the shape of the members of an object whose names are not known. Take gets each member as an object
	// with one field, and what is kept of the object is empty. Each member is kept as a whole.
	Members *Shape[T]
	// Take is called with what is kept of an element or a member, after the elements inside it. The text is only valid
	// during the call. An error ends the filter.
	Take func(to T, text []byte) error
}

// Field is a field of an object. Its name is lower or upper case ASCII.
type Field[T any] struct {
	Name  string
	Shape *Shape[T]
}

// Limits limit the text. Each is a maximum.
type Limits struct {
	// Depth is the number of objects and lists around a value. Values is the number of values in the whole text. Part
	// is the number of bytes that are in memory at the same time: of one element or member, with the kept parts of
	// everything around it.
	Depth, Values, Part int
}

// The errors for texts beyond the limits.
var (
	ErrDepth  = errors.New("it is nested too deep")
	ErrValues = errors.New("it has too many values")
	ErrPart   = errors.New("a part is too large")
)

// FieldError is an error about a field of an object that is filtered by its fields. encoding/json accepts it, but other
// readers may understand it differently.
type FieldError struct{ Name, Fault string }

// Error returns the name of the field and its fault.
func (e *FieldError) Error() string { return fmt.Sprintf("the field %.64q %s", e.Name, e.Fault) }

// level is an object or a list that has begun, and has not ended yet.
type level[T any] struct {
	// shape is nil in a value that is kept or skipped as a whole.
	shape  *Shape[T]
	object bool
	// more is true if the object has a kept field, so that a comma comes before the next one. seen has a bit for each
	// of its kept fields.
	more bool
	seen uint64
	// part is where the current element or member begins in kept.
	part int
}

// Filter filters one text. It is not safe for concurrent use. After an error, it must not be used again.
type Filter[T any] struct {
	to     T
	limits Limits
	state  state
	// rest is the rest of a literal, and digits the number of hexadecimal digits that an escape still needs.
	rest   string
	digits int
	levels []level[T]
	// next is the shape of the next value. It is nil if the value is skipped, or is part of a value that is kept or
	// skipped as a whole.
	next *Shape[T]
	// keeping is true within a value that is kept as a whole. from is where its bytes begin in the current piece.
	keeping bool
	from    int
	kept    []byte
	// naming is true in the name of a field of a filtered object, and name is its beginning.
	naming bool
	name   []byte
	// read is the number of bytes before the current piece.
	read                       int
	values, copied, keptValues int
}

// New returns a Filter for a text with the given shape. It calls Take of the shapes with to. Its buffer is kept, which
// may be nil.
func New[T any](s *Shape[T], to T, l Limits) *Filter[T] {
	return &Filter[T]{to: to, limits: l, next: s, levels: make([]level[T], 0, 16), name: make([]byte, 0, longName)}
}

// longName is longer than all names of fields.
const longName = 64

// Kept returns the number of bytes and values that were kept so far, with those that Take has got.
func (f *Filter[T]) Kept() (size, values int) { return f.copied + len(f.kept), f.keptValues }

// End ends the text. It returns what was kept, without the elements and members that Take has got.
func (f *Filter[T]) End() ([]byte, error) {
	if len(f.levels) == 0 && f.state.endsNumber() {
		f.state = done
	}
	if f.state != done {
		return nil, errors.New("unexpected end of JSON input")
	}
	return f.kept, nil
}

// open begins an object or a list at p[i].
func (f *Filter[T]) open(p []byte, i int) error {
	if len(f.levels) == f.limits.Depth {
		return ErrDepth
	}
	object := p[i] == '{'
	l := level[T]{object: object}
	if s := f.next; s != nil && (object && (s.Fields != nil || s.Members != nil) || !object && s.Elements != nil) {
		l.shape = s
		f.kept = append(f.kept, p[i])
	} else if s != nil {
		f.keep(i)
	}
	f.levels, f.next = append(f.levels, l), nil
	if f.state = elementOrEnd; object {
		f.state = keyOrEnd
	} else {
		f.element()
	}
	return f.count()
}

// element prepares for an element of the innermost list.
func (f *Filter[T]) element() {
	if l := &f.levels[len(f.levels)-1]; l.shape != nil {
		f.next, l.part = l.shape.Elements, len(f.kept)
	}
}

// shut ends the innermost object or list at p[i].
func (f *Filter[T]) shut(p []byte, i int) error {
	l := &f.levels[len(f.levels)-1]
	if l.object != (p[i] == '}') {
		return f.wrong(p, i)
	}
	if l.shape != nil {
		f.kept = append(f.kept, p[i])
	}
	f.levels, f.next = f.levels[:len(f.levels)-1], nil
	return f.ended(p, i+1)
}

// ended ends a value. Its last byte is p[end-1], or the last byte of the previous piece.
func (f *Filter[T]) ended(p []byte, end int) error {
	f.state = afterValue
	if len(f.levels) == 0 {
		f.state = done
		f.flush(p, end)
		return f.fits()
	}
	l := &f.levels[len(f.levels)-1]
	if l.shape == nil {
		return nil
	}
	f.flush(p, end)
	f.next = nil
	take := l.shape.Elements
	if l.object {
		take = l.shape.Members
	}
	if l.object && take != nil {
		f.kept = append(f.kept, '}')
	}
	if err := f.fits(); err != nil || take == nil {
		return err
	}
	f.copied += len(f.kept) - l.part
	if err := take.Take(f.to, f.kept[l.part:]); err != nil {
		return err
	}
	f.kept = f.kept[:l.part]
	return nil
}

// keep begins to keep a value as a whole at p[i], unless it is kept already.
func (f *Filter[T]) keep(i int) {
	if !f.keeping {
		f.keeping, f.from = true, i
	}
}

// flush ends a value that is kept as a whole.
func (f *Filter[T]) flush(p []byte, end int) {
	if f.keeping {
		f.kept = append(f.kept, p[f.from:end]...)
		f.keeping = false
	}
}

func (f *Filter[T]) fits() error {
	if len(f.kept) > f.limits.Part {
		return ErrPart
	}
	return nil
}

// count counts a value.
func (f *Filter[T]) count() error {
	if f.values++; f.values > f.limits.Values {
		return ErrValues
	}
	if f.keeping || len(f.levels) > 0 && f.levels[len(f.levels)-1].shape != nil {
		f.keptValues++
	}
	return nil
}

// beginKey begins the name of a field or a member at p[i], which is a quotation mark.
func (f *Filter[T]) beginKey(i int) {
	f.state = inKey
	l := &f.levels[len(f.levels)-1]
	switch {
	case l.shape == nil:
	case l.shape.Members != nil:
		l.part = len(f.kept)
		f.kept = append(f.kept, '{')
		f.keep(i)
	default:
		f.naming, f.name = true, f.name[:0]
	}
}

// addName adds the next bytes of a name.
func (f *Filter[T]) addName(text []byte) {
	if f.naming {
		f.name = append(f.name, text[:min(len(text), cap(f.name)-len(f.name))]...)
	}
}

// endKey ends the name of a field or a member. It decides whether the value is kept.
func (f *Filter[T]) endKey() error {
	f.state = colon
	if !f.naming {
		return nil
	}
	f.naming = false
	l := &f.levels[len(f.levels)-1]
	for i, field := range l.shape.Fields {
		if !sameName(field.Name, f.name) {
			continue
		}
		if l.seen&(1<<i) != 0 {
			return &FieldError{string(f.name), "is there more than once"}
		}
		l.seen |= 1 << i
		if l.more {
			f.kept = append(f.kept, ',')
		}
		l.more, f.next = true, field.Shape
		f.kept = append(f.kept, '"')
		f.kept = append(f.kept, f.name...)
		f.kept = append(f.kept, '"', ':')
		return nil
	}
	return nil
}

// sameName reports whether two names are equal except for the case of ASCII letters.
func sameName(a string, b []byte) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range b {
		if lower(a[i]) != lower(b[i]) {
			return false
		}
	}
	return true
}

func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}
