package ir

// ErrorPages are what clients get in place of errors: the answers of another backend.
type ErrorPages struct {
	// Statuses are the errors, from 400 to 599, in ascending order.
	Statuses []int `json:"statuses,omitempty"`
	// OwnOnly leaves the answers of endpoints as they are, so that only the errors of the controller itself are replaced.
	OwnOnly bool `json:"own_only,omitempty"`
	// Backend answers in place of the errors, and where the backend of the route has no endpoints. Nil, or one without endpoints, leaves
	// the errors to the default backend, if there is one.
	Backend *Backend `json:"-"`
}
