//go:build !unix

package proxy

// quiet says whether nothing has come in on an idle connection, as far as that can be known here.
func (c *conn) quiet() bool { return c.reader.Buffered() == 0 }
