package front

import (
	"net/http"
	"time"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/k8singress/k8singress/internal/http/limits"
	"github.com/k8singress/k8singress/internal/http/message"
)

// answerNetHTTP handles a request that net/http or http3 has read, with the function that s.answerAt returns. It
// applies the time limits for clients that stop sending or receiving data. port is the port of the address at which the
// request arrived if Front.Open has opened that address, otherwise 0.
func (s *Binding) answerNetHTTP(w http.ResponseWriter, r *http.Request, l *limits.Limits, port uint16) {
	ctrl, begin := http.NewResponseController(w), time.Now()
	request := message.Request{Names: l.Names}
	if limit := l.Body; limit > 0 && r.ContentLength != 0 {
		body := &caddyhttp.IdleTimeoutReader{
			ReadCloser: r.Body, Ctrl: ctrl, Deadline: caddyhttp.IdleDeadline{Start: begin, Timeout: limit},
			Logger:        stdlib(),
			DrainDeadline: r.ProtoMajor == 1, ClearBetweenReads: r.ProtoMajor == 2,
		}
		defer body.HandlerDone()
		r.Body = body
		w = &readDeadlines{caddyhttp.ResponseWriterWrapper{ResponseWriter: w}, body}
		request.LiftBodyTimeout = func() { body.Override(NoBodyTimeout, 0) }
	}
	if limit := l.Send; limit > 0 {
		paced := &caddyhttp.IdleTimeoutWriter{
			ResponseWriterWrapper: &caddyhttp.ResponseWriterWrapper{ResponseWriter: w}, Ctrl: ctrl,
			Deadline: caddyhttp.IdleDeadline{Start: begin, Timeout: limit}, Logger: stdlib(),
			ClearBetweenWrites: r.ProtoMajor == 2,
		}
		defer paced.HandlerDone()
		w = paced
	}
	writer := message.NewHTTPWriter(w, r)
	request.FromHTTP(r)
	request.Conn.Listener = port
	s.answerAt(port)(writer, &request)
	if writer.Aborted() {
		if writer.Started() {
			_ = ctrl.Flush() // Send the data that is already buffered.
		}
		panic(http.ErrAbortHandler)
	}
}

// readDeadlines is a ResponseWriter that passes read deadlines to the reader of the request body. The reader sets a new
// deadline before each read. It must also know the deadline with which EndBody interrupts reading, because otherwise a
// read that starts just after EndBody would replace this deadline and wait for the client.
type readDeadlines struct {
	caddyhttp.ResponseWriterWrapper
	body *caddyhttp.IdleTimeoutReader
}

// SetReadDeadline sets the read deadline of the request body. http.ResponseController calls it.
func (d *readDeadlines) SetReadDeadline(deadline time.Time) error {
	return d.body.SetReadDeadline(deadline)
}

// NoBodyTimeout is a timeout for reading request bodies that is longer than any request takes.
const NoBodyTimeout = 100 * 365 * 24 * time.Hour
