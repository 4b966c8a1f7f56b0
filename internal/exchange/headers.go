package exchange

import (
	"slices"
	"strings"

	"github.com/k8singress/k8singress/internal/ir"
	"github.com/k8singress/k8singress/internal/message"
	"github.com/k8singress/k8singress/internal/nginx"
)

// Headers is what the administrator changes about the fields of all requests and answers. It is immutable.
type Headers struct {
	// hidden are fields of endpoints that clients do not get.
	hidden []message.Field
	// requests are for endpoints, and answers for clients.
	requests, answers []templated
	originalURI       bool
}

// templated is a field whose value has variables.
type templated struct {
	field message.Field
	value *nginx.Template
}

// NewHeaders returns what changes the fields of a request that has a route. What it says of answers without variables is in constant: it
// holds for those without a route, too. A value that is no template is left out. h is nil where nothing is to be done.
func NewHeaders(of *ir.Headers) (h *Headers, constant []message.Field) {
	h = &Headers{originalURI: of.OriginalURI, requests: templates(of.Requests)}
	for _, name := range of.Hidden {
		h.hidden = append(h.hidden, message.NewField(name, ""))
	}
	for _, each := range templates(of.Answers) {
		if text, ok := each.value.Text(); ok {
			each.field.Value = text
			constant = append(constant, each.field)
			continue
		}
		h.answers = append(h.answers, each)
	}
	if h.hidden == nil && h.requests == nil && h.answers == nil && !h.originalURI {
		return nil, constant
	}
	return h, constant
}

func templates(of []ir.Header) []templated {
	var all []templated
	for _, header := range of {
		if value, err := nginx.ParseTemplate(header.Value); err == nil {
			all = append(all, templated{message.NewField(header.Name, ""), value})
		}
	}
	return all
}

// set puts the fields in place of those with their names. One whose value is empty, or would end the line that it stands on, is not
// sent, and neither is what stood in its place.
func set(fields *message.Fields, all []templated, lookup func(name string) string) {
	for _, each := range all {
		field := each.field
		field.Value = strings.Trim(each.value.Expand(lookup), " \t")
		if field.Value == "" || strings.ContainsFunc(field.Value, nginx.IsControl) {
			fields.Remove(field.Kind, field.Name)
			continue
		}
		fields.Set(field)
	}
}

// Hide takes out of the answer of an endpoint what clients are not to get.
func (x *Exchange) Hide(fields *message.Fields) {
	if x.Headers == nil {
		return
	}
	for _, field := range x.Headers.hidden {
		fields.Remove(field.Kind, field.Name)
	}
}

// SendsToEndpoint says whether the endpoint is told a field besides those of the client whose name matches.
func (x *Exchange) SendsToEndpoint(matches func(name string) bool) bool {
	if slices.ContainsFunc(x.ForEndpoint, func(f message.Field) bool { return matches(f.Name) }) {
		return true
	}
	return x.Headers != nil && slices.ContainsFunc(x.Headers.requests, func(t templated) bool { return matches(t.field.Name) })
}

// AddForEndpoint adds to the fields for an endpoint what the administrator has it told.
func (x *Exchange) AddForEndpoint(fields *message.Fields) {
	if x.Headers == nil {
		return
	}
	if x.Headers.originalURI {
		fields.Set(message.XOriginalURI.Field(x.Target))
	}
	set(fields, x.Headers.requests, x.Variable)
}
