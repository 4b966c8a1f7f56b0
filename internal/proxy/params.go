package proxy

import (
	"fmt"
	"maps"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/k8singress/k8singress/internal/fastcgi"
	"github.com/k8singress/k8singress/internal/ir"
	"github.com/k8singress/k8singress/internal/nginx"
)

// param is a parameter of FastCGI that is as the settings say, with nginx variables in it.
type param struct {
	name  string
	value *nginx.Template
}

// usual are nginx's fastcgi_params, and the file of the script: the root of the application is the root of its endpoint.
var usual = mustParams(map[string]string{
	"QUERY_STRING": "$query_string", "REQUEST_METHOD": "$request_method", "CONTENT_TYPE": "$content_type",
	"CONTENT_LENGTH": "$content_length", "SCRIPT_NAME": "$fastcgi_script_name", "REQUEST_URI": "$request_uri",
	"DOCUMENT_URI": "$document_uri", "DOCUMENT_ROOT": "/", "SERVER_PROTOCOL": "$server_protocol",
	"REQUEST_SCHEME": "$scheme", "GATEWAY_INTERFACE": "CGI/1.1", "SERVER_SOFTWARE": pseudonym, "REMOTE_ADDR": "$remote_addr",
	"REMOTE_PORT": "$remote_port", "SERVER_ADDR": "$server_addr", "SERVER_PORT": "$server_port", "SERVER_NAME": "$server_name",
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
		value, err := nginx.ParseTemplate(all[name], nginx.FastCGIVariables...)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		list = append(list, param{name, value})
	}
	return list, nil
}

// paramsOf are the parameters that settings make, which come before those of the administrator of the application.
func paramsOf(own map[string]string) ([]param, error) {
	list, err := parseParams(own)
	if err != nil {
		return nil, err
	}
	given := slices.DeleteFunc(slices.Clone(usual), func(p param) bool { _, has := own[p.name]; return has })
	return append(given, list...), nil
}

// tellCGI works the parameters out that do not come from headers.
func (x *Exchange) tellCGI(r *http.Request) {
	c := cgi{r: r, uri: caddyhttp.CleanPath("/"+strings.TrimPrefix(r.URL.Path, "/"), true), length: x.bodyLength(r)}
	c.script = c.uri
	if strings.HasSuffix(c.uri, "/") {
		c.script += x.settings.Index
	}
	c.script, c.info = split(c.script)
	x.cgi = make([]fastcgi.Param, 0, len(x.settings.params)+len(r.Header)+len(toldNames))
	for _, p := range x.settings.params {
		x.cgi = append(x.cgi, fastcgi.Param{Name: p.name, Value: p.value.Expand(func(name string) string {
			if value, ok := cgiValues[name]; ok {
				return value(&c)
			}
			return x.endpoints.Variable(name)
		})})
	}
	if r.TLS != nil && !slices.ContainsFunc(x.cgi, func(p fastcgi.Param) bool { return p.Name == "HTTPS" }) {
		x.cgi = append(x.cgi, fastcgi.Param{Name: "HTTPS", Value: "on"})
	}
}

// bodyLength is what CONTENT_LENGTH says: nothing for a request without a body.
func (x *Exchange) bodyLength(r *http.Request) string {
	length := r.ContentLength
	if x.body != nil {
		length = x.body.size
	}
	if _, said := r.Header["Content-Length"]; length < 0 || length == 0 && !said {
		return ""
	}
	return strconv.FormatInt(length, 10)
}

// cgi is a request as CGI has it.
type cgi struct {
	r *http.Request
	// uri is the clean path; script is the part of it that is a file, and info the rest.
	uri, script, info string
	length            string
}

// cgiValues are the variables of variables.FastCGI.
var cgiValues = map[string]func(*cgi) string{
	"content_length":      func(c *cgi) string { return c.length },
	"content_type":        func(c *cgi) string { return c.r.Header.Get("Content-Type") },
	"document_root":       func(*cgi) string { return "" },
	"document_uri":        func(c *cgi) string { return c.uri },
	"fastcgi_path_info":   func(c *cgi) string { return c.info },
	"fastcgi_script_name": func(c *cgi) string { return c.script },
	"https":               https,
	"server_addr":         serverAddress,
	"server_protocol":     func(c *cgi) string { return c.r.Proto },
}

func https(c *cgi) string {
	if c.r.TLS != nil {
		return "on"
	}
	return ""
}

func serverAddress(c *cgi) string {
	local, ok := c.r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if !ok {
		return ""
	}
	address, _, err := net.SplitHostPort(local.String())
	if err != nil {
		return ""
	}
	return address
}

// split parts a path behind the first name that ends with .php.
func split(path string) (script, info string) {
	const suffix = ".php"
	for i := 0; i+len(suffix) < len(path); i++ {
		if path[i+len(suffix)] == '/' && strings.EqualFold(path[i:i+len(suffix)], suffix) {
			return path[:i+len(suffix)], path[i+len(suffix):]
		}
	}
	return path, ""
}

// params are all parameters of a request. A header does not take the place of a parameter that the settings have, and is
// left out where its name could be taken for another one, as in nginx.
func (x *Exchange) params(r *http.Request) ([]fastcgi.Param, error) {
	all, taken := slices.Clip(x.cgi), map[string]bool{}
	for _, p := range all {
		taken[p.Name] = true
		if strings.HasPrefix(p.Name, "SCRIPT_") && strings.Contains(p.Value, "\x00") {
			return nil, fmt.Errorf("%w: there is a NUL in its path", errBadRequest)
		}
	}
	add := func(name, value string) {
		if !taken[name] {
			all = append(all, fastcgi.Param{Name: name, Value: value})
		}
	}
	add("HTTP_HOST", r.Host)
	for header, values := range r.Header {
		name, ok := paramName(header)
		switch {
		case !ok || header == "Host" || header == "Content-Length":
		case header == "Cookie":
			add(name, strings.Join(values, "; "))
		default:
			add(name, strings.Join(values, ", "))
		}
	}
	return all, nil
}

// paramName is the name of a header as a parameter. One with an underscore would be the same as one with a hyphen.
func paramName(header string) (string, bool) {
	for i := range len(header) {
		c := header[i] | 0x20
		if (c < 'a' || c > 'z') && (header[i] < '0' || header[i] > '9') && header[i] != '-' {
			return "", false
		}
	}
	return "HTTP_" + strings.ToUpper(strings.ReplaceAll(header, "-", "_")), true
}

// speaksCGI says whether the endpoints are FastCGI applications.
func (s *Settings) speaksCGI() bool { return s.Protocol == ir.FastCGI }
