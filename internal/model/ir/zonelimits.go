package ir

import "cmp"

// ZoneLimits limits the request rate and the number of concurrent requests of clients with zones of the administrator,
// as nginx's directives limit_req and limit_conn do. All limits apply. A request that exceeds one of them counts for
// none of them.
type ZoneLimits struct {
	Requests    []RequestLimit    `json:"requests,omitempty"`
	Connections []ConnectionLimit `json:"connections,omitempty"`
	// Status is the status code of the response if a limit in Requests is exceeded, and ConnectionsStatus if a limit in
	// Connections is exceeded. If they are zero, DefaultStatus and DefaultConnectionsStatus apply.
	Status                   int `json:"status_code,omitempty"`
	ConnectionsStatus        int `json:"connections_status_code,omitempty"`
	DefaultStatus            int `json:"default_status_code,omitempty"`
	DefaultConnectionsStatus int `json:"default_connections_status_code,omitempty"`
	// DryRun only counts requests, and neither delays nor rejects them. ConnectionsDryRun does the same for
	// Connections. Nil means false.
	DryRun            *bool `json:"dry_run,omitempty"`
	ConnectionsDryRun *bool `json:"connections_dry_run,omitempty"`
}

// RequestLimit limits the request rate of clients.
type RequestLimit struct {
	Zone RequestZone `json:"zone"`
	// Burst is the number of requests that a client may send beyond the rate. Requests beyond the rate wait until the
	// client keeps its rate, except the first ones, as many as Undelayed.
	Burst     int `json:"burst,omitempty"`
	Undelayed int `json:"undelayed,omitempty"`
}

// Zone identifies the clients of a limit. All limits with equal zones share their counters.
type Zone struct {
	Name string `json:"name"`
	// Key is a template for a text that identifies a client. If Key is empty, the client's address is used. If the text
	// is empty for a request, the request is not limited.
	Key string `json:"key,omitempty"`
}

// RequestZone counts the requests of clients. Exactly one of the rates is set.
type RequestZone struct {
	Zone
	RequestsPerSecond int `json:"requests_per_second,omitempty"`
	RequestsPerMinute int `json:"requests_per_minute,omitempty"`
	// MaxClients is the maximum number of clients whose requests are counted at the same time.
	MaxClients int `json:"max_clients"`
}

// ConnectionLimit limits the number of concurrent requests of a client to Max.
type ConnectionLimit struct {
	Zone Zone `json:"zone"`
	Max  int  `json:"max"`
}

// Guards implements Filter.
func (z ZoneLimits) Guards() Guard {
	if len(z.Requests)+len(z.Connections) == 0 {
		return NoRequests
	}
	return SomeRequests
}

// Within returns the limits of a level of the configuration with what it inherits from an outer level. As in nginx, a
// level with Requests inherits no Requests, and likewise for Connections.
func (z ZoneLimits) Within(outer *ZoneLimits) ZoneLimits {
	if outer == nil {
		return z
	}
	if z.Requests == nil {
		z.Requests = outer.Requests
	}
	if z.Connections == nil {
		z.Connections = outer.Connections
	}
	z.Status = cmp.Or(z.Status, outer.Status)
	z.ConnectionsStatus = cmp.Or(z.ConnectionsStatus, outer.ConnectionsStatus)
	z.DryRun = cmp.Or(z.DryRun, outer.DryRun)
	z.ConnectionsDryRun = cmp.Or(z.ConnectionsDryRun, outer.ConnectionsDryRun)
	return z
}
