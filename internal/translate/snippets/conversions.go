package snippets

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/k8singress/k8singress/internal/http/exchange"
	"github.com/k8singress/k8singress/internal/model/nginx"
)

// conversion is how a directive of class Works becomes the value of an annotation.
type conversion struct {
	// annotation is the name of the annotation without its prefix. second is a further annotation for the second value,
	// or empty.
	annotation, second string
	// values returns the values of the annotations. If there is only one, second is not set.
	values func(args []string) ([]string, error)
	// several means that nginx accepts several directives with this name in a block. Only the first one counts here.
	several bool
	// variables means that the value may contain variables, although the value of the annotation cannot.
	variables bool
	// part is the part of the annotation that the directive sets. It is empty if the directive sets the whole value.
	part Part
}

// conversions maps directives to conversions. Package annotations checks the values.
var conversions = func() map[string]conversion {
	all := map[string]conversion{
		"satisfy":              {annotation: "satisfy", values: word("all", "any")},
		"client_max_body_size": {annotation: "proxy-body-size", values: unchanged},
		"proxy_http_version":   {annotation: "proxy-http-version", values: httpVersion},
		"limit_rate":           {annotation: "limit-rate", values: kilobytes},
		"limit_rate_after":     {annotation: "limit-rate-after", values: kilobytes},
		"proxy_cookie_domain":  {annotation: "proxy-cookie-domain", values: cookieRewrite, several: true},
		"proxy_cookie_path":    {annotation: "proxy-cookie-path", values: cookiePath, several: true},
		"fastcgi_index":        {annotation: "fastcgi-index", values: unchanged},
		"absolute_redirect":    {annotation: "relative-redirects", values: inverted},
		"proxy_redirect": {
			annotation: "proxy-redirect-from", second: "proxy-redirect-to", values: redirectRewrite, several: true,
		},
	}
	for prefix, names := range map[string]string{
		"proxy": "connect_timeout read_timeout send_timeout next_upstream_timeout next_upstream next_upstream_tries " +
			"buffering request_buffering " + tlsDirectives,
		"grpc": "connect_timeout read_timeout send_timeout next_upstream_timeout next_upstream next_upstream_tries " +
			tlsDirectives,
		"fastcgi": "connect_timeout read_timeout send_timeout next_upstream_timeout next_upstream " +
			"next_upstream_tries buffering request_buffering",
	} {
		for name := range strings.FieldsSeq(names) {
			all[prefix+"_"+name] = ofEndpoints[name]
		}
	}
	return all
}()

// tlsDirectives are the directives for TLS connections to endpoints. They begin with the name of the protocol.
const tlsDirectives = "ssl_name ssl_server_name ssl_verify ssl_verify_depth ssl_protocols ssl_ciphers " +
	"ssl_certificate ssl_certificate_key ssl_trusted_certificate ssl_crl"

// ofEndpoints maps the directives that exist for several protocols of endpoints to conversions. The directives begin
// with the name of the protocol.
var ofEndpoints = map[string]conversion{
	"connect_timeout":       {annotation: "proxy-connect-timeout", values: seconds(1)},
	"read_timeout":          {annotation: "proxy-read-timeout", values: seconds(1)},
	"send_timeout":          {annotation: "proxy-send-timeout", values: seconds(1)},
	"next_upstream_timeout": {annotation: "proxy-next-upstream-timeout", values: seconds(0)},
	"next_upstream":         {annotation: "proxy-next-upstream", values: list},
	"next_upstream_tries":   {annotation: "proxy-next-upstream-tries", values: unchanged},
	"buffering":             {annotation: "proxy-buffering", values: lowerCase},
	"request_buffering":     {annotation: "proxy-request-buffering", values: lowerCase},
	"ssl_name":              {annotation: "proxy-ssl-name", values: list, variables: true},
	"ssl_server_name":       {annotation: "proxy-ssl-server-name", values: lowerCase},
	"ssl_verify":            {annotation: "proxy-ssl-verify", values: lowerCase},
	"ssl_verify_depth":      {annotation: "proxy-ssl-verify-depth", values: unchanged},
	"ssl_protocols":         {annotation: "proxy-ssl-protocols", values: list},
	"ssl_ciphers":           {annotation: "proxy-ssl-ciphers", values: unchanged},
	"ssl_certificate":       {annotation: "proxy-ssl-secret", values: list, part: CertificateFile},
	"ssl_certificate_key":   {annotation: "proxy-ssl-secret", values: list, part: KeyFile},

	"ssl_trusted_certificate": {annotation: "proxy-ssl-secret", values: list, part: AuthorityFile},
	"ssl_crl":                 {annotation: "proxy-ssl-secret", values: list, part: RevokedFile},
}

// convert interprets a directive that has the effect of an annotation.
func (r *reader) convert(d *Directive, c *conversion) error {
	if r.scope.context == inIf {
		return leftOut("write it outside of if")
	}
	if !c.several {
		if err := r.first(d); err != nil {
			return err
		}
	}
	if i := slices.IndexFunc(r.out.Values, func(v Value) bool {
		return v.Annotation == c.annotation && v.Part == c.part
	}); i >= 0 {
		return noEffect(fmt.Sprintf("line %d already sets the same", r.out.Values[i].Line))
	}
	values, err := c.values(d.Args)
	if err == nil && c.variables {
		err = r.checkValue(&values[0])
	}
	if err != nil {
		return err
	}
	for i, annotation := range []string{c.annotation, c.second}[:len(values)] {
		r.out.Values = append(r.out.Values, Value{Place: r.place(d), Directive: d.Name, Annotation: annotation,
			Part: c.part, Text: lowerVariables(values[i])})
	}
	switch {
	case !inheritedByPaths(c.annotation) || r.server != nil && r.server.listens != nil:
	case r.scope.context == inHTTP:
		return nil
	case r.scope.context == inServer:
		return leftOut("unlike in ingress-nginx, only the locations in this text inherit it, and not the paths of " +
			"Ingresses: write it in configuration-snippet, or in location-snippet of the ConfigMap")
	}
	return r.onlyInLocations()
}

// checkValue checks the variables of a value. It cannot contain capture groups, because they change while a program
// runs.
func (r *reader) checkValue(text *string) error {
	if err := r.checkOneLine(text); err != nil {
		return err
	}
	for _, name := range nginx.SplitTemplate(*text).Names {
		if slices.Contains(nginx.Groups, name) {
			return leftOut("$" + name + " is not supported here: set a variable to it, and write that variable")
		}
	}
	return nil
}

// inheritedByPaths reports whether the paths of Ingresses inherit directives with the effect of an annotation from a
// text for all hosts. ingress-nginx's configuration contains the directives for other annotations for each path.
func inheritedByPaths(annotation string) bool {
	switch annotation {
	case "satisfy", "limit-rate", "limit-rate-after", "relative-redirects":
		return true
	}
	return strings.HasPrefix(annotation, "proxy-ssl-")
}

// onlyInLocations returns a problem for a directive that ingress-nginx's configuration contains for each path of an
// Ingress, so that it has no effect on them if it is written for a server or for all hosts.
func (r *reader) onlyInLocations() error {
	where := "this text"
	switch r.scope.context {
	case inServer:
	case inHTTP:
		where = "server-snippet"
	default:
		return nil
	}
	return noEffect("as in ingress-nginx, only the locations in " + where + " inherit it, because each path of an " +
		"Ingress has its own value")
}

// unchanged returns the first argument, and list returns all arguments in one value.
func unchanged(args []string) ([]string, error) {
	if strings.Contains(args[0], "$") {
		return nil, errVariable
	}
	return args[:1], nil
}

var errVariable = leftOut("variables are not supported here: write a fixed value")

func list(args []string) ([]string, error) { return []string{strings.Join(args, " ")}, nil }

// lowerCase returns the value of a flag, in which nginx ignores case. inverted returns true for "off".
func lowerCase(args []string) ([]string, error) { return []string{strings.ToLower(args[0])}, nil }

func inverted(args []string) ([]string, error) {
	return []string{strconv.FormatBool(strings.EqualFold(args[0], "off"))}, nil
}

// word returns a function that accepts one of the words.
func word(words ...string) func([]string) ([]string, error) {
	return func(args []string) ([]string, error) {
		text := strings.ToLower(args[0])
		if !slices.Contains(words, text) {
			return nil, fmt.Errorf("%s is not one of %s", nginx.Quote(args[0]), strings.Join(words, ", "))
		}
		return []string{text}, nil
	}
}

// seconds returns a function that rounds a time up to seconds.
func seconds(minimum int) func([]string) ([]string, error) {
	return func(args []string) ([]string, error) {
		d, err := nginx.Time(args[0])
		if err != nil {
			return nil, leftOut(err.Error())
		}
		n := max(int(math.Ceil(d.Seconds())), minimum)
		return []string{strconv.Itoa(n)}, nil
	}
}

// kilobytes rounds a size down to kilobytes, but not to zero, which means no limit.
func kilobytes(args []string) ([]string, error) {
	if strings.Contains(args[0], "$") {
		return nil, errVariable
	}
	n, err := nginx.Size(args[0])
	if err != nil {
		return nil, leftOut(err.Error())
	}
	if n > 0 {
		n = max(n>>10, 1)
	}
	return []string{strconv.FormatInt(n, 10)}, nil
}

func httpVersion(args []string) ([]string, error) {
	if args[0] != "1.1" {
		return nil, leftOut("requests are sent to endpoints with HTTP/1.1; for gRPC, set backend-protocol to GRPC")
	}
	return args[:1], nil
}

// cookieRewrite returns the value of proxy-cookie-domain and proxy-cookie-path: off, or two texts.
func cookieRewrite(args []string) ([]string, error) {
	switch {
	case len(args) == 1 && args[0] != "off":
		return nil, errors.New("write off, or a text and its replacement")
	case slices.ContainsFunc(args, func(text string) bool { return strings.ContainsAny(text, " \t\r\n;\"'") }):
		return nil, leftOut("a text contains white space, a quote or a semicolon: add flags to cookies with " +
			"proxy_cookie_flags")
	}
	return list(args)
}

// cookiePath returns the value of proxy-cookie-path: off, or two texts. Attributes may follow the second one.
func cookiePath(args []string) ([]string, error) {
	path, attributes, found := strings.Cut(args[len(args)-1], ";")
	if !found || len(args) == 1 {
		return cookieRewrite(args)
	}
	added, err := exchange.CookieAttributes(attributes)
	if err != nil {
		return nil, leftOut(err.Error())
	}
	path = strings.TrimSpace(path)
	if _, err := cookieRewrite([]string{args[0], path}); err != nil {
		return nil, err
	}
	return []string{fmt.Sprintf("%s \"%s%s\"", args[0], path, added)}, nil
}

// redirectRewrite returns the values of proxy-redirect-from and proxy-redirect-to. The words off and default change no
// redirects.
func redirectRewrite(args []string) ([]string, error) {
	if len(args) == 1 && args[0] != "off" && args[0] != "default" {
		return nil, errors.New("write off, default, or a URL and its replacement")
	}
	return args, nil
}
