package k8singress

import (
	"net/http"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

// final is an answer to a client of HTTP/1.0, which knows no interim ones such as 103 Early Hints: RFC 9110 15.2 forbids to
// send them to it. It would take the first one for the answer.
type final struct {
	*caddyhttp.ResponseWriterWrapper
}

// WriteHeader drops an interim answer.
func (f *final) WriteHeader(status int) {
	if status >= http.StatusOK {
		f.ResponseWriter.WriteHeader(status)
	}
}
