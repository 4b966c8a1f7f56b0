// Package extauth interprets and caches the responses of external authentication services. Package callout defines the
// requests to them.
package extauth

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/k8singress/k8singress/internal/http/message"
)

// Service holds the settings for all requests to one authentication service. It is immutable.
type Service struct {
	// Wanted are the response fields to keep, in addition to those that are always needed.
	Wanted []message.Field
	// Keep defines which responses are cached, and how long.
	Keep []Lifetime
}

// Lifetime is how long responses with a status are cached.
type Lifetime struct {
	Status int
	For    time.Duration
}

// Verdict is the response of an authentication service. It is immutable.
type Verdict struct {
	Status int
	// Fields are the wanted fields, cookies and challenges.
	Fields message.Fields
}

// Allows reports whether the service accepts the request. A response that neither accepts nor rejects the request is a
// failure.
func (a *Verdict) Allows() bool { return a.Status >= 200 && a.Status < 300 }

// Denies reports whether the service rejects the request.
func (a *Verdict) Denies() bool {
	return a.Status == http.StatusUnauthorized || a.Status == http.StatusForbidden
}

// challenge is the field that tells a client how to authenticate.
var challenge = message.NewField("WWW-Authenticate", "")

// IsChallenge reports whether a field tells the client how to authenticate.
func IsChallenge(f *message.Field) bool { return f.Is(challenge.Kind, challenge.Name) }

// Wants reports whether a response field is needed.
func (s *Service) Wants(f *message.Field) bool {
	if f.Kind == message.SetCookie || IsChallenge(f) || len(s.Keep) > 0 && affectsCaching(f) {
		return true
	}
	return slices.ContainsFunc(s.Wanted, func(wanted message.Field) bool { return f.Is(wanted.Kind, wanted.Name) })
}

// SameToBackends reports whether a backend may confuse two field names. Backends that turn names into variables, as CGI
// does, ignore case and the differences between separators.
func SameToBackends(a, b string) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range len(a) {
		if word(a[i]) != word(b[i]) {
			return false
		}
	}
	return true
}

// word returns digits and lower-case letters unchanged, upper-case letters in lower case, and "_" for all other bytes.
func word(c byte) byte {
	switch {
	case '0' <= c && c <= '9', 'a' <= c && c <= 'z':
		return c
	case 'A' <= c && c <= 'Z':
		return c | 0x20
	}
	return '_'
}

// Join returns the values of all fields with this name, joined by commas, and whether there is one.
func (a *Verdict) Join(name message.Field) (string, bool) {
	if name.Kind != message.Other {
		value := a.Fields.JoinedKind(name.Kind)
		return value, a.Fields.Has(name.Kind)
	}
	return a.Fields.Joined(name.Name)
}

// hasWord reports whether a comma-separated list contains a directive, ignoring case, and returns the text after its
// equals sign.
func hasWord(list, directive string) (value string, ok bool) {
	for part := range strings.SplitSeq(list, ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(part), "=")
		if strings.EqualFold(name, directive) {
			return strings.Trim(value, `"`), true
		}
	}
	return "", false
}
