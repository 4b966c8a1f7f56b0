package message

import (
	"errors"
	"net"
	"net/url"
	"path"
	"strings"
)

var (
	errTarget    = errors.New("the request target is neither a path nor a URL")
	errAuthority = errors.New("the URL in the request target has no host, or contains a user")
)

// SetTarget sets the path, the query and possibly the host from a request target. The target must be a path or an
// absolute URL. The host of the URL replaces Host (RFC 9112 3.2.2). SetTarget returns an error for other targets, such
// as "*", and for a percent sign that is not followed by two hexadecimal digits.
func (r *Request) SetTarget(target string) error {
	r.Target = target
	if !strings.HasPrefix(target, "/") {
		_, rest, ok := strings.Cut(target, "://")
		if !ok {
			return errTarget
		}
		end := strings.IndexAny(rest, "/?")
		if end < 0 {
			end = len(rest)
		}
		if r.Host = rest[:end]; r.Host == "" || strings.IndexByte(r.Host, '@') >= 0 {
			return errAuthority
		}
		if target = rest[end:]; !strings.HasPrefix(target, "/") {
			target = "/" + target
		}
		r.Target = target
	}
	sent, query, ok := strings.Cut(target, "?")
	r.Query, r.ForceQuery = query, ok && query == ""
	return r.setEscapedPath(sent)
}

// setEscapedPath sets Path and EscapedPath from the path as it was sent. Characters that must be escaped in a path but
// are not, such as quotation marks, are escaped, as in net/url.
func (r *Request) setEscapedPath(sent string) error {
	if needsNoEscape(sent) {
		r.Path, r.EscapedPath = sent, sent
		return nil
	}
	decoded, err := url.PathUnescape(sent)
	if err != nil {
		return err
	}
	r.Path, r.EscapedPath = decoded, (&url.URL{Path: decoded, RawPath: sent}).EscapedPath()
	return nil
}

// SetPath replaces the path. decoded is the new path, not percent-encoded.
func (r *Request) SetPath(decoded string) {
	if r.Path = decoded; needsNoEscape(decoded) {
		r.EscapedPath = decoded
		return
	}
	r.EscapedPath = (&url.URL{Path: decoded}).EscapedPath()
}

// needsNoEscape reports whether a path is the same in escaped and unescaped form.
func needsNoEscape(path string) bool {
	for i := range len(path) {
		if !unreserved[path[i]] {
			return false
		}
	}
	return true
}

// unreserved marks the most common characters that need no escaping in a path, according to net/url.
var unreserved = func() [256]bool {
	all := plain
	for _, c := range []byte("/._~$&+=:@") {
		all[c] = true
	}
	return all
}()

// QueryValue returns the decoded value of the first query parameter with this name, and whether there is such a
// parameter.
func (r *Request) QueryValue(name string) (string, bool) {
	for pair := range strings.SplitSeq(r.Query, "&") {
		key, value, _ := strings.Cut(pair, "=")
		if key, err := url.QueryUnescape(key); err != nil || key == "" || key != name {
			continue
		}
		if value, err := url.QueryUnescape(value); err == nil {
			return value, true
		}
	}
	return "", false
}

// Cookie returns the value of the cookie with this name, and whether there is such a cookie. If there are several, the
// first valid one is used, because clients send the cookie with the longest path first. Values are parsed as in
// net/http.
func (r *Request) Cookie(name string) (string, bool) {
	for i := range r.Fields {
		if r.Fields[i].Kind != Cookie {
			continue
		}
		for part := range strings.SplitSeq(r.Fields[i].Value, ";") {
			key, value, _ := strings.Cut(strings.Trim(part, " \t"), "=")
			if key = strings.Trim(key, " \t"); key == "" || key != name {
				continue
			}
			if value, ok := cookieValue(value); ok {
				return value, true
			}
		}
	}
	return "", false
}

// CookieLikeNginx returns the value of nginx's variable $cookie_name. In contrast to Cookie, it ignores the case of the
// name, keeps quotes, accepts any character in values, and treats a comma in the value of another cookie like a
// semicolon.
func (r *Request) CookieLikeNginx(name string) string {
	for i := range r.Fields {
		if r.Fields[i].Kind != Cookie {
			continue
		}
		if value, ok := nginxCookie(r.Fields[i].Value, name); ok {
			return value
		}
	}
	return ""
}

// nginxCookie works like nginx's function ngx_http_parse_multi_header_lines.
func nginxCookie(line, name string) (value string, ok bool) {
	for line != "" {
		if len(line) >= len(name) && strings.EqualFold(line[:len(name)], name) {
			if value, ok = strings.CutPrefix(strings.TrimLeft(line[len(name):], " "), "="); ok {
				value, _, _ = strings.Cut(strings.TrimLeft(value, " "), ";")
				return value, true
			}
		}
		end := strings.IndexAny(line, ";,")
		if end < 0 {
			break
		}
		line = strings.TrimLeft(line[end+1:], " ")
	}
	return "", false
}

func cookieValue(value string) (string, bool) {
	if len(value) > 1 && value[0] == '"' && value[len(value)-1] == '"' {
		value = value[1 : len(value)-1]
	}
	for i := range len(value) {
		if c := value[i]; c < ' ' || c >= 0x7f || c == '"' || c == ';' || c == '\\' {
			return "", false
		}
	}
	return value, true
}

// Hostname returns host in lower case, without a port and without a trailing dot.
func Hostname(host string) string {
	if strings.IndexByte(host, ':') >= 0 {
		if name, _, err := net.SplitHostPort(host); err == nil {
			host = name
		}
	}
	host = strings.TrimSuffix(host, ".")
	for i := range len(host) {
		if c := host[i]; 'A' <= c && c <= 'Z' {
			return strings.ToLower(host)
		}
	}
	return host
}

// CleanPath resolves dot segments and merges consecutive slashes, as nginx does before it matches locations. It keeps a
// trailing slash. The result always begins with a slash.
func CleanPath(of string) string {
	if !strings.HasPrefix(of, "/") {
		of = "/" + of
	}
	if isClean(of) {
		return of
	}
	cleaned := path.Clean(of)
	if cleaned != "/" && strings.HasSuffix(of, "/") {
		cleaned += "/"
	}
	return cleaned
}

// isClean reports whether no slash in a path is followed by another slash or a dot.
func isClean(path string) bool {
	for rest := path; ; {
		slash := strings.IndexByte(rest, '/')
		if slash < 0 || slash+1 == len(rest) {
			return true
		}
		if rest = rest[slash+1:]; rest[0] == '/' || rest[0] == '.' {
			return false
		}
	}
}
