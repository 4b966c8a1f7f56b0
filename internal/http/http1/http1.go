// Package http1 implements the HTTP/1.1 message format (RFC 9112). It parses and writes message heads (the first line
// and the header fields) and chunked bodies as bytes, without sockets, timers or goroutines. Package httpserver uses it
// for clients, and package proxy for endpoints.
//
// Requests are parsed strictly, because request smuggling is possible if two servers interpret a message differently.
// All names and values are checked before they are written, so that they cannot contain line breaks.
package http1

import "slices"

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
	// Meaning describes the error in words. It is for the log and the documentation.
	Meaning string
}

// ofRequests are the errors that newError has created.
var ofRequests []*Error

// newError returns the error for an invalid request. The documentation lists it.
func newError(status int, reason, meaning string) *Error {
	e := &Error{status, reason, meaning}
	ofRequests = append(ofRequests, e)
	return e
}

// RequestErrors returns all errors for requests.
func RequestErrors() []*Error { return slices.Clone(ofRequests) }

// Error returns an error message that contains the meaning and the reason.
func (e *Error) Error() string { return "invalid HTTP/1.1: " + e.Meaning + " (" + e.Reason + ")" }

// Errors for invalid messages. If a client sent the message, the response contains the reason.
var (
	errLine = newError(400, "request-line",
		"the request line is not a method, a target and a version, separated by single spaces")
	errMethodToken = newError(400, "method", "the method contains a character that is not allowed")
	errMethod      = newError(405, "method-not-served", "CONNECT and TRACE are not supported")
	errTarget      = newError(400, "target", "the request target is neither a path nor an http or https URL")
	errNUL         = newError(400, "nul-in-path", "the path contains a NUL character")
	errVersion     = newError(505, "version", "the version is neither HTTP/1.0 nor HTTP/1.1")
	errPreface     = newError(400, "http2-preface",
		"the connection begins with HTTP/2, which this port does not accept without TLS: see the option h2c")
	errStatusLine = &Error{400, "status-line", "the status line is not valid"}
	errEmptyLines = newError(400, "empty-lines", "there are too many empty lines")
	errBareLF     = newError(400, "bare-lf", "a line ends with LF instead of CRLF")
	errControl    = newError(400, "control-character", "a line contains a control character")
	errFold       = newError(400, "folded-line", "a header field continues on a second line")
	errName       = newError(400, "field-name",
		"the name of a header field is not valid, or has no colon")
	errSpace = newError(400, "space-before-colon",
		"there is a space between the name of a header field and its colon")
	errMany         = newError(431, "many-fields", "there are too many header fields")
	errNoHost       = newError(400, "no-host", "there is no Host header")
	errTwoHosts     = newError(400, "two-hosts", "there is more than one Host header")
	errTwoAuths     = newError(400, "two-authorizations", "there is more than one Authorization header")
	errHost         = newError(400, "host", "the host is neither a host name nor an IP address")
	errLength       = newError(400, "content-length", "Content-Length is not a number")
	errTwoLengths   = newError(400, "two-content-lengths", "there is more than one Content-Length header")
	errLengthLarge  = newError(413, "content-length-too-large", "Content-Length is too large for any body")
	errLengthCoding = newError(400, "length-and-coding",
		"there are both Content-Length and Transfer-Encoding")
	errCoding     = newError(501, "transfer-encoding", "the only supported Transfer-Encoding is chunked")
	errTwoCodings = newError(400, "two-transfer-encodings",
		"there is more than one Transfer-Encoding header")
	errCodingIn10  = newError(400, "transfer-encoding-in-1.0", "HTTP/1.0 has no Transfer-Encoding")
	errNominations = newError(400, "connection", "the Connection header lists too many names")
	errExpect      = newError(417, "expect", "the Expect header has an unsupported value")
	errChunkSize   = newError(400, "chunk-size",
		"the size of a chunk of the body is not a hexadecimal number, or is too large")
	errChunkLine = newError(400, "chunk-line",
		"the line with the size of a chunk contains a control character, or does not end with CRLF")
	errChunkEnd      = newError(400, "chunk-end", "there is no CRLF behind a chunk of the body")
	errChunkOverhead = newError(400, "chunk-extensions",
		"the chunks of the body are so small, or their extensions so long, that they are mostly overhead")
	errBodyLarge = newError(413, "body-too-large", "the body is larger than proxy-body-size allows")
	errTrailers  = newError(431, "trailers-too-large", "the trailer fields behind the body are too large")
	errWrite     = &Error{500, "not-to-be-written", "the message contains a character that must not be sent"}

	// ErrHeadTooLarge means that the head of a message is too large. This package does not check the size; its callers
	// return this error.
	ErrHeadTooLarge = newError(431, "head-too-large", "the first line and the header fields are too large")
	// ErrHeadTimeout means that the head of a message did not arrive in time. This package has no timers; its callers
	// return this error.
	ErrHeadTimeout = newError(408, "head-timeout",
		"the request line and the header fields did not arrive in time")
)
