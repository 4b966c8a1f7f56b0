package ir

// ErrorPages replaces error responses with the responses of another backend.
type ErrorPages struct {
	// Statuses lists the status codes of the responses to replace, from 400 to 599, in ascending order.
	Statuses []int `json:"statuses,omitempty"`
	// OwnOnly replaces only the errors of the controller itself. The responses of endpoints are not changed.
	OwnOnly bool `json:"own_only,omitempty"`
	// Backend serves the error pages. It also serves requests if the backend of the route has no endpoints. If it is
	// nil or has no endpoints, the default backend serves the error pages, if there is one.
	Backend *Backend `json:"-"`
}
