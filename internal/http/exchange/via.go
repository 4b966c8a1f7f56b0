package exchange

import (
	"strconv"
	"strings"

	"github.com/k8singress/k8singress/internal/http/message"
)

// Pseudonym is the name under which this controller appears in Via headers.
const Pseudonym = "k8singress"

// Via returns the value of the Via header to send: the proxies that the request has passed so far, followed by this one
// (RFC 9110, section 7.6.3).
func (x *Exchange) Via() string {
	own := "1.1 " + Pseudonym
	if x.Major != 1 || x.Minor != 1 {
		own = strconv.Itoa(int(x.Major)) + "." + strconv.Itoa(int(x.Minor)) + " " + Pseudonym
	}
	if before := x.Fields.JoinedKind(message.Via); before != "" {
		return before + ", " + own
	}
	return own
}

// CountPasses returns how many times the request has already passed through this controller or one of its replicas.
func CountPasses(r *message.Request) (times int) {
	for i := range r.Fields {
		if r.Fields[i].Kind == message.Via {
			times += strings.Count(r.Fields[i].Value, Pseudonym)
		}
	}
	return times
}
