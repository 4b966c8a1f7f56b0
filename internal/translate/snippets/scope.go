package snippets

import (
	"cmp"
	"slices"
	"strings"

	"github.com/k8singress/k8singress/internal/model/ir"
)

// scope is one level of a location: the location itself, or the block of a condition or of limit_except.
type scope struct {
	context string
	steps   []ir.Step
	// own are the directives of the level, without inherited ones.
	own ir.Directives
	// grpc are the fields of grpc_set_header. They count unless proxy_set_header sets a field with the same name.
	grpc []ir.Header
	// rules are the rules of allow and deny in a block of limit_except.
	rules []ir.AccessRule
	// logged is set by access_log. It is nil if the level inherits it.
	logged *bool
	// seen contains the places of directives that nginx accepts only once in a level.
	seen map[string]Place
}

// isEmpty reports whether the level has no directives of its own besides steps.
func (s *scope) isEmpty() bool {
	o := &s.own
	return s.logged == nil && o.Errors.Pages == nil && o.Errors.Intercept == nil && o.Errors.Recursive == nil &&
		o.Expires == nil && o.DefaultType == "" && o.AddHeaders == nil &&
		o.CookieFlags == nil &&
		len(o.InputHeaders)+len(o.EndpointHeaders)+len(s.grpc)+len(o.Hide)+len(o.Pass)+len(o.MoreHeaders)+
			len(o.AuthVariables) == 0
}

// whole returns the directives of a level that inherits nothing.
func (s *scope) whole() ir.Directives {
	d := s.own
	// Other levels may have inherited the same list.
	d.EndpointHeaders = slices.Clip(d.EndpointHeaders)
	for _, h := range s.grpc {
		if !slices.ContainsFunc(d.EndpointHeaders, func(other ir.Header) bool {
			return strings.EqualFold(other.Name, h.Name)
		}) {
			d.EndpointHeaders = append(d.EndpointHeaders, h)
		}
	}
	d.Unlogged = s.logged != nil && !*s.logged
	return d
}

// within returns the directives of a condition inside another level. As in nginx, add_header replaces the inherited
// add_header directives, and the directives of the module headers-more are added to the inherited ones. The other
// lists cannot occur in conditions.
func (s *scope) within(outer *scope) *ir.Directives {
	d := outer.whole()
	d.InputHeaders = slices.Concat(d.InputHeaders, s.own.InputHeaders)
	d.MoreHeaders = slices.Concat(d.MoreHeaders, s.own.MoreHeaders)
	if s.own.AddHeaders != nil {
		d.AddHeaders = s.own.AddHeaders
	}
	if s.own.Expires != nil {
		d.Expires = s.own.Expires
	}
	if s.own.Errors.Pages != nil {
		d.Errors.Pages = s.own.Errors.Pages
	}
	if s.logged != nil {
		d.Unlogged = !*s.logged
	}
	return &d
}

// inherit adds to the level of a location or of a server what it inherits from an outer level, as nginx does: the
// directives of the module headers-more are added to the inherited ones, and the other lists replace them. A location
// that inherits a guard that is not supported is closed.
func (r *reader) inherit(outer *reader) {
	r.guarded = r.guarded || outer.guarded
	r.password = cmp.Or(r.password, outer.password)
	if r.location != nil {
		r.location.Closed = r.location.Closed || r.guarded || r.password != nil && *r.password
	}
	own, from := &r.top.own, &outer.top.own
	own.InputHeaders = slices.Concat(from.InputHeaders, own.InputHeaders)
	own.MoreHeaders = slices.Concat(from.MoreHeaders, own.MoreHeaders)
	inherit(&own.AddHeaders, from.AddHeaders)
	inherit(&own.EndpointHeaders, from.EndpointHeaders)
	inherit(&r.top.grpc, outer.top.grpc)
	inherit(&own.Hide, from.Hide)
	inherit(&own.Pass, from.Pass)
	inherit(&own.CookieFlags, from.CookieFlags)
	inherit(&own.AuthVariables, from.AuthVariables)
	inherit(&own.Errors.Pages, from.Errors.Pages)
	own.Errors.Intercept = cmp.Or(own.Errors.Intercept, from.Errors.Intercept)
	own.Errors.Recursive = cmp.Or(own.Errors.Recursive, from.Errors.Recursive)
	if own.Expires == nil {
		own.Expires = from.Expires
	}
	if r.top.logged == nil {
		r.top.logged = outer.top.logged
	}
	own.DefaultType = cmp.Or(own.DefaultType, from.DefaultType)
	if rules := outer.rules(); r.out.Access == nil && rules != nil {
		// The block of limit_except is not inherited.
		r.out.Access = &ir.AccessRules{Rules: rules}
	}
	r.out.Limits = within(r.out.Limits, outer.out.Limits)
	inherit(&r.substitution.Types, outer.substitution.Types)
	if r.substitution.Pairs == nil {
		r.substitution = outer.substitution
	}
	for _, v := range outer.out.Values {
		if !slices.ContainsFunc(r.out.Values, func(own Value) bool {
			return own.Annotation == v.Annotation && own.Part == v.Part
		}) {
			r.out.Values = append(r.out.Values, v)
		}
	}
}

// inherit sets a list that is nil to the list of the outer level.
func inherit[T any](own *[]T, outer []T) {
	if *own == nil {
		*own = outer
	}
}
