package nginx

import "unicode"

// IsControl is true for what could mean something to a log, a header or a terminal: control characters, and the two line
// separators that Unicode does not count among them.
func IsControl(r rune) bool { return unicode.IsControl(r) || r == '\u2028' || r == '\u2029' }
