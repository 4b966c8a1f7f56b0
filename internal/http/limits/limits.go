// Package limits defines the limits of a client connection. The servers of all HTTP versions use the same limits.
package limits

import (
	"cmp"
	"time"

	"github.com/k8singress/k8singress/internal/http/message"
	"github.com/k8singress/k8singress/internal/model/ir"
)

// Limits are the limits of a client connection. A duration of 0 means no limit.
type Limits struct {
	// Read is the maximum time to read a whole request, and Head the maximum time to read its header. Head is also the
	// maximum time until the first byte on a new connection. Body is the maximum time between two parts of a request
	// body.
	Read, Head, Body time.Duration
	// Write is the maximum time to write a whole response. Send is the maximum time until the client accepts the next
	// part of a response.
	Write, Send time.Duration
	// Idle is the maximum time to wait for the next request.
	Idle time.Duration
	// HeadBytes is the maximum size of a request header, in bytes. 0 means the server's default. If HeadFixed is true,
	// it is a setting of the administrator, and no snippet raises the limit above it.
	HeadBytes int
	HeadFixed bool
	// Requests is the maximum number of requests on a connection; 0 means no limit. Streams is the maximum number of
	// concurrent HTTP/2 requests; 0 means the server's default.
	Requests, Streams int
	// H2C allows clients to use HTTP/2 without TLS.
	H2C bool
	// Names defines which unusual characters the names of forwarded request header fields may contain.
	Names message.Names
}

// With returns a copy of l that is changed by the settings in the ConfigMap (by). If the ConfigMap does not set a time
// or size limit, the limit in l is kept.
func (l Limits) With(by *ir.ClientConnections) Limits {
	l.Head, l.Body = cmp.Or(by.HeaderTimeout, l.Head), cmp.Or(by.BodyTimeout, l.Body)
	snippet := by.SnippetHead
	if l.HeadFixed {
		snippet = min(snippet, l.HeadBytes)
	}
	l.HeadBytes, l.Streams = max(cmp.Or(by.MaxHead, l.HeadBytes), snippet), cmp.Or(by.Streams, l.Streams)
	if l.Requests = by.Requests; by.KeepAlive < 0 {
		l.Requests = 1
	} else {
		l.Idle = cmp.Or(by.KeepAlive, l.Idle)
	}
	l.Names = NamesOf(by)
	return l
}

// Last reports whether a connection must be closed after its request number n, counted from 1.
func (l *Limits) Last(n int) bool { return l.Requests > 0 && n >= l.Requests }

// NamesOf returns which characters the names of forwarded request header fields may contain, according to the
// ConfigMap: letters, digits and hyphens; also underscores; or any characters. As in nginx, underscores are allowed if
// invalid names are allowed.
func NamesOf(by *ir.ClientConnections) message.Names {
	switch {
	case by.InvalidNames:
		return message.AllNames
	case by.Underscores:
		return message.UnderscoredNames
	}
	return message.PlainNames
}
