package front

import (
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/k8singress/k8singress/internal/http/limits"
	"github.com/k8singress/k8singress/internal/http/message"
	"github.com/k8singress/k8singress/internal/process/budget"
	"github.com/k8singress/k8singress/internal/process/connlimit"
)

// requests limits the memory of HTTP/2 and HTTP/3 requests in progress. One memory budget is divided between the
// addresses of clients, and the share of an address is divided between its connections.
type requests struct {
	budget func() *budget.Budget
	// conns is the number of connections on which at least one request has arrived. refused is the number of requests
	// that were rejected because the memory budget was exhausted.
	conns, refused atomic.Int64
}

func newRequests() *requests {
	// The first request creates the budget. The budget is computed from the memory limit of the process, which may
	// change until then.
	return &requests{budget: sync.OnceValue(budget.Requests.Budget)}
}

// open returns the share of the memory budget for a new connection from the given client address.
func (q *requests) open(of connlimit.Address) *budget.Share {
	return q.budget().Share(string(of), strconv.FormatInt(q.conns.Add(1), 36))
}

// requestBytes is the estimated memory of a request without its header, in bytes. It was measured as the growth of the
// memory of the process.
const requestBytes = 16 << 10

// costOf returns the estimated memory of a request, including its header, in bytes.
func costOf(r *http.Request) int64 {
	head := len(r.RequestURI) + len(r.Host)
	for name, values := range r.Header {
		for _, value := range values {
			head += len(name) + len(value)
		}
	}
	return requestBytes + int64(head)
}

// streamSteps limits the number of concurrent requests (streams) on a new connection while much of the memory budget is
// in use. An element applies if at least eighths/8 of the budget is in use; streams is then the limit. The first
// element that applies is used.
var streamSteps = [...]struct {
	eighths int64
	streams int
}{{7, 8}, {6, 32}, {4, 128}}

// streams returns the maximum number of concurrent requests on a new connection. This number decreases as the memory
// budget is used up. It is limited in advance, because the HTTP/2 and HTTP/3 servers can neither lower the maximum of
// an open connection nor refuse a single request. configured is the maximum in the configuration; 0 means the server's
// default.
func (q *requests) streams(configured int) int {
	b := q.budget()
	for _, step := range streamSteps {
		if b.Used() >= b.Limit()/8*step.eighths && (configured == 0 || configured > step.streams) {
			return step.streams
		}
	}
	return configured
}

// Requests returns the memory used by HTTP/2 and HTTP/3 requests in progress, in bytes, and the number of requests that
// got a 503 response because the memory budget was exhausted.
func (f *Front) Requests() budget.Usage {
	u := f.requests.budget().Usage()
	u.Refused = f.requests.refused.Load()
	return u
}

// refuse sends a 503 response to a request, because the memory budget is exhausted. It does not read the request body.
func (s *Binding) refuse(w http.ResponseWriter, r *http.Request, l *limits.Limits, port uint16) {
	f, began := s.front, time.Now()
	f.requests.refused.Add(1)
	writer, request := message.NewHTTPWriter(w, r), message.Request{Names: l.Names}
	request.FromHTTP(r)
	request.Conn.Listener = port
	if f.RefuseRequest != nil {
		f.RefuseRequest(s, writer, &request, began)
	}
	if !writer.Started() {
		// Ignore the error: Head fails only if the client has disconnected.
		_ = writer.Head(&message.Response{Status: http.StatusServiceUnavailable})
	}
}
