package exchange

import (
	"fmt"
	"slices"
	"strings"

	"golang.org/x/net/http/httpguts"

	"github.com/k8singress/k8singress/internal/http/message"
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/nginx"
)

// Directives are compiled ir.Directives: changes that a program makes to the header fields of requests and responses.
// They are immutable.
type Directives struct {
	// endpoint are the header fields to set on requests to endpoints, without Host. host is the template for Host, or
	// nil if the Host header is not changed.
	endpoint []templated
	host     *nginx.Template
	// hide and pass are the names of the header fields to remove from endpoint responses, and to keep although they are
	// hidden by default.
	hide, pass []message.Field
	// cookieFlags is nil if the flags of an earlier program apply.
	cookieFlags []cookieFlags
	// input are the changes to the request of the client. Statuses and Types in it are empty.
	input []moreHeaders
	// more, expires and added are the changes to the response, in this order. The directives of an earlier program
	// apply if expires or added is nil.
	more    []moreHeaders
	expires *expires
	added   []addedHeader
	// defaultType is the Content-Type for responses with a text of a program. If it is empty, the type of an earlier
	// program applies.
	defaultType string
	// auth are the variables that are set from the response of external authentication.
	auth []authVariable
	// errors is nil if the directives do not concern errors.
	errors *errorHandling

	// alone is the list that contains only these directives.
	alone    directiveList
	unlogged bool
	// usesUpstream is true if a template contains variables for header fields of the endpoint's response. usesDefinable
	// is true if it contains variables that Exchange.Variables may derive from these variables.
	usesUpstream, usesDefinable bool
}

type authVariable struct {
	name  string
	value *nginx.Template
}

// NewDirectives compiles the directives of a program. A template may contain any variable; a variable that is unknown,
// or that no program has set, is empty.
func NewDirectives(of *ir.Directives) (d *Directives, err error) {
	d = &Directives{unlogged: of.Unlogged}
	d.alone = directiveList{d}
	for _, compile := range []func(*ir.Directives) error{d.setEndpoint, d.setHidden, d.setCookieFlags,
		d.setInput, d.setResponse, d.setAuth, d.setErrors} {
		if err := compile(of); err != nil {
			return nil, err
		}
	}
	return d, nil
}

// fieldNamed returns a header field without a value. It returns an error if a program cannot set or remove the field,
// because the name is not valid, or because isReserved returns true for its kind.
func fieldNamed(name string) (message.Field, error) {
	field := message.NewField(name, "")
	if !httpguts.ValidHeaderFieldName(name) || isReserved(field.Kind) {
		return field, fmt.Errorf("a program cannot change the header field %q", name)
	}
	return field, nil
}

// isReserved reports whether programs cannot change fields of this kind: fields that describe the connection or the
// length of the body, and CDN-Loop, which is needed to detect requests that loop through this controller.
func isReserved(k message.Kind) bool { return k.Hop() || k == message.CDNLoop }

func (d *Directives) template(text string) (*nginx.Template, error) {
	t, err := nginx.ParseTemplate(text, nil)
	if err != nil {
		return nil, err
	}
	for _, name := range t.Variables() {
		d.usesUpstream = d.usesUpstream || strings.HasPrefix(name, "upstream_http_") ||
			strings.HasPrefix(name, "upstream_cookie_")
		d.usesDefinable = d.usesDefinable || isDefinable(name)
	}
	return t, nil
}

func (d *Directives) templated(name, text string) (templated, error) {
	field, err := fieldNamed(name)
	if err != nil {
		return templated{}, err
	}
	value, err := d.template(text)
	if err != nil {
		return templated{}, err
	}
	return newTemplated(field, value), nil
}

func (d *Directives) setEndpoint(of *ir.Directives) (err error) {
	for _, header := range of.EndpointHeaders {
		if message.KindOf(header.Name) == message.Host {
			if d.host, err = d.template(header.Value); err != nil {
				return err
			}
			continue
		}
		field, err := d.templated(header.Name, header.Value)
		if err != nil {
			return err
		}
		d.endpoint = append(d.endpoint, field)
	}
	return nil
}

func (d *Directives) setHidden(of *ir.Directives) error {
	for _, list := range []struct {
		names []string
		to    *[]message.Field
	}{{of.Hide, &d.hide}, {of.Pass, &d.pass}} {
		for _, name := range list.names {
			*list.to = append(*list.to, message.NewField(name, ""))
		}
	}
	// As in nginx, proxy_pass_header cancels proxy_hide_header.
	d.hide = slices.DeleteFunc(d.hide, func(hidden message.Field) bool { return d.passes(&hidden) })
	return nil
}

func (d *Directives) passes(hidden *message.Field) bool {
	return slices.ContainsFunc(d.pass, func(f message.Field) bool { return hidden.Is(f.Kind, f.Name) })
}

func (d *Directives) setInput(of *ir.Directives) (err error) {
	d.input, err = d.moreHeaders(of.InputHeaders)
	return err
}

func (d *Directives) setResponse(of *ir.Directives) (err error) {
	if d.defaultType = of.DefaultType; !httpguts.ValidHeaderFieldValue(d.defaultType) {
		return fmt.Errorf("the default type %q contains characters that are not allowed in a header", d.defaultType)
	}
	if of.AddHeaders != nil {
		d.added = make([]addedHeader, 0, len(of.AddHeaders))
	}
	for _, header := range of.AddHeaders {
		added := addedHeader{always: header.Always}
		if added.templated, err = d.templated(header.Name, header.Value); err != nil {
			return err
		}
		added.replaces = strings.EqualFold(header.Name, lastModified) || strings.EqualFold(header.Name, "ETag")
		d.added = append(d.added, added)
	}
	if d.expires, err = d.newExpires(of.Expires); err != nil {
		return err
	}
	d.more, err = d.moreHeaders(of.MoreHeaders)
	return err
}

func (d *Directives) setAuth(of *ir.Directives) error {
	for _, v := range of.AuthVariables {
		if err := CheckSettable(v.Name); err != nil {
			return err
		}
		value, err := nginx.ParseTemplate(v.Value, nil)
		if err != nil {
			return err
		}
		d.auth = append(d.auth, authVariable{v.Name, value})
	}
	return nil
}

// UseDirectives makes the directives apply to the request to the endpoint and to the response. Directives that were
// used before apply as well.
func (x *Exchange) UseDirectives(d *Directives) {
	x.forEndpoint, x.forResponse = x.forEndpoint.with(d), x.forResponse.with(d)
	x.Unlogged = x.Unlogged || d.unlogged
	if d.errors != nil {
		d.errors.use(x)
	}
}

// ChangeRequest changes the header fields of the client's request. The trailers lose all fields with the same names,
// because an endpoint may treat them as header fields.
func (d *Directives) ChangeRequest(x *Exchange) {
	if len(d.input) == 0 {
		return
	}
	// Client caches the client's address, scheme and host, so it must be called before the fields are changed.
	x.Client()
	x.keepReceived()
	e := x.expansion()
	for i := range d.input {
		d.input[i].apply(&x.Fields, &e)
	}
	if behind := x.Trailers; behind != nil {
		x.Trailers = func() message.Fields {
			return slices.DeleteFunc(behind(), func(f message.Field) bool {
				return slices.ContainsFunc(d.input, func(m moreHeaders) bool { return m.names(f) })
			})
		}
	}
}

// ChangesRequest reports whether ChangeRequest may change header fields.
func (d *Directives) ChangesRequest() bool { return len(d.input) > 0 }

// HostForEndpoint returns the Host header that programs set for requests to endpoints, or an empty string.
func (x *Exchange) HostForEndpoint() (host string) {
	for _, d := range x.forEndpoint {
		if d.host != nil {
			host = d.host.Expand(x.Variable)
		}
	}
	return host
}
