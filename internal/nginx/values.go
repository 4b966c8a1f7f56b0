// Package nginx reads what stands in annotations and in ConfigMap keys: switches, numbers, times, sizes and names, in the
// words of nginx and ingress-nginx. An error is worded for the author of the value.
package nginx

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/k8singress/k8singress/internal/suggest"
)

// Remark is an error that comes with a value: the value counts, and its author should know something about it.
type Remark string

func (r Remark) Error() string { return string(r) }

// Partial is an error that comes with the part of a value that can be used, and which counts.
type Partial string

func (p Partial) Error() string { return string(p) }

// Unsupported is the error of a value that ingress-nginx takes and this controller does not.
type Unsupported string

func (u Unsupported) Error() string { return string(u) }

// Counts says whether the value that came with an error is to be used.
func Counts(err error) bool {
	var remark Remark
	var partial Partial
	return err == nil || errors.As(err, &remark) || errors.As(err, &partial)
}

// Into makes a parser of a field and of a reader of values. With an error the field stays as it is.
func Into[S, T any](field func(*S) *T, read func(string) (T, error)) func(*S, string) error {
	return func(s *S, text string) error {
		v, err := read(text)
		if Counts(err) {
			*field(s) = v
		}
		return err
	}
}

// Quote returns a value for a message, cut where it is long.
func Quote(text string) string {
	const most = 80
	if runes := []rune(text); len(runes) > most {
		return strconv.Quote(string(runes[:most])) + "..."
	}
	return strconv.Quote(text)
}

// Bool reads true and false.
func Bool(text string) (bool, error) {
	v, err := strconv.ParseBool(text)
	if err != nil {
		return false, fmt.Errorf(`%s is neither "true" nor "false"`, Quote(text))
	}
	return v, nil
}

// No reads true and false, and returns the opposite: it is for a switch whose default is on.
func No(text string) (bool, error) {
	on, err := Bool(text)
	return err == nil && !on, err
}

// OnOff reads the switches of nginx.
func OnOff(text string) (bool, error) {
	if text != "on" && text != "off" {
		return false, fmt.Errorf(`%s is neither "on" nor "off"`, Quote(text))
	}
	return text == "on", nil
}

// Number returns a reader of numbers in a range.
func Number(least, most int) func(string) (int, error) {
	return func(text string) (int, error) {
		n, err := strconv.Atoi(text)
		if err != nil || n < least || n > most {
			return 0, fmt.Errorf("%s is not a number from %d to %d", Quote(text), least, most)
		}
		return n, nil
	}
}

// OneOf returns a reader of words in a list. Case counts for nothing; the word comes back as it stands in the list.
func OneOf(words ...string) func(string) (string, error) {
	return func(text string) (string, error) {
		i := slices.IndexFunc(words, func(w string) bool { return strings.EqualFold(w, text) })
		if i < 0 {
			return "", fmt.Errorf("%s is not one of %s%s", Quote(text), strings.Join(words, ", "), Meant(text, words))
		}
		return words[i], nil
	}
}

// Meant returns the end of the message on a word that is not among the known ones: the nearest of them, or nothing. A number is
// another number, and not misspelt.
func Meant(text string, words []string) string {
	if strings.ContainsAny(text, "0123456789") {
		return ""
	}
	return suggest.Hint(text, words)
}

// mostNameBytes is more than any header or cookie name needs, and less than clients and proxies refuse.
const mostNameBytes = 128

// Token reads the name of a header or of a cookie.
func Token(text string) (string, error) {
	if text == "" || len(text) > mostNameBytes || strings.ContainsFunc(text, notInToken) {
		return "", fmt.Errorf("%s is not a name: it may have letters, digits and any of !#$%%&'*+-.^_`|~, up to %d of them",
			Quote(text), mostNameBytes)
	}
	return text, nil
}

func notInToken(r rune) bool {
	return !isAlphanumeric(r) && !strings.ContainsRune("!#$%&'*+-.^_`|~", r)
}

func isAlphanumeric(r rune) bool {
	return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9'
}

// Chars returns a reader of text in letters, digits and some other characters, such as ".-".
func Chars(others string, most int) func(string) (string, error) {
	return func(text string) (string, error) {
		if len(text) > most {
			return "", fmt.Errorf("%s is longer than %d bytes", Quote(text), most)
		}
		for _, r := range text {
			if !isAlphanumeric(r) && !strings.ContainsRune(others, r) {
				return "", fmt.Errorf("%s has %q in it: it may have letters, digits and any of %s", Quote(text), r, others)
			}
		}
		return text, nil
	}
}

// ListOf returns a reader of a list with commas. check says what is wrong with an entry, which is left out then; the others count.
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

// IsControl is true for what could mean something to a log, a header or a terminal: control characters, and the two line
// separators that Unicode does not count among them.
func IsControl(r rune) bool { return unicode.IsControl(r) || r == '\u2028' || r == '\u2029' }

// Nowhere is a network that no connection comes from: the address of a broadcast.
const Nowhere = "255.255.255.255/32"

// List returns the words of a list, with commas or white space between them.
func List(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == ',' || unicode.IsSpace(r) })
}

// Locations reads the beginnings of paths, with commas between them. It wants a slash in front: without, a typing error
// would say nothing, and a comma too many exempt everything.
func Locations(value string) ([]string, error) {
	var list []string
	for text := range strings.SplitSeq(value, ",") {
		location := strings.TrimSpace(text)
		if location == "" {
			continue
		}
		if !strings.HasPrefix(location, "/") {
			return nil, fmt.Errorf("%s is not the beginning of a path: write /%s", Quote(location), location)
		}
		list = append(list, location)
	}
	return list, nil
}

// Networks reads the networks and addresses of trusted proxies, with commas or spaces between them. An error is a Partial one: what
// cannot be read is left out. The list is never empty, because an empty one trusts every address; without anything that can be read
// it has a network that no connection comes from.
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
		return networks, Partial("left out, because these are not networks such as 10.0.0.0/8: " + strings.Join(bad, ", "))
	}
	return networks, nil
}

// AllNetworks reads networks and addresses with commas or spaces between them, and fails if one of them cannot be read.
func AllNetworks(text string) ([]string, error) {
	networks, err := Networks(text)
	if err != nil {
		return nil, fmt.Errorf("%s has something else in it than networks: write networks such as 10.0.0.0/8, with commas between them",
			Quote(text))
	}
	return networks, nil
}

// network reads a network or an address. IPv4-mapped IPv6 addresses count as IPv4.
func network(text string) (netip.Prefix, error) {
	if !strings.Contains(text, "/") {
		addr, err := netip.ParseAddr(text)
		if err != nil || addr.Zone() != "" {
			return netip.Prefix{}, fmt.Errorf("%q is no address", text)
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
