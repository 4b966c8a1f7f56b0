package snippets

import (
	"slices"
	"strings"

	"github.com/k8singress/k8singress/internal/model/ir"
)

// scope is one level of a location: the location itself, or the block of a condition.
type scope struct {
	context string
	steps   []ir.Step
	// own are the directives of the level, without inherited ones.
	own ir.Directives
	// grpc are the fields of grpc_set_header. They count unless proxy_set_header sets a field with the same name.
	grpc []ir.Header
	// logged is set by access_log. It is nil if the level inherits it.
	logged *bool
	// seen contains the places of directives that nginx accepts only once in a level.
	seen map[string]Place
}

// isEmpty reports whether the level has no directives of its own besides steps.
func (s *scope) isEmpty() bool {
	o := &s.own
	return s.logged == nil && o.Expires == nil && o.DefaultType == "" && o.AddHeaders == nil &&
		len(o.InputHeaders)+len(o.EndpointHeaders)+len(s.grpc)+len(o.Hide)+len(o.Pass)+len(o.MoreHeaders)+
			len(o.AuthVariables) == 0
}

// whole returns the directives of a level that inherits nothing.
func (s *scope) whole() ir.Directives {
	d := s.own
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
	if s.logged != nil {
		d.Unlogged = !*s.logged
	}
	return &d
}
