package annotations

import (
	"fmt"
	"strconv"
	"time"
)

// The rows of proxy-*: how long and how often an endpoint is asked. Values are plain numbers, as in ingress-nginx.
var (
	proxyConnectTimeout = Annotation{
		Name:   "proxy-connect-timeout",
		Doc:    "How many seconds a connection to an endpoint may take. Then another endpoint is asked, and after the last one the client gets 504.",
		Values: seconds, Example: "10", Default: "5", Scope: ScopeLocation, Risk: RiskLow,
		parse: func(s *Settings, value string) error { return parseSeconds(&s.Attempts.Connect, value) },
	}
	proxyReadTimeout = Annotation{
		Name: "proxy-read-timeout",
		Doc: "How many seconds an endpoint may say nothing; the whole answer may take longer. The client gets 504 then, if the answer " +
			"has not begun. WebSockets and other upgraded connections have no such limit yet.",
		Values: seconds, Example: "3600", Default: "60", Scope: ScopeLocation, Risk: RiskLow,
		parse: func(s *Settings, value string) error { return parseSeconds(&s.Attempts.Read, value) },
	}
	proxySendTimeout = Annotation{
		Name: "proxy-send-timeout",
		Doc: "How many seconds an endpoint may take nothing of what is sent to it. It holds for requests with a body up to 64 KiB; larger " +
			"ones have no such limit yet.",
		Values: seconds, Example: "3600", Default: "60", Scope: ScopeLocation, Risk: RiskLow,
		parse: func(s *Settings, value string) error { return parseSeconds(&s.Attempts.Write, value) },
	}
	proxyNextUpstreamTries = Annotation{
		Name: "proxy-next-upstream-tries",
		Doc: "How many endpoints a request is sent to at most, one after the other, when they cannot be reached or fail before they " +
			"answer. A request that an endpoint may have got is sent again only if it may be repeated, such as GET.",
		Values: "a number from 1 to " + strconv.Itoa(mostTries), Example: "2", Default: "3", Scope: ScopeLocation, Risk: RiskLow,
		parse: func(s *Settings, value string) error { return parseTries(&s.Attempts.Tries, value) },
	}
)

const (
	mostSeconds = 24 * 60 * 60
	mostTries   = 100
)

var seconds = fmt.Sprintf("a number of seconds from 1 to %d", mostSeconds)

func parseSeconds(into *time.Duration, value string) error {
	n, err := strconv.Atoi(value)
	if err != nil || n < 1 || n > mostSeconds {
		return fmt.Errorf("%q is not %s: write the number alone, without a unit", value, seconds)
	}
	*into = time.Duration(n) * time.Second
	return nil
}

func parseTries(into *int, value string) error {
	n, err := strconv.Atoi(value)
	switch {
	case err != nil || n < 0:
		return fmt.Errorf("%q is not a number from 1 to %d", value, mostTries)
	case n == 0 || n > mostTries:
		// ingress-nginx has no limit at 0.
		n = mostTries
	}
	*into = n
	return nil
}
