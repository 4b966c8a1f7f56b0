// Package extauth has the answers of external services that say whether requests are let in: what they mean, and which are kept for the
// next question. Package callout says what is asked.
package extauth

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/k8singress/k8singress/internal/message"
)

// Service is what all questions to one external service have in common. It is immutable.
type Service struct {
	// Wanted are the fields of answers that are of use, besides those of each answer.
	Wanted []message.Field
	// Keep says which answers are kept, and for how long.
	Keep []Lifetime
}

// Lifetime is for how long answers with a status are kept.
type Lifetime struct {
	Status int
	For    time.Duration
}

// Answer is what an external service has answered. It is immutable.
type Answer struct {
	Status int
	// Fields are the wanted ones, cookies and challenges.
	Fields message.Fields
}

// LetsIn says whether the answer lets a request in, and Refuses whether it keeps it out. Other answers are failures.
func (a *Answer) LetsIn() bool { return a.Status >= 200 && a.Status < 300 }

// Refuses says whether the answer keeps a request out.
func (a *Answer) Refuses() bool {
	return a.Status == http.StatusUnauthorized || a.Status == http.StatusForbidden
}

// challenge is the name of the fields that say how a client is to authenticate.
var challenge = message.NewField("WWW-Authenticate", "")

// IsChallenge says whether a field tells the client how to authenticate.
func IsChallenge(f *message.Field) bool { return f.Is(challenge.Kind, challenge.Name) }

// Wants says whether a field of an answer is of use.
func (s *Service) Wants(f *message.Field) bool {
	if f.Kind == message.SetCookie || IsChallenge(f) || len(s.Keep) > 0 && decidesOnKeeping(f) {
		return true
	}
	return slices.ContainsFunc(s.Wanted, func(wanted message.Field) bool { return f.Is(wanted.Kind, wanted.Name) })
}

// SameToBackends says whether a backend may take two names of fields for one: neither case nor what stands between the words makes a
// difference to those that make variables of names, as CGI does.
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

// word returns letters in lower case, digits, and one byte for all else.
func word(c byte) byte {
	switch {
	case '0' <= c && c <= '9', 'a' <= c && c <= 'z':
		return c
	case 'A' <= c && c <= 'Z':
		return c | 0x20
	}
	return '_'
}

// Join returns the values of a name in one, and whether there is any.
func (a *Answer) Join(name message.Field) (string, bool) {
	if name.Kind != message.Other {
		value := a.Fields.JoinedKind(name.Kind)
		return value, a.Fields.Has(name.Kind)
	}
	return a.Fields.Joined(name.Name)
}

// hasWord says whether a comma-separated list has a directive in it, in any case, and what stands behind its equals sign.
func hasWord(list, directive string) (value string, ok bool) {
	for part := range strings.SplitSeq(list, ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(part), "=")
		if strings.EqualFold(name, directive) {
			return strings.Trim(value, `"`), true
		}
	}
	return "", false
}
