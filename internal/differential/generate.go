package differential

import (
	"math/rand/v2"
	"regexp"
	"strings"
)

// Case is what one connection sends.
type Case struct {
	// Requests are one or several, each as its author means it: a server may see other ones in them.
	Requests []string
	// cuts are where the bytes are cut into pieces, each of which is written alone.
	cuts []int
}

// Text is all that is sent.
func (c *Case) Text() string { return strings.Join(c.Requests, "") + tail }

// tail ends a case. It is longer than the lengths that are wrong in a case, and what is cut off in the middle of it is no request, so
// that each connection ends. The last request asks for the end.
var tail = "GET /behind HTTP/1.1\r\nHost: a\r\nX-Pad: " + strings.Repeat("-", 4000) + "\r\n\r\n" +
	"GET /last HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"

// generator makes the same cases from the same seed.
type generator struct{ *rand.Rand }

func newGenerator(seed uint64) generator { return generator{rand.New(rand.NewPCG(seed, seed))} }

// next makes a case. Most have one request, and only the last one is strange in more than a few ways: what comes behind a difference
// is not compared.
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

// request makes one, of which a piece is one of the whole list with a probability of one in calm, and an ordinary one otherwise.
func (g generator) request(calm int) string {
	text := g.pick(methods, calm) + " " + g.pick(targets, calm) + g.pick(versions, 2*calm) + "\r\n" + g.pick(hosts, 2*calm)
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

// huge are numbers that are larger than any limit. With a byte changed they may be lengths that a server waits for.
var huge = regexp.MustCompile("[0-9a-f]{12}")

const ordinary = 3

func (g generator) pick(from []string, calm int) string {
	if g.IntN(calm+1) > 0 {
		return from[g.IntN(ordinary)]
	}
	return from[g.IntN(len(from))]
}

// mutate changes one byte, takes it out, or puts another one in front of it.
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
