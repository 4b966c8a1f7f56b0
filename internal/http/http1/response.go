package http1

import (
	"strings"

	"github.com/k8singress/k8singress/internal/http/message"
)

// maxResponseFields is the maximum number of header fields of a response.
const maxResponseFields = 1024

// ResponseHead holds the properties of a parsed response head that message.Response does not contain.
type ResponseHead struct {
	Framing Framing
	// KeepAlive is true if the connection can be used for another request after the response body was read to its end.
	KeepAlive bool
}

// Parse parses a response head that Scanner.Find has returned, and stores the result in a and h. method is the method
// of the request. Parse reuses the memory of a.Fields and a.Trailers. The caller may reuse head, because Parse copies
// it. Fields about the connection or the length of the body, and fields that are listed in Connection, are dropped.
// However, Connection and Upgrade are kept for status 101, because the client needs them. Errors are of type *Error.
//
// Responses are parsed less strictly than requests: a line may end with LF instead of CRLF, as in nginx and net/http,
// because this does not allow response splitting. Folded lines, spaces before a colon and control characters are
// errors, as in nginx.
func (h *ResponseHead) Parse(head []byte, method string, a *message.Response) error {
	*h = ResponseHead{}
	*a = message.Response{Fields: a.Fields[:0], Trailers: a.Trailers[:0]}
	l := lines{bytes: head, text: string(head), bare: true}
	minor, err := l.statusLine(a)
	if err != nil {
		return err
	}
	var f framing
	if err := l.responseFields(a, &f); err != nil {
		return err
	}
	if f.nominations > 0 && !a.Fields.RemoveNominated(message.Kind.Hop) {
		return errNominations
	}
	if err := h.frame(&f, method, a); err != nil {
		return err
	}
	h.KeepAlive = h.Framing != UntilClose && f.persistent(minor) && (f.codings == 0 || f.lengths == 0 && minor > 0)
	h.setTrailers(a)
	dropConnection(a)
	return nil
}

// statusLine parses the first line of a response into a. It returns the minor HTTP version.
func (l *lines) statusLine(a *message.Response) (uint8, error) {
	const begin, code = len("HTTP/1."), len("HTTP/1.1 ")
	b := l.bytes
	if len(b) < code+len("200") || l.text[:begin] != "HTTP/1." || b[begin] != '0' && b[begin] != '1' ||
		b[begin+1] != ' ' {
		return 0, errStatusLine
	}
	for _, c := range b[code : code+3] {
		if !digit(c) {
			return 0, errStatusLine
		}
		a.Status = 10*a.Status + int(c-'0')
	}
	if l.at = code + 3; a.Status < 100 || l.at < len(b) && b[l.at] != ' ' && b[l.at] != '\r' && b[l.at] != '\n' {
		return 0, errStatusLine
	}
	// Skip the reason phrase, which is not used. It must be followed by the end of the line.
	if l.at = skipText(b, l.at); !l.end() {
		return 0, errStatusLine
	}
	return b[begin] - '0', nil
}

func (l *lines) responseFields(a *message.Response, f *framing) error {
	var field message.Field
	for {
		more, err := l.field(&field)
		if err != nil || !more {
			return err
		}
		if len(a.Fields) == maxResponseFields {
			return errMany
		}
		if field.Kind.Hop() {
			if f.add(&field); field.Kind == message.ContentLength || field.Kind == message.TransferEncoding {
				continue
			}
		}
		a.Fields = append(a.Fields, field)
	}
}

// frame determines how the end of the response body is found. Some old servers send both Content-Length and
// "Transfer-Encoding: chunked"; such a body is decoded as chunks, as in net/http. Parse then sets KeepAlive to false,
// as for a chunked HTTP/1.0 response, so that no further bytes can be taken for the response to another request.
func (h *ResponseHead) frame(f *framing, method string, a *message.Response) error {
	a.Length = -1
	switch {
	case f.lengthErr != nil:
		return f.lengthErr
	case f.codings > 1:
		return errTwoCodings
	case f.codings == 1 && !strings.EqualFold(f.coding, "chunked"):
		return errCoding
	case f.lengths > 0 && f.codings == 0:
		a.Length = f.length
	}
	switch {
	case a.Status < 200 || a.Status == 204:
		a.Length = 0
	case method == "HEAD" || a.Status == 304:
	case f.codings == 1:
		h.Framing = Chunked
	case f.lengths == 0:
		h.Framing = UntilClose
	case f.length > 0:
		h.Framing = Sized
	}
	return nil
}

// setTrailers stores the names of the trailer fields that the response announces in its Trailer fields.
func (h *ResponseHead) setTrailers(a *message.Response) {
	if h.Framing != Chunked {
		return
	}
	for i := range a.Fields {
		if a.Fields[i].Kind != message.Trailer {
			continue
		}
		for name := range strings.SplitSeq(a.Fields[i].Value, ",") {
			if name = strings.Trim(name, " \t"); isToken(name) && message.KindOf(name) == message.Other {
				a.Trailers = append(a.Trailers, name)
			}
		}
	}
}

// dropConnection removes the header fields about the connection or the length of the body.
func dropConnection(a *message.Response) {
	kept := a.Fields[:0]
	for _, f := range a.Fields {
		if !f.Kind.Hop() || a.Status == 101 && (f.Kind == message.Connection || f.Kind == message.Upgrade) {
			kept = append(kept, f)
		}
	}
	clear(a.Fields[len(kept):])
	a.Fields = kept
}
