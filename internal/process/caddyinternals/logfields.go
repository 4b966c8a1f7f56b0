package caddyinternals

import (
	"reflect"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap/zapcore"
)

// LogFields returns the fields that handlers such as log_append have added to the access log line of a request. Caddy
// has methods to add and replace these fields, but no method to read them. The caller must not change the result.
//
// LogFields relies on caddyhttp.ExtraLogFields having a field with the name "fields" and the type []zapcore.Field.
// Otherwise it returns nil.
func LogFields(extra *caddyhttp.ExtraLogFields) []zapcore.Field {
	if extra == nil {
		return nil
	}
	fields := reflect.ValueOf(extra).Elem().FieldByName("fields")
	if !fields.IsValid() || fields.Type() != reflect.TypeFor[[]zapcore.Field]() {
		return nil
	}
	return *(*[]zapcore.Field)(fields.Addr().UnsafePointer())
}
