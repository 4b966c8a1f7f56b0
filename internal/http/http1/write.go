package http1

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/k8singress/k8singress/internal/http/message"
)

// AppendField appends a header field to buf. It returns an error, and buf unchanged, if the name is not valid or if the
// value contains a control character such as a line break. All fields that come from received messages are written with
// this function.
func AppendField(buf []byte, name, value string) ([]byte, error) {
	start := len(buf)
	if !isToken(name) {
		return buf, errWrite
	}
	buf = append(append(buf, name...), ": "...)
	from := len(buf)
	buf = append(buf, value...)
	if skipText(buf, from) < len(buf) {
		return buf[:start], errWrite
	}
	return append(buf, '\r', '\n'), nil
}

// appendFields appends header fields to buf. It skips fields about the connection and the length of the body, which the
// caller writes itself.
func appendFields(buf []byte, fields message.Fields) (_ []byte, err error) {
	for i := range fields {
		if fields[i].Kind.Hop() {
			continue
		}
		if buf, err = AppendField(buf, fields[i].Name, fields[i].Value); err != nil {
			return buf, err
		}
	}
	return buf, nil
}

// RequestLine holds the parts of the request line, and the values from which the header fields about the connection and
// the length of the body are written.
type RequestLine struct {
	Method, Target, Host string
	// Framing and Length describe the body. Length is in bytes.
	Framing Framing
	Length  int64
	// Upgrade is the protocol to which the endpoint should switch. If it is empty, no upgrade is requested.
	Upgrade string
	// Close is true if the endpoint should close the connection after the response.
	Close bool
}

// AppendRequestHead appends the head of a request to buf. lists contains the header fields; fields about the connection
// and the length of the body are skipped and written as defined by l instead. If AppendRequestHead returns an error,
// the returned buffer is the same as buf.
func AppendRequestHead(buf []byte, l *RequestLine, lists ...message.Fields) (_ []byte, err error) {
	start := len(buf)
	if !isToken(l.Method) || l.Target == "" {
		return buf, errWrite
	}
	buf = append(append(buf, l.Method...), ' ')
	from := len(buf)
	buf = append(buf, l.Target...)
	if skipGraphic(buf, from) < len(buf) {
		return buf[:start], errWrite
	}
	buf = append(buf, " HTTP/1.1\r\n"...)
	if buf, err = AppendField(buf, "Host", l.Host); err != nil {
		return buf[:start], err
	}
	for _, fields := range lists {
		if buf, err = appendFields(buf, fields); err != nil {
			return buf[:start], err
		}
	}
	if buf, err = l.appendConnection(buf); err != nil {
		return buf[:start], err
	}
	return append(buf, '\r', '\n'), nil
}

func (l *RequestLine) appendConnection(buf []byte) ([]byte, error) {
	switch {
	case l.Framing == Chunked:
		buf = append(buf, "Transfer-Encoding: chunked\r\n"...)
	case l.Framing == Sized:
		buf = appendLength(buf, l.Length)
	case l.Method == "POST" || l.Method == "PUT" || l.Method == "PATCH":
		// Write "Content-Length: 0", because some servers require a Content-Length for these methods.
		buf = appendLength(buf, 0)
	}
	switch {
	case l.Upgrade != "":
		buf = append(buf, "Connection: Upgrade\r\n"...)
		return AppendField(buf, "Upgrade", l.Upgrade)
	case l.Close:
		buf = append(buf, "Connection: close\r\n"...)
	}
	return buf, nil
}

func appendLength(buf []byte, length int64) []byte {
	buf = append(buf, "Content-Length: "...)
	return append(strconv.AppendInt(buf, length, 10), '\r', '\n')
}

// ResponseOptions holds the properties of a response head that message.Response does not contain.
type ResponseOptions struct {
	// Close tells the client that the connection will be closed after the response. KeepAlive tells an HTTP/1.0 client
	// that the connection will stay open.
	Close, KeepAlive bool
	// HTTP10 is true if the client uses HTTP/1.0.
	HTTP10 bool
	// Chunked is true if the body is sent in chunks. Otherwise Content-Length is written, if the length is known.
	Chunked bool
	// Date is the value of the Date field to add if the response has no Date field. If it is empty, no field is added,
	// as for interim responses.
	Date string
}

// AppendResponseHead appends the head of a response to buf. It skips fields about the connection and the length of the
// body, except Connection and Upgrade in a response with status 101. If it returns an error, the returned buffer is the
// same as buf.
func AppendResponseHead(buf []byte, a *message.Response, o *ResponseOptions) (_ []byte, err error) {
	start := len(buf)
	if buf, err = appendStatus(buf, a.Status, o.HTTP10); err != nil {
		return buf, err
	}
	dated := o.Date == ""
	for i := range a.Fields {
		f := &a.Fields[i]
		switch {
		case f.Kind == message.Date:
			dated = true
		case f.Kind.Hop() && (a.Status != http.StatusSwitchingProtocols || f.Kind != message.Connection &&
			f.Kind != message.Upgrade):
			continue
		}
		if buf, err = AppendField(buf, f.Name, f.Value); err != nil {
			return buf[:start], err
		}
	}
	if !dated {
		buf = append(append(append(buf, "Date: "...), o.Date...), '\r', '\n')
	}
	if buf, err = appendFraming(buf, a, o); err != nil {
		return buf[:start], err
	}
	switch {
	case a.Status < http.StatusOK:
	case o.Close:
		buf = append(buf, "Connection: close\r\n"...)
	case o.KeepAlive:
		buf = append(buf, "Connection: keep-alive\r\n"...)
	}
	return append(buf, '\r', '\n'), nil
}

func appendFraming(buf []byte, a *message.Response, o *ResponseOptions) ([]byte, error) {
	switch {
	case a.Status < http.StatusOK || a.Status == http.StatusNoContent:
		return buf, nil
	case !o.Chunked && a.Length >= 0:
		return appendLength(buf, a.Length), nil
	case !o.Chunked:
		return buf, nil
	}
	buf = append(buf, "Transfer-Encoding: chunked\r\n"...)
	if len(a.Trailers) == 0 {
		return buf, nil
	}
	return AppendField(buf, "Trailer", strings.Join(a.Trailers, ", "))
}

// statusLines contains the first line of a response for each status that has a standard reason phrase.
var statusLines = func() (all [600]string) {
	for status := range all {
		if text := http.StatusText(status); text != "" {
			all[status] = "HTTP/1.1 " + strconv.Itoa(status) + " " + text + "\r\n"
		}
	}
	return all
}()

func appendStatus(buf []byte, status int, http10 bool) ([]byte, error) {
	if status < 100 || status > 999 {
		return buf, errWrite
	}
	start := len(buf)
	if status < len(statusLines) && statusLines[status] != "" {
		buf = append(buf, statusLines[status]...)
	} else {
		buf = append(strconv.AppendInt(append(buf, "HTTP/1.1 "...), int64(status), 10), " \r\n"...)
	}
	if http10 {
		buf[start+len("HTTP/1.")] = '0'
	}
	return buf, nil
}
