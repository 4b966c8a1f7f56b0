// Package errorbody writes the bodies of the controller's own error responses. A body says which status the request
// got, that the controller has responded instead of an endpoint or another proxy, and under which request ID the access
// log and the error log describe the request.
package errorbody

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/k8singress/k8singress/internal/http/message"
)

// templateBegin is the beginning of an action in Caddy's handler templates, which a site may have around the
// controller. A client must not be able to run actions, so a body does not contain a request ID with this text.
const templateBegin = "{{"

// Error describes an error response.
type Error struct {
	// Status is the status of the response, which is 400 or higher.
	Status int
	// Reason says why the request was rejected. It may be empty. It must be a constant, never a string of the client.
	Reason string
	// ID is the request ID in the logs. It may come from the client. It may be empty.
	ID string
}

var (
	// Bodies in these formats need no X-Content-Type-Options, which would often repeat a header of the Ingress:
	// browsers never treat such a text or JSON as a page, because it does not begin like one.
	textType = message.ContentType.Field("text/plain; charset=utf-8")
	htmlType = message.ContentType.Field("text/html; charset=utf-8")
	jsonType = message.ContentType.Field("application/json")
	// problemType is the type of problem details (RFC 9457).
	problemType = message.ContentType.Field("application/problem+json")

	// vary makes shared caches store a response for each value of Accept: some caches store responses with the status
	// 404 or 410. There is no Cache-Control, as in nginx: no-store would prevent caches from protecting endpoints.
	vary = message.NewField("Vary", "Accept")
)

// Begin adds the header fields about the body to the response to r, and returns the body. The caller must write the
// body after the head of the response. For a gRPC call, call is true and the response contains the gRPC status instead
// of a body; the caller must then send it with the status 200.
func (e *Error) Begin(response *message.Response, r *message.Request) (body []byte, call bool) {
	response.Fields.RemoveKind(message.ContentType)
	response.Length = 0
	if IsGRPC(r) {
		e.beginGRPC(response)
		return nil, true
	}
	f := &formats[formatFor(r.Fields)]
	body = e.body(f)
	response.Fields = append(response.Fields, f.contentType, vary)
	response.Length = int64(len(body))
	return body, false
}

// format is a media type for bodies. The index of a format in formats is its name.
type format struct {
	contentType message.Field
	// heads are the beginnings of the bodies for the statuses from firstStatus on. head creates one for the status and
	// its name.
	heads [statuses]string
	head  func(status, name string) string
	// beforeReason and afterReason enclose the reason, and beforeID and afterID the request ID. server names the
	// controller. end is the end of the body.
	beforeReason, afterReason, server, beforeID, afterID, end string
	// escape returns the representation of a character that has a special meaning in the format, or "".
	escape func(c byte) string
}

const (
	firstStatus = http.StatusBadRequest
	statuses    = 200
)

// The indexes of the formats. If a client accepts several formats equally, it gets the first of them.
const (
	text = iota
	html
	json
	problem
)

var formats = prepared([4]format{
	text: {
		contentType:  textType,
		head:         title,
		beforeReason: ": ", server: "\nk8singress", beforeID: ", request ID ", end: "\n",
		escape: func(byte) string { return "" },
	},
	html: {
		contentType: htmlType,
		head: func(status, name string) string {
			title := title(status, name)
			return "<!DOCTYPE html>\n<html lang=\"en\">\n<head><meta charset=\"utf-8\"><title>" + title +
				"</title></head>\n<body>\n<h1>" + title + "</h1>\n"
		},
		beforeReason: "<p>", afterReason: "</p>\n",
		server: "<p>k8singress", beforeID: ", request ID <code>", afterID: "</code>", end: "</p>\n</body>\n</html>\n",
		escape: escapeHTML,
	},
	json: {
		contentType:  jsonType,
		head:         func(status, name string) string { return `{"status":` + status + `,"error":"` + name + `"` },
		beforeReason: `,"reason":"`, afterReason: `"`,
		server: `,"server":"k8singress"`, beforeID: `,"request_id":"`, afterID: `"`, end: "}\n",
		escape: escapeJSON,
	},
	problem: {
		contentType: problemType,
		// With the type about:blank, the title is the name of the status.
		head: func(status, name string) string {
			return `{"type":"about:blank","title":"` + name + `","status":` + status
		},
		beforeReason: `,"detail":"`, afterReason: `"`,
		server: `,"server":"k8singress"`, beforeID: `,"request_id":"`, afterID: `"`, end: "}\n",
		escape: escapeJSON,
	},
})

// prepared fills the heads of the formats, so that an error response only needs to join strings.
func prepared(all [4]format) [4]format {
	for i := range all {
		for n := range all[i].heads {
			all[i].heads[n] = all[i].headOf(firstStatus + n)
		}
	}
	return all
}

func (f *format) headOf(status int) string {
	return f.head(strconv.Itoa(status), http.StatusText(status))
}

// title returns a status with its name. Statuses that only nginx defines have no name.
func title(status, name string) string {
	if name == "" {
		return status
	}
	return status + " " + name
}

// body returns the body in a format.
func (e *Error) body(f *format) []byte {
	head := ""
	if n := e.Status - firstStatus; n >= 0 && n < statuses {
		head = f.heads[n]
	} else {
		head = f.headOf(e.Status)
	}
	const markup = 128
	to := make([]byte, 0, len(head)+len(e.Reason)+len(e.ID)+markup)
	to = append(to, head...)
	if e.Reason != "" {
		to = append(f.escaped(append(to, f.beforeReason...), e.Reason), f.afterReason...)
	}
	to = append(to, f.server...)
	if e.ID != "" && !strings.Contains(e.ID, templateBegin) {
		to = append(f.escaped(append(to, f.beforeID...), e.ID), f.afterID...)
	}
	return append(to, f.end...)
}

// escaped appends a string. Characters that are not printable ASCII become question marks: request IDs that contain
// them are never used.
func (f *format) escaped(to []byte, s string) []byte {
	for i := range len(s) {
		c := s[i]
		switch escape := f.escape(c); {
		case escape != "":
			to = append(to, escape...)
		case c < ' ' || c >= 0x7f:
			to = append(to, '?')
		default:
			to = append(to, c)
		}
	}
	return to
}

func escapeHTML(c byte) string {
	switch c {
	case '<':
		return "&lt;"
	case '>':
		return "&gt;"
	case '&':
		return "&amp;"
	case '"':
		return "&#34;"
	case '\'':
		return "&#39;"
	}
	return ""
}

// escapeJSON also escapes the characters of HTML, as encoding/json does, so that a page may contain the body.
func escapeJSON(c byte) string {
	switch c {
	case '"':
		return `\"`
	case '\\':
		return `\\`
	case '<':
		return `\u003c`
	case '>':
		return `\u003e`
	case '&':
		return `\u0026`
	}
	return ""
}
