package message

import "unsafe"

// text is a block of memory for the strings of one request. It has spare capacity, so that strings can be added without
// an allocation.
type text struct{ bytes []byte }

// spareCapacity is the spare capacity of text in bytes. It is enough for a request ID and an IP address.
const spareCapacity = 80

// SetHead copies the head of a request into a new string and returns it, so that the names and values of the request's
// header fields can be substrings of it. It also allocates spare memory for Keep.
func (r *Request) SetHead(head []byte) string {
	r.text.bytes = make([]byte, 0, len(head)+spareCapacity)
	return r.Keep(head)
}

// Keep copies b into a string. If possible, it uses the spare memory that SetHead has allocated. The string stays valid
// after the request.
func (r *Request) Keep(b []byte) string {
	begin := len(r.text.bytes)
	if len(b) == 0 || cap(r.text.bytes)-begin < len(b) {
		return string(b)
	}
	r.text.bytes = append(r.text.bytes, b...)
	// This is safe because the bytes of the string are never overwritten: later bytes are appended after them.
	// strings.Builder works in the same way, but could not be reset together with the request.
	return unsafe.String(&r.text.bytes[begin], len(b))
}
