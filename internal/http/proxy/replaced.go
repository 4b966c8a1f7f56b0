package proxy

import (
	"net/http"

	"github.com/k8singress/k8singress/internal/http/exchange"
	"github.com/k8singress/k8singress/internal/http/http1"
	"github.com/k8singress/k8singress/internal/http/message"
)

// wwwAuthenticate is the name of the response header that requests authentication. As in nginx, the header is kept when
// an error page replaces the response.
const wwwAuthenticate = "WWW-Authenticate"

// replace discards a response of the endpoint, because the client gets an error page instead. The connection to the
// endpoint is kept only if the whole body arrived together with the head, so that the request does not wait for the
// rest of the body.
func (r *request) replace(c *conn) {
	status := c.response.Status
	r.replaced = exchange.Fail(status, exchange.ErrReplaced)
	if status == http.StatusUnauthorized {
		for _, field := range c.response.Fields {
			if field.Is(message.Other, wwwAuthenticate) {
				r.ErrorFields.Add(field)
			}
		}
	}
	c.head.KeepAlive = c.head.KeepAlive && c.body.skip()
}

// skip discards the part of the response body that has already arrived. It returns true if this was the whole body.
func (b *responseBody) skip() bool {
	if b.framing == http1.Sized && int64(len(b.c.buffered())) >= b.left {
		b.c.at += int(b.left)
		b.ended = true
	}
	for b.framing == http1.Chunked && !b.ended {
		_, consumed, done, err := b.chunks.Next(b.c.buffered())
		b.c.at += consumed
		if b.ended = done; err != nil || consumed == 0 {
			break
		}
	}
	return b.ended
}
