package ir

import "time"

// Backend is one port of one Service.
type Backend struct {
	// ID is "namespace/service/port", with "/udp" behind it for UDP. The port is its number, or what the user wrote
	// where the Service has no such port.
	ID        string
	Namespace string
	Service   string
	Protocol  Protocol
	// PortName is the name by which EndpointSlices know the port; it is empty for the only, unnamed port of a Service.
	PortName string
	// Missing says that there is no such Service or no such port. It has no endpoints then.
	Missing bool
	// ExternalName is "name:port" for a Service that stands for a DNS name: the addresses of that name are the endpoints.
	ExternalName string
	// VirtualAddress is "address:port" of the Service itself. It is the only endpoint, if LoadBalancing asks for it.
	VirtualAddress string
	// NotReadyToo says that endpoints count which are not ready: the Service has publishNotReadyAddresses.
	NotReadyToo   bool
	LoadBalancing LoadBalancing
}

// Endpoint is one address that serves a backend.
type Endpoint struct {
	// Address is host:port.
	Address string
	// Terminating endpoints still serve, and are asked when no other is left. They may end at any moment.
	Terminating bool
}

// LoadBalancing is how one endpoint of a backend is chosen. The zero value is round robin.
type LoadBalancing struct {
	Policy Policy `json:"policy,omitempty"`
	// HashBy is what PolicyHash hashes: text with nginx variables such as $request_uri in it.
	HashBy string `json:"hash_by,omitempty"`
	// HashSubset is how many endpoints share a hash, one of which is taken at random; zero is one.
	HashSubset int `json:"hash_subset,omitempty"`
	// SessionCookie keeps a client at its endpoint; nil is without.
	SessionCookie *SessionCookie `json:"session_cookie,omitempty"`
	// ClientIP keeps the client of an address at its endpoint for so long after its last request: sessionAffinity of the
	// Service. Zero is without. A session cookie comes first.
	ClientIP time.Duration `json:"client_ip,omitempty"`
	// UseVirtualAddress leaves the choice to the Service: see Backend.VirtualAddress.
	UseVirtualAddress bool `json:"-"`
	// SlowStart is how long a new endpoint takes to get its full share; zero is at once.
	SlowStart time.Duration `json:"slow_start,omitempty"`
	// EjectAfter is how many times in a row an endpoint may fail before it is passed over for a while: zero is 3, less than
	// zero never.
	EjectAfter int `json:"eject_after,omitempty"`
	// HealthCheck asks the endpoints by itself; nil is without.
	HealthCheck *HealthCheck `json:"health_check,omitempty"`
}

// Policy of load balancing.
type Policy string

// The policies there are. The empty one is round robin.
const (
	PolicyRoundRobin Policy = "round_robin"
	// PolicyEWMA takes the better of two endpoints chosen at random, by their latency and what is under way.
	PolicyEWMA         Policy = "ewma"
	PolicyLeastRequest Policy = "least_request"
	PolicyRandom       Policy = "random"
	// PolicyHash is a consistent hash of LoadBalancing.HashBy.
	PolicyHash Policy = "hash"
)

// SessionCookie is the cookie that tells the endpoint of a client.
type SessionCookie struct {
	Name string `json:"name"`
	// Persistent never moves a client from an endpoint that is there. Otherwise some of them move when endpoints come.
	Persistent bool `json:"persistent,omitempty"`
	// ChangeOnFailure gives a client another endpoint when its own one fails.
	ChangeOnFailure bool `json:"change_on_failure,omitempty"`
	// Expires and MaxAge are for the attributes of those names; zero leaves them out.
	Expires time.Duration `json:"expires,omitempty"`
	MaxAge  time.Duration `json:"max_age,omitempty"`
	Domain  string        `json:"domain,omitempty"`
	// Path is the path of the Ingress where it is empty.
	Path string `json:"path,omitempty"`
	// SameSite is None, Lax, Strict or empty.
	SameSite string `json:"same_site,omitempty"`
	// OmitSameSiteNone leaves SameSite=None out for browsers that do not know it.
	OmitSameSiteNone bool `json:"omit_same_site_none,omitempty"`
	// Secure is always set over HTTPS; this sets it over HTTP, too.
	Secure bool `json:"secure,omitempty"`
	// Origins are the objects whose routes set the cookie; the others only follow it. They are as Ref.String gives them.
	Origins []string `json:"origins,omitempty"`
}

// HealthCheck is a request that each endpoint gets again and again. One that fails is passed over.
type HealthCheck struct {
	// Path may have a query.
	Path string `json:"path"`
	// Interval is from one request to the next, Timeout for one of them.
	Interval time.Duration `json:"interval"`
	Timeout  time.Duration `json:"timeout"`
	// Healthy and Unhealthy are how many in a row make an endpoint so.
	Healthy   int `json:"healthy"`
	Unhealthy int `json:"unhealthy"`
	// Status is what an endpoint has to answer; zero is anything from 200 to 399.
	Status int `json:"status,omitempty"`
	// Host is the Host header; empty is the address of the endpoint.
	Host string `json:"host,omitempty"`
	// GRPC asks the standard health service of gRPC for the service that the path names; / is the server as a whole.
	GRPC bool `json:"grpc,omitempty"`
	// TLS asks over HTTPS, without a look at the certificate unless Secured says so.
	TLS bool `json:"tls,omitempty"`
	// Secured is how that is done where requests do it in another way, too. It has no Secret for those that do not.
	Secured BackendTLS `json:"secured,omitzero"`
}
