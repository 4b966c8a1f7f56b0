package exchange

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/k8singress/k8singress/internal/http/message"
	"github.com/k8singress/k8singress/internal/model/nginx"
)

// scripted holds what programs (see ir.Program) have set for a request: variables, and the capture groups of the last
// regular expression that matched.
type scripted struct {
	variables []variable
	captures
	// byServer is the number of variables that the program of the host has set before all other programs. They are the
	// first variables and keep their values: a later program appends a variable with the same name, which hides them.
	// capturesByServer are the captures of this program.
	byServer         int
	capturesByServer captures
	// mixed is true if the program of the host has run after other programs, so its variables may depend on theirs.
	mixed bool
}

// captures are the capture groups of a regular expression: the string that it has matched, and the positions of its
// groups in it, as in package regexp.
type captures struct {
	subject string
	groups  []int
}

type variable struct{ name, value string }

// value returns the value of a variable or a capture group. ok is false if no program has set it. s may be nil.
func (s *scripted) value(name string) (value string, ok bool) {
	if s == nil {
		return "", false
	}
	if len(name) == 1 && '1' <= name[0] && name[0] <= '9' {
		return s.group(int(name[0] - '0')), true
	}
	for i := len(s.variables) - 1; i >= 0; i-- {
		if s.variables[i].name == name {
			return s.variables[i].value, true
		}
	}
	return "", false
}

// group returns the text of a capture group, or an empty string if the group did not match.
func (c *captures) group(n int) string {
	if 2*n+1 >= len(c.groups) || c.groups[2*n] < 0 {
		return ""
	}
	return c.subject[c.groups[2*n]:c.groups[2*n+1]]
}

// argsVariable is the name of the variable with the query of the request.
const argsVariable = "args"

// script returns x.scripted, which it allocates for the first variable of a request.
func (x *Exchange) script() *scripted {
	if x.scripted == nil {
		x.scripted = &scripted{}
	}
	return x.scripted
}

// SetVariable sets a variable that Variable then returns for the rest of the request, also for another route of the
// namespace. It has no effect on variables that VariableOf knows, except args, which changes the query of the request.
func (x *Exchange) SetVariable(name, value string) {
	if name == argsVariable {
		x.Query, x.ForceQuery = nginx.EscapeGraphic(value), false
		return
	}
	s := x.script()
	for i := s.byServer; i < len(s.variables); i++ {
		if s.variables[i].name == name {
			s.variables[i].value = value
			return
		}
	}
	s.variables = append(s.variables, variable{name, value})
}

// SetGroups sets the variables $1 to $9 to the capture groups of a regular expression that has matched subject. groups
// are their positions, as in package regexp. names are the names of the groups, as Pattern.GroupNames returns them: a
// group with a name sets the variable of this name.
func (x *Exchange) SetGroups(subject string, groups []int, names []string) {
	s := x.script()
	s.captures = captures{subject, groups}
	for n, name := range names {
		if name != "" {
			x.SetVariable(name, s.group(n))
		}
	}
}

// Subrequest calls fn, in which programs run as in a subrequest of nginx: fn starts without capture groups, and its
// changes to the header fields and the host end with it. The variables that programs set are shared with the request.
func (x *Exchange) Subrequest(fn func()) {
	// ID and Client cache what they derive from the header fields of the client.
	x.ID()
	x.Client()
	fields, host, outer := x.Fields, x.Host, x.setCaptures(captures{})
	x.Fields = slices.Clone(fields)
	fn()
	x.Fields, x.Host = fields, host
	x.setCaptures(outer)
}

// setCaptures replaces the capture groups, and returns the previous ones.
func (x *Exchange) setCaptures(to captures) (previous captures) {
	if x.scripted == nil && to.groups == nil {
		return previous
	}
	s := x.script()
	previous, s.captures = s.captures, to
	return previous
}

// BeginServerProgram reports whether the steps of a program for a host must run: they run once for each request, even
// if the request gets another route. filter is the filter that runs the program.
func (x *Exchange) BeginServerProgram(filter any) bool {
	if x.ServerProgram == filter {
		return false
	}
	x.ServerProgram = filter
	if x.scripted != nil {
		x.scripted.mixed = true
	}
	return true
}

// EndServerProgram must be called when the steps of a program for a host have run. The variables that it has set can
// then be told apart from the variables of other programs.
func (x *Exchange) EndServerProgram() {
	if s := x.scripted; s != nil && !s.mixed {
		s.byServer, s.capturesByServer = len(s.variables), s.captures
	}
}

// dropVariables drops variables and capture groups for ChangeNamespace.
func (x *Exchange) dropVariables(keepsServer bool) {
	x.defined = nil
	s := x.scripted
	switch {
	case !keepsServer || s != nil && s.mixed:
		x.scripted, x.ServerProgram = nil, nil
	case s != nil:
		s.variables, s.captures = s.variables[:s.byServer], s.capturesByServer
	}
}

// authResponse is the response of an external authentication service. It is used for $upstream_* while the variables
// are set that a program derives from this response.
type authResponse struct {
	status int
	fields message.Fields
}

// SetAuthVariables sets the variables that the directives in force derive from the response of the external
// authentication service: its status and the header fields that were kept of it. A variable whose value is too large
// becomes empty.
func (x *Exchange) SetAuthVariables(status int, fields message.Fields) {
	e := x.expansion()
	for _, d := range x.forEndpoint {
		if len(d.auth) == 0 {
			continue
		}
		x.authResponse = &authResponse{status, fields}
		for _, v := range d.auth {
			x.SetVariable(v.name, e.value(v.value))
		}
		x.authResponse = nil
	}
}

// upstreamFields returns the header fields to which $upstream_http_NAME and $upstream_cookie_NAME refer.
func (x *Exchange) upstreamFields() message.Fields {
	if x.authResponse != nil {
		return x.authResponse.fields
	}
	return x.endpointFields
}

// upstreamHeader returns the value of a header field of the endpoint's response. It is empty if the endpoint has not
// responded, and unless a directive of a program uses the variable. name is written as in nginx variables, as for the
// method header.
func (x *Exchange) upstreamHeader(name string) string {
	return x.upstreamFields().Variable(name)
}

// upstreamCookie returns the value of a cookie that the endpoint's response sets. Like upstreamHeader, it is only
// available to the directives of a program.
func (x *Exchange) upstreamCookie(name string) string {
	fields := x.upstreamFields()
	for i := range fields {
		if fields[i].Kind != message.SetCookie {
			continue
		}
		pair, _, _ := strings.Cut(fields[i].Value, ";")
		if key, value, _ := strings.Cut(pair, "="); strings.EqualFold(strings.TrimSpace(key), name) {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// sentHeader returns the value of a header field of the response to the client. It is only available to the directives
// of a program that change this response.
func (x *Exchange) sentHeader(name string) string {
	switch {
	case x.response == nil:
		return ""
	case name == "content_length" && x.response.Length < 0:
		return ""
	case name == "content_length":
		return strconv.FormatInt(x.response.Length, 10)
	}
	return x.response.Fields.Variable(name)
}

// responseStatusOf returns the status of the response. As in nginx, it is "000" before the head of the response is
// written, or the status with which an error page will be sent.
func responseStatusOf(x *Exchange) string {
	if status := cmp.Or(x.Status, x.pageStatus); status != 0 {
		return strconv.Itoa(status)
	}
	return "000"
}

// upstreamStatus returns the status of the response of each endpoint that was tried.
func upstreamStatus(x *Exchange) string {
	if x.authResponse != nil {
		return strconv.Itoa(x.authResponse.status)
	}
	return x.JoinAttempts(func(a *Attempt) string { return strconv.Itoa(a.Status) })
}

func upstreamAddress(x *Exchange) string {
	return x.JoinAttempts(func(a *Attempt) string { return a.Address })
}

// JoinAttempts returns one value for each endpoint that was tried, separated by commas. As in nginx, a colon separates
// the attempts of a route from the attempts of another route or an error page. The last attempt may still be in
// progress. Its Took is then 0, and its Status is 502 before the response starts.
func (x *Exchange) JoinAttempts(value func(*Attempt) string) string {
	attempts := x.attempts
	if x.open {
		attempts = append(attempts[:len(attempts):len(attempts)], x.attempt())
	}
	if len(attempts) == 1 {
		return value(&attempts[0])
	}
	var all strings.Builder
	for i := range attempts {
		switch {
		case i == 0:
		case attempts[i].First:
			all.WriteString(" : ")
		default:
			all.WriteString(", ")
		}
		all.WriteString(value(&attempts[i]))
	}
	return all.String()
}
