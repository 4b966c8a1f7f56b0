package nginx

import (
	"fmt"
	"slices"
	"strings"
)

// Template is a parsed string that may contain nginx variables. It is immutable.
type Template struct {
	// parts contains literal text and names of variables alternately. The first and the last part are literal text,
	// which may be empty.
	parts []string
}

// names lists the variables that are available in all templates, in addition to http_NAME, cookie_NAME and arg_NAME.
// Every lookup function that is passed to Expand must support them.
var names = []string{
	"args", "best_http_host", "binary_remote_addr", "escaped_request_uri", "host", "http_host", "ingress_name",
	"is_args", "location_path",
	"msec", "namespace", "opentelemetry_context_traceparent", "opentelemetry_span_id", "opentelemetry_trace_id",
	"pass_access_scheme", "proxy_add_x_forwarded_for", "query_string", "remote_addr", "remote_port",
	"req_id", "request_id",
	"request_method", "request_uri", "scheme",
	"server_name", "server_port", "service_name", "service_port", "ssl_client_escaped_cert", "ssl_client_i_dn",
	"ssl_client_s_dn", "ssl_client_verify", "the_real_ip", "uri",
}

// FastCGIVariables are the additional variables for FastCGI parameters.
var FastCGIVariables = []string{
	"content_length", "content_type", "document_root", "document_uri", "fastcgi_path_info",
	"fastcgi_script_name", "https",
	"server_addr", "server_protocol",
}

// LogVariables are the additional variables for the access log. They are known when the response is complete.
var LogVariables = []string{
	"body_bytes_sent", "bytes_sent", "hostname", "http2", "https", "pid", "pipe", "proxy_alternative_upstream_name",
	"proxy_upstream_name",
	"remote_user", "request", "request_length", "request_time", "server_protocol", "ssl_cipher", "ssl_protocol",
	"ssl_server_name", "status",
	"time_iso8601", "time_local", "upstream_addr", "upstream_response_length", "upstream_response_time",
	"upstream_status",
}

// StreamVariables are the variables for the log of TCP and UDP ports; no other variables are available there. They are
// known when the connection has ended.
var StreamVariables = []string{
	"bytes_received", "bytes_sent", "hostname", "msec", "pid", "protocol", "proxy_upstream_name", "remote_addr",
	"remote_port", "server_addr",
	"server_port", "session_time", "status", "time_iso8601", "time_local", "upstream_addr", "upstream_bytes_received",
	"upstream_bytes_sent",
}

// Groups lists the variables $1 to $9, which stand for the capture groups of a regular expression.
var Groups = strings.Split("123456789", "")

var prefixes = []string{"http_", "cookie_", "arg_"}

// MaxVariables is the maximum number of variables in one template. It limits the memory of an expanded template,
// because a client may send tens of kilobytes as the value of each variable.
const MaxVariables = 64

// CheckVariables returns an error if text contains more than MaxVariables variables.
func CheckVariables(text string) error {
	if n := strings.Count(text, "$"); n > MaxVariables {
		return fmt.Errorf("it has %d variables, and the limit is %d", n, MaxVariables)
	}
	return nil
}

// ParseTemplate parses text with variables of the form $name or ${name}. It returns an error if a variable is unknown,
// or if there are more than MaxVariables variables. more lists additional known variables.
func ParseTemplate(text string, more ...string) (*Template, error) {
	if err := CheckVariables(text); err != nil {
		return nil, err
	}
	t := &Template{}
	rest := text
	for {
		literal, behind, found := strings.Cut(rest, "$")
		t.parts = append(t.parts, literal)
		if !found {
			return t, nil
		}
		name, after, err := cutName(behind, more)
		if err != nil {
			return nil, err
		}
		t.parts = append(t.parts, name)
		rest = after
	}
}

// cutName parses the name of a variable at the start of s, which is the text after a dollar sign. rest is the text
// after the name.
func cutName(s string, more []string) (name, rest string, err error) {
	if inner, ok := strings.CutPrefix(s, "{"); ok {
		name, rest, ok = strings.Cut(inner, "}")
		if !ok {
			return "", "", fmt.Errorf("${%s has no closing brace", inner)
		}
	} else if s != "" && '1' <= s[0] && s[0] <= '9' {
		// A capture group has a number of one digit, so a second digit is literal text.
		name, rest = s[:1], s[1:]
	} else {
		end := strings.IndexFunc(s, func(r rune) bool { return !isNameRune(r) })
		if end < 0 {
			end = len(s)
		}
		name, rest = s[:end], s[end:]
	}
	if !known(name) && !slices.Contains(more, name) {
		return "", "", fmt.Errorf("there is no variable $%s here", name)
	}
	return name, rest, nil
}

func isNameRune(r rune) bool {
	return r == '_' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9'
}

func known(name string) bool {
	if slices.Contains(names, name) {
		return true
	}
	return slices.ContainsFunc(prefixes, func(prefix string) bool {
		rest, ok := strings.CutPrefix(name, prefix)
		return ok && rest != "" && !strings.ContainsFunc(rest, func(r rune) bool { return !isNameRune(r) })
	})
}

// Split is a string that was split at its variables. It consists of Texts and Names alternately; the first and the last
// element are in Texts.
type Split struct{ Texts, Names []string }

// SplitTemplate splits a string at its variables, without checking their names. A dollar sign without a name is literal
// text.
func SplitTemplate(text string) Split {
	var s Split
	literal := ""
	for rest := text; ; {
		before, behind, found := strings.Cut(rest, "$")
		literal += before
		if !found {
			s.Texts = append(s.Texts, literal)
			return s
		}
		name, after, ok := cutAnyName(behind)
		if rest = after; !ok {
			literal += "$"
			continue
		}
		s.Texts, s.Names, literal = append(s.Texts, literal), append(s.Names, name), ""
	}
}

// Unknown lists the variable names in s that are neither available in all templates nor listed in more, without
// duplicates.
func (s *Split) Unknown(more ...string) []string {
	return slices.DeleteFunc(s.Others(more), known)
}

// Others lists the variable names in s that are not in the list names, without duplicates.
func (s *Split) Others(names []string) []string {
	var others []string
	for _, name := range s.Names {
		if !slices.Contains(names, name) && !slices.Contains(others, name) {
			others = append(others, name)
		}
	}
	return others
}

// cutAnyName parses a variable name at the start of s, which is the text after a dollar sign. rest is the text after
// the name. If there is no name, rest is s and ok is false.
func cutAnyName(s string) (name, rest string, ok bool) {
	if inner, braced := strings.CutPrefix(s, "{"); braced {
		name, rest, ok = strings.Cut(inner, "}")
		if ok = ok && name != "" && !strings.ContainsFunc(name, func(r rune) bool { return !isNameRune(r) }); ok {
			return name, rest, true
		}
		return "", s, false
	}
	end := strings.IndexFunc(s, func(r rune) bool { return !isNameRune(r) })
	if end < 0 {
		end = len(s)
	}
	return s[:end], s[end:], end > 0
}

// Text returns the literal text of a template without variables. If the template has variables, ok is false.
func (t *Template) Text() (text string, ok bool) { return t.parts[0], len(t.parts) == 1 }

// Variables returns the names of the template's variables, in the order in which they occur.
func (t *Template) Variables() (all []string) {
	for i := 1; i < len(t.parts); i += 2 {
		all = append(all, t.parts[i])
	}
	return all
}

// Expand returns the text in which each variable is replaced with the value that lookup returns for it. It does not
// allocate if the template consists of a single variable.
func (t *Template) Expand(lookup func(name string) string) string {
	if len(t.parts) == 1 {
		return t.parts[0]
	}
	if len(t.parts) == 3 && t.parts[0] == "" && t.parts[2] == "" {
		return lookup(t.parts[1])
	}
	var b strings.Builder
	for i, part := range t.parts {
		if i%2 == 1 {
			part = lookup(part)
		}
		b.WriteString(part)
	}
	return b.String()
}
