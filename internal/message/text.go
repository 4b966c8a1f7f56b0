package message

import "unsafe"

// text is what the strings of a request are parts of, with some room behind it.
type text struct{ bytes []byte }

// roomForMore is enough for an id and an address.
const roomForMore = 80

// SetHead makes a string of a head, which the names and values of the request are then parts of, and keeps some room behind it.
func (r *Request) SetHead(head []byte) string {
	r.text.bytes = make([]byte, 0, len(head)+roomForMore)
	return r.Keep(head)
}

// Keep makes a string of b, in the memory of the head where that has room. The string is as safe to keep as the others.
func (r *Request) Keep(b []byte) string {
	begin := len(r.text.bytes)
	if len(b) == 0 || cap(r.text.bytes)-begin < len(b) {
		return string(b)
	}
	r.text.bytes = append(r.text.bytes, b...)
	// Bytes that have become a string are not written again: the next ones come behind them. strings.Builder does the same, and cannot
	// be reset together with a request.
	return unsafe.String(&r.text.bytes[begin], len(b))
}
