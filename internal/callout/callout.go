// Package callout says what the controller asks services that an Ingress names by a URL: an external authentication, and a mirror. It opens
// no connections: package proxy makes the calls.
package callout

import (
	"errors"
	"time"

	"github.com/k8singress/k8singress/internal/message"
)

// MostBytes is how much of an answer is read, where a service does not say otherwise: its head is enough.
const MostBytes = 64 << 10

// ErrBusy is the error of a call that needs a new connection while its namespace has as many as it may have.
var ErrBusy = errors.New("the services that Ingresses of the namespace name have as many connections as they may " +
	"have: raise the limit of open files, or start more replicas")

// Call is a request to a service. It is for the goroutine that makes it.
type Call struct {
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
	// Body is empty for none.
	Body []byte
}

// Service is what all calls of one service have in common. It is immutable.
type Service struct {
	// Purpose is what errors begin with, such as "external authentication".
	Purpose string
	// Connect, Read and Write are time limits. Connect is for a new connection. Read and Write end a connection on which nothing comes in or
	// goes out for so long.
	Connect, Read, Write time.Duration
	// Idle is how many idle connections are kept, less than zero none, and IdleTimeout for how long. Zero is as for endpoints.
	Idle        int
	IdleTimeout time.Duration
	// Requests is how many a connection may have; zero is any number.
	Requests int
	// Drain has up to so many bytes of an answer read to their end, for as long as the call may take: the service does not notice that nothing
	// of it is of use. Zero is to leave the connection where the rest of the answer does not come at once.
	Drain int
	// Dispensable says that a call can be dropped: it leaves half of the connections to other calls.
	Dispensable bool
	// Wants says which fields of an answer are of use; nil is none.
	Wants func(f *message.Field) bool
}

// Answer is the head of an answer, as far as it is of use.
type Answer struct {
	Status int
	Fields message.Fields
}

// NewAnswer takes what is of use out of the head of an answer.
func (s *Service) NewAnswer(status int, fields message.Fields) Answer {
	a := Answer{Status: status}
	for i := range fields {
		if f := &fields[i]; s.Wants != nil && s.Wants(f) {
			a.Fields = append(a.Fields, *f)
		}
	}
	return a
}
