// Package nginx parses the values of annotations and ConfigMap keys: switches, numbers, times, sizes and names in the
// formats of nginx and ingress-nginx. Its errors are written for the author of the value.
package nginx

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/k8singress/k8singress/internal/model/suggest"
)

// Remark is an error with a valid value: the value is used, and the author gets a warning.
type Remark string

func (r Remark) Error() string { return string(r) }

// Partial is an error with a partly valid value: the valid part is used.
type Partial string

func (p Partial) Error() string { return string(p) }

// Unsupported is the error for a value that ingress-nginx supports and this controller does not.
type Unsupported string

func (u Unsupported) Error() string { return string(u) }

// IsUsable reports whether the value that was returned with an error is to be used.
func IsUsable(err error) bool {
	var remark Remark
	var partial Partial
	return err == nil || errors.As(err, &remark) || errors.As(err, &partial)
}

// Into combines a field and a parser of values into a function that sets the field. If the value is not valid, the
// field does not change.
func Into[S, T any](field func(*S) *T, read func(string) (T, error)) func(*S, string) error {
	return func(s *S, text string) error {
		v, err := read(text)
		if IsUsable(err) {
			*field(s) = v
		}
		return err
	}
}

// Quote returns a quoted value for a message. Long values are cut.
func Quote(text string) string {
	const maxRunes = 80
	if runes := []rune(text); len(runes) > maxRunes {
		return strconv.Quote(string(runes[:maxRunes])) + "..."
	}
	return strconv.Quote(text)
}

// Bool parses a boolean in any form that strconv.ParseBool accepts.
func Bool(text string) (bool, error) {
	v, err := strconv.ParseBool(text)
	if err != nil {
		return false, fmt.Errorf(`%s is neither "true" nor "false"`, Quote(text))
	}
	return v, nil
}

// No parses a boolean and returns the opposite. It is meant for options that are on by default.
func No(text string) (bool, error) {
	on, err := Bool(text)
	return err == nil && !on, err
}

// OnOff parses nginx's "on" and "off".
func OnOff(text string) (bool, error) {
	if text != "on" && text != "off" {
		return false, fmt.Errorf(`%s is neither "on" nor "off"`, Quote(text))
	}
	return text == "on", nil
}

// Number returns a parser for integers from least to most.
func Number(minimum, maximum int) func(string) (int, error) {
	return func(text string) (int, error) {
		n, err := strconv.Atoi(text)
		if err != nil || n < minimum || n > maximum {
			return 0, fmt.Errorf("%s is not a number from %d to %d", Quote(text), minimum, maximum)
		}
		return n, nil
	}
}

// OneOf returns a parser for words from a list. Case is ignored, and the parser returns the word in the spelling of the
// list.
func OneOf(words ...string) func(string) (string, error) {
	return func(text string) (string, error) {
		i := slices.IndexFunc(words, func(w string) bool { return strings.EqualFold(w, text) })
		if i < 0 {
			return "", fmt.Errorf("%s is not one of %s%s", Quote(text), strings.Join(words, ", "),
				Suggestion(text, words))
		}
		return words[i], nil
	}
}

// Suggestion returns the end of a message about an unknown word: a suggestion for the nearest known word, or "". It
// suggests nothing for a text with digits, because another number is not a misspelling.
func Suggestion(text string, words []string) string {
	if strings.ContainsAny(text, "0123456789") {
		return ""
	}
	return suggest.Hint(text, words)
}

// maxNameBytes is the maximum length of a header or cookie name. No name needs more, and clients and proxies accept
// this length.
const maxNameBytes = 128

// Token parses the name of a header or cookie.
func Token(text string) (string, error) {
	if text == "" || len(text) > maxNameBytes || strings.ContainsFunc(text, notInToken) {
		return "",
			fmt.Errorf("%s is not a valid name: use letters, digits and any of !#$%%&'*+-.^_`|~, up to %d characters",
				Quote(text), maxNameBytes)
	}
	return text, nil
}

func notInToken(r rune) bool {
	return !isAlphanumeric(r) && !strings.ContainsRune("!#$%&'*+-.^_`|~", r)
}

func isAlphanumeric(r rune) bool {
	return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9'
}

// Chars returns a parser for text that consists of letters, digits and the characters in others, such as ".-". The text
// may be up to most bytes long.
func Chars(others string, maxBytes int) func(string) (string, error) {
	return func(text string) (string, error) {
		if len(text) > maxBytes {
			return "", fmt.Errorf("%s is longer than %d bytes", Quote(text), maxBytes)
		}
		for _, r := range text {
			if !isAlphanumeric(r) && !strings.ContainsRune(others, r) {
				return "", fmt.Errorf("%s contains %q: use only letters, digits and any of %s",
					Quote(text), r, others)
			}
		}
		return text, nil
	}
}

// ListOf returns a parser for comma-separated lists. Entries for which check returns an error are left out, and the
// other entries are used.
func ListOf(check func(string) error) func(string) ([]string, error) {
	return func(text string) ([]string, error) {
		var good, bad []string
		for entry := range strings.SplitSeq(text, ",") {
			if entry = strings.TrimSpace(entry); entry == "" {
				continue
			}
			if err := check(entry); err != nil {
				bad = append(bad, err.Error())
				continue
			}
			good = append(good, entry)
		}
		if bad != nil {
			return good, Partial("left out: " + strings.Join(bad, "; "))
		}
		return good, nil
	}
}

// IsControl reports whether a character can have a special meaning in a log, a header or a terminal: control
// characters, and the two line separators that unicode.IsControl does not include.
func IsControl(r rune) bool { return unicode.IsControl(r) || r == '\u2028' || r == '\u2029' }

// Nowhere is a network from which no connection can come: the broadcast address.
const Nowhere = "255.255.255.255/32"

// List splits a list at commas and white space.
func List(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == ',' || unicode.IsSpace(r) })
}

// Locations parses comma-separated path prefixes. It requires a leading slash: without it, a misspelled prefix would
// silently match nothing, and an empty one would exempt everything.
func Locations(value string) ([]string, error) {
	var list []string
	for text := range strings.SplitSeq(value, ",") {
		location := strings.TrimSpace(text)
		if location == "" {
			continue
		}
		if !strings.HasPrefix(location, "/") {
			return nil, fmt.Errorf("%s is not a path prefix: write /%s", Quote(location), location)
		}
		list = append(list, location)
	}
	return list, nil
}

// Networks parses the networks and addresses of trusted proxies, separated by commas or spaces. Errors are of type
// Partial, and invalid entries are left out. The list is never empty, because an empty list would trust every address.
// If no entry is valid, it contains only Nowhere.
func Networks(text string) ([]string, error) {
	var networks, bad []string
	for _, word := range List(text) {
		network, err := network(word)
		if err != nil {
			bad = append(bad, Quote(word))
			continue
		}
		networks = append(networks, network.String())
	}
	switch {
	case len(networks) == 0:
		return []string{Nowhere}, Partial("no proxy is trusted, because no network can be read in " + Quote(text) +
			": write networks such as 10.0.0.0/8")
	case len(bad) > 0:
		return networks, Partial("left out, because these are not networks such as 10.0.0.0/8: " +
			strings.Join(bad, ", "))
	}
	return networks, nil
}

// AllNetworks parses networks and addresses, separated by commas or spaces. It fails if an entry is not valid.
func AllNetworks(text string) ([]string, error) {
	networks, err := Networks(text)
	if err != nil {
		return nil,
			fmt.Errorf(
				"%s does not contain only networks: write networks such as 10.0.0.0/8, with commas "+
					"between them",
				Quote(text))
	}
	return networks, nil
}

// network parses a network or an address. IPv4-mapped IPv6 addresses are converted to IPv4.
func network(text string) (netip.Prefix, error) {
	if !strings.Contains(text, "/") {
		addr, err := netip.ParseAddr(text)
		if err != nil || addr.Zone() != "" {
			return netip.Prefix{}, fmt.Errorf("%q is not an address", text)
		}
		addr = addr.Unmap()
		return netip.PrefixFrom(addr, addr.BitLen()), nil
	}
	network, err := netip.ParsePrefix(text)
	if err != nil {
		return netip.Prefix{}, err
	}
	if mapped := 128 - 32; network.Addr().Is4In6() && network.Bits() >= mapped {
		network = netip.PrefixFrom(network.Addr().Unmap(), network.Bits()-mapped)
	}
	return network.Masked(), nil
}
