package callout

import (
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/k8singress/k8singress/internal/nginx"
)

// URL is where a service is, with nginx variables in it. It is immutable.
type URL struct {
	// Secure is for https.
	Secure bool
	// host is what the service is called, and port what stands behind it.
	host   *nginx.Template
	port   string
	target *nginx.Template
}

// hostVariables may stand in a host. What else a client sends must not say who is called.
var hostVariables = []string{"host", "http_host", "namespace", "ingress_name", "service_name"}

// chosenByClients are those of them that the Host header says.
var chosenByClients = hostVariables[:2]

// pathVariable is what a path may begin with in place of a slash, as in http://mirror.example$request_uri.
var pathVariable = regexp.MustCompile(`\$(?:(?:request_)?uri\b|\{(?:request_)?uri\})`)

var errURL = errors.New("it is not a URL such as http://name.example.svc.cluster.local/check")

// ParseURL reads a URL. An error is worded for its author.
func ParseURL(text string) (*URL, error) {
	u := &URL{port: "80"}
	rest, ok := strings.CutPrefix(text, "http://")
	if !ok {
		if rest, ok = strings.CutPrefix(text, "https://"); !ok {
			return nil, fmt.Errorf("%w: it begins with http:// or https://", errURL)
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
		return nil, fmt.Errorf("%w: it has a fragment", errURL)
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

// setAuthority reads a host and a port. A name may have letters, digits, - and . in it; brackets are for IPv6.
func (u *URL) setAuthority(authority string) error {
	if strings.ContainsRune(authority, '@') {
		return fmt.Errorf("%w: it has a user in it", errURL)
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
			return fmt.Errorf("the variable $%s cannot stand in the host: only $%s can", name, strings.Join(hostVariables, ", $"))
		}
	}
	if !validHost(template.Expand(func(string) string { return "a" })) {
		return fmt.Errorf("%w: %s is not a host", errURL, nginx.Quote(host))
	}
	u.host = template
	return nil
}

// validHost takes names, and addresses. What only some resolvers read as an address is a name here, and what it leads to is checked.
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

// parseText reads a template whose own text can stand in a URL as it is.
func parseText(text string) (*nginx.Template, error) {
	template, err := nginx.ParseTemplate(text)
	if err != nil {
		return nil, err
	}
	if own := template.Expand(func(string) string { return "" }); nginx.EscapeGraphic(own) != own {
		return nil, fmt.Errorf("%w: it has a character in it that no URL has as it is", errURL)
	}
	return template, nil
}

// NamesClientsHost says whether the Host header says where the service is. That can be for routes only that have a host.
func (u *URL) NamesClientsHost() bool {
	return slices.ContainsFunc(u.host.Variables(), func(name string) bool { return slices.Contains(chosenByClients, name) })
}

var errHost = errors.New("the host of the URL is none for this request")

// Fill says where a call goes. host is that of the request, as far as the client does not choose it; lookup tells variables.
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

// Literal says whether path and query have no variables in them, so that all requests lead to the same ones.
func (u *URL) Literal() bool {
	_, ok := u.target.Text()
	return ok
}

// families are variables whose values clients write as they like.
var families = []string{"http_", "cookie_", "arg_"}

// ExpandURL returns a part of a URL with the values of a request. What a client has written can end nothing in it: its headers, cookies
// and arguments are escaped as a whole, but for what is escaped already in arguments.
func ExpandURL(t *nginx.Template, lookup func(name string) string) string {
	if text, ok := t.Text(); ok {
		return text
	}
	return t.Expand(func(name string) string {
		value := lookup(name)
		switch {
		case name == "http_host":
		case name == "uri":
			// It is decoded: what it has in it must not begin another argument.
			return strings.ReplaceAll(nginx.EscapeComponent(value), "%2F", "/")
		case strings.HasPrefix(name, "arg_"):
			return strings.ReplaceAll(nginx.EscapeComponent(value), "%25", "%")
		case slices.ContainsFunc(families, func(prefix string) bool { return strings.HasPrefix(name, prefix) }):
			return nginx.EscapeComponent(value)
		}
		return nginx.EscapeGraphic(value)
	})
}

// ParseSignIn reads the URL that clients are sent to, which may be a path.
func ParseSignIn(text string) (*nginx.Template, error) {
	if !strings.HasPrefix(text, "http://") && !strings.HasPrefix(text, "https://") && !strings.HasPrefix(text, "$") &&
		(!strings.HasPrefix(text, "/") || strings.HasPrefix(text, "//")) {
		return nil, fmt.Errorf("%s is neither a URL such as https://auth.example.com/login nor a path", nginx.Quote(text))
	}
	// A fragment may stand there.
	before, behind, _ := strings.Cut(text, "#")
	for _, part := range []string{before, behind} {
		if _, err := parseText(part); err != nil {
			return nil, err
		}
	}
	return nginx.ParseTemplate(text)
}
