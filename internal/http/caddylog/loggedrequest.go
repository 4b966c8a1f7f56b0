package caddylog

import (
	"net/http"
	"reflect"
	"slices"
	"strconv"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap/zapcore"

	"github.com/k8singress/k8singress/internal/http/message"
)

// loggedRequest logs a request with the fields of caddyhttp.LoggableHTTPRequest.
type loggedRequest struct {
	*transcript
	clientIP    string
	credentials bool
}

// MarshalLogObject implements zapcore.ObjectMarshaler.
func (l *loggedRequest) MarshalLogObject(enc zapcore.ObjectEncoder) error {
	r, port := &l.request, ""
	if r.Conn.Remote.IsValid() {
		port = strconv.Itoa(int(r.Conn.Remote.Port()))
	}
	enc.AddString("remote_ip", r.Conn.RemoteIP)
	enc.AddString("remote_port", port)
	enc.AddString("client_ip", l.clientIP)
	enc.AddString("proto", r.Protocol())
	enc.AddString("method", r.Method)
	enc.AddString("host", r.Host)
	enc.AddString("uri", r.Target)
	if err := enc.AddObject("headers", &loggedFields{r.Fields, l.credentials}); err != nil {
		return err
	}
	if state := r.TLS(); state != nil {
		return enc.AddObject("tls", (*caddyhttp.LoggableTLSConnState)(state))
	}
	return nil
}

// loggedFields logs header fields as caddyhttp.LoggableHTTPHeader does, but in the order of the message.
type loggedFields struct {
	fields message.Fields
	// credentials is true if the values of fields with credentials are logged.
	credentials bool
}

// maxCompared is the maximum number of fields whose names are compared with each other. A map is faster for more
// fields, and slower for the few fields of most messages.
const maxCompared = 32

// MarshalLogObject implements zapcore.ObjectMarshaler.
func (l *loggedFields) MarshalLogObject(enc zapcore.ObjectEncoder) error {
	if len(l.fields) > maxCompared {
		return caddyhttp.LoggableHTTPHeader{Header: l.fields.Header(), ShouldLogCredentials: l.credentials}.
			MarshalLogObject(enc)
	}
	if reflect.TypeOf(enc) == jsonEncoder {
		return l.marshalJSON(enc)
	}
	values := make([]string, 0, len(l.fields))
	for i := range l.fields {
		field := &l.fields[i]
		if l.fields[:i].Contains(field.Kind, field.Name) {
			continue
		}
		first := len(values)
		for _, other := range l.fields[i:] {
			if other.Is(field.Kind, field.Name) {
				values = append(values, other.Value)
			}
		}
		all := caddyhttp.LoggableStringArray(slices.Clip(values[first:]))
		if l.redacts(field) {
			all = redacted
		}
		// Filters of Caddy's logs only accept this type.
		if err := enc.AddArray(http.CanonicalHeaderKey(field.Name), all); err != nil {
			return err
		}
	}
	return nil
}

// jsonEncoder is the type of zap's encoder for JSON, which Caddy's formats json and console use without filters. This
// encoder calls MarshalLogArray at once and does not keep the array.
var jsonEncoder = reflect.TypeOf(zapcore.NewJSONEncoder(zapcore.EncoderConfig{}))

// marshalJSON logs the fields with zap's encoder for JSON. It needs only one allocation, because all fields share one
// array.
func (l *loggedFields) marshalJSON(enc zapcore.ObjectEncoder) error {
	values := &loggedValues{}
	for i := range l.fields {
		field := &l.fields[i]
		if l.fields[:i].Contains(field.Kind, field.Name) {
			continue
		}
		values.from, values.redacted = l.fields[i:], l.redacts(field)
		if err := enc.AddArray(http.CanonicalHeaderKey(field.Name), values); err != nil {
			return err
		}
	}
	return nil
}

// loggedValues logs the values of the fields that have the name of the first field.
type loggedValues struct {
	from     message.Fields
	redacted bool
}

// MarshalLogArray implements zapcore.ArrayMarshaler.
func (v *loggedValues) MarshalLogArray(enc zapcore.ArrayEncoder) error {
	if v.redacted {
		enc.AppendString(redacted[0])
		return nil
	}
	first := &v.from[0]
	for i := range v.from {
		if other := &v.from[i]; other.Is(first.Kind, first.Name) {
			enc.AppendString(other.Value)
		}
	}
	return nil
}

// redacted is logged in place of the values of fields with credentials, as in Caddy.
var redacted = caddyhttp.LoggableStringArray{"REDACTED"}

// redacts reports whether the value of a field is not logged.
func (l *loggedFields) redacts(f *message.Field) bool { return !l.credentials && isCredential(f.Kind) }

// isCredential reports whether Caddy redacts fields of this kind.
func isCredential(k message.Kind) bool {
	switch k {
	case message.Authorization, message.Cookie, message.ProxyAuthorization, message.SetCookie:
		return true
	default:
		return false
	}
}
