// Package suggest suggests the known word that is most similar to a misspelled one.
package suggest

import (
	"slices"
	"strings"
)

// Hint returns the end of a message about an unknown word: "; did you mean ...?" with the most similar known word. It
// ignores case. It returns "" if no known word is similar enough.
func Hint(word string, known []string) string {
	lower := make([]string, len(known))
	for i, k := range known {
		lower[i] = strings.ToLower(k)
	}
	i := slices.Index(lower, Of(strings.ToLower(word), lower))
	if i < 0 {
		return ""
	}
	return "; did you mean " + known[i] + "?"
}

// Of finds the known word that is most similar to word. It returns the first such word if several are equally similar,
// and "" if no known word is similar enough: at most a quarter of the letters of word, plus one, may differ.
func Of(word string, known []string) string {
	best, limit := "", 1+len(word)/4
	for _, candidate := range known {
		if d := edits(word, candidate, limit); d < len(candidate) && (d < limit || d == limit && best == "") {
			best, limit = candidate, d
		}
	}
	return best
}

// edits returns how many letters have to be inserted, deleted or replaced to turn one word into the other. A result
// that is greater than limit is not exact.
func edits(a, b string, limit int) int {
	if len(a)-len(b) > limit || len(b)-len(a) > limit {
		return limit + 1
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost = 1 + min(diagonal, row[j+1], row[j])
			}
			diagonal, row[j+1] = row[j+1], cost
		}
	}
	return row[len(b)]
}
