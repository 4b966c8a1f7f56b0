package proxy

import (
	"encoding/binary"
	"errors"
	"net"
	"os"
)

// recordHeader is the size of the header of a record of TLS; its last two bytes are the length of the rest.
const recordHeader = 5

// records is the connection below TLS. It knows whether a record has come in that TLS has not made use of, which nothing else tells:
// bytes of an answer that nobody asked for would be taken for the next answer.
type records struct {
	net.Conn
	header [recordHeader]byte
	// have is how much of a header has come, and left what is to come of a record.
	have, left int
	// dry has reads return at once.
	dry bool
}

// Read reads for TLS.
func (r *records) Read(b []byte) (int, error) {
	if r.dry {
		// TLS can read again after a timeout.
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

// drained says whether TLS has nothing to give away, and holds no part of a record.
func (r *records) drained(secured net.Conn, one []byte) bool {
	if r.have > 0 || r.left > 0 {
		return false
	}
	r.dry = true
	n, err := secured.Read(one)
	r.dry = false
	return n == 0 && errors.Is(err, os.ErrDeadlineExceeded)
}
