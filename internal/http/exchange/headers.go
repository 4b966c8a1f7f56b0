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

// templated is a header field whose value may contain nginx variables. constant is true if it contains none; field then
// has the value.
type templated struct {
	field    message.Field
	value    *nginx.Template
	constant bool
}

func newTemplated(field message.Field, value *nginx.Template) templated {
	text, constant := value.Text()
	field.Value = sendable(text)
	return templated{field, value, constant}
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
			all = append(all, newTemplated(message.NewField(header.Name, ""), value))
		}
	}
	return all
}

// expansion expands the templates for one message. left is the number of bytes by which they may still be expanded:
// programs may set a few variables to long values, and then use each of them thousands of times.
type expansion struct {
	x    *Exchange
	left int
}

// maxExpanded is the maximum total size in bytes of the values with which the templates for one message are expanded.
const maxExpanded = 1 << 20

func (x *Exchange) expansion() expansion { return expansion{x, maxExpanded} }

// value expands a template. The value is empty if it is too large.
func (e *expansion) value(t *nginx.Template) string {
	value, ok := t.ExpandWithin(e.left, e.x.Variable)
	if !ok {
		return ""
	}
	e.left -= len(value)
	return value
}

// expand returns the field with its expanded value. ok is false if the value is empty or too large, or contains a
// control character other than a tab.
func (t *templated) expand(e *expansion) (field message.Field, ok bool) {
	field = t.field
	if !t.constant {
		field.Value = sendable(e.value(t.value))
	}
	return field, field.Value != ""
}

// sendable returns the value of a field without the white space around it. It returns an empty string if the value
// contains a control character other than a tab.
func sendable(value string) string {
	if strings.ContainsFunc(value, isUnsafe) {
		return ""
	}
	return strings.Trim(value, " \t")
}

func isUnsafe(c rune) bool { return c != '\t' && nginx.IsControl(c) }

// setIn sets the field. If its expanded value is empty or too large, or contains a control character, the field is
// removed instead.
func (t *templated) setIn(fields *message.Fields, e *expansion) {
	if field, ok := t.expand(e); ok {
		fields.Set(field)
	} else {
		fields.Remove(field.Kind, field.Name)
	}
}

// set expands the templates and sets the header fields.
func set(fields *message.Fields, all []templated, e *expansion) {
	for i := range all {
		all[i].setIn(fields, e)
	}
}

// Hide removes the header fields of an endpoint's response that clients must not get: Server, unless the administrator
// lets it pass, the fields that the administrator hides, and the fields that programs hide. A program can let fields
// pass. Hide must be called before other changes to the response, because the directives of programs may use the header
// fields that the endpoint has sent.
func (x *Exchange) Hide(fields *message.Fields) {
	if slices.ContainsFunc(x.forEndpoint, func(d *Directives) bool {
		return d.usesUpstream || d.usesDefinable && x.Variables != nil
	}) {
		x.endpointFields = slices.Clone(*fields)
	}
	if !x.Global.BackendServer && !x.passes(&serverField) {
		fields.RemoveKind(message.Server)
	}
	if x.Headers != nil {
		for i := range x.Headers.hidden {
			if hidden := &x.Headers.hidden[i]; !x.passes(hidden) {
				fields.Remove(hidden.Kind, hidden.Name)
			}
		}
	}
	for _, d := range x.forEndpoint {
		for i := range d.hide {
			fields.Remove(d.hide[i].Kind, d.hide[i].Name)
		}
	}
}

var serverField = message.Server.Field("")

// passes reports whether a program lets a header field of endpoint responses pass that is hidden by default.
func (x *Exchange) passes(hidden *message.Field) bool {
	return slices.ContainsFunc(x.forEndpoint, func(d *Directives) bool { return d.passes(hidden) })
}

// SendsToEndpoint reports whether the controller itself adds a header field to the requests for the endpoint, for whose
// name the callback matches returns true.
func (x *Exchange) SendsToEndpoint(matches func(name string) bool) bool {
	if slices.ContainsFunc(x.ForEndpoint, func(f message.Field) bool { return matches(f.Name) }) {
		return true
	}
	sets := func(t templated) bool { return matches(t.field.Name) }
	return x.Headers != nil && slices.ContainsFunc(x.Headers.requests, sets) ||
		slices.ContainsFunc(x.forEndpoint, func(d *Directives) bool { return slices.ContainsFunc(d.endpoint, sets) })
}

// AddForEndpoint adds the header fields that the administrator and programs have configured for requests to endpoints.
// fields are the header fields of such a request.
func (x *Exchange) AddForEndpoint(fields *message.Fields) {
	e := x.expansion()
	if x.Headers != nil {
		if x.Headers.originalURI {
			fields.Set(message.XOriginalURI.Field(x.Target))
		}
		set(fields, x.Headers.requests, &e)
	}
	for _, d := range x.forEndpoint {
		set(fields, d.endpoint, &e)
	}
}
