// Package extauth interprets and caches the responses of external authentication services. The requests to these
// services are defined in package callout.
package extauth

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/k8singress/k8singress/internal/http/message"
)

// Service holds the settings for interpreting the responses of one authentication service. It is immutable.
type Service struct {
	// Wanted lists the response header fields that are passed on to the backend. Cookies and WWW-Authenticate are
	// always kept.
	Wanted []message.Field
	// Kept lists more response header fields that must be kept, because a program uses them.
	Kept []message.Field
	// Keep defines how long a response is cached, depending on its status. Responses with a status that is not in Keep
	// are not cached.
	Keep []Lifetime
}

// Lifetime is how long responses with a certain status are cached.
type Lifetime struct {
	Status int
	For    time.Duration
}

// Verdict is the response of an authentication service. It is immutable.
type Verdict struct {
	Status int
	// Fields are the response header fields that Service.Wants selects.
	Fields message.Fields
}

// Allows reports whether the service accepts the request. If both Allows and Denies return false, the service has
// failed, and the client gets an error.
func (a *Verdict) Allows() bool { return a.Status >= 200 && a.Status < 300 }

// Denies reports whether the service rejects the request, with status 401 or 403.
func (a *Verdict) Denies() bool {
	return a.Status == http.StatusUnauthorized || a.Status == http.StatusForbidden
}

// challenge is the header field that tells clients how to authenticate.
var challenge = message.NewField("WWW-Authenticate", "")

// IsChallenge reports whether f is a WWW-Authenticate field.
func IsChallenge(f *message.Field) bool { return f.Is(challenge.Kind, challenge.Name) }

// Wants reports whether a response header field is needed later and must be kept in a Verdict.
func (s *Service) Wants(f *message.Field) bool {
	if f.Kind == message.SetCookie || IsChallenge(f) || len(s.Keep) > 0 && affectsCaching(f) {
		return true
	}
	is := func(wanted message.Field) bool { return f.Is(wanted.Kind, wanted.Name) }
	return slices.ContainsFunc(s.Wanted, is) || slices.ContainsFunc(s.Kept, is)
}

// SameToBackends reports whether a backend may treat two header names as the same name. Backends that turn header names
// into variables, as CGI does, ignore case and do not distinguish between separators such as "-" and "_".
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

// word normalizes one byte of a header name for the comparison in SameToBackends: it converts letters to lower case,
// and all bytes other than letters and digits to "_".
func word(c byte) byte {
	switch {
	case '0' <= c && c <= '9', 'a' <= c && c <= 'z':
		return c
	case 'A' <= c && c <= 'Z':
		return c | 0x20
	}
	return '_'
}

// Join returns the values of all header fields with the given name, joined by commas. The second result is false if
// there is no such field.
func (a *Verdict) Join(name message.Field) (string, bool) {
	if name.Kind != message.Other {
		value := a.Fields.JoinedKind(name.Kind)
		return value, a.Fields.Has(name.Kind)
	}
	return a.Fields.Joined(name.Name)
}

// hasWord reports whether a comma-separated list contains a directive, ignoring case. value is the text after the
// directive's equals sign.
func hasWord(list, directive string) (value string, ok bool) {
	for part := range strings.SplitSeq(list, ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(part), "=")
		if strings.EqualFold(name, directive) {
			return strings.Trim(value, `"`), true
		}
	}
	return "", false
}
