package message

import "unsafe"

// text is the memory that the strings of a request share, with spare capacity for more.
type text struct{ bytes []byte }

// spareCapacity is the spare capacity in bytes. It is enough for a request ID and an address.
const spareCapacity = 80

// SetHead copies a head into a string. The names and values of the request are substrings of it. Some capacity is
// reserved for Keep.
func (r *Request) SetHead(head []byte) string {
	r.text.bytes = make([]byte, 0, len(head)+spareCapacity)
	return r.Keep(head)
}

// Keep copies b into a string. It uses the spare memory of the head if there is enough. The string is as safe to keep
// as the other strings of the request.
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
