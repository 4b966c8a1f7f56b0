// Package extauth asks external services whether requests are let in: what is asked, where, and which answers are kept for the next
// question. It opens no connections: package proxy sends the questions.
package extauth

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/k8singress/k8singress/internal/message"
)

// MostBytes is how much of an answer is read: nobody needs more than its head.
const MostBytes = 64 << 10

// Question is a request without a body to an external service. It is for the goroutine that asks.
type Question struct {
	*Service

	// Namespace is that of the Ingress: no connection is shared with another one.
	Namespace string
	// Secure is for TLS, and Address where the service is: host:port, whose host may be a name.
	Secure  bool
	Address string
	// Own says that the service is behind the host that the request is for: it may be asked through this process.
	Own bool
	// Host, Method and Target begin the request, and Fields follow. Those about the connection and the framing are left out.
	Host, Method, Target string
	Fields               message.Fields
}

// Service is what all questions to one external service have in common. It is immutable.
type Service struct {
	// Connect is for a new connection. Read and write end a connection on which nothing comes in or goes out for so long.
	Connect, Read, Write time.Duration
	// Idle is how many idle connections are kept, less than zero none, and IdleTimeout for how long. Zero is as for endpoints.
	Idle        int
	IdleTimeout time.Duration
	// Requests is how many a connection may have; zero is any number.
	Requests int
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

// NewAnswer takes what is of use out of the head of an answer.
func (s *Service) NewAnswer(status int, fields message.Fields) *Answer {
	a := &Answer{Status: status}
	for i := range fields {
		if f := &fields[i]; s.wants(f) {
			a.Fields = append(a.Fields, *f)
		}
	}
	return a
}

func (s *Service) wants(f *message.Field) bool {
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
