package message

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"time"
)

// unread is the state of a request body of HTTP/1: it is unread until the server has read it completely. For other
// versions of HTTP it has no effect.
type unread struct {
	http1 bool
	// stopped is true once the handler will read no more of the body.
	stopped atomic.Bool
	body    *followedBody
}

// followedBody wraps the body of a request. ended is true once the body was read completely.
type followedBody struct {
	io.ReadCloser
	ended atomic.Bool
}

func (f *followedBody) Read(b []byte) (int, error) {
	n, err := f.ReadCloser.Read(b)
	if errors.Is(err, io.EOF) {
		f.ended.Store(true)
	}
	return n, err
}

func (h *httpWriter) FollowBody(r *http.Request) {
	if h.unread.http1 && r.ContentLength != 0 && r.Body != nil {
		h.unread.body = &followedBody{ReadCloser: r.Body}
		r.Body = h.unread.body
	}
}

// remains reports whether a followed body was not read completely.
func (u *unread) remains() bool { return u.body != nil && !u.body.ended.Load() }

// announceClose makes the server close the connection after the response that is about to be written to w, unless the
// request body was read completely. net/http would do this itself, but it does not recognize the reader that Caddy has
// put around the body. It would delay the response and wait for the rest of a body that may never arrive.
func (u *unread) announceClose(w http.ResponseWriter) {
	if u.http1 && u.stopped.Load() || u.remains() {
		w.Header()["Connection"] = []string{"close"}
	}
	if u.remains() {
		closeGently(w)
	}
}

// closeGently makes net/http wait for a moment before it closes the connection after the response. Otherwise it would
// close the connection of a client that asked for this at once, and the kernel would reset it, because the rest of the
// body is still unread. The client could then lose the response. Exceeding the limit of a MaxBytesReader is the only
// way to make net/http wait.
func closeGently(w http.ResponseWriter) {
	for {
		inner, ok := w.(interface{ Unwrap() http.ResponseWriter })
		if !ok {
			break
		}
		w = inner.Unwrap()
	}
	_, _ = http.MaxBytesReader(w, io.NopCloser(strings.NewReader("x")), 0).Read(make([]byte, 1))
}

// linger is how long the rest of a request body is read and discarded after the response, so that a client that is
// still sending the body can read the response.
const linger = time.Second

func (h *httpWriter) EndRequest() {
	if h.unread.remains() {
		_ = http.NewResponseController(h.w).SetReadDeadline(time.Now().Add(linger))
	}
}
