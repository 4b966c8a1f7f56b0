// Package http1 implements the HTTP/1.1 wire format (RFC 9112). It reads and writes heads and chunks as bytes, without
// sockets, timers or goroutines. Package httpserver uses it for clients, and package proxy for endpoints.
//
// Requests are parsed strictly, because a message that two parsers interpret differently allows request smuggling. All
// names and values are checked before they are written, so that they cannot contain line breaks.
package http1

// Framing defines how the end of a body is found.
type Framing uint8

// The possible framings.
const (
	// NoBody is a message without a body.
	NoBody Framing = iota
	// Sized is a body with a Content-Length.
	Sized
	// Chunked is a body with Transfer-Encoding: chunked.
	Chunked
	// UntilClose is a response body that ends when the connection is closed.
	UntilClose
)

// Error is the reason why a message is rejected. There is one Error value for each reason, so errors can be compared
// with ==.
type Error struct {
	// Status is the status of the response to a client that sent the message. It has no meaning for messages from
	// endpoints.
	Status int
	// Reason is a single word that is sent to the client.
	Reason string
}

// Error returns a message that contains the reason.
func (e *Error) Error() string { return "invalid HTTP/1.1: " + e.Reason }

// The errors for invalid messages. Responses to clients contain the reason.
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

	// ErrHeadTooLarge is for callers of this package, which enforce the maximum size of heads.
	ErrHeadTooLarge = &Error{431, "head-too-large"}
	// ErrHeadTimeout is for callers of this package, which enforce the timeout for heads.
	ErrHeadTimeout = &Error{408, "head-timeout"}
)
