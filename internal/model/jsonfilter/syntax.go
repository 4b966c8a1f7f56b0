package jsonfilter

import (
	"fmt"
	"strings"
)

// state is what may come next in the text.
type state uint8

const (
	value state = iota
	elementOrEnd
	keyOrEnd
	key
	colon
	afterValue
	done
	inKey
	inString
	keyEscape
	stringEscape
	literal
	// The states within a number. Those from zero on may end it.
	minus
	point
	exponent
	exponentSign
	zero
	integer
	fraction
	exponentDigits
)

func (s state) endsNumber() bool { return s >= zero }

// Write reads the next piece of the text. It keeps no reference to p.
func (f *Filter[T]) Write(p []byte) (int, error) {
	f.from = 0
	for i := 0; i < len(p); {
		next, err := f.step(p, i)
		if err != nil {
			return i, err
		}
		i = next
	}
	f.read += len(p)
	if f.keeping {
		f.kept = append(f.kept, p[f.from:]...)
		if err := f.fits(); err != nil {
			return len(p), err
		}
	}
	return len(p), nil
}

// step reads at least one byte, and returns the index of the next one. Only the end of a number is read by the step
// after it.
func (f *Filter[T]) step(p []byte, i int) (next int, err error) {
	switch s := f.state; {
	case s == inString || s == inKey:
		return f.text(p, i)
	case s == stringEscape || s == keyEscape:
		return i + 1, f.escaped(p, i)
	case s == literal:
		return i + 1, f.letter(p, i)
	case s >= minus:
		return f.number(p, i)
	default:
		return f.token(p, i)
	}
}

// token reads a byte between strings, numbers and literals.
func (f *Filter[T]) token(p []byte, i int) (next int, err error) {
	switch c := p[i]; c {
	case ' ', '\t', '\r', '\n':
		return i + 1, nil
	case '"':
		return i + 1, f.quote(p, i)
	case ',':
		return i + 1, f.comma(p, i)
	case ':':
		if f.state != colon {
			return i, f.wrong(p, i)
		}
		f.state = value
		return i + 1, nil
	case '}', ']':
		if f.state == afterValue || f.state == keyOrEnd || f.state == elementOrEnd {
			return i + 1, f.shut(p, i)
		}
	default:
		if f.state == value || f.state == elementOrEnd {
			return i + 1, f.begin(p, i)
		}
	}
	return i, f.wrong(p, i)
}

// begin begins a value other than a string.
func (f *Filter[T]) begin(p []byte, i int) error {
	c := p[i]
	if c == '{' || c == '[' {
		return f.open(p, i)
	}
	f.scalar(i)
	switch {
	case c == 't':
		f.state, f.rest = literal, "true"[1:]
	case c == 'f':
		f.state, f.rest = literal, "false"[1:]
	case c == 'n':
		f.state, f.rest = literal, "null"[1:]
	case c == '-':
		f.state = minus
	case c == '0':
		f.state = zero
	case '1' <= c && c <= '9':
		f.state = integer
	default:
		return f.wrong(p, i)
	}
	return nil
}

// scalar begins a value that is neither an object nor a list.
func (f *Filter[T]) scalar(i int) {
	if f.next != nil {
		f.keep(i)
		f.next = nil
	}
}

// quote begins a string or a name.
func (f *Filter[T]) quote(p []byte, i int) error {
	switch f.state {
	case value, elementOrEnd:
		f.scalar(i)
		f.state = inString
	case key, keyOrEnd:
		f.beginKey(i)
	default:
		return f.wrong(p, i)
	}
	return nil
}

// comma begins the next element, field or member.
func (f *Filter[T]) comma(p []byte, i int) error {
	if f.state != afterValue {
		return f.wrong(p, i)
	}
	if f.state = value; f.levels[len(f.levels)-1].object {
		f.state = key
	} else {
		f.element()
	}
	return f.count()
}

// special is true for the bytes that are not plain characters of a string.
var special = func() (is [256]bool) {
	for c := range ' ' {
		is[c] = true
	}
	is['"'], is['\\'] = true, true
	return is
}()

// text reads a part of a string or a name.
func (f *Filter[T]) text(p []byte, i int) (next int, err error) {
	begin := i
	for i < len(p) && !special[p[i]] {
		i++
	}
	if f.naming {
		if err := f.plain(p[begin:i]); err != nil {
			return i, err
		}
	}
	switch {
	case i == len(p):
		return i, nil
	case p[i] == '\\' && f.naming:
		f.addName(p[i : i+1])
		return i, &FieldError{string(f.name), "is written with escapes"}
	case p[i] == '\\' && f.state == inKey:
		f.state, f.digits = keyEscape, 0
	case p[i] == '\\':
		f.state, f.digits = stringEscape, 0
	case p[i] != '"':
		return i, f.wrong(p, i)
	case f.state == inKey:
		return i + 1, f.endKey()
	default:
		return i + 1, f.ended(p, i+1)
	}
	return i + 1, nil
}

// plain adds the next bytes of the name of a field. encoding/json also ignores the case of some letters outside ASCII,
// so it returns an error for them.
func (f *Filter[T]) plain(text []byte) error {
	f.addName(text)
	for _, c := range text {
		if c >= 0x80 {
			return &FieldError{string(f.name), "has characters outside ASCII"}
		}
	}
	return nil
}

// escaped reads a byte of an escape after the backslash.
func (f *Filter[T]) escaped(p []byte, i int) error {
	c := p[i]
	hexadecimal := '0' <= c && c <= '9' || 'a' <= lower(c) && lower(c) <= 'f'
	switch {
	case f.digits > 0 && !hexadecimal:
		return f.wrong(p, i)
	case f.digits > 1:
		f.digits--
	case f.digits == 1, strings.IndexByte(`"\/bfnrt`, c) >= 0:
		if f.state == keyEscape {
			f.state = inKey
		} else {
			f.state = inString
		}
	case c == 'u':
		f.digits = 4
		return nil
	default:
		return f.wrong(p, i)
	}
	return nil
}

// letter reads a letter of true, false or null.
func (f *Filter[T]) letter(p []byte, i int) error {
	if p[i] != f.rest[0] {
		return f.wrong(p, i)
	}
	if f.rest = f.rest[1:]; f.rest == "" {
		return f.ended(p, i+1)
	}
	return nil
}

// number reads a byte of a number, or ends the number before it.
func (f *Filter[T]) number(p []byte, i int) (next int, err error) {
	if s := f.state.after(p[i]); s != value {
		f.state = s
		return i + 1, nil
	}
	if f.state.endsNumber() {
		return i, f.ended(p, i)
	}
	return i, f.wrong(p, i)
}

// continues maps each state within a number to the states after its next byte. The state value means that the byte
// cannot continue the number.
var continues = [...]struct{ zero, digit, point, exponent, sign state }{
	minus:          {zero: zero, digit: integer},
	point:          {zero: fraction, digit: fraction},
	exponent:       {zero: exponentDigits, digit: exponentDigits, sign: exponentSign},
	exponentSign:   {zero: exponentDigits, digit: exponentDigits},
	zero:           {point: point, exponent: exponent},
	integer:        {zero: integer, digit: integer, point: point, exponent: exponent},
	fraction:       {zero: fraction, digit: fraction, exponent: exponent},
	exponentDigits: {zero: exponentDigits, digit: exponentDigits},
}

// after returns the state after a byte of a number, or value if the byte cannot continue the number.
func (s state) after(c byte) state {
	switch {
	case c == '0':
		return continues[s].zero
	case '1' <= c && c <= '9':
		return continues[s].digit
	case c == '.':
		return continues[s].point
	case c == 'e', c == 'E':
		return continues[s].exponent
	case c == '+', c == '-':
		return continues[s].sign
	default:
		return value
	}
}

// wrong returns an error about p[i].
func (f *Filter[T]) wrong(p []byte, i int) error {
	return fmt.Errorf("invalid character %q at offset %d", rune(p[i]), f.read+i)
}
