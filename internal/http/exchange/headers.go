package exchange

import (
	"slices"
	"strings"

	"github.com/k8singress/k8singress/internal/http/message"
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/nginx"
)

// Headers holds the administrator's changes to the header fields of all requests and responses. It is immutable.
type Headers struct {
	// hidden are the names of the header fields to remove from endpoint responses.
	hidden []message.Field
	// requests are the header fields to set on requests to endpoints. responses are the header fields to set on
	// responses to clients.
	requests, responses []templated
	originalURI         bool
	// via adds this controller to the Via header of requests to endpoints and services.
	via bool
}

// templated is a header field whose value may contain nginx variables.
type templated struct {
	field message.Field
	value *nginx.Template
}

// NewHeaders returns the header changes in two parts. constant holds the response header fields without variables; they
// also apply to responses without a route. h holds all other changes, or is nil if there are none; it only applies to
// requests with a route. Header fields whose value is not a valid template are ignored. If via is true, this controller
// is added to the Via header of requests to endpoints and services.
func NewHeaders(of *ir.Headers, via bool) (h *Headers, constant []message.Field) {
	h = &Headers{originalURI: of.OriginalURI, via: via, requests: templates(of.Requests)}
	for _, name := range of.Hidden {
		h.hidden = append(h.hidden, message.NewField(name, ""))
	}
	for _, each := range templates(of.Responses) {
		if text, ok := each.value.Text(); ok {
			each.field.Value = text
			constant = append(constant, each.field)
			continue
		}
		h.responses = append(h.responses, each)
	}
	if h.hidden == nil && h.requests == nil && h.responses == nil && !h.originalURI && !via {
		return nil, constant
	}
	return h, constant
}

func templates(of []ir.Header) []templated {
	var all []templated
	for _, header := range of {
		if value, err := ParseTemplate(header.Value); err == nil {
			all = append(all, templated{message.NewField(header.Name, ""), value})
		}
	}
	return all
}

// set expands the templates and sets the header fields. A header field whose expanded value is empty or contains a
// control character is removed instead.
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

// Hide removes the header fields of an endpoint's response that the administrator hides from clients.
func (x *Exchange) Hide(fields *message.Fields) {
	if x.Headers == nil {
		return
	}
	for _, field := range x.Headers.hidden {
		fields.Remove(field.Kind, field.Name)
	}
}

// SendsToEndpoint reports whether the controller itself adds a header field to the requests for the endpoint, for whose
// name the callback matches returns true.
func (x *Exchange) SendsToEndpoint(matches func(name string) bool) bool {
	if slices.ContainsFunc(x.ForEndpoint, func(f message.Field) bool { return matches(f.Name) }) {
		return true
	}
	return x.Headers != nil && slices.ContainsFunc(x.Headers.requests,
		func(t templated) bool { return matches(t.field.Name) })
}

// AddForEndpoint adds the header fields that the administrator has configured for requests to endpoints. fields are the
// header fields of such a request.
func (x *Exchange) AddForEndpoint(fields *message.Fields) {
	if x.Headers == nil {
		return
	}
	if x.Headers.originalURI {
		fields.Set(message.XOriginalURI.Field(x.Target))
	}
	set(fields, x.Headers.requests, x.Variable)
}
