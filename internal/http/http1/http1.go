// Package http1 implements the HTTP/1.1 message format (RFC 9112). It parses and writes message heads (the first line
// and the header fields) and chunked bodies as bytes, without sockets, timers or goroutines. Package httpserver uses it
// for clients, and package proxy for endpoints.
//
// Requests are parsed strictly, because request smuggling is possible if two servers interpret a message differently.
// All names and values are checked before they are written, so that they cannot contain line breaks.
package http1

// Framing defines how a receiver finds the end of a message body.
type Framing uint8

// The possible framings.
const (
	// NoBody means that the message has no body.
	NoBody Framing = iota
	// Sized means that Content-Length contains the length of the body.
	Sized
	// Chunked means that the body is sent with Transfer-Encoding: chunked.
	Chunked
	// UntilClose means that the body ends when the connection is closed. It only occurs in responses.
	UntilClose
)

// Error is the reason why an HTTP message was rejected. Each reason has a single *Error, so that errors can be compared
// with ==.
type Error struct {
	// Status is the HTTP status with which an invalid message from a client is answered. It is not used for messages
	// from endpoints.
	Status int
	// Reason describes the error in a short form with hyphens instead of spaces. It is sent to the client.
	Reason string
}

// Error returns an error message that contains the reason.
func (e *Error) Error() string { return "invalid HTTP/1.1: " + e.Reason }

// Errors for invalid messages. If a client sent the message, the response contains the reason.
var (
	errLine          = &Error{400, "request-line"}
	errMethodToken   = &Error{400, "method"}
	errMethod        = &Error{405, "method-not-served"}
	errTarget        = &Error{400, "target"}
	errNUL           = &Error{400, "nul-in-path"}
	errVersion       = &Error{505, "version"}
	errPreface       = &Error{400, "http2-preface"}
	errStatusLine    = &Error{400, "status-line"}
	errEmptyLines    = &Error{400, "empty-lines"}
	errBareLF        = &Error{400, "bare-lf"}
	errControl       = &Error{400, "control-character"}
	errFold          = &Error{400, "folded-line"}
	errName          = &Error{400, "field-name"}
	errSpace         = &Error{400, "space-before-colon"}
	errMany          = &Error{431, "many-fields"}
	errNoHost        = &Error{400, "no-host"}
	errTwoHosts      = &Error{400, "two-hosts"}
	errTwoAuths      = &Error{400, "two-authorizations"}
	errHost          = &Error{400, "host"}
	errLength        = &Error{400, "content-length"}
	errTwoLengths    = &Error{400, "two-content-lengths"}
	errLengthLarge   = &Error{413, "content-length-too-large"}
	errLengthCoding  = &Error{400, "length-and-coding"}
	errCoding        = &Error{501, "transfer-encoding"}
	errTwoCodings    = &Error{400, "two-transfer-encodings"}
	errCodingIn10    = &Error{400, "transfer-encoding-in-1.0"}
	errNominations   = &Error{400, "connection"}
	errExpect        = &Error{417, "expect"}
	errChunkSize     = &Error{400, "chunk-size"}
	errChunkLine     = &Error{400, "chunk-line"}
	errChunkEnd      = &Error{400, "chunk-end"}
	errChunkOverhead = &Error{400, "chunk-extensions"}
	errBodyLarge     = &Error{413, "body-too-large"}
	errTrailers      = &Error{431, "trailers-too-large"}
	errWrite         = &Error{500, "not-to-be-written"}

	// ErrHeadTooLarge means that the head of a message is too large. This package does not check the size; its callers
	// return this error.
	ErrHeadTooLarge = &Error{431, "head-too-large"}
	// ErrHeadTimeout means that the head of a message did not arrive in time. This package has no timers; its callers
	// return this error.
	ErrHeadTimeout = &Error{408, "head-timeout"}
)
