package report

import (
	"fmt"
	"strings"
	"time"
)

// Date is a moment in the words of messages: to the second, in the time that logs and certificates are in.
func Date(t time.Time) string {
	return strings.Replace(t.UTC().Format(time.DateTime), " ", " at ", 1) + " UTC"
}

// MostListed is how many names a message has room for: the note of an Event has 1,024 bytes.
const MostListed = 4

// List joins words for a message that has room for so many of them, and counts the others. count is how many there are in
// all: of a list longer than most, words need not hold more than the first ones.
func List(words []string, count, most int) string {
	if count <= most {
		return strings.Join(words, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(words[:most], ", "), count-most)
}
