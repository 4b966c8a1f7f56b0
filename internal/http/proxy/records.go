package proxy

import (
	"encoding/binary"
	"errors"
	"net"
	"os"
)

// recordHeader is the size of the header of a TLS record, in bytes. The last two bytes of the header are the length of
// the rest of the record.
const recordHeader = 5

// records wraps the TCP connection below a TLS connection. It tracks whether a TLS record has arrived that crypto/tls
// has not processed yet, because crypto/tls does not report this. Such a record may contain an unsolicited response,
// which must not be taken for the response to the next request.
type records struct {
	net.Conn
	header [recordHeader]byte
	// have is the number of bytes of the current record header that have been received. left is the number of bytes of
	// the current record that have not been received yet.
	have, left int
	// If dry is true, Read does not read, but returns a timeout. The method drained sets it to get only the data that
	// crypto/tls has already buffered.
	dry bool
}

// Read reads data for TLS.
func (r *records) Read(b []byte) (int, error) {
	if r.dry {
		// Return a timeout, because crypto/tls can continue to read after a timeout, but not after other errors.
		return 0, os.ErrDeadlineExceeded
	}
	n, err := r.Conn.Read(b)
	for b = b[:n]; len(b) > 0; {
		if r.left > 0 {
			part := min(r.left, len(b))
			r.left -= part
			b = b[part:]
			continue
		}
		part := copy(r.header[r.have:], b)
		b = b[part:]
		if r.have += part; r.have == recordHeader {
			r.have, r.left = 0, int(binary.BigEndian.Uint16(r.header[recordHeader-2:]))
		}
	}
	return n, err
}

// drained reports whether the TLS connection secured holds neither unread data nor a partial record. one is a buffer of
// one byte.
func (r *records) drained(secured net.Conn, one []byte) bool {
	if r.have > 0 || r.left > 0 {
		return false
	}
	r.dry = true
	n, err := secured.Read(one)
	r.dry = false
	return n == 0 && errors.Is(err, os.ErrDeadlineExceeded)
}
