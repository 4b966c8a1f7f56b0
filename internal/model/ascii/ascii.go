// Package ascii converts the case of ASCII letters. It leaves all other bytes as they are, unlike package strings,
// which also converts letters of other alphabets.
package ascii

// Lower returns the lower-case form of an upper-case ASCII letter, and any other byte unchanged.
func Lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}
