// Package sni reads the name of the server out of the first bytes of a TLS connection, without touching them: so a
// connection can be handed to whoever ends its TLS.
package sni

// State is what is known of a connection so far.
type State int

const (
	// More says that the hello is not complete.
	More State = iota
	// Complete says that the hello is there.
	Complete
	// Other says that this is no hello, or one that no TLS server takes. What it is, a TLS server should tell the client.
	Other
)

const (
	recordHead    = 5
	recordMost    = 16 << 10
	typeHandshake = 22
	majorVersion  = 3

	messageHead     = 4
	typeClientHello = 1
)

// Reader reads one hello, of which more and more is there. The zero value is for a new connection.
type Reader struct {
	// taken is how many of the bytes were records that are complete.
	taken int
	// message is what those hold, once there is more than one of them.
	message []byte
}

// Read looks at all bytes of a connection from its first one on, of which there have to be as many as in the call before. With
// Complete it returns the name of the server, as the client wrote it; it is empty where the client names none. The work
// that all calls do together grows with the number of bytes, however few of them come at a time.
func (r *Reader) Read(all []byte) (name string, s State) {
	for {
		rest := all[r.taken:]
		record, s := nextRecord(rest)
		if s != Complete {
			return "", s
		}
		r.taken += recordHead + len(record)
		message := record
		if r.message != nil || !whole(record) {
			r.message = append(r.message, record...)
			message = r.message
		}
		if message[0] != typeClientHello {
			return "", Other
		}
		if whole(message) {
			return serverName(message)
		}
	}
}

// nextRecord returns what is in the record that begins here.
func nextRecord(b []byte) ([]byte, State) {
	// Whatever is no TLS is to be known from its first bytes: nobody says anything more before there is an answer.
	if len(b) > 0 && b[0] != typeHandshake || len(b) > 1 && b[1] != majorVersion {
		return nil, Other
	}
	if len(b) < recordHead {
		return nil, More
	}
	length := int(b[3])<<8 | int(b[4])
	switch {
	case length == 0 || length > recordMost:
		return nil, Other
	case len(b) < recordHead+length:
		return nil, More
	}
	return b[recordHead : recordHead+length], Complete
}

// whole says whether a handshake message has all its bytes.
func whole(message []byte) bool {
	return len(message) >= messageHead && len(message)-messageHead >= lengthOf(message)
}

func lengthOf(message []byte) int { return int(message[1])<<16 | int(message[2])<<8 | int(message[3]) }
