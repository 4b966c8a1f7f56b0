// Package nginx parses the values of annotations and ConfigMap keys: switches, numbers, times, sizes and names in the
// formats of nginx and ingress-nginx. Its error messages are written for the author of the value.
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

// Remark is an error that a parser returns together with a valid value. The value is used, and the author gets a
// warning.
type Remark string

func (r Remark) Error() string { return string(r) }

// Partial is an error that a parser returns together with the valid part of a value. The valid part is used.
type Partial string

func (p Partial) Error() string { return string(p) }

// Unsupported is the error for a value that ingress-nginx supports and this controller does not.
type Unsupported string

func (u Unsupported) Error() string { return string(u) }

// IsUsable reports whether the value that a parser returned together with err may be used: err is nil, a Remark or a
// Partial.
func IsUsable(err error) bool {
	var remark Remark
	var partial Partial
	return err == nil || errors.As(err, &remark) || errors.As(err, &partial)
}

// Into creates a setter for one field of a struct of type S. The setter parses a string with the function read and
// stores the result in the field. If the string is not valid, the field does not change.
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

// No parses a boolean and returns its negation. It is used for fields whose value true turns off something that is on
// by default.
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

// Number returns a parser for integers from minimum to maximum.
func Number(minimum, maximum int) func(string) (int, error) {
	return func(text string) (int, error) {
		n, err := strconv.Atoi(text)
		if err != nil || n < minimum || n > maximum {
			return 0, fmt.Errorf("%s is not a number from %d to %d", Quote(text), minimum, maximum)
		}
		return n, nil
	}
}

// OneOf returns a parser for words from a list. The parser ignores case, and returns the word as it is spelled in the
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

// Suggestion returns the end of a message about an unknown word: it suggests the most similar known word. It returns ""
// if no known word is similar, or if text contains digits, because another number is not a misspelling.
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

// Chars returns a parser for strings that consist of letters, digits and the characters in others, such as ".-". A
// string may be up to maxBytes bytes long.
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

// ListOf returns a parser for comma-separated lists. Entries for which check returns an error are left out: the parser
// returns the other entries and a Partial.
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

// Nowhere is a network from which no connection can come: it contains only the broadcast address.
const Nowhere = "255.255.255.255/32"

// List splits a list at commas and white space.
func List(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == ',' || unicode.IsSpace(r) })
}

// Locations parses comma-separated path prefixes. Each must start with a slash: without it, a misspelled prefix would
// silently match no path, and an empty prefix would match every path.
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

// Networks parses the networks and addresses of trusted proxies, separated by commas or spaces. If some entries are
// invalid, it leaves them out and returns a Partial. The list is never empty, because an empty list would trust every
// address: if no entry is valid, it contains only Nowhere.
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
		return []string{Nowhere}, Partial("no proxy is trusted, because there is no valid network in " + Quote(text) +
			": write networks such as 10.0.0.0/8")
	case len(bad) > 0:
		return networks, Partial("these values are ignored, because they are not networks such as 10.0.0.0/8: " +
			strings.Join(bad, ", "))
	}
	return networks, nil
}

// AllNetworks parses networks and addresses, separated by commas or spaces. It returns an error if any entry is not
// valid.
func AllNetworks(text string) ([]string, error) {
	networks, err := Networks(text)
	if err != nil {
		return nil,
			fmt.Errorf(
				"%s contains values that are not networks: write networks such as 10.0.0.0/8, separated by "+
					"commas",
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
