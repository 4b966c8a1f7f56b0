package live

import "net/http"

// Variable is the value of an nginx variable for a request.
func (r *Request) Variable(*http.Request, string) string { return "" }
