package differential

import (
	"fmt"
	"hash/fnv"
	"net/http"
	"strconv"
)

// Seen is the field of an answer in which a handler says what it has seen of a request: an answer to HEAD has nothing else.
const Seen = "X-Seen"

// SeenOf returns what a handler has put into an answer, or nothing.
func SeenOf(response *http.Response) string {
	text, _ := strconv.Unquote(response.Header.Get(Seen))
	return text
}

// Quote makes a value of the field.
func Quote(text string) string { return strconv.QuoteToASCII(text) }

// longest is how long a text is shown as it is.
const longest = 200

// Digest returns a text, or something shorter that is another one for each text.
func Digest(text string) string {
	if len(text) <= longest {
		return text
	}
	sum := fnv.New64a()
	_, _ = sum.Write([]byte(text)) // It never fails.
	return fmt.Sprintf("%s... %d bytes, %x", text[:longest/4], len(text), sum.Sum64())
}
