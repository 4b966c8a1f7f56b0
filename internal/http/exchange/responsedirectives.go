package exchange

import (
	"cmp"
	"slices"
	"strings"

	"github.com/k8singress/k8singress/internal/http/message"
	"github.com/k8singress/k8singress/internal/model/ir"
)

// moreHeaders is a compiled ir.MoreHeaders.
type moreHeaders struct {
	set []templated
	// clear are the fields to remove. prefixes are the beginnings, in lower case, of the names of more fields to
	// remove.
	clear     []message.Field
	prefixes  []string
	ifPresent bool
	statuses  []int
	// types are media types in lower case.
	types []string
}

// moreHeaders compiles changes to header fields.
func (d *Directives) moreHeaders(all []ir.MoreHeaders) (compiled []moreHeaders, err error) {
	for _, of := range all {
		m := moreHeaders{ifPresent: of.IfPresent, statuses: of.Statuses}
		for _, name := range of.Types {
			m.types = append(m.types, strings.ToLower(name))
		}
		for _, header := range of.Set {
			set, err := d.templated(header.Name, header.Value)
			if err != nil {
				return nil, err
			}
			m.set = append(m.set, set)
		}
		for _, name := range of.Clear {
			if prefix, ok := strings.CutSuffix(name, "*"); ok {
				m.prefixes = append(m.prefixes, strings.ToLower(prefix))
				continue
			}
			field, err := fieldNamed(name)
			if err != nil {
				return nil, err
			}
			m.clear = append(m.clear, field)
		}
		compiled = append(compiled, m)
	}
	return compiled, nil
}

// appliesTo reports whether m applies to a response.
func (m *moreHeaders) appliesTo(response *message.Response) bool {
	if m.statuses != nil && !slices.Contains(m.statuses, response.Status) {
		return false
	}
	return m.types == nil || slices.Contains(m.types, response.MediaType())
}

// apply makes the changes to the header fields of a request or a response.
func (m *moreHeaders) apply(fields *message.Fields, e *expansion) {
	for i := range m.set {
		if to := &m.set[i]; !m.ifPresent || fields.Contains(to.field.Kind, to.field.Name) {
			to.setIn(fields, e)
		}
	}
	for i := range m.clear {
		fields.Remove(m.clear[i].Kind, m.clear[i].Name)
	}
	if m.prefixes != nil {
		*fields = slices.DeleteFunc(*fields, m.clearsByPrefix)
	}
}

func (m *moreHeaders) clearsByPrefix(f message.Field) bool {
	return !isReserved(f.Kind) && slices.ContainsFunc(m.prefixes, func(prefix string) bool {
		return len(f.Name) >= len(prefix) && strings.EqualFold(f.Name[:len(prefix)], prefix)
	})
}

// names reports whether m sets or removes fields with the name of f.
func (m *moreHeaders) names(f message.Field) bool {
	is := func(named message.Field) bool { return f.Is(named.Kind, named.Name) }
	return slices.ContainsFunc(m.set, func(t templated) bool { return is(t.field) }) ||
		slices.ContainsFunc(m.clear, is) || m.clearsByPrefix(f)
}

// addedHeader is a compiled ir.AddedHeader. replaces is true for the fields that nginx replaces instead of adding one
// more.
type addedHeader struct {
	templated
	always, replaces bool
}

func (a *addedHeader) apply(fields *message.Fields, e *expansion) {
	if a.replaces {
		a.setIn(fields, e)
		return
	}
	if field, ok := a.expand(e); ok {
		fields.Add(field)
	}
}

// directiveList are the directives in force, in the order in which they apply.
type directiveList []*Directives

// with returns the list with d at the end. It only allocates if l is not empty.
func (l directiveList) with(d *Directives) directiveList {
	if len(l) == 0 {
		return d.alone
	}
	return append(slices.Clip(l), d)
}

// innermost returns the last directives in the list for which has returns true, or nil. As in nginx, they replace the
// same directives of outer levels.
func (l directiveList) innermost(has func(*Directives) bool) *Directives {
	for i := len(l) - 1; i >= 0; i-- {
		if has(l[i]) {
			return l[i]
		}
	}
	return nil
}

func (d *Directives) setsExpires() bool     { return d.expires != nil }
func (d *Directives) addsHeaders() bool     { return d.added != nil }
func (d *Directives) setsDefaultType() bool { return d.defaultType != "" }

// DefaultType returns the Content-Type for a response with a text of a program.
func (x *Exchange) DefaultType() string {
	if d := x.forResponse.innermost((*Directives).setsDefaultType); d != nil {
		return d.defaultType
	}
	return cmp.Or(x.Global.DefaultType, "text/html")
}

// apply changes the response before its head is written. As in nginx, the changes of the module headers-more come
// first, also the changes of outer levels. Then expires and add_header apply.
func (l directiveList) apply(x *Exchange, response *message.Response) {
	if len(l) == 0 {
		return
	}
	x.response = response
	e := x.expansion()
	byAddHeader := message.ByAddHeader(response.Status)
	for _, d := range l {
		for i := range d.more {
			if d.more[i].appliesTo(response) {
				d.more[i].apply(&response.Fields, &e)
			}
		}
	}
	if d := l.innermost((*Directives).setsExpires); d != nil && byAddHeader {
		d.expires.apply(&response.Fields, &e)
	}
	if d := l.innermost((*Directives).addsHeaders); d != nil {
		for i := range d.added {
			if d.added[i].always || byAddHeader {
				d.added[i].apply(&response.Fields, &e)
			}
		}
	}
	x.response = nil
}
