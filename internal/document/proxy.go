package document

import (
	"time"

	"github.com/k8singress/k8singress/internal/ir"
)

// Proxy is how a request is handed to an endpoint, as it stands in the handler that ends a chain.
type Proxy struct {
	// ConnectTimeout is for a new connection; ReadTimeout and WriteTimeout end a connection on which nothing moves.
	ConnectTimeout time.Duration `json:"connect_timeout,omitempty"`
	ReadTimeout    time.Duration `json:"read_timeout,omitempty"`
	WriteTimeout   time.Duration `json:"write_timeout,omitempty"`
	// Tries is how many endpoints are asked at most, RetryTimeout how long after the request another one may be.
	Tries        int           `json:"tries,omitempty"`
	RetryTimeout time.Duration `json:"retry_timeout,omitempty"`
	// RetryOn lets another endpoint be asked: error, timeout, invalid_header, http_500 and so on, non_idempotent. Default: none.
	RetryOn []ir.RetryOn `json:"retry_on,omitempty"`
	// Protocol is what the endpoints speak: http, https, auto (as the client), grpc, grpcs or fastcgi. Default: http.
	Protocol ir.BackendProtocol `json:"protocol,omitempty"`
	// Host is the Host header for the endpoint, with nginx variables in it. Default: what the client sent.
	Host string `json:"host,omitempty"`
	// Connection is "close" for endpoints that are to close the connection. Default: it is kept.
	Connection string `json:"connection,omitempty"`
	// MaxBody is how many bytes the body of a request may have. Default: any number.
	MaxBody int64 `json:"max_body,omitempty"`
	// StreamRequest sends the body of a request on as it comes in. Default: all of it is read first.
	StreamRequest bool `json:"stream_request,omitempty"`
	// BufferResponse does not hurry to send a piece of an answer on. Default: each piece is sent on as it comes in.
	BufferResponse bool `json:"buffer_response,omitempty"`
	// Prefix is the X-Forwarded-Prefix header for the endpoint. Default: what the client sent.
	Prefix string `json:"prefix,omitempty"`
	// Index is the file that a path with a slash at its end means to FastCGI. Default: none.
	Index string `json:"index,omitempty"`
	// Params are parameters of FastCGI, with nginx variables in their values. Default: nginx's fastcgi_params, which are there
	// besides these.
	Params map[string]string `json:"params,omitempty"`
}
