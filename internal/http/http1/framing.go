package http1

import (
	"strings"

	"github.com/k8singress/k8singress/internal/http/message"
)

// framing collects the values of the header fields that describe the length of the body and the connection.
type framing struct {
	length      int64
	lengths     int
	lengthErr   error
	codings     int
	coding      string
	close, keep bool
	// nominations is the number of field names that the message lists in its Connection fields.
	nominations int
}

// add records a header field if it describes the length of the body or the connection.
func (f *framing) add(field *message.Field) {
	switch field.Kind {
	case message.ContentLength:
		length, err := parseLength(field.Value)
		if f.lengths > 0 && length != f.length && err == nil {
			err = errTwoLengths
		}
		if f.lengthErr == nil {
			f.lengthErr = err
		}
		f.length = length
		f.lengths++
	case message.TransferEncoding:
		f.coding = field.Value
		f.codings++
	case message.Connection:
		f.addConnection(field.Value)
	default:
	}
}

func (f *framing) addConnection(value string) {
	if value == "keep-alive" {
		f.keep = true
		return
	}
	for option := range strings.SplitSeq(value, ",") {
		switch option = strings.Trim(option, " \t"); {
		case option == "":
		case strings.EqualFold(option, "close"):
			f.close = true
		case strings.EqualFold(option, "keep-alive"):
			f.keep = true
		case strings.EqualFold(option, "upgrade"):
		default:
			f.nominations++
		}
	}
}

// persistent reports whether the connection can be used for another message. minor is the minor HTTP version, 0 or 1.
func (f *framing) persistent(minor uint8) bool { return !f.close && (minor > 0 || f.keep) }

// maxDigits is the maximum number of digits of a Content-Length. It prevents an integer overflow.
const maxDigits = 18

func parseLength(digits string) (int64, error) {
	if digits == "" {
		return 0, errLength
	}
	var length int64
	for i := range len(digits) {
		c := digits[i]
		if c < '0' || c > '9' {
			return 0, errLength
		}
		if i < maxDigits {
			length = 10*length + int64(c-'0')
		}
	}
	if len(digits) > maxDigits {
		return 0, errLengthLarge
	}
	return length, nil
}

// request determines how the end of a request body is found. It also returns the length of the body in bytes, or -1 if
// the length is not known. minor is the minor HTTP version.
func (f *framing) request(minor uint8) (Framing, int64, error) {
	switch {
	case f.codings == 0 && f.lengths == 0:
		return NoBody, 0, nil
	case f.codings > 0:
		return Chunked, -1, f.requestCoding(minor)
	case f.lengthErr != nil:
		return NoBody, 0, f.lengthErr
	case f.lengths > 1:
		return NoBody, 0, errTwoLengths
	case f.length == 0:
		return NoBody, 0, nil
	}
	return Sized, f.length, nil
}

// requestCoding checks the Transfer-Encoding of a request. The only valid value is "chunked". A request with both
// Content-Length and Transfer-Encoding is rejected, because such requests are used for request smuggling.
func (f *framing) requestCoding(minor uint8) error {
	switch {
	case f.lengths > 0:
		return errLengthCoding
	case minor == 0:
		return errCodingIn10
	case f.codings == 1 && strings.EqualFold(f.coding, "chunked"):
		return nil
	case f.codings > 1:
		return errTwoCodings
	}
	for coding := range strings.SplitSeq(f.coding, ",") {
		if !strings.EqualFold(strings.Trim(coding, " \t"), "chunked") {
			return errCoding
		}
	}
	return errTwoCodings
}
