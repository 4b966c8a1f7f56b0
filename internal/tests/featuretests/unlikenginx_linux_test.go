package featuretests

import (
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/k8singress/k8singress/internal/tests/differential"
)

// unlikeNginx explains the intended differences from nginx: first the requests that only one of them rejects, then the
// differences that endpoints see.
var unlikeNginx = append(append(refusedHere, refusedByNginx...), seenOtherwise()...)

// refusedHere explains requests that only our server rejects.
var refusedHere = []differential.Row{
	{Reason: "two errors, of which another one is found first", Is: func(d *differential.Difference) bool {
		return d.Got.Status >= http.StatusBadRequest && d.Want.Status >= http.StatusBadRequest
	}},
	{Reason: "a connection ends behind what is refused; nginx goes on behind what its endpoint refuses",
		Is: func(d *differential.Difference) bool {
			return d.Got.Status == 0 && d.Before.Status >= http.StatusBadRequest
		}},
	refused("a bare LF is no end of a line", "bare-lf"),
	refused("control characters are refused; nginx leaves them to endpoints, or hides the field", "control-character"),
	refused("names of fields are tokens; nginx hides other fields", "field-name"),
	refused("a length with more digits than any body is too large, also with zeros in front",
		"content-length-too-large"),
	refused("what is no path and no URL of HTTP is for nobody", "target"),
	refused("a host is a name or an address, and a port has digits", "host", "no-host"),
	refused("there is no HTTP/1.2", "version"),
	refused("nothing is known of an Expect but 100-continue", "expect"),
	refused("fields are bounded by their number as well", "many-fields"),
	refused("the parts of a request line have one space in between", "request-line"),
	{Reason: "HTTP/0.9 is not served, whatever else is refused in it", Is: func(d *differential.Difference) bool {
		return d.Got.Status >= http.StatusBadRequest && strings.HasPrefix(d.Want.Text, "no HTTP")
	}},
	refused("empty lines in front of a request have a bound", "empty-lines"),
	refused("a lone CR in front of a request is no empty line", "method"),
	{Reason: "chunks are read strictly: nginx also takes bare LFs, other bytes and any trailers",
		Is: func(d *differential.Difference) bool {
			return strings.Contains(strings.ToLower(d.Text), "chunked") && d.Got.Reason == "" &&
				(d.Got.Status == http.StatusBadRequest || d.Got.Status == http.StatusRequestHeaderFieldsTooLarge)
		}},
	{Reason: "a WebSocket handshake has no body", Is: func(d *differential.Difference) bool {
		return d.Got.Status == http.StatusBadRequest && d.Got.Reason == "" &&
			strings.Contains(strings.ToLower(d.Text), "upgrade: websocket")
	}},
	{Reason: "a refusal of HEAD has no body, which would say why", Is: func(d *differential.Difference) bool {
		return d.Got.Status >= http.StatusBadRequest && d.Got.Reason == "" && strings.Contains(d.Text, "HEAD")
	}, Example: "HEAD / HTTP/1.2\r\nHost: a\r\n\r\n"},
	{Reason: "one close among several Connection fields ends it; for nginx the last field counts",
		Is: func(d *differential.Difference) bool {
			return d.Got.Status == 0 && len(connections.FindAllString(d.Text, -1)) > 1 &&
				strings.Contains(strings.ToLower(d.Text), "close")
		}},
}

// connections matches Connection fields and their values.
var connections = regexp.MustCompile(`(?i)\nconnection:([^\r\n]*)`)

// refused returns a row for requests that only our server rejects.
func refused(why string, reasons ...string) differential.Row {
	return differential.Row{Reason: why, Is: func(d *differential.Difference) bool { return d.Refused(reasons...) }}
}

// refusedByNginx explains requests that nginx rejects and our server forwards.
var refusedByNginx = []differential.Row{
	takenHere("a method is any token; nginx takes capital letters only", func(_ string, f map[string]string) bool {
		return strings.Trim(f["Method"], "ABCDEFGHIJKLMNOPQRSTUVWXYZ_-") != ""
	}),
	takenHere("dot segments lead no further than to the root; nginx refuses those that try",
		func(_ string, f map[string]string) bool {
			return strings.Contains(f["Target"], "..") || strings.Contains(strings.ToLower(f["Target"]), "%2e%2e")
		}),
	takenHere("a name may have two dots in a row, and no Ingress has that name",
		func(_ string, f map[string]string) bool {
			return strings.Contains(f["Host"], "..")
		}),
	example("GET http://b/ HTTP/1.1\r\nHost: a..b\r\n\r\n",
		takenHere("a whole URL says the host, whatever the field says that nginx refuses",
			func(text string, _ map[string]string) bool { return strings.Contains(text, "://") })),
	example("GET / HTTP/1.0\r\n\r\n",
		takenHere("where HTTP/1.0 says no Host, endpoints are told their address; nginx tells none",
			func(_ string, f map[string]string) bool { return f["X-Forwarded-Host"] == "" })),
	takenHere("only the whole head is bounded; for nginx each line is", func(text string, _ map[string]string) bool {
		return slices.ContainsFunc(strings.Split(text, "\n"), func(line string) bool { return len(line) > 8000 })
	}),
	takenHere("tabs around a value are not a part of it",
		func(text string, _ map[string]string) bool { return strings.Contains(text, "\t") }),
	example("GET / HTTP/1.1\r\nHost: a\r\nIf-None-Match: *\r\nIf-None-Match: *\r\n\r\n", takenHere(
		"several lines of a field that nothing here looks at are the endpoint's to judge; nginx refuses some",
		func(_ string, f map[string]string) bool { return strings.Contains(f["If-None-Match"], " | ") })),
	{Reason: "nginx takes each option that has close in it for that", Is: func(d *differential.Difference) bool {
		return d.Want.Status == 0 && slices.ContainsFunc(connections.FindAllStringSubmatch(d.Text, -1),
			func(found []string) bool {
				return slices.ContainsFunc(strings.Split(strings.ToLower(found[1]), ","), func(option string) bool {
					return strings.Contains(option, "close") && strings.Trim(option, " \t") != "close"
				})
			})
	}},
}

func example(request string, row differential.Row) differential.Row {
	row.Example = request
	return row
}

// takenHere returns a row for a request that our server forwards and nginx rejects.
func takenHere(why string, is func(text string, fields map[string]string) bool) differential.Row {
	return differential.Row{Reason: why, Is: func(d *differential.Difference) bool {
		return d.Got.Status < http.StatusBadRequest && d.Want.Status >= http.StatusBadRequest &&
			is(d.Text, fieldsSeen(d.Got.Text))
	}}
}

// fieldsSeen parses the request as an endpoint has seen it.
func fieldsSeen(text string) map[string]string {
	fields := map[string]string{}
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		fields[name] = value
	}
	return fields
}

// other is a line that the endpoints see differently. A line that only one of them sees is empty for the other, like a
// line without a value.
type other struct{ name, got, want string }

// seenLines explains such lines.
var seenLines = []struct {
	reason string
	is     func(text string, o other) bool
	// example is Row.Example.
	example string
}{
	{reason: "what cannot stand in a path is escaped", is: func(_ string, o other) bool {
		return o.name == "Target" && o.got != o.want && unescaped(o.got) == unescaped(o.want)
	}},
	{reason: "a whole URL says the host (RFC 9112 3.2.2); endpoints behind ingress-nginx get that of the field",
		is: func(text string, o other) bool {
			return (o.name == "Host" || o.name == "X-Forwarded-Host") && strings.Contains(text, "://")
		}},
	{reason: "trailers are passed on", is: func(_ string, o other) bool { return o.name == "Length" && o.got == "-1" }},
	{reason: "only WebSockets are switched to, and only who asks for it in Connection",
		is: func(_ string, o other) bool {
			return o.got == "" && (o.name == "Upgrade" || o.name == "Connection" || o.name == "Http2-Settings")
		}},
	{reason: "what is between a client and its proxy goes no further", is: func(_ string, o other) bool {
		return o.got == "" && slices.Contains([]string{"Proxy-Connection", "Proxy-Authorization", "Trailer",
			"Keep-Alive", "Te"}, o.name)
	}},
	{reason: "an X-Request-ID that is no single word, or one of two, is replaced", is: func(text string, o other) bool {
		return o.name == "X-Request-Id" && o.got == "its own" &&
			(strings.Count(strings.ToLower(text), "x-request-id:") > 1 ||
				strings.ContainsFunc(o.want, func(r rune) bool { return r <= ' ' || r > '~' || r == '"' || r == '\\' }))
	}, example: "GET / HTTP/1.1\r\nHost: a\r\nX-Request-ID: a b\r\n\r\n"},
	{reason: "nobody passes for a proxy", is: func(_ string, o other) bool {
		return o.got == "" && slices.Contains([]string{"Forwarded", "X-Original-Uri"}, o.name)
	}},
	{reason: "what Connection names goes no further", is: func(text string, o other) bool {
		for _, found := range connections.FindAllStringSubmatch(text, -1) {
			if o.got == "" && strings.Contains(strings.ToLower(found[1]), strings.ToLower(o.name)) {
				return true
			}
		}
		return false
	}},
}

func unescaped(target string) string {
	text, err := url.PathUnescape(target)
	if err != nil {
		return target
	}
	return text
}

// seenOtherwise returns a row for each line. A row explains a difference that contains its line, if all other differing
// lines are explained, too.
func seenOtherwise() (rows []differential.Row) {
	for _, row := range seenLines {
		rows = append(rows, differential.Row{Reason: row.reason, Example: row.example,
			Is: func(d *differential.Difference) bool {
				others := othersOf(d)
				return slices.ContainsFunc(others, func(o other) bool { return row.is(d.Text, o) }) &&
					!slices.ContainsFunc(others, func(o other) bool {
						return !explained(d.Text, o)
					})
			}})
	}
	return rows
}

func explained(text string, o other) bool {
	for _, row := range seenLines {
		if row.is(text, o) {
			return true
		}
	}
	return false
}

func othersOf(d *differential.Difference) (others []other) {
	got, want := fieldsSeen(d.Got.Text), fieldsSeen(d.Want.Text)
	both := maps.Clone(got)
	maps.Copy(both, want)
	for name := range both {
		_, here := got[name]
		if _, there := want[name]; here != there || got[name] != want[name] {
			others = append(others, other{name, got[name], want[name]})
		}
	}
	return others
}
