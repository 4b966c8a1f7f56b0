package exchange

import "errors"

// ErrReroute is returned by a filter that has changed the path of the request, with SetPath, and possibly its query,
// and wants a route for the new path. The request then continues as if the client had sent this path to the same host,
// but Target keeps what the client sent. The filter must not have written a part of the response.
var ErrReroute = errors.New("the filter has changed the path, so the request needs a route for the new path")
