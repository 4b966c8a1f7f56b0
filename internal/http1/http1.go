// Package http1 is HTTP/1.1 on the wire, by RFC 9112: it reads and writes heads and chunks as bytes. It knows no sockets, no timers and
// no goroutines: package httpserver drives it for clients, and package proxy for endpoints.
//
// What it reads from clients is strict, because whatever two parsers read in two ways lets a client smuggle a request past one of
// them. What it writes is checked where it is written: no name and no value can end a line.
package http1

// Framing is how the end of a body is found.
type Framing uint8

// The framings.
const (
	// NoBody is a message that ends with its head.
	NoBody Framing = iota
	// Sized is a body with a Content-Length.
	Sized
	// Chunked is a body in chunks.
	Chunked
	// UntilClose is the body of an answer that ends with its connection.
	UntilClose
)

// Error is why bytes are not taken. There is one value for each reason, so that they can be compared.
type Error struct {
	// Status is what a client is answered. Where an endpoint has sent the bytes it has no meaning.
	Status int
	// Reason is one word, which the client is told.
	Reason string
}

// Error returns a text with the reason.
func (e *Error) Error() string { return "invalid HTTP/1.1: " + e.Reason }

// The reasons, as clients find them in the answer.
var (
	errLine         = &Error{400, "request-line"}
	errMethodToken  = &Error{400, "method"}
	errMethod       = &Error{405, "method-not-served"}
	errTarget       = &Error{400, "target"}
	errNUL          = &Error{400, "nul-in-path"}
	errVersion      = &Error{505, "version"}
	errPreface      = &Error{400, "http2-preface"}
	errStatusLine   = &Error{400, "status-line"}
	errEmptyLines   = &Error{400, "empty-lines"}
	errBareLF       = &Error{400, "bare-lf"}
	errControl      = &Error{400, "control-character"}
	errFold         = &Error{400, "folded-line"}
	errName         = &Error{400, "field-name"}
	errSpace        = &Error{400, "space-before-colon"}
	errMany         = &Error{431, "many-fields"}
	errNoHost       = &Error{400, "no-host"}
	errTwoHosts     = &Error{400, "two-hosts"}
	errTwoAuths     = &Error{400, "two-authorizations"}
	errHost         = &Error{400, "host"}
	errLength       = &Error{400, "content-length"}
	errTwoLengths   = &Error{400, "two-content-lengths"}
	errLengthLarge  = &Error{413, "content-length-too-large"}
	errLengthCoding = &Error{400, "length-and-coding"}
	errCoding       = &Error{501, "transfer-encoding"}
	errTwoCodings   = &Error{400, "two-transfer-encodings"}
	errCodingIn10   = &Error{400, "transfer-encoding-in-1.0"}
	errNominations  = &Error{400, "connection"}
	errExpect       = &Error{417, "expect"}
	errChunkSize    = &Error{400, "chunk-size"}
	errChunkLine    = &Error{400, "chunk-line"}
	errChunkEnd     = &Error{400, "chunk-end"}
	errChunkWaste   = &Error{400, "chunk-extensions"}
	errBodyLarge    = &Error{413, "body-too-large"}
	errTrailers     = &Error{431, "trailers-too-large"}
	errWrite        = &Error{500, "not-to-be-written"}

	// ErrHeadTooLarge is for the caller, who knows the limit on heads.
	ErrHeadTooLarge = &Error{431, "head-too-large"}
	// ErrHeadTimeout is for the caller, who knows the time limit on heads.
	ErrHeadTimeout = &Error{408, "head-timeout"}
)
