package accesslog

import (
	"cmp"
	"os"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/k8singress/k8singress/internal/http/exchange"
)

// entry contains the data of a finished request from which its log line is written.
type entry struct {
	*exchange.Exchange
	now  time.Time
	took time.Duration
}

// values maps the names of variables that are only available in the access log to functions that return their values.
// These variables come from nginx's log and upstream modules and from ingress-nginx.
var values = map[string]func(*entry) string{
	"body_bytes_sent":                 (*entry).sent,
	"bytes_sent":                      (*entry).sent,
	"hostname":                        func(*entry) string { return hostname },
	"pid":                             func(*entry) string { return pid },
	"pipe":                            func(*entry) string { return "." },
	"proxy_alternative_upstream_name": func(*entry) string { return "" },
	"request_time":                    func(e *entry) string { return seconds(e.took.Milliseconds()) },
	"status":                          status,
	"time_iso8601":                    func(e *entry) string { return timeISO(e.now) },
	"time_local":                      func(e *entry) string { return timeLocal(e.now) },
	"upstream_addr":                   ofExchange("upstream_addr"),
	"upstream_response_length":        (*entry).upstreamLength,
	"upstream_response_time":          (*entry).upstreamTime,
	"upstream_status":                 ofExchange("upstream_status"),
}

var (
	pid         = strconv.Itoa(os.Getpid())
	hostname, _ = os.Hostname() // If there is an error, the name is empty and "-" is logged.
)

// ofExchange returns the function for a variable of package exchange that describes the response.
func ofExchange(name string) func(*entry) string {
	value := exchange.VariableOf(name)
	return func(e *entry) string { return value(e.Exchange) }
}

// writtenTime is a cached result of timeLocal: a time in seconds since 1970, and the string for this time.
type writtenTime struct {
	unix int64
	text string
}

// lastTime caches the last result of timeLocal.
var lastTime atomic.Pointer[writtenTime]

func timeISO(t time.Time) string { return t.Format("2006-01-02T15:04:05-07:00") }

// timeLocal formats a time for the log. The result is cached for one second.
func timeLocal(t time.Time) string {
	unix := t.Unix()
	if last := lastTime.Load(); last != nil && last.unix == unix {
		return last.text
	}
	next := &writtenTime{unix, t.Format("02/Jan/2006:15:04:05 -0700")}
	lastTime.Store(next)
	return next.text
}

func (e *entry) sent() string { return strconv.FormatInt(e.Sent(), 10) }

func status(e *entry) string {
	return strconv.Itoa(cmp.Or(e.Status, exchange.ClientGone))
}

// upstreamTime returns the time in seconds that each endpoint took to respond.
func (e *entry) upstreamTime() string {
	return e.JoinAttempts(func(a *exchange.Attempt) string { return seconds(a.Took.Milliseconds()) })
}

// upstreamLength returns the number of body bytes that were forwarded from each endpoint that was tried. It is 0 for
// all except the last, because only the last response is forwarded. The body of an error of the controller itself does
// not count.
func (e *entry) upstreamLength() string {
	attempts, n := e.Attempts(), 0
	return e.JoinAttempts(func(*exchange.Attempt) string {
		if n++; n < len(attempts) {
			return "0"
		}
		return strconv.FormatInt(e.FromEndpoint(), 10)
	})
}
