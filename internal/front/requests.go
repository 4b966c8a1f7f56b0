package front

import (
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/k8singress/k8singress/internal/budget"
	"github.com/k8singress/k8singress/internal/connlimit"
	"github.com/k8singress/k8singress/internal/message"
)

// requests limits the memory of the requests of HTTP/2 and HTTP/3 that are under way, which connections and addresses
// of clients share.
type requests struct {
	budget func() *budget.Budget
	// conns is how many connections have had a request, and refused how many requests found no room.
	conns, refused atomic.Int64
}

func newRequests() *requests {
	// The program may change its memory limit until the first request comes.
	return &requests{budget: sync.OnceValue(budget.Requests.Budget)}
}

// open returns the account of a connection.
func (q *requests) open(of connlimit.Address) *budget.Share {
	return q.budget().Share(string(of), strconv.FormatInt(q.conns.Add(1), 36))
}

// requestBytes is what a request takes beside its head, measured as the growth of the process.
const requestBytes = 16 << 10

// costOf returns how many bytes a request takes.
func costOf(r *http.Request) int64 {
	head := len(r.RequestURI) + len(r.Host)
	for name, values := range r.Header {
		for _, value := range values {
			head += len(name) + len(value)
		}
	}
	return requestBytes + int64(head)
}

// fewer has the numbers of streams of new connections, by how many eighths of the budget are used.
var fewer = [...]struct {
	eighths int64
	streams int
}{{7, 8}, {6, 32}, {4, 128}}

// streams returns how many requests a new connection may have at a time. As the budget fills, it is less than what is
// configured, where 0 is the server's own number: servers of Go can neither change it for an open connection nor refuse
// a stream.
func (q *requests) streams(configured int) int {
	b := q.budget()
	for _, step := range fewer {
		if b.Used() >= b.Limit()/8*step.eighths && (configured == 0 || configured > step.streams) {
			return step.streams
		}
	}
	return configured
}

// Requests returns how much memory the requests of HTTP/2 and HTTP/3 that are under way take, in bytes, and how many
// requests got 503.
func (f *Front) Requests() budget.Usage {
	u := f.requests.budget().Usage()
	u.Refused = f.requests.refused.Load()
	return u
}

// retryAfter is how many seconds a client should wait when there is no room for its request.
const retryAfter = "1"

// refuse answers a request for which there is no room. Its body is not read.
func (f *Front) refuse(w http.ResponseWriter, r *http.Request, limits *Limits, port uint16) {
	began := time.Now()
	f.requests.refused.Add(1)
	writer, request := message.NewHTTPWriter(w, r), message.Request{Names: limits.Names}
	request.FromHTTP(r)
	request.Conn.Listener = port
	// An error is the client's, who has gone.
	_ = writer.Head(&message.Response{
		Status: http.StatusServiceUnavailable, Fields: message.Fields{message.NewField("Retry-After", retryAfter)},
	})
	if f.RequestRefused != nil {
		f.RequestRefused(writer, &request, began)
	}
}
