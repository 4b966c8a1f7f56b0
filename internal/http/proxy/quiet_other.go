//go:build !unix

package proxy

// quiet reports whether nothing has arrived on an idle connection. On this platform only data that TLS holds is
// detected.
func (c *conn) quiet() bool { return c.records == nil || c.records.drained(c.socket, c.oneByte[:]) }

// closed returns false, because this platform cannot detect a closed connection.
func (*conn) closed() bool { return false }
