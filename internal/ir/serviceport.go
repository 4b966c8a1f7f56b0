package ir

import (
	"fmt"
	"strings"
)

// ServicePort is a Service and one of its ports, by number or by name; empty is the first. The zero value names none, and is empty text. It
// can be compared.
type ServicePort struct {
	Service Name
	Port    string
}

// ParseServicePort reads what String returns.
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

// IsZero says that it names no Service. JSON asks it for omitzero.
func (p ServicePort) IsZero() bool { return p == ServicePort{} }

// MarshalText is what JSON calls.
func (p ServicePort) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText reads what MarshalText returns.
func (p *ServicePort) UnmarshalText(text []byte) (err error) {
	*p = ServicePort{}
	if len(text) > 0 {
		*p, err = ParseServicePort(string(text))
	}
	return err
}
