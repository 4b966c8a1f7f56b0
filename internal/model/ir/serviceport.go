package ir

import (
	"cmp"
	"fmt"
	"strings"
)

// ServicePort is a Service and one of its ports, by number or name. An empty port means the first port. The zero value
// refers to no Service; for it, String returns "". ServicePort is comparable.
type ServicePort struct {
	Service Name
	Port    string
}

// ParseServicePort parses a string of the form "namespace/name:port" or "namespace/name".
func ParseServicePort(s string) (ServicePort, error) {
	name, port, has := strings.Cut(s, ":")
	service, err := ParseName(name)
	if err != nil || has && port == "" {
		return ServicePort{}, fmt.Errorf("%q is not namespace/name or namespace/name:port", s)
	}
	return ServicePort{service, port}, nil
}

// String returns "namespace/name:port", or "namespace/name" for the first port.
func (p ServicePort) String() string {
	if p.Port == "" {
		return p.Service.String()
	}
	return p.Service.String() + ":" + p.Port
}

// IsZero reports whether the value refers to no Service. The JSON option omitzero uses it.
func (p ServicePort) IsZero() bool { return p == ServicePort{} }

// MarshalText returns the result of String, so that a ServicePort is a string in JSON.
func (p ServicePort) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText parses a string in the form that MarshalText returns.
func (p *ServicePort) UnmarshalText(text []byte) (err error) {
	*p = ServicePort{}
	if len(text) > 0 {
		*p, err = ParseServicePort(string(text))
	}
	return err
}

// FollowedPort is a port of a Service whose endpoints a Caddy module uses, although no Kubernetes object refers to it.
type FollowedPort struct {
	ServicePort
	Protocol Protocol
}

// Compare orders ports by Service, then by port, then by protocol.
func (p FollowedPort) Compare(other FollowedPort) int {
	return cmp.Or(p.Service.Compare(other.Service), cmp.Compare(p.Port, other.Port),
		cmp.Compare(p.Protocol, other.Protocol))
}

// FollowedBackend is the backend for a FollowedPort.
type FollowedBackend struct {
	FollowedPort
	// Backend is never nil. Config.Backends contains a Backend with the same ID.
	Backend *Backend
	// Problem is the reason why the backend is missing, or empty.
	Problem string
}
