package proxy

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"golang.org/x/net/http/httpguts"
)

// MaxBody is the size of the largest request body that Ordinary lets through. It is held in memory, so that another
// endpoint can get it when one fails.
const MaxBody = 64 << 10

// Ordinary says whether Forward can serve a request. What is not ordinary is left to a proxy that knows all of HTTP:
// upgrades, Expect, trailers, bodies of unknown or larger size.
func Ordinary(r *http.Request) bool {
	switch {
	case r.Method == http.MethodConnect || r.Method == "" || r.ContentLength < 0 || r.ContentLength > MaxBody:
		return false
	case len(r.TransferEncoding) > 0 || len(r.Trailer) > 0:
		return false
	case r.TLS != nil && !r.TLS.HandshakeComplete:
		return false
	}
	for _, name := range unusual {
		if _, ok := r.Header[name]; ok {
			return false
		}
	}
	return onlyTrailers(r.Header["Te"]) && plainConnection(r.Header["Connection"])
}

// unusual are the headers that ask for more than a request and an answer.
var unusual = []string{"Upgrade", "Expect", "Trailer", "Transfer-Encoding", "Incremental"}

// onlyTrailers says whether Te asks for trailers and nothing else, as some browsers do in each request.
func onlyTrailers(values []string) bool {
	return len(values) == 0 || len(values) == 1 && values[0] == "trailers"
}

// plainConnection says whether Connection names no header that would have to be taken out.
func plainConnection(values []string) bool {
	for _, value := range values {
		if !strings.EqualFold(value, "keep-alive") && !strings.EqualFold(value, "close") {
			return false
		}
	}
	return true
}

// notForwarded are the headers of a request that end here, or are written by writeHead itself.
var notForwarded = map[string]bool{
	"Connection": true, "Proxy-Connection": true, "Keep-Alive": true, "Proxy-Authenticate": true, "Proxy-Authorization": true,
	"Content-Length": true, "Host": true,
	"X-Forwarded-For": true, "X-Forwarded-Proto": true, "X-Forwarded-Host": true,
}

var errBadRequest = errors.New("the request cannot be written as HTTP/1.1")

// writeHead writes the request line and the headers. What a client or a handler has put into them is checked here once
// more: nothing may end a line but this function.
func writeHead(w *bufio.Writer, a *attempt) error {
	// A client that speaks HTTP/1.0 may leave the host out; an endpoint that speaks HTTP/1.1 wants one.
	r, host := a.r, cmp.Or(a.r.Host, a.address)
	target := r.URL.RequestURI()
	if !token(r.Method) || !visible(target) || !httpguts.ValidHostHeader(host) {
		return errBadRequest
	}
	for _, part := range [...]string{r.Method, " ", target, " HTTP/1.1\r\nHost: ", host, "\r\n"} {
		_, _ = w.WriteString(part) // An error stays in w until it is flushed.
	}
	if err := writeFields(w, r.Header); err != nil {
		return err
	}
	if err := a.forwarded.write(w); err != nil {
		return err
	}
	if len(a.body) > 0 || r.Method == http.MethodPost || r.Method == http.MethodPut || r.Method == http.MethodPatch {
		writeField(w, "Content-Length", strconv.Itoa(len(a.body)))
	}
	_, err := w.WriteString("\r\n")
	return err
}

func writeFields(w *bufio.Writer, header http.Header) error {
	for name, values := range header {
		if notForwarded[name] || len(values) == 0 {
			continue
		}
		if !httpguts.ValidHeaderFieldName(name) {
			return fmt.Errorf("%w: a header is named %q", errBadRequest, name)
		}
		for _, value := range values {
			if !httpguts.ValidHeaderFieldValue(value) {
				return fmt.Errorf("%w: the header %s has the value %q", errBadRequest, name, value)
			}
			writeField(w, name, value)
		}
	}
	return nil
}

func writeField(w *bufio.Writer, name, value string) {
	for _, part := range [...]string{name, ": ", value, "\r\n"} {
		_, _ = w.WriteString(part) // As above.
	}
}

func token(method string) bool {
	for i := range len(method) {
		if !httpguts.IsTokenRune(rune(method[i])) {
			return false
		}
	}
	return method != ""
}

// visible says whether a request target has neither spaces nor control characters in it.
func visible(target string) bool {
	for i := range len(target) {
		if target[i] <= ' ' || target[i] == 0x7f {
			return false
		}
	}
	return target != ""
}

// repeatable says whether a request may be sent again when it is not known what became of it, by RFC 9110 9.2.2.
func repeatable(r *http.Request) bool {
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace, http.MethodPut, http.MethodDelete:
		return true
	}
	return false
}
