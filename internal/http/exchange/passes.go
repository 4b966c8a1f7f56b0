package exchange

import (
	"strconv"
	"strings"

	"github.com/k8singress/k8singress/internal/http/message"
)

// Pseudonym is the name under which this controller appears in Via and CDN-Loop headers.
const Pseudonym = "k8singress"

// Via returns the value of the Via header for requests to endpoints and services: the proxies that the request has
// passed so far, followed by this one if the administrator wants it (RFC 9110, section 7.6.3).
func (x *Exchange) Via() string {
	before := x.Fields.JoinedKind(message.Via)
	if x.Headers == nil || !x.Headers.via {
		return before
	}
	own := "1.1 " + Pseudonym
	if x.Major != 1 || x.Minor != 1 {
		own = strconv.Itoa(int(x.Major)) + "." + strconv.Itoa(int(x.Minor)) + " " + Pseudonym
	}
	if before != "" {
		return before + ", " + own
	}
	return own
}

// CDNLoop returns the value of the CDN-Loop header for requests to endpoints and services. As RFC 8586 requires, it
// keeps what the request contains, and appends this controller.
func (x *Exchange) CDNLoop() string {
	if before := x.Fields.JoinedKind(message.CDNLoop); before != "" {
		return before + ", " + Pseudonym
	}
	return Pseudonym
}

// CountPasses returns how many times the request has already passed through this controller or one of its replicas. A
// client can forge a higher number, but not a lower one. So a high number must never allow more than a low number.
// Commas in quoted strings count as separators, which can only make the number higher.
func CountPasses(r *message.Request) (times int) {
	for i := range r.Fields {
		if r.Fields[i].Kind != message.CDNLoop {
			continue
		}
		for member := range strings.SplitSeq(r.Fields[i].Value, ",") {
			if id, _, _ := strings.Cut(member, ";"); strings.Trim(id, " \t") == Pseudonym {
				times++
			}
		}
	}
	return times
}
