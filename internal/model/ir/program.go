package ir

import (
	"slices"
	"strings"
)

// Program is the nginx configuration that an author of an Ingress or the administrator has written for one location,
// as typed directives. A value of type string whose comment calls it a template may contain variables of the form $name
// or ${name}: nginx variables, the capture groups $1 to $9 of the last regular expression that matched, and variables
// that the program sets. The value of a variable is data: variables in it are not expanded.
type Program struct {
	// LimitExcept has rules that are checked before Steps, because nginx runs no steps for requests with other methods.
	// Nil means that there are none.
	LimitExcept *LimitExcept `json:"limit_except,omitempty"`
	// Steps are the directives that nginx runs in the order of the configuration.
	Steps []Step `json:"steps,omitempty"`
	// Directives apply to requests, unless the last If of Steps that was true has Directives.
	Directives
	// Server is true for the configuration of a server. Its steps run once for each request, before a route for the new
	// path is searched, and Break only ends these steps.
	Server bool `json:"server,omitempty"`
	// PathGroups are the names of the variables that named groups of the path set before the program runs, in lower
	// case. The program may set them, too.
	PathGroups []string `json:"path_groups,omitempty"`
	// RelativeRedirects keeps redirects to a path relative. Otherwise they get the scheme and the host of the request.
	RelativeRedirects bool `json:"relative_redirects,omitempty"`
}

// Step is one directive of nginx's rewrite module. Exactly one field is set.
type Step struct {
	Set     *SetVariable `json:"set,omitempty"`
	If      *If          `json:"if,omitempty"`
	Return  *Return      `json:"return,omitempty"`
	Rewrite *Rewrite     `json:"rewrite,omitempty"`
	// Break skips the rest of Program.Steps, and the rewrite-target of the Ingress.
	Break bool `json:"break,omitempty"`
}

// SetVariable sets a variable.
type SetVariable struct {
	// Name is the name of the variable, without the dollar sign.
	Name string `json:"name"`
	// Value is a template.
	Value string `json:"value"`
}

// If runs Steps if its condition is true for a request. If several conditions of a program are true, the last one
// decides which Directives apply.
type If struct {
	Condition
	Steps []Step `json:"steps,omitempty"`
	// Directives replace Program.Directives. They already contain what the If inherits. If they are nil, the If has no
	// directives of its own, and Program.Directives apply, even if an earlier If that was true has Directives. They are
	// not nil if the If only cancels what it would inherit, as access_log does.
	Directives *Directives `json:"directives,omitempty"`
}

// Condition compares the value of a variable.
type Condition struct {
	// Variable is the name of the variable, without the dollar sign.
	Variable string `json:"variable"`
	// OfAddress is true if the value of the variable is derived from the client's address in another way than
	// Variable says, for example by geo.
	OfAddress bool `json:"of_address,omitempty"`
	// Operator is one of the constants below.
	Operator Operator `json:"operator,omitempty"`
	// Value is a template for Equal and NotEqual, and a regular expression for the other operators.
	Value string `json:"value,omitempty"`
}

// Operator is the operator of a Condition, as written in nginx.
type Operator string

// The operators of conditions. A condition without an operator is true unless the variable is empty or "0".
const (
	IsTrue         Operator = ""
	Equal          Operator = "="
	NotEqual       Operator = "!="
	Matches        Operator = "~"
	MatchesFold    Operator = "~*"
	NotMatches     Operator = "!~"
	NotMatchesFold Operator = "!~*"
)

// Return ends the request with a response. Status 444 closes the connection without a response.
type Return struct {
	Status int `json:"status"`
	// Text is a template. For the status codes 301, 302, 303, 307 and 308 it is the URL of the redirect, otherwise the
	// body of the response. With HasText false, nginx's page for the status is meant, which error pages can replace.
	Text    string `json:"text,omitempty"`
	HasText bool   `json:"has_text,omitempty"`
}

// Rewrite changes the path if Pattern, a regular expression, matches it.
type Rewrite struct {
	Pattern string `json:"pattern"`
	// Target is a template. It is the new path, or the URL of a redirect if it begins with http://, https:// or
	// $scheme. The query of the request is appended unless Target ends with "?".
	Target string `json:"target"`
	Flag   Flag   `json:"flag,omitempty"`
}

// Redirects reports whether the rewrite redirects the client to its target.
func (r *Rewrite) Redirects() bool {
	return r.Flag == RedirectFlag || r.Flag == Permanent || strings.HasPrefix(r.Target, "http://") ||
		strings.HasPrefix(r.Target, "https://") || strings.HasPrefix(r.Target, "$scheme")
}

// Flag says what happens after a Rewrite that matched.
type Flag string

// The flags of a Rewrite. Without a flag, the steps continue, and then a route for the new path is searched.
const (
	NoFlag Flag = ""
	// Last ends the steps, and searches a route for the new path.
	Last Flag = "last"
	// BreakFlag ends the steps, and keeps the route. It skips the rewrite-target of the Ingress.
	BreakFlag Flag = "break"
	// RedirectFlag redirects with status 302, and Permanent with status 301.
	RedirectFlag Flag = "redirect"
	Permanent    Flag = "permanent"
)

// Directives are the directives that nginx does not run in order. Directives of outer levels that a level inherits are
// part of the level's Directives.
type Directives struct {
	// InputHeaders are changes to the request, which later filters and the endpoint see (more_set_input_headers and
	// more_clear_input_headers).
	InputHeaders []MoreHeaders `json:"input_headers,omitempty"`
	// EndpointHeaders are header fields of the request to the endpoint (proxy_set_header). Values are templates, which
	// are expanded when the request is sent to an endpoint. A field with an empty value is removed.
	EndpointHeaders []Header `json:"endpoint_headers,omitempty"`
	// Hide lists header fields of the endpoint's response that the client does not get (proxy_hide_header). Pass lists
	// fields that the client gets although the controller hides them by default (proxy_pass_header).
	Hide []string `json:"hide,omitempty"`
	Pass []string `json:"pass,omitempty"`
	// CookieFlags are changes to the cookies that endpoints set (proxy_cookie_flags). The first element that matches a
	// cookie counts. Nil means that the flags of the server apply. An empty list cancels them.
	CookieFlags []CookieFlags `json:"cookie_flags,omitzero"`
	// MoreHeaders are changes to the response (more_set_headers and more_clear_headers), in their order. They are
	// applied before Expires and AddHeaders.
	MoreHeaders []MoreHeaders `json:"more_headers,omitempty"`
	// AddHeaders are header fields that are added to the response (add_header). Nil means that the fields of the server
	// apply. An empty list cancels them.
	AddHeaders []AddedHeader `json:"add_headers,omitzero"`
	// Expires sets Expires and Cache-Control of the response. Nil means that the value of the server applies.
	Expires *Expires `json:"expires,omitempty"`
	// AuthVariables are variables that are set from the response of external authentication (auth_request_set). Values
	// are templates, in which $upstream_http_NAME, $upstream_status and $upstream_cookie_NAME stand for this response.
	AuthVariables []SetVariable `json:"auth_variables,omitempty"`
	// DefaultType is the Content-Type of responses of Return with a text. Empty means that the type of the server
	// applies, or else Global.DefaultType.
	DefaultType string `json:"default_type,omitempty"`
	// Unlogged is set by "access_log off".
	Unlogged bool `json:"unlogged,omitempty"`
	// Errors says which error responses are replaced.
	Errors ErrorHandling `json:"errors,omitzero"`
}

// CookieFlags changes the attributes Secure, HttpOnly and SameSite of a cookie.
type CookieFlags struct {
	// Cookie is a template for the name of the cookie, or "~" and a regular expression for names. Case is ignored.
	Cookie string `json:"cookie"`
	// Flags are templates for the words of nginx's proxy_cookie_flags, such as "secure", "nohttponly" or
	// "samesite=lax". Other values have no effect.
	Flags []string `json:"flags,omitempty"`
}

// MoreHeaders is one directive of nginx's module headers-more.
type MoreHeaders struct {
	// Set are fields that replace all fields with the same name. Values are templates. A field with an empty value is
	// removed. Clear are names of fields to remove; a name that ends with "*" stands for all names with this prefix.
	Set   []Header `json:"set,omitempty"`
	Clear []string `json:"clear,omitempty"`
	// IfPresent changes only fields that the message already has (-r of the directives for requests).
	IfPresent bool `json:"if_present,omitempty"`
	// Statuses and Types restrict a change of a response to these statuses and media types (-s and -t). Nil means all.
	Statuses []int    `json:"statuses,omitempty"`
	Types    []string `json:"types,omitempty"`
}

// AddedHeader is a header field that is added to a response.
type AddedHeader struct {
	Name string `json:"name"`
	// Value is a template. If the expanded value is empty, the field is not added.
	Value string `json:"value"`
	// Always adds the field to responses with any status. Otherwise it is only added to the statuses to which nginx's
	// add_header applies: 200, 201, 204, 206, 301, 302, 303, 304, 307 and 308.
	Always bool `json:"always,omitempty"`
}

// Expires says how long a response may be kept. Its JSON is the argument of nginx's directive expires in parts.
type Expires struct {
	// Mode is one of the constants below.
	Mode ExpiresMode `json:"mode,omitempty"`
	// Seconds is the time from now, from Last-Modified if Modified is set, or from midnight for ExpiresDaily. Only a
	// time from now or from Last-Modified may be negative.
	Seconds  int64 `json:"seconds,omitempty"`
	Modified bool  `json:"modified,omitempty"`
	// Template is a template for the argument of the directive, in place of Mode and Seconds. It is expanded for each
	// response. If its value is not valid, the fields are not changed.
	Template string `json:"template,omitempty"`
}

// ExpiresMode says from when the time of Expires counts, or replaces the time.
type ExpiresMode string

// The modes of Expires.
const (
	// ExpiresIn counts from now or from Last-Modified, and ExpiresDaily counts from midnight.
	ExpiresIn    ExpiresMode = ""
	ExpiresDaily ExpiresMode = "daily"
	// ExpiresEpoch is the beginning of 1970, and ExpiresMax is the end of 2037. ExpiresOff changes no fields.
	ExpiresEpoch ExpiresMode = "epoch"
	ExpiresMax   ExpiresMode = "max"
	ExpiresOff   ExpiresMode = "off"
)

// Substitution replaces texts in the bodies of responses (nginx's sub_filter).
type Substitution struct {
	// Pairs are the texts to find, without regard to case, and their replacements.
	Pairs []Replacement `json:"pairs"`
	// Repeat replaces all occurrences instead of only the first of each text (sub_filter_once off).
	Repeat bool `json:"repeat,omitempty"`
	// Types are media types besides text/html whose responses are changed. "*" stands for all types.
	Types []string `json:"types,omitempty"`
	// KeepLastModified keeps the field Last-Modified, and makes the ETag weak (sub_filter_last_modified on). Otherwise
	// both fields are removed.
	KeepLastModified bool `json:"keep_last_modified,omitempty"`
}

// Replacement is a text to find and its replacement. Both are templates.
type Replacement struct {
	From string `json:"from"`
	To   string `json:"to"`
}

// Guards implements Filter. A program restricts access if it may respond in place of the endpoint. Whether it then
// decides by the client's address is not followed through its variables: a condition on the address is enough.
func (p Program) Guards() Guard { return max(p.LimitExcept.guards(), p.guardOfSteps()) }

func (p *Program) guardOfSteps() Guard {
	first := slices.IndexFunc(p.Steps, func(s Step) bool { return s.Set == nil })
	switch {
	case !responds(p.Steps):
		return NoRequests
	case p.Steps[first].Return != nil && p.Steps[first].Return.Status >= 400:
		return AllRequests
	case comparesAddress(p.Steps):
		return SomeClients
	}
	return SomeRequests
}

// comparesAddress reports whether any condition is about the client's address.
func comparesAddress(steps []Step) bool {
	return slices.ContainsFunc(steps, func(s Step) bool {
		return s.If != nil && (s.If.Variable == "remote_addr" || s.If.OfAddress || comparesAddress(s.If.Steps))
	})
}

func responds(steps []Step) bool {
	for i := range steps {
		switch s := &steps[i]; {
		case s.Return != nil, s.If != nil && responds(s.If.Steps):
			return true
		case s.Rewrite != nil && (s.Rewrite.Flag != BreakFlag || s.Rewrite.Redirects()):
			return true
		}
	}
	return false
}

// Guards implements Filter.
func (Substitution) Guards() Guard { return NoRequests }
