package differential

import (
	"fmt"
	"hash/fnv"
	"net/http"
	"strconv"
)

// Seen is the name of a response header field in which the test handler behind a server describes the request that it
// has received. A header field is used because the response to a HEAD request has no body.
const Seen = "X-Seen"

// SeenOf returns the value of the header field Seen in a response, or "" if the response has no such field.
func SeenOf(response *http.Response) string {
	text, _ := strconv.Unquote(response.Header.Get(Seen))
	return text
}

// Quote returns text in quotes with all special characters escaped, so that it can be used in the header field Seen.
func Quote(text string) string { return strconv.QuoteToASCII(text) }

// longest is the maximum length of a string that Digest returns unchanged.
const longest = 200

// Digest returns text unchanged if it is short. Otherwise it returns a prefix of it, followed by its length and a hash.
func Digest(text string) string {
	if len(text) <= longest {
		return text
	}
	sum := fnv.New64a()
	_, _ = sum.Write([]byte(text)) // A hash never returns an error.
	return fmt.Sprintf("%s... %d bytes, %x", text[:longest/4], len(text), sum.Sum64())
}
