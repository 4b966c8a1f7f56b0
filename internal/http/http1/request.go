package http1

import (
	"strings"

	"github.com/k8singress/k8singress/internal/http/message"
)

// RequestHead holds the properties of a parsed request head that message.Request does not contain.
type RequestHead struct {
	// Framing defines how the end of the request body is found. It is never UntilClose.
	Framing Framing
	// KeepAlive is true if the client may send another request on the connection.
	KeepAlive bool
	// Expects is true if the client waits for 100 Continue before it sends the request body.
	Expects bool
}

// Parse parses a request head that Scanner.Find has returned, and stores the result in r and h. It keeps r.Conn and
// r.Names, and reuses the memory of r.Fields. The caller may reuse head, because Parse copies it. Fields that are
// listed in Connection, and fields whose names r.Names does not allow, are dropped. Errors are of type *Error. After an
// error, r contains the parts that were parsed before the error, for logging.
func (h *RequestHead) Parse(head []byte, r *message.Request) error {
	*h = RequestHead{}
	*r = message.Request{Fields: r.Fields[:0], Conn: r.Conn, Names: r.Names, Major: 1}
	l := lines{bytes: head, text: r.SetHead(head)}
	target, err := l.requestLine(r)
	if err != nil {
		return err
	}
	var f framing
	if err := readRequestFields(&l, r, &f, h); err != nil {
		return err
	}
	if h.Framing, r.Length, err = f.request(r.Minor); err != nil {
		return err
	}
	if f.nominations > 0 && !r.Fields.RemoveNominated(message.NotRemovable) {
		return errNominations
	}
	h.KeepAlive = f.persistent(r.Minor)
	h.Expects = h.Expects && h.Framing != NoBody && r.Minor > 0
	return setTarget(r, target)
}

// requestLine parses the first line of a request into r, except the request target, which it returns.
func (l *lines) requestLine(r *message.Request) (string, error) {
	b, i := l.bytes, 0
	for i < len(b) && token[b[i]] {
		i++
	}
	if i == 0 || i == len(b) || b[i] != ' ' {
		return "", errMethodToken
	}
	r.Method = l.text[:i]
	start := i + 1
	end := skipGraphic(b, start)
	if end == start || end == len(b) || b[end] != ' ' {
		return "", errLine
	}
	r.Target = l.text[start:end]
	l.at = end + 1
	return r.Target, l.version(r)
}

func (l *lines) version(r *message.Request) error {
	start := l.at
	l.at += len("HTTP/1.1")
	if l.at >= len(l.bytes) || !l.end() {
		return errLine
	}
	switch version := l.text[start : start+len("HTTP/1.1")]; {
	case version == "HTTP/1.1":
		r.Minor = 1
	case version == "HTTP/1.0":
	case l.text[:l.at] == Preface:
		return errPreface
	case version[:5] == "HTTP/" && version[6] == '.' && digit(version[5]) && digit(version[7]):
		return errVersion
	default:
		return errLine
	}
	return nil
}

func digit(c byte) bool { return '0' <= c && c <= '9' }

func readRequestFields(l *lines, r *message.Request, f *framing, h *RequestHead) error {
	var field message.Field
	hosts, expectations, credentials := 0, 0, 0
	for {
		more, err := l.field(&field)
		if err != nil {
			return err
		}
		if !more {
			break
		}
		switch kind := field.Kind; {
		case kind == message.Host:
			r.Host = field.Value
			hosts++
			continue
		case !r.Names.Allows(kind):
			continue
		case kind == message.Expect:
			// Reject several Expect fields: together they form a list, and lists are not supported.
			expectations++
			if h.Expects = strings.EqualFold(field.Value, "100-continue"); expectations > 1 || !h.Expects &&
				field.Value != "" {
				return errExpect
			}
		case kind == message.Authorization:
			// Reject several Authorization fields: the server that checks the credentials and the server that uses them
			// might read different fields.
			if credentials++; credentials > 1 {
				return errTwoAuths
			}
		case kind.Hop():
			if f.add(&field); kind == message.TransferEncoding {
				continue
			}
		}
		if len(r.Fields) == message.MaxFields {
			return errMany
		}
		r.Fields = append(r.Fields, field)
	}
	return checkHost(r, hosts)
}

func checkHost(r *message.Request, hosts int) error {
	switch {
	case hosts > 1:
		return errTwoHosts
	case hosts == 0 && r.Minor > 0:
		return errNoHost
	case r.Host != "" && !message.ValidHost(r.Host):
		return errHost
	}
	return nil
}

// setTarget sets the host, path and query of a request from its request target. It rejects requests that no Ingress can
// match: CONNECT and TRACE requests, the target "*", URLs with schemes other than http and https, and paths with a NUL
// byte.
func setTarget(r *message.Request, target string) error {
	if r.Method == "CONNECT" || r.Method == "TRACE" {
		return errMethod
	}
	own := r.Host
	if target[0] != '/' && !isHTTPURL(target) || r.SetTarget(target) != nil {
		return errTarget
	}
	switch {
	case strings.IndexByte(r.Path, 0) >= 0:
		return errNUL
	case r.Host == "" && r.Minor > 0:
		return errNoHost
	case r.Host != own && !message.ValidHost(r.Host):
		return errHost
	}
	return nil
}

func isHTTPURL(target string) bool {
	scheme, _, ok := strings.Cut(target, "://")
	return ok && (strings.EqualFold(scheme, "http") || strings.EqualFold(scheme, "https"))
}
