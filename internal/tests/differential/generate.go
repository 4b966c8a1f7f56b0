package differential

import (
	"math/rand/v2"
	"regexp"
	"strings"
)

// Case holds the requests that are sent on one connection.
type Case struct {
	// Requests contains one or more requests. They may be invalid, so a server may see a different number of requests.
	Requests []string
	// cuts are byte offsets in the text of the case. The text is split at these offsets, and each piece is written
	// separately.
	cuts []int
}

// Text returns everything that is sent in the case: all requests and the tail.
func (c *Case) Text() string { return strings.Join(c.Requests, "") + tail }

// tail is sent at the end of each case, so that the connection ends: its last request asks the server to close the
// connection. It is longer than any wrong body length in a case, so no server waits for more bytes. No part of its
// padding is a valid request.
var tail = "GET /behind HTTP/1.1\r\nHost: a\r\nX-Pad: " + strings.Repeat("-", 4000) + "\r\n\r\n" +
	"GET /last HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"

// generator generates random cases. It generates the same cases for the same seed.
type generator struct{ *rand.Rand }

func newGenerator(seed uint64) generator { return generator{rand.New(rand.NewPCG(seed, seed))} }

// next generates a case. Most cases consist of one request. If there are several, only the last of them has many
// unusual parts: responses after the first difference are not compared.
func (g generator) next() *Case {
	c := new(Case)
	for g.IntN(3) == 0 && len(c.Requests) < 4 {
		c.Requests = append(c.Requests, g.request(16))
	}
	c.Requests = append(c.Requests, g.request(1+g.IntN(6)))
	if g.IntN(4) == 0 {
		size := len(c.Text())
		for range 1 + g.IntN(6) {
			c.cuts = append(c.cuts, g.IntN(size))
		}
	}
	return c
}

// request generates a request from random parts. With a probability of 1/(calm+1), a part is chosen from all possible
// values, otherwise only from the ordinary values. So a larger calm makes the request more ordinary.
func (g generator) request(calm int) string {
	text := g.pick(methods, calm) + " " + g.pick(targets, calm) + g.pick(versions, 2*calm) + "\r\n" +
		g.pick(hosts, 2*calm)
	for range g.IntN(3) {
		text += g.pick(fields, calm)
	}
	text += g.pick(ends, calm)
	if g.IntN(5*calm) == 0 {
		text = before[g.IntN(len(before))] + text
	}
	if g.IntN(4*calm) == 0 && len(text) < len(tail)/2 && !huge.MatchString(text) {
		text = g.mutate(text)
	}
	return text
}

// huge matches numbers that are larger than any limit of a server. Requests with such a number are not mutated: a
// change of one byte might turn the number into a valid body length, and a server would wait for the body.
var huge = regexp.MustCompile("[0-9a-f]{12}")

const ordinary = 3

func (g generator) pick(from []string, calm int) string {
	if g.IntN(calm+1) > 0 {
		return from[g.IntN(ordinary)]
	}
	return from[g.IntN(len(from))]
}

// mutate changes, deletes or inserts one random byte.
func (g generator) mutate(text string) string {
	at, with := g.IntN(len(text)), noise[g.IntN(len(noise))]
	switch g.IntN(3) {
	case 0:
		return text[:at] + string([]byte{with}) + text[at+1:]
	case 1:
		return text[:at] + text[at+1:]
	default:
		return text[:at] + string([]byte{with}) + text[at:]
	}
}
