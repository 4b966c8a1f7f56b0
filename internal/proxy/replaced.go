package proxy

import (
	"net/http"

	"github.com/k8singress/k8singress/internal/exchange"
	"github.com/k8singress/k8singress/internal/http1"
	"github.com/k8singress/k8singress/internal/message"
)

// wwwAuthenticate says how a client is to log in. nginx keeps it when it replaces an answer.
const wwwAuthenticate = "WWW-Authenticate"

// replace throws an answer away, in whose place the client gets an error page. The connection is kept if all of the body has come with the
// head: nobody waits for the rest.
func (r *request) replace(c *conn) {
	status := c.answer.Status
	r.replaced = exchange.Fail(status, exchange.ErrReplaced)
	if status == http.StatusUnauthorized {
		for _, field := range c.answer.Fields {
			if field.Is(message.Other, wwwAuthenticate) {
				r.Left.Add(field)
			}
		}
	}
	c.head.KeepAlive = c.head.KeepAlive && c.body.skip()
}

// skip skips the body, and returns false if not all of it has come.
func (b *answerBody) skip() bool {
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
