package proxy

import (
	"errors"
	"fmt"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/k8singress/k8singress/internal/ir"
	"github.com/k8singress/k8singress/internal/variables"
)

// Config is the JSON of Settings, as it stands in the handler of a document.
type Config struct {
	// ConnectTimeout is for a new connection; ReadTimeout and WriteTimeout end a connection on which nothing moves.
	ConnectTimeout caddy.Duration `json:"connect_timeout,omitempty"`
	ReadTimeout    caddy.Duration `json:"read_timeout,omitempty"`
	WriteTimeout   caddy.Duration `json:"write_timeout,omitempty"`
	// Tries is how many endpoints are asked at most, RetryTimeout how long after the request another one may be.
	Tries        int            `json:"tries,omitempty"`
	RetryTimeout caddy.Duration `json:"retry_timeout,omitempty"`
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

// Settings checks the values.
func (c *Config) Settings() (Settings, error) {
	retry, err := NewRetry(c.RetryOn)
	if err != nil {
		return Settings{}, fmt.Errorf("retry_on: %w", err)
	}
	s := Settings{
		Connect: time.Duration(c.ConnectTimeout), Read: time.Duration(c.ReadTimeout), Write: time.Duration(c.WriteTimeout),
		Tries: max(c.Tries, 1), Total: time.Duration(c.RetryTimeout), Retry: retry,
		Protocol: c.Protocol, Close: c.Connection == "close", MaxBody: c.MaxBody, Prefix: c.Prefix, Index: c.Index,
		StreamRequest: c.StreamRequest || c.Protocol == ir.GRPC || c.Protocol == ir.GRPCS, BufferResponse: c.BufferResponse,
	}
	if c.MaxBody == 0 {
		s.MaxBody = ir.NoLimit
	}
	if s.Connect <= 0 || s.Read <= 0 || s.Write <= 0 {
		return Settings{}, errors.New("connect_timeout, read_timeout and write_timeout are above zero")
	}
	if s.speaksCGI() {
		if s.Params, err = paramsOf(c.Params); err != nil {
			return Settings{}, fmt.Errorf("params: %w", err)
		}
	}
	if c.Host != "" {
		if s.Host, err = variables.Parse(c.Host); err != nil {
			return Settings{}, fmt.Errorf("host: %w", err)
		}
	}
	return s, nil
}
