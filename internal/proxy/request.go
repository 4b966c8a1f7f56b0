package proxy

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/net/http/httpguts"

	"github.com/k8singress/k8singress/internal/ir"
)

// Upgrades says whether a request asks for a WebSocket: the one protocol that a connection may be switched to. To pass on
// others, h2c for one, would let a client speak with an endpoint past all that is checked here.
func Upgrades(r *http.Request) bool {
	return r.ProtoMajor == 1 && r.ProtoMinor > 0 && httpguts.HeaderValuesContainsToken(r.Header["Connection"], "upgrade") &&
		strings.EqualFold(r.Header.Get("Upgrade"), "websocket")
}

// Ordinary says whether Forward can serve a request, after ReadBody: an HTTP endpoint, no upgrade, and a body that is short.
// What is not ordinary is left to Caddy's reverse_proxy, which knows all of HTTP.
func (x *Exchange) Ordinary(r *http.Request) bool {
	switch {
	case x.settings.protocol(r) != ir.HTTP || Upgrades(r) || r.Method == "" || len(r.Trailer) > 0:
		return false
	case r.TLS != nil && !r.TLS.HandshakeComplete:
		return false
	}
	if _, incremental := r.Header["Incremental"]; incremental {
		return false
	}
	none := r.ContentLength == 0 || r.Body == nil
	return none || x.body != nil && x.body.file == nil
}

// protocol is what the endpoint of a request speaks.
func (s *Settings) protocol(r *http.Request) ir.BackendProtocol {
	switch {
	case s.Protocol == "":
		return ir.HTTP
	case s.Protocol != ir.AutoHTTP:
		return s.Protocol
	case r.TLS != nil:
		return ir.HTTPS
	}
	return ir.HTTP
}

// named returns the headers that Connection names, in the form of http.Header: they end here as well.
func named(values []string) []string {
	var names []string
	for _, value := range values {
		if strings.EqualFold(value, "keep-alive") || strings.EqualFold(value, "close") {
			continue
		}
		for name := range strings.SplitSeq(value, ",") {
			names = append(names, http.CanonicalHeaderKey(strings.TrimSpace(name)))
		}
	}
	return names
}

var errBadRequest = errors.New("the request cannot be written as HTTP/1.1")

// writeHead writes the request line and the headers. What a client or a handler has put into them is checked here once
// more: nothing may end a line but this function.
func (a *attempt) writeHead(w *bufio.Writer) error {
	// A client that speaks HTTP/1.0 may leave the host out; an endpoint that speaks HTTP/1.1 wants one.
	r, host := a.r, cmp.Or(a.told.host, a.address)
	target := r.URL.RequestURI()
	if !token(r.Method) || !visible(target) || !httpguts.ValidHostHeader(host) {
		return errBadRequest
	}
	for _, part := range [...]string{r.Method, " ", target, " HTTP/1.1\r\nHost: ", host, "\r\n"} {
		_, _ = w.WriteString(part) // An error stays in w until it is flushed.
	}
	if a.settings.closes() || a.pool.keepsNone.Load() {
		writeField(w, "Connection", "close")
	}
	if err := a.writeClients(w); err != nil {
		return err
	}
	if err := a.writeTold(w); err != nil {
		return err
	}
	if length := a.length(); length > 0 || wantsLength(r.Method) {
		writeField(w, "Content-Length", strconv.FormatInt(length, 10))
	}
	_, err := w.WriteString("\r\n")
	return err
}

// wantsLength says whether an empty body has a length, too.
func wantsLength(method string) bool {
	return method == http.MethodPost || method == http.MethodPut || method == http.MethodPatch
}

// writeClients writes the headers of the client that go on.
func (a *attempt) writeClients(w *bufio.Writer) error {
	named := named(a.r.Header["Connection"])
	for name, values := range a.r.Header {
		switch {
		case dropped[name] || len(values) == 0 || len(named) > 0 && slices.Contains(named, name):
			continue
		case name == "Te" && (len(values) > 1 || values[0] != "trailers"), name == "X-Forwarded-Prefix" && a.told.prefix != "":
			continue
		case !httpguts.ValidHeaderFieldName(name):
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

// writeTold writes the headers that are about the client.
func (a *attempt) writeTold(w *bufio.Writer) error {
	for i, value := range a.told.values {
		switch {
		case value == "":
		case !httpguts.ValidHeaderFieldValue(value):
			return fmt.Errorf("%w: %s would be %q", errBadRequest, toldNames[i], value)
		default:
			writeField(w, toldNames[i], value)
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

// DropUpgrade takes an upgrade out of a request that is not for a WebSocket, or does not come over HTTP/1.1. It is answered
// like any other request then.
func DropUpgrade(r *http.Request) {
	if _, ok := r.Header["Upgrade"]; !ok || Upgrades(r) {
		return
	}
	for _, name := range named(r.Header["Connection"]) {
		delete(r.Header, name)
	}
	for _, name := range [...]string{"Upgrade", "Http2-Settings", "Connection"} {
		delete(r.Header, name)
	}
}
