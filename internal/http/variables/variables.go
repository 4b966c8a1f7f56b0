// Package variables computes the variables that the administrator defines with nginx's directives map, geo and
// split_clients. A value is computed when a request uses it for the first time.
package variables

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/nginx"
	"github.com/k8singress/k8singress/internal/model/pattern"
)

// Set is a set of compiled variables. It is immutable. The zero value and nil are empty sets.
type Set struct {
	byName map[string]*variable
	// size is the number of definitions, which is more than the number of names if a name occurs several times.
	size int
}

// variable is a compiled ir.Variable.
type variable struct {
	// index is the index of the value in Values. As in nginx, the value of a volatile variable is computed again for
	// each use.
	index    int
	volatile bool
	// source is the template of the text from which find derives the value.
	source *nginx.Template
	find   func(text string, b *pattern.Budget) found
}

// found is the template of a value, and what a regular expression has matched, if it decided. failed is the reason why
// the search could not end, or nil.
type found struct {
	value   *nginx.Template
	subject string
	groups  []int
	names   []string
	failed  *Failure
}

// New compiles variables. If a name occurs several times, the last definition counts. The set can also be used if there
// is an error: requests that use an invalid variable then fail.
func New(all []ir.Variable) (*Set, error) {
	if len(all) == 0 {
		return nil, nil //nolint:nilnil // Nil is the empty set.
	}
	s := &Set{make(map[string]*variable, len(all)), len(all)}
	var invalid error
	for i := range all {
		v, err := compile(&all[i])
		if err != nil {
			invalid = errors.Join(invalid, fmt.Errorf("the variable $%s: %w", all[i].Name, err))
			v = &variable{source: nginx.Literal(""), find: findNothing}
		}
		v.index = i
		s.byName[all[i].Name] = v
	}
	return s, invalid
}

func findNothing(string, *pattern.Budget) found { return found{failed: errInvalid} }

// Check returns the error of New for one variable.
func Check(of *ir.Variable) error {
	_, err := compile(of)
	return err
}

var errKind = errors.New("it needs exactly one of map, geo and split_clients")

func compile(of *ir.Variable) (v *variable, err error) {
	v = &variable{}
	var source string
	switch {
	case of.Map != nil && of.Geo == nil && of.Split == nil:
		source, v.volatile = of.Map.Source, of.Map.Volatile
		v.find, err = newMapping(of.Map)
	case of.Map == nil && of.Geo != nil && of.Split == nil:
		if source = of.Geo.Address; source == "" {
			source = "$remote_addr"
		}
		v.find, err = newGeo(of.Geo)
	case of.Map == nil && of.Geo == nil && of.Split != nil:
		source = of.Split.Key
		v.find, err = newSplit(of.Split)
	default:
		return nil, errKind
	}
	if err == nil {
		v.source, err = nginx.ParseTemplate(source, nil)
	}
	return v, err
}

// The limits for the variables of one request. A value that contains another variable several times can be much larger
// than this variable, so a few lines could need any amount of memory.
const (
	// maxValue is the maximum size of a value in bytes. maxTotal is the maximum total size of all values that are
	// computed for a request.
	maxValue = 1 << 16
	maxTotal = 1 << 20
)

// Failure is the reason why a value could not be computed.
type Failure struct {
	// Status is the status of the response to the request.
	Status int
	reason string
}

func (f *Failure) Error() string { return f.reason }

var (
	errSearch   = &Failure{http.StatusBadRequest, "the request is too long for the regular expressions of http-snippet"}
	errInvalid  = &Failure{http.StatusInternalServerError, "a variable of http-snippet is not valid"}
	errTooLarge = &Failure{http.StatusInternalServerError, "a variable of http-snippet has a value that is too large"}
)

// Values holds the values of the variables of a Set for one request. The zero value is ready for use. It must not be
// used by several goroutines at the same time.
type Values struct {
	kept []kept
	// depth is the number of values that are being computed, each because the value before depends on it. use counts
	// the calls of Value, without the calls for variables on which a value depends. During one use, volatile variables
	// are computed once, too: otherwise, each variable in a chain of them could double the work.
	depth, use int
	// budget limits the searches with regular expressions. left is the number of bytes that values may still have.
	budget pattern.Budget
	left   int
	failed *Failure
}

// kept is the value of a variable. computed is true while and after the value is computed, and use is the value of
// Values.use at that time. While it is computed, the value is empty, so variables that depend on each other end in an
// empty value.
type kept struct {
	text     string
	computed bool
	use      int
}

// Failed returns the reason why a value could not be computed, or nil. Such a value is empty. It may decide about
// access, so the request must be rejected.
func (v *Values) Failed() *Failure {
	if v == nil {
		return nil
	}
	return v.failed
}

// Has reports whether the set contains a variable.
func (s *Set) Has(name string) bool { return s != nil && s.byName[name] != nil }

// Value returns the value of a variable. It is empty if the set does not contain the variable. values must belong to
// the request, and lookup must return the values of all variables, including the variables of the set.
func (s *Set) Value(name string, values *Values, lookup func(name string) string) string {
	v := s.byName[name]
	if v == nil {
		return ""
	}
	if values.kept == nil {
		*values = Values{kept: make([]kept, s.size), budget: pattern.NewBudget(), left: maxTotal}
	}
	if values.depth == 0 {
		values.use++
	}
	k := &values.kept[v.index]
	if k.computed && (!v.volatile || k.use == values.use) {
		return k.text
	}
	*k = kept{computed: true, use: values.use}
	values.depth++
	k.text = v.compute(values, lookup)
	values.depth--
	return k.text
}

func (v *variable) compute(values *Values, lookup func(string) string) string {
	f := v.find(v.source.Expand(lookup), &values.budget)
	if f.failed != nil {
		values.fail(f.failed)
	}
	if f.value == nil {
		return ""
	}
	text := f.value.Expand(f.lookup(lookup))
	if values.left -= len(text); values.left < 0 || len(text) > maxValue {
		values.fail(errTooLarge)
		return ""
	}
	return text
}

func (v *Values) fail(reason *Failure) {
	if v.failed == nil {
		v.failed = reason
	}
}

// lookup returns a function that also knows the capture groups of the regular expression.
func (f *found) lookup(others func(string) string) func(string) string {
	if f.groups == nil {
		return others
	}
	return func(name string) string {
		if len(name) == 1 && '1' <= name[0] && name[0] <= '9' {
			return f.group(int(name[0] - '0'))
		}
		for i, group := range f.names {
			if group == name {
				return f.group(i)
			}
		}
		return others(name)
	}
}

func (f *found) group(n int) string {
	if 2*n+1 >= len(f.groups) || f.groups[2*n] < 0 {
		return ""
	}
	return f.subject[f.groups[2*n]:f.groups[2*n+1]]
}
