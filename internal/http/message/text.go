package message

import "unsafe"

// text is a block of memory that contains the strings of a request. It has spare capacity for more strings.
type text struct{ bytes []byte }

// spareCapacity is the spare capacity in bytes. It is enough for a request ID and an address.
const spareCapacity = 80

// SetHead copies the head of a request into a new string and returns it. The names and values of the request are
// substrings of this string. SetHead also allocates spare memory for Keep.
func (r *Request) SetHead(head []byte) string {
	r.text.bytes = make([]byte, 0, len(head)+spareCapacity)
	return r.Keep(head)
}

// Keep copies b into a string. It uses the spare memory that SetHead has allocated, if this is enough. The string stays
// valid when the request is reused.
func (r *Request) Keep(b []byte) string {
	begin := len(r.text.bytes)
	if len(b) == 0 || cap(r.text.bytes)-begin < len(b) {
		return string(b)
	}
	r.text.bytes = append(r.text.bytes, b...)
	// Bytes that are part of a string are never written again, because later bytes are appended after them.
	// strings.Builder works in the same way, but cannot be reset together with a request.
	return unsafe.String(&r.text.bytes[begin], len(b))
}
