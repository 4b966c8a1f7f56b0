package proxy

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/k8singress/k8singress/internal/http/exchange"
	"github.com/k8singress/k8singress/internal/http/fastcgi"
	"github.com/k8singress/k8singress/internal/http/message"
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/nginx"
)

// param is one FastCGI parameter. Its value may contain nginx variables.
type param struct {
	name  string
	value *nginx.Template
}

// defaultParams are the parameters of nginx's fastcgi_params, plus SCRIPT_FILENAME and PATH_INFO. DOCUMENT_ROOT is "/",
// the root of the endpoint's file system.
var defaultParams = mustParams(map[string]string{
	"QUERY_STRING": "$query_string", "REQUEST_METHOD": "$request_method", "CONTENT_TYPE": "$content_type",
	"CONTENT_LENGTH": "$content_length", "SCRIPT_NAME": "$fastcgi_script_name", "REQUEST_URI": "$request_uri",
	"DOCUMENT_URI": "$document_uri", "DOCUMENT_ROOT": "/", "SERVER_PROTOCOL": "$server_protocol",
	"REQUEST_SCHEME": "$scheme", "GATEWAY_INTERFACE": "CGI/1.1", "SERVER_SOFTWARE": exchange.Pseudonym,
	"REMOTE_ADDR": "$remote_addr",
	"REMOTE_PORT": "$remote_port", "SERVER_ADDR": "$server_addr", "SERVER_PORT": "$server_port",
	"SERVER_NAME":     "$server_name",
	"REDIRECT_STATUS": "200", "SCRIPT_FILENAME": "$fastcgi_script_name", "PATH_INFO": "$fastcgi_path_info",
})

func mustParams(all map[string]string) []param {
	list, err := parseParams(all)
	if err != nil {
		panic(err)
	}
	return list
}

func parseParams(all map[string]string) ([]param, error) {
	var list []param
	for _, name := range slices.Sorted(maps.Keys(all)) {
		value, err := ParseParam(all[name])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		list = append(list, param{name, value})
	}
	return list, nil
}

// ParseParam parses the value of a FastCGI parameter.
func ParseParam(value string) (*nginx.Template, error) { return exchange.ParseTemplate(value) }

// ParamVariables returns the variables of FastCGI that the value of a parameter may contain besides the variables of
// requests.
func ParamVariables() []string { return slices.Collect(maps.Keys(cgiValues)) }

// paramsOf returns the FastCGI parameters for a route: the configured parameters (own), and nginx's defaults for all
// other names.
func paramsOf(own map[string]string) ([]param, error) {
	list, err := parseParams(own)
	if err != nil {
		return nil, err
	}
	given := slices.DeleteFunc(slices.Clone(defaultParams), func(p param) bool { _, has := own[p.name]; return has })
	return append(given, list...), nil
}

// cgiParams returns the FastCGI parameters of a request, except the parameters for header fields.
func (r *request) cgiParams() []fastcgi.Param {
	c := cgi{request: r, uri: message.CleanPath(r.Path), length: r.cgiLength()}
	c.script = c.uri
	if strings.HasSuffix(c.uri, "/") {
		c.script += r.settings.Index
	}
	c.script, c.info = split(c.script)
	all := make([]fastcgi.Param, 0, len(r.settings.params)+len(r.Fields)+len(forwardedKinds))
	for _, p := range r.settings.params {
		all = append(all, fastcgi.Param{Name: p.name, Value: p.value.Expand(func(name string) string {
			if value, ok := cgiValues[name]; ok {
				return value(&c)
			}
			return r.Variable(name)
		})})
	}
	if r.TLS() != nil && !slices.ContainsFunc(all, func(p fastcgi.Param) bool { return p.Name == "HTTPS" }) {
		all = append(all, fastcgi.Param{Name: "HTTPS", Value: "on"})
	}
	return all
}

// cgiLength returns the value of the FastCGI parameter CONTENT_LENGTH: the length of the request body, or "" if there
// is no body or its length is unknown.
func (r *request) cgiLength() string {
	length := r.Length
	if r.body != nil {
		length = r.body.length
	}
	if length < 0 || length == 0 && !r.Fields.Has(message.ContentLength) {
		return ""
	}
	return strconv.FormatInt(length, 10)
}

// cgi holds a request, and the parts of its path that nginx's FastCGI variables refer to. The functions in cgiValues
// use it.
type cgi struct {
	*request
	// uri is the cleaned path. script is the path of the script file, and info is the part of the path after it, as
	// returned by split.
	uri, script, info string
	length            string
}

// cgiValues maps the names of the variables that are only available in FastCGI parameters to functions that return
// their values.
var cgiValues = map[string]func(*cgi) string{
	"content_length":      func(c *cgi) string { return c.length },
	"document_root":       func(*cgi) string { return "" },
	"fastcgi_path_info":   func(c *cgi) string { return c.info },
	"fastcgi_script_name": func(c *cgi) string { return c.script },
}

// split splits a path after the first segment that ends with ".php" and is followed by another segment. If there is no
// such segment, script is the whole path and info is empty.
func split(path string) (script, info string) {
	const suffix = ".php"
	for i := 0; i+len(suffix) < len(path); i++ {
		if path[i+len(suffix)] == '/' && strings.EqualFold(path[i:i+len(suffix)], suffix) {
			return path[:i+len(suffix)], path[i+len(suffix):]
		}
	}
	return path, ""
}

// params returns all FastCGI parameters of a request. Header fields never override configured parameters. As in nginx,
// a header field is left out if an application could confuse its name with the name of another field; r.outgoing does
// this.
func (r *request) params() ([]fastcgi.Param, error) {
	all := r.cgiParams()
	given := len(all)
	for _, p := range all {
		if strings.HasPrefix(p.Name, "SCRIPT_") && strings.Contains(p.Value, "\x00") {
			return nil, fmt.Errorf("%w: its path contains a NUL", errBadRequest)
		}
	}
	add := func(name, value, between string) {
		switch i := slices.IndexFunc(all, func(p fastcgi.Param) bool { return p.Name == name }); {
		case i < 0:
			all = append(all, fastcgi.Param{Name: name, Value: value})
		case i >= given:
			all[i].Value += between + value
		}
	}
	add("HTTP_HOST", r.forwarded.host, "")
	for _, f := range r.outgoing(nil) {
		between := ", "
		if f.Kind == message.Cookie {
			between = "; "
		}
		add("HTTP_"+strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_")), f.Value, between)
	}
	return all, nil
}

// speaksCGI reports whether the endpoints are FastCGI applications.
func (s *Settings) speaksCGI() bool { return s.Protocol == ir.FastCGI }
