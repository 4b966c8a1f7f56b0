package ir

import "time"

// Backend is one port of a Service. Its endpoints serve the requests or connections.
type Backend struct {
	// ID is "namespace/service/port", followed by "/udp" for UDP. The last part is the number of the port. If the
	// Service has no such port, the last part is the name or number with which the manifest refers to the port.
	ID        string
	Namespace string
	Service   string
	Protocol  Protocol
	// PortName is the name of the port in EndpointSlices. It is empty for the only, unnamed port of a Service.
	PortName string
	// Missing is true if the Service or the port does not exist. A missing backend has no endpoints.
	Missing bool
	// ExternalName is "name:port" for a Service of type ExternalName. The addresses of that DNS name are the endpoints.
	// It is empty for other Services.
	ExternalName string
	// VirtualAddress is "address:port" of the Service itself (its cluster IP). It is the only endpoint if
	// LoadBalancing.UseVirtualAddress is set.
	VirtualAddress string
	// NotReadyToo is true if requests may also be sent to endpoints that are not ready. It is set if
	// publishNotReadyAddresses is set in the Service.
	NotReadyToo   bool
	LoadBalancing LoadBalancing
}

// Endpoint is one address that serves a backend.
type Endpoint struct {
	// Address is host:port.
	Address string
	// Terminating is true if the endpoint is shutting down. Such an endpoint still serves requests, but may stop at any
	// moment, so it is used only if no other endpoint is left.
	Terminating bool
}

// LoadBalancing configures how an endpoint of a backend is chosen. The zero value is round robin.
type LoadBalancing struct {
	Policy Policy `json:"policy,omitempty"`
	// HashBy is the string that PolicyHash hashes. It may contain nginx variables such as $request_uri.
	HashBy string `json:"hash_by,omitempty"`
	// HashSubset is the number of endpoints to which requests with the same hash are sent. One of these endpoints is
	// chosen at random for each request. Zero means 1.
	HashSubset int `json:"hash_subset,omitempty"`
	// SessionCookie enables session affinity by a cookie. Nil disables it.
	SessionCookie *SessionCookie `json:"session_cookie,omitempty"`
	// ClientIP enables session affinity by client address (sessionAffinity of the Service). Its value is how long a
	// client keeps its endpoint after its last request. Zero disables it. A session cookie takes precedence.
	ClientIP time.Duration `json:"client_ip,omitempty"`
	// UseVirtualAddress sends all requests to the cluster IP of the Service, which then chooses the endpoint: see
	// Backend.VirtualAddress.
	UseVirtualAddress bool `json:"-"`
	// SlowStart is the time during which the share of requests for a new endpoint increases to a full share. Zero means
	// that a new endpoint gets its full share at once.
	SlowStart time.Duration `json:"slow_start,omitempty"`
	// EjectAfter is the number of consecutive failures after which an endpoint is skipped for a while. Zero means 3. A
	// negative value disables ejection.
	EjectAfter int `json:"eject_after,omitempty"`
	// HealthCheck configures active health checks. Nil disables them.
	HealthCheck *HealthCheck `json:"health_check,omitempty"`
}

// Policy is a load balancing algorithm.
type Policy string

// The load balancing policies. An empty Policy means round robin.
const (
	PolicyRoundRobin Policy = "round_robin"
	// PolicyEWMA chooses two endpoints at random and uses the one with the lower latency and fewer requests in flight.
	PolicyEWMA         Policy = "ewma"
	PolicyLeastRequest Policy = "least_request"
	PolicyRandom       Policy = "random"
	// PolicyHash uses consistent hashing of LoadBalancing.HashBy.
	PolicyHash Policy = "hash"
)

// SessionCookie configures the cookie that stores the endpoint of a client.
type SessionCookie struct {
	Name string `json:"name"`
	// Persistent keeps a client at its endpoint for as long as the endpoint exists. Without it, some clients move to
	// another endpoint when endpoints are added.
	Persistent bool `json:"persistent,omitempty"`
	// ChangeOnFailure assigns another endpoint to a client if the client's current endpoint fails.
	ChangeOnFailure bool `json:"change_on_failure,omitempty"`
	// Expires and MaxAge set the cookie attributes Expires and Max-Age. Zero leaves the attribute out.
	Expires time.Duration `json:"expires,omitempty"`
	MaxAge  time.Duration `json:"max_age,omitempty"`
	Domain  string        `json:"domain,omitempty"`
	// Path is the cookie attribute Path. If it is empty, the path of the Ingress is used.
	Path string `json:"path,omitempty"`
	// SameSite has the value None, Lax or Strict, or is empty.
	SameSite string `json:"same_site,omitempty"`
	// OmitSameSiteNone leaves out SameSite=None for browsers that do not support it.
	OmitSameSiteNone bool `json:"omit_same_site_none,omitempty"`
	// Secure sets the cookie attribute Secure over HTTP, too. Over HTTPS it is always set.
	Secure bool `json:"secure,omitempty"`
	// Origins lists the objects whose routes set the cookie, in the form of Ref.String. Other routes use the cookie but
	// do not set it.
	Origins []string `json:"origins,omitempty"`
}

// HealthCheck configures the request that is sent periodically to each endpoint. Endpoints that fail it are skipped.
type HealthCheck struct {
	// Path is the path of the request. It may include a query.
	Path string `json:"path"`
	// Interval is the time between two requests to an endpoint. Timeout is the time limit for one request.
	Interval time.Duration `json:"interval"`
	Timeout  time.Duration `json:"timeout"`
	// An endpoint becomes healthy after Healthy consecutive successful checks, and unhealthy after Unhealthy
	// consecutive failed checks.
	Healthy   int `json:"healthy"`
	Unhealthy int `json:"unhealthy"`
	// Status is the response status that counts as success. Zero accepts 200 to 399.
	Status int `json:"status,omitempty"`
	// Host is the Host header. If it is empty, the address of the endpoint is used.
	Host string `json:"host,omitempty"`
	// GRPC uses the standard gRPC health checking protocol instead of an HTTP request. Path then contains the name of
	// the gRPC service to check; "/" stands for the whole server.
	GRPC bool `json:"grpc,omitempty"`
	// TLS sends the request over TLS. Certificates are not verified unless Secured requires it.
	TLS bool `json:"tls,omitempty"`
	// Secured contains the TLS settings that the Ingress configures for its endpoints. Health checks use them only if
	// Secured.Secret is set.
	Secured BackendTLS `json:"secured,omitzero"`
}
