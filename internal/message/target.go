package message

import (
	"errors"
	"net/url"
	"strings"
)

var (
	errTarget    = errors.New("the request target is no path and no URL")
	errAuthority = errors.New("the request target names no host, or a user")
)

// SetTarget takes what a client has asked for apart: a path, or a URL, whose host counts in place of that of the Host field (RFC
// 9112 3.2.2). Anything else, such as "*", is an error, and so is a percent sign without two digits behind it.
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
	path, query, ok := strings.Cut(target, "?")
	r.Query, r.ForceQuery = query, ok && query == ""
	return r.setEscapedPath(path)
}

// setEscapedPath sets the path as it was sent. What does not stand for itself in a path, such as a quotation mark, goes out escaped,
// as net/url does it.
func (r *Request) setEscapedPath(sent string) error {
	if standsForItself(sent) {
		r.Path, r.EscapedPath = sent, sent
		return nil
	}
	path, err := url.PathUnescape(sent)
	if err != nil {
		return err
	}
	r.Path, r.EscapedPath = path, (&url.URL{Path: path, RawPath: sent}).EscapedPath()
	return nil
}

// SetPath changes the path to another one, which is not escaped.
func (r *Request) SetPath(path string) {
	if r.Path = path; standsForItself(path) {
		r.EscapedPath = path
		return
	}
	r.EscapedPath = (&url.URL{Path: path}).EscapedPath()
}

// standsForItself says whether a path is the same escaped and not.
func standsForItself(path string) bool {
	for i := range len(path) {
		if !unreserved[path[i]] {
			return false
		}
	}
	return true
}

// unreserved are the characters that net/url leaves as they are in a path, as far as paths usually have them.
var unreserved = func() (all [256]bool) {
	for c, is := range plain {
		all[c] = is
	}
	for _, c := range []byte("/._~$&+=:@") {
		all[c] = true
	}
	return all
}()

// QueryValue returns the first value of a parameter, decoded, and whether there is one.
func (r *Request) QueryValue(name string) (string, bool) {
	for pair := range strings.SplitSeq(r.Query, "&") {
		key, value, _ := strings.Cut(pair, "=")
		if key, err := url.QueryUnescape(key); err != nil || key != name {
			continue
		}
		if value, err := url.QueryUnescape(value); err == nil {
			return value, true
		}
	}
	return "", false
}

// Cookie returns the value of a cookie, and whether there is one. Of several with one name the first counts: that is the one with
// the longest path. A value is read as net/http does it.
func (r *Request) Cookie(name string) (string, bool) {
	for i := range r.Fields {
		if r.Fields[i].Kind != Cookie {
			continue
		}
		for part := range strings.SplitSeq(r.Fields[i].Value, ";") {
			key, value, _ := strings.Cut(strings.Trim(part, " \t"), "=")
			if key != "" && strings.Trim(key, " \t") == name {
				if value, ok := cookieValue(value); ok {
					return value, true
				}
			}
		}
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
