// Package callout defines requests to services that an Ingress names by URL, for external authentication and mirroring.
// It opens no connections; package proxy sends the requests.
package callout

import (
	"errors"
	"time"

	"github.com/k8singress/k8singress/internal/http/message"
)

// MaxResponse is the maximum number of bytes that are read of a response, unless Drain is larger. Only the head is
// needed.
const MaxResponse = 64 << 10

// ErrBusy is returned for a call that needs a new connection when its namespace has reached its limit of connections.
var ErrBusy = errors.New("the namespace has reached its limit of connections to the services that its Ingresses " +
	"name: raise the limit of open files, or start more replicas")

// Call is a request to a service. It belongs to the goroutine that sends it.
type Call struct {
	*Service

	// Namespace is the namespace of the Ingress. Connections are not shared between namespaces.
	Namespace string
	// Secure enables TLS. Address is the host:port of the service. The host may be a name.
	Secure  bool
	Address string
	// Own is true if the service has the host of the client's request. The call may then come back to this process.
	Own bool
	// Host, Method and Target define the request, and Fields are its header fields. Fields about the connection and the
	// framing are left out.
	Host, Method, Target string
	Fields               message.Fields
	// Body is empty if there is no body.
	Body []byte
}

// Service holds the settings for all calls to a service. It is immutable.
type Service struct {
	// Purpose is the prefix of error messages, such as "external authentication".
	Purpose string
	// Connect is the timeout for a new connection. Read and Write are the timeouts for a connection on which no data is
	// received or sent.
	Connect, Read, Write time.Duration
	// Idle is the maximum number of idle connections; a negative value keeps none. IdleTimeout is how long they are
	// kept. Zero uses the settings for endpoints.
	Idle        int
	IdleTimeout time.Duration
	// Requests is the maximum number of requests of a connection. Zero means no limit.
	Requests int
	// Drain is the maximum number of response bytes that are read to the end within the timeout of the call, so that
	// the service does not notice that its response is ignored. If it is zero, the connection is closed unless the rest
	// of the response arrives at once.
	Drain int
	// Dispensable is true if a call may be dropped. Such calls leave half of the connections to other calls.
	Dispensable bool
	// Wants reports whether a response field is needed. If it is nil, no field is needed.
	Wants func(f *message.Field) bool
}

// Response is the head of a response, without fields that are not needed.
type Response struct {
	Status int
	Fields message.Fields
}

// NewResponse returns the needed parts of a response head.
func (s *Service) NewResponse(status int, fields message.Fields) Response {
	a := Response{Status: status}
	for i := range fields {
		if f := &fields[i]; s.Wants != nil && s.Wants(f) {
			a.Fields = append(a.Fields, *f)
		}
	}
	return a
}
