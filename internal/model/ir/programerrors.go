package ir

import "strings"

// ErrorHandling says which error responses are replaced with other responses (nginx's error_page). An element that is
// nil is inherited from an earlier program of the route.
type ErrorHandling struct {
	// Pages are tried in their order.
	Pages []ErrorPage `json:"pages,omitempty"`
	// Intercept extends Pages to the responses of endpoints (proxy_intercept_errors). Without it, they only replace
	// responses of the controller itself.
	Intercept *bool `json:"intercept,omitempty"`
	// Recursive extends Pages to errors that occur while an error page is served (recursive_error_pages).
	Recursive *bool `json:"recursive,omitempty"`
}

// ErrorPage replaces the responses with some statuses.
type ErrorPage struct {
	Statuses []int `json:"statuses"`
	// Target is a template: a path of the same host with an optional query, a URL to which clients are redirected, or
	// the name of a location of type LocationNamed.
	Target string `json:"target"`
	// Status is the status that clients get, and zero stands for the status of the error. If AnyStatus is true, they
	// get the status of the error page.
	Status    int  `json:"status,omitempty"`
	AnyStatus bool `json:"any_status,omitempty"`
}

// TryFiles passes requests to another location, or responds with a status, as nginx does after it has found no file
// (try_files).
type TryFiles struct {
	// Target is a template for a path with an optional query, or the name of a location of type LocationNamed.
	Target string `json:"target,omitempty"`
	// Status is the status of the response if Target is empty.
	Status int `json:"status,omitempty"`
}

// Guards implements Filter.
func (t TryFiles) Guards() Guard {
	if t.Target == "" && t.Status >= 400 {
		return AllRequests
	}
	return SomeRequests
}

// Internal responds with 404 unless another route of the same namespace has passed the request on, with a rewrite or an
// error page. If Everywhere is true, the other route may belong to any namespace.
type Internal struct {
	Everywhere bool `json:"everywhere,omitempty"`
}

// Guards implements Filter. It returns AllRequests, because no client can request the path itself.
func (Internal) Guards() Guard { return AllRequests }

// IsNamedLocation reports whether the target of an ErrorPage or of TryFiles is the name of a location.
func IsNamedLocation(target string) bool { return strings.HasPrefix(target, "@") }

// NamedLocations returns the names of the locations to which the filters may pass requests. It may contain duplicates.
func NamedLocations(filters []Filter) (names []string) {
	add := func(target string) {
		if IsNamedLocation(target) {
			names = append(names, target)
		}
	}
	for _, f := range filters {
		switch f := f.(type) {
		case Program:
			for d := range f.allDirectives() {
				for i := range d.Errors.Pages {
					add(d.Errors.Pages[i].Target)
				}
			}
		case TryFiles:
			add(f.Target)
		}
	}
	return names
}
