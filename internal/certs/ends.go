package certs

import (
	"iter"
	"time"
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
		s.ends.Range(func(of, at any) bool {
			end, ok := s.end(of.(source))
			end.At = at.(time.Time)
			return !ok || yield(end)
		})
	}
}

func (s *Store) end(of source) (end End, ok bool) {
	if !of.issued {
		return End{Namespace: of.secret.Namespace, Secret: of.secret.Name}, true
	}
	end.Host = of.host
	end.Namespace, ok = s.namespaceOf(of.host)
	return end, ok
}

// namespaceOf returns the namespace that a host comes from; it is empty where the document does not say.
func (s *Store) namespaceOf(name string) (string, bool) {
	value, ok := s.hosts.Load(name)
	if !ok {
		return "", false
	}
	return value.(*host).origin.Namespace, true
}
