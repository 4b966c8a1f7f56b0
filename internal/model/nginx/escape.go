package nginx

import (
	"fmt"
	"strings"
)

// EscapeComponent percent-encodes all characters except letters, digits and -._~, as nginx does for
// $escaped_request_uri.
func EscapeComponent(text string) string {
	return escape(text, func(c byte) bool { return isAlphanumeric(rune(c)) || strings.IndexByte("-._~", c) >= 0 })
}

// EscapeGraphic percent-encodes the characters that are not allowed in a URL or would end its query: control
// characters, white space, quotation marks, brackets, backslashes, # and all non-ASCII characters. Other characters,
// including existing percent-encoding, are not changed.
func EscapeGraphic(text string) string {
	return escape(text, func(c byte) bool { return '!' <= c && c <= '~' && strings.IndexByte("\"#<>\\^`{|}", c) < 0 })
}

// EscapeArgument percent-encodes the characters that would end a query argument or change its value, and those that
// EscapeGraphic encodes. nginx does the same with the capture groups in the query of a rewrite.
func EscapeArgument(text string) string {
	return escape(text, func(c byte) bool {
		return '!' <= c && c <= '~' && strings.IndexByte("\"#<>\\^`{|}%&+;?", c) < 0
	})
}

// EscapeControls percent-encodes the characters that are not allowed in a header value.
func EscapeControls(text string) string {
	return escape(text, func(c byte) bool { return c >= ' ' && c != 0x7f || c == '\t' })
}

func escape(text string, stays func(byte) bool) string {
	i := 0
	for i < len(text) && stays(text[i]) {
		i++
	}
	if i == len(text) {
		return text
	}
	var b strings.Builder
	b.WriteString(text[:i])
	for ; i < len(text); i++ {
		if c := text[i]; stays(c) {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}
