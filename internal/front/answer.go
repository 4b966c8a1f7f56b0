package front

import (
	"net/http"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/k8singress/k8singress/internal/message"
)

// answer answers a request that net/http has read, in place of the server, with limits for clients that stall. The port is that of an
// address that Open has opened, or 0.
func (s *Serving) answer(w http.ResponseWriter, r *http.Request, limits *Limits, port uint16) {
	ctrl, begin := http.NewResponseController(w), time.Now()
	if limit := limits.Body; limit > 0 && r.ContentLength != 0 && !MaySayNothing(r) {
		body := &caddyhttp.IdleTimeoutReader{
			ReadCloser: r.Body, Ctrl: ctrl, Deadline: caddyhttp.IdleDeadline{Start: begin, Timeout: limit}, Logger: stdlib(),
			DrainDeadline: r.ProtoMajor == 1, ClearBetweenReads: r.ProtoMajor == 2,
		}
		defer body.HandlerDone()
		r.Body = body
	}
	if limit := limits.Send; limit > 0 {
		paced := &caddyhttp.IdleTimeoutWriter{
			ResponseWriterWrapper: &caddyhttp.ResponseWriterWrapper{ResponseWriter: w}, Ctrl: ctrl,
			Deadline: caddyhttp.IdleDeadline{Start: begin, Timeout: limit}, Logger: stdlib(), ClearBetweenWrites: r.ProtoMajor == 2,
		}
		defer paced.HandlerDone()
		w = paced
	}
	writer := message.NewHTTPWriter(w, r)
	request := message.Request{Names: limits.Names}
	request.FromHTTP(r)
	request.Conn.Listener = port
	s.answering(port)(writer, &request)
	if writer.Aborted() {
		_ = ctrl.Flush() // What is there may as well arrive.
		panic(http.ErrAbortHandler)
	}
}

// MaySayNothing says whether the body of a request is one half of a stream in both directions: a client that listens has nothing to
// say. Those of gRPC and of Connect can be told from their type.
func MaySayNothing(r *http.Request) bool {
	kind := r.Header.Get("Content-Type")
	return r.ContentLength < 0 && (strings.HasPrefix(kind, "application/grpc") || strings.HasPrefix(kind, "application/connect+"))
}
