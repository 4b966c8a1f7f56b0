//go:build !unix

package proxy

// quiet reports whether an idle connection has no unread data. On systems other than Unix, it only detects data that
// the TLS connection has buffered.
func (c *conn) quiet() bool { return c.records == nil || c.records.drained(c.socket, c.oneByte[:]) }

// closed always returns false, because a closed connection can only be detected on Unix.
func (*conn) closed() bool { return false }
