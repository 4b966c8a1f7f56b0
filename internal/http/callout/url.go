package callout

import (
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/k8singress/k8singress/internal/http/exchange"
	"github.com/k8singress/k8singress/internal/model/nginx"
)

// URL is the URL of a service. It may contain nginx variables. It is immutable.
type URL struct {
	// Secure is true for https.
	Secure bool
	// host is the host of the service. port is its port number.
	host   *nginx.Template
	port   string
	target *nginx.Template
}

// hostVariables are the nginx variables that are allowed in the host of a URL. Any other variable could let clients
// choose the host to call.
var hostVariables = []string{"host", "http_host", "namespace", "ingress_name", "service_name"}

// chosenByClients are the hostVariables whose values come from the client's Host header.
var chosenByClients = hostVariables[:2]

// pathVariable matches a variable with which the path of a URL may start without a slash, as in
// http://mirror.example$request_uri.
var pathVariable = regexp.MustCompile(`\$(?:(?:request_)?uri\b|\{(?:request_)?uri\})`)

var errURL = errors.New("the value is not a URL such as http://name.example.svc.cluster.local/check")

// ParseURL parses the URL of a service. Its error messages are written for the author of the Ingress.
func ParseURL(text string) (*URL, error) {
	u := &URL{port: "80"}
	rest, ok := strings.CutPrefix(text, "http://")
	if !ok {
		if rest, ok = strings.CutPrefix(text, "https://"); !ok {
			return nil, fmt.Errorf("%w: the URL must begin with http:// or https://", errURL)
		}
		u.Secure, u.port = true, "443"
	}
	end := strings.IndexAny(rest, "/?#")
	if end < 0 {
		end = len(rest)
	}
	if path := pathVariable.FindStringIndex(rest[:end]); path != nil {
		end = path[0]
	}
	authority, target := rest[:end], rest[end:]
	if strings.ContainsRune(target, '#') {
		return nil, fmt.Errorf("%w: the URL must not have a fragment", errURL)
	}
	if !strings.HasPrefix(target, "/") && !strings.HasPrefix(target, "$") {
		target = "/" + target
	}
	if err := u.setAuthority(authority); err != nil {
		return nil, err
	}
	var err error
	u.target, err = parseText(target)
	return u, err
}

// setAuthority parses the host and the optional port of a URL. A host name may contain letters, digits, "-", "_" and
// "."; an IPv6 address must be in brackets.
func (u *URL) setAuthority(authority string) error {
	if strings.ContainsRune(authority, '@') {
		return fmt.Errorf("%w: the URL must not contain a user", errURL)
	}
	host := authority
	if i := strings.LastIndexByte(authority, ':'); i >= 0 && !strings.HasSuffix(authority, "]") {
		host = authority[:i]
		if n, err := strconv.Atoi(authority[i+1:]); err != nil || n < 1 || n > 65535 || authority[i+1] == '+' {
			return fmt.Errorf("%w: %s is not a port", errURL, nginx.Quote(authority[i+1:]))
		}
		u.port = authority[i+1:]
	}
	template, err := parseText(host)
	if err != nil {
		return err
	}
	for _, name := range template.Variables() {
		if !slices.Contains(hostVariables, name) {
			return fmt.Errorf("the variable $%s is not allowed in the host: use one of $%s", name,
				strings.Join(hostVariables, ", $"))
		}
	}
	if !validHost(template.Expand(func(string) string { return "a" })) {
		return fmt.Errorf("%w: %s is not a host", errURL, nginx.Quote(host))
	}
	u.host = template
	return nil
}

// validHost reports whether host is a host name or an IP address. Unusual notations of IP addresses, which only some
// resolvers accept, are treated as host names. This is safe because the resolved address is checked later.
func validHost(host string) bool {
	if inner, ok := strings.CutPrefix(host, "["); ok {
		inner, ok = strings.CutSuffix(inner, "]")
		a, err := netip.ParseAddr(inner)
		return ok && err == nil && a.Is6() && a.Zone() == ""
	}
	for _, label := range strings.Split(strings.TrimSuffix(host, "."), ".") {
		if label == "" || strings.ContainsFunc(label, func(r rune) bool {
			return r != '-' && r != '_' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
		}) {
			return false
		}
	}
	return true
}

// parseText parses a URL template with nginx variables. It returns an error if the text outside of variables contains
// characters that must be escaped in a URL.
func parseText(text string) (*nginx.Template, error) {
	template, err := exchange.ParseTemplate(text)
	if err != nil {
		return nil, err
	}
	if own := template.Expand(func(string) string { return "" }); nginx.EscapeGraphic(own) != own {
		return nil, fmt.Errorf("%w: the URL contains a character that must be escaped in a URL", errURL)
	}
	return template, nil
}

// NamesClientsHost reports whether the host of the URL comes from the client's Host header. Such a URL is only allowed
// for routes with a host.
func (u *URL) NamesClientsHost() bool {
	return slices.ContainsFunc(u.host.Variables(),
		func(name string) bool { return slices.Contains(chosenByClients, name) })
}

var errHost = errors.New("the host of the URL is not valid for this request")

// Fill sets the destination of a call. host is the host of the client's request, or "" if the client could have chosen
// any host. lookup returns the values of nginx variables.
func (u *URL) Fill(q *Call, host string, lookup func(name string) string) error {
	q.Secure = u.Secure
	q.Host = u.host.Expand(func(name string) string {
		if slices.Contains(chosenByClients, name) {
			return host
		}
		return lookup(name)
	})
	if _, ok := u.host.Text(); !ok && !validHost(q.Host) {
		return errHost
	}
	q.Address = q.Host + ":" + u.port
	if q.Target = ExpandURL(u.target, lookup); !strings.HasPrefix(q.Target, "/") {
		q.Target = "/" + q.Target
	}
	return nil
}

// Literal reports whether the path and query of the URL contain no variables, which means that they are the same for
// all requests.
func (u *URL) Literal() bool {
	_, ok := u.target.Text()
	return ok
}

// families are the prefixes of nginx variables whose values clients can choose freely.
var families = []string{"http_", "cookie_", "arg_"}

// ExpandURL replaces the variables in a part of a URL. Values that the client controls are escaped, so that they cannot
// end the path or the query: headers and cookies are fully escaped, and query arguments are escaped except for existing
// percent escapes.
func ExpandURL(t *nginx.Template, lookup func(name string) string) string {
	if text, ok := t.Text(); ok {
		return text
	}
	return t.Expand(func(name string) string {
		value := lookup(name)
		switch {
		case name == "http_host":
		case name == "uri":
			// The value of $uri is already decoded, so escape it again. Otherwise a "?" in it would add query
			// arguments.
			return strings.ReplaceAll(nginx.EscapeComponent(value), "%2F", "/")
		case strings.HasPrefix(name, "arg_"):
			return strings.ReplaceAll(nginx.EscapeComponent(value), "%25", "%")
		case slices.ContainsFunc(families, func(prefix string) bool { return strings.HasPrefix(name, prefix) }):
			return nginx.EscapeComponent(value)
		}
		return nginx.EscapeGraphic(value)
	})
}

// ParseSignIn parses the URL of a sign-in page. A path without a host is also allowed.
func ParseSignIn(text string) (*nginx.Template, error) {
	if !strings.HasPrefix(text, "http://") && !strings.HasPrefix(text, "https://") && !strings.HasPrefix(text, "$") &&
		(!strings.HasPrefix(text, "/") || strings.HasPrefix(text, "//")) {
		return nil, fmt.Errorf("%s is neither a URL such as https://auth.example.com/login nor a path",
			nginx.Quote(text))
	}
	// A sign-in URL may have a fragment, which follows the "#".
	before, behind, _ := strings.Cut(text, "#")
	for _, part := range []string{before, behind} {
		if _, err := parseText(part); err != nil {
			return nil, err
		}
	}
	return exchange.ParseTemplate(text)
}
