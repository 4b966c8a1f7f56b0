package certs

import (
	"iter"
	"strings"
	"time"

	"github.com/k8singress/k8singress/internal/ir"
)

// End is when a certificate ends that is shown.
type End struct {
	// Namespace is that of the Secret, or that of the object which the host comes from.
	Namespace string
	// Secret is the name of the Secret; it is empty for a certificate that was issued for Host, which is empty otherwise. One
	// field for both would take a host for a Secret with the same name.
	Secret, Host string
	At           time.Time
}

// Ends yields when certificates end, of each Secret and each host with one, in no particular order. It is for any goroutine.
func (s *Store) Ends() iter.Seq[End] {
	return func(yield func(End) bool) {
		s.ends.Range(func(name, at any) bool {
			end, ok := s.end(name.(string), at.(time.Time))
			return !ok || yield(end)
		})
	}
}

func (s *Store) end(name string, at time.Time) (end End, ok bool) {
	end.At = at
	if host, issued := strings.CutPrefix(name, issuedPrefix); issued {
		end.Host = host
		end.Namespace, ok = s.namespaceOf(host)
		return end, ok
	}
	end.Namespace, end.Secret, ok = strings.Cut(name, "/")
	return end, ok && end.Namespace != "" && end.Secret != ""
}

// namespaceOf returns the namespace that a host comes from; it is empty where the document does not say.
func (s *Store) namespaceOf(name string) (string, bool) {
	value, ok := s.hosts.Load(name)
	if !ok {
		return "", false
	}
	return ir.ParseRef(value.(*host).origin).Namespace, true
}
