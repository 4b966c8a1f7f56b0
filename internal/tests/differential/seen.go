package differential

import (
	"fmt"
	"hash/fnv"
	"net/http"
	"strconv"
)

// Seen is the response header field in which a handler reports the request as it received it. A field is used because a
// response to HEAD has no body.
const Seen = "X-Seen"

// SeenOf returns the value that a handler has put into Seen, or "".
func SeenOf(response *http.Response) string {
	text, _ := strconv.Unquote(response.Header.Get(Seen))
	return text
}

// Quote returns text as a value for the field Seen.
func Quote(text string) string { return strconv.QuoteToASCII(text) }

// longest is the maximum length of a text that Digest returns unchanged.
const longest = 200

// Digest returns a short text unchanged, and a prefix, the length and a hash of a long one.
func Digest(text string) string {
	if len(text) <= longest {
		return text
	}
	sum := fnv.New64a()
	_, _ = sum.Write([]byte(text)) // A hash never returns an error.
	return fmt.Sprintf("%s... %d bytes, %x", text[:longest/4], len(text), sum.Sum64())
}
