package accesslog

import (
	"strconv"

	"github.com/k8singress/k8singress/internal/http/exchange"
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/nginx"
	"github.com/k8singress/k8singress/internal/model/pools"
)

// DefaultFormat is ingress-nginx's default log-format-upstream.
const DefaultFormat = `$remote_addr - $remote_user [$time_local] "$request" $status $body_bytes_sent ` +
	`"$http_referer" "$http_user_agent" $request_length $request_time [$proxy_upstream_name] ` +
	`[$proxy_alternative_upstream_name] $upstream_addr $upstream_response_length ` +
	`$upstream_response_time $upstream_status $req_id`

// format is a compiled log format. E is the type of the logged event: a request or a connection. The format consists of
// literal text and functions that return the values of variables. They alternate, and the first element is literal
// text.
type format[E any] struct {
	texts  []string
	values []func(*E) string
	escape func(to []byte, value string) []byte
}

// newFormat compiles a log format. For the name of a variable, valueOf returns the function that computes the
// variable's value, or nil if the variable is unknown. Unknown variables are replaced by the empty string.
func newFormat[E any](text string, escape ir.LogEscape, valueOf func(name string) func(*E) string) *format[E] {
	split := nginx.SplitTemplate(text)
	f := &format[E]{texts: split.Texts, escape: escapes[escape]}
	for _, name := range split.Names {
		value := valueOf(name)
		if value == nil {
			value = func(*E) string { return "" }
		}
		f.values = append(f.values, value)
	}
	return f
}

// valueOf returns the function that computes an nginx variable for a request. Variables that are not variables of nginx
// may be set by a program.
func valueOf(name string) func(*entry) string {
	if value, ok := values[name]; ok {
		return value
	}
	if of := exchange.VariableOf(name); of != nil {
		return func(e *entry) string { return of(e.Exchange) }
	}
	return func(e *entry) string { return e.Variable(name) }
}

// isKnown reports whether the access log supports a variable. Variables of programs depend on the request.
func isKnown(name string) bool {
	return values[name] != nil || exchange.VariableOf(name) != nil && !exchange.OfResponse(name)
}

// UnknownVariables returns the variables in format that the access log does not support.
func UnknownVariables(format string) []string {
	split := nginx.SplitTemplate(format)
	return split.Unknown(isKnown)
}

// append appends the formatted log line for e to line.
func (f *format[E]) append(line []byte, e *E) []byte {
	for i, value := range f.values {
		line = append(line, f.texts[i]...)
		line = f.escape(line, value(e))
	}
	line = append(line, f.texts[len(f.values)]...)
	return append(line, '\n')
}

// escapes maps nginx's escape modes to functions that append an escaped value to a log line. Unlike in nginx, control
// characters are escaped even if log-format-escape-none is set.
var escapes = map[ir.LogEscape]func(to []byte, value string) []byte{
	ir.EscapeDefault: escapeDefault,
	ir.EscapeJSON:    escapeJSON,
	ir.EscapeNone:    escapeNone,
}

const hexDigits = "0123456789ABCDEF"

func appendHex(to []byte, prefix string, c byte) []byte {
	to = append(to, prefix...)
	return append(to, hexDigits[c>>4], hexDigits[c&15])
}

// escapeDefault escapes quotes, backslashes and all bytes that are not printable ASCII as \xXX. It writes an empty
// value as "-".
func escapeDefault(to []byte, value string) []byte {
	if value == "" {
		return append(to, '-')
	}
	return escapeWith(to, value, func(c byte) bool { return c < ' ' || c > '~' || c == '"' || c == '\\' })
}

// escapeNone escapes only control characters, as \xXX.
func escapeNone(to []byte, value string) []byte {
	return escapeWith(to, value, func(c byte) bool { return c < ' ' || c == 0x7f })
}

func escapeWith(to []byte, value string, special func(byte) bool) []byte {
	done := 0
	for i := range len(value) {
		if c := value[i]; special(c) {
			to = appendHex(append(to, value[done:i]...), `\x`, c)
			done = i + 1
		}
	}
	return append(to, value[done:]...)
}

// escapeJSON escapes a value for use inside a JSON string.
func escapeJSON(to []byte, value string) []byte {
	for i := range len(value) {
		switch c := value[i]; {
		case c == '"' || c == '\\':
			to = append(to, '\\', c)
		case c == '\n':
			to = append(to, `\n`...)
		case c == '\r':
			to = append(to, `\r`...)
		case c == '\t':
			to = append(to, `\t`...)
		case c < ' ':
			to = appendHex(to, `\u00`, c)
		default:
			to = append(to, c)
		}
	}
	return to
}

// write formats the log line for e and writes it to a file.
func (f *format[E]) write(e *E, to *File) {
	space := lines.Get()
	line := f.append(space.Bytes()[:0], e)
	to.write(line)
	space.Replace(line)
	space.Release()
}

// lines is a pool of buffers for log lines. The initial size is enough for a typical line.
var lines = pools.NewBuffers("accesslog: line", 512)

// seconds formats milliseconds as seconds with three decimals, as nginx does.
func seconds(ms int64) string {
	var b [24]byte
	text := strconv.AppendInt(b[:0], ms/1000, 10)
	ms %= 1000
	return string(append(text, '.', byte('0'+ms/100), byte('0'+ms/10%10), byte('0'+ms%10)))
}
