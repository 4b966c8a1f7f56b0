// Package callout defines the requests that the controller itself sends to services whose URLs are in annotations, for
// external authentication and mirroring. This package opens no connections; package proxy sends the requests.
package callout

import (
	"errors"
	"time"

	"github.com/k8singress/k8singress/internal/http/message"
)

// MaxResponse is the maximum number of bytes to read from a response, unless Service.Drain is larger. The limit is low,
// because only the status and the header fields are used.
const MaxResponse = 64 << 10

// ErrBusy is returned if a call needs a new connection, but its namespace has already reached its limit of connections.
var ErrBusy = errors.New("the namespace has reached its limit of connections to authentication services and mirror " +
	"targets: raise the limit of open files, or start more replicas")

// Call is a request to an external service, such as an authentication service. It is not safe for concurrent use.
type Call struct {
	*Service

	// Namespace is the namespace of the Ingress whose annotation contains the service's URL. Connections to services
	// are not shared between namespaces.
	Namespace string
	// Secure enables TLS. Address is the address of the service as host:port; the host may be an IP address or a DNS
	// name.
	Secure  bool
	Address string
	// Own is true if the URL of the service has the same host as the client's request. The call may then come back to
	// this process, and cause an endless loop.
	Own bool
	// Host is the Host header of the call. Method, Target and Fields are its method, request target and other header
	// fields. Fields does not contain header fields about the connection or the length of the body.
	Host, Method, Target string
	Fields               message.Fields
	// Body is the request body. It may be empty.
	Body []byte
}

// Service holds the settings for all calls to an external service. It is immutable.
type Service struct {
	// Purpose is a prefix for error messages that says what the service is used for, such as "external authentication".
	Purpose string
	// Connect is the timeout for opening a connection. Read and Write are the timeouts for each read and write on the
	// connection.
	Connect, Read, Write time.Duration
	// Idle is the maximum number of idle connections to keep; if it is negative, connections are not reused.
	// IdleTimeout is how long idle connections are kept. If one of them is zero, the same setting as for connections to
	// endpoints is used.
	Idle        int
	IdleTimeout time.Duration
	// Requests is the maximum number of requests that are sent on one connection. Zero means no limit.
	Requests int
	// Drain is the maximum number of response bytes to read and discard after the needed part, so that the service can
	// complete its response. The timeout of the call still applies. If Drain is zero, the connection is closed unless
	// the rest of the response arrives immediately.
	Drain int
	// Dispensable is true if the calls may be dropped under load. Dispensable calls may use at most half of the
	// connections; the other half is reserved for other calls.
	Dispensable bool
	// Wants reports whether a header field of the response is needed. Nil means that no header field is needed.
	Wants func(f *message.Field) bool
}

// Response is the response of a service: its status, and the header fields that Service.Wants selects.
type Response struct {
	Status int
	Fields message.Fields
}

// NewResponse returns the Response for a response with the given status and header fields. It drops the header fields
// that s.Wants does not select.
func (s *Service) NewResponse(status int, fields message.Fields) Response {
	a := Response{Status: status}
	for i := range fields {
		if f := &fields[i]; s.Wants != nil && s.Wants(f) {
			a.Fields = append(a.Fields, *f)
		}
	}
	return a
}
