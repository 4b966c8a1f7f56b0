//go:build !unix

package proxy

// quiet reports whether an idle connection has no unread data. On this platform, quiet only detects data that the TLS
// connection has buffered.
func (c *conn) quiet() bool { return c.records == nil || c.records.drained(c.socket, c.oneByte[:]) }

// closed returns false, because this platform cannot detect a closed connection.
func (*conn) closed() bool { return false }
