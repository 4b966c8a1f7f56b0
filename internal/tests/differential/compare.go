package differential

import (
	"flag"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// requests is the number of requests to send, or 0 for the number set by the test. If it is set, each run uses a new
// seed.
var requests = flag.Int("requests", 0, "how many random requests a differential test sends")

// seed repeats the requests of an earlier run with -requests.
var seed = flag.Uint64("seed", 0, "the seed of random requests")

// Difference is the first place at which the responses of two servers differ.
type Difference struct {
	// Text contains all requests of the case, without the tail.
	Text string
	// Got is our server's response, and Want is the other server's. One of them may be missing.
	Got, Want Answer
	// Before is our server's previous response on the connection.
	Before Answer
}

// Refused reports whether our server has rejected the request for one of the given reasons.
func (d *Difference) Refused(reasons ...string) bool { return slices.Contains(reasons, d.Got.Reason) }

// Row explains one kind of difference.
type Row struct {
	// Reason says why the difference is intended.
	Reason string
	// Is reports whether a difference is of this kind. The first matching row of a table explains a difference.
	Is func(*Difference) bool
	// Example is a request that shows the difference, for kinds that random requests rarely produce.
	Example string
}

// Comparison compares two servers, given a table of the known differences.
type Comparison struct {
	// Ours and Theirs are the addresses of the servers.
	Ours, Theirs string
	// Tell returns the part of a response that should be equal for both servers.
	Tell func(response *http.Response, body []byte, err error) string
	// HalfClose makes clients close their sending direction after a case, because a server without a time limit would
	// wait for the rest of a body.
	HalfClose bool
	Rows      []Row
	// Requests is the number of requests in a normal test run. They are always the same, and must use every row of the
	// table.
	Requests int
}

// workers is the number of cases that run concurrently.
const workers = 8

// Run fails the test for each difference that no row explains, and for each row that explains no difference.
func (c *Comparison) Run(t *testing.T) {
	t.Helper()
	number, from := c.Requests, uint64(1)
	switch {
	case *requests > 0:
		if number, from = *requests, *seed; from == 0 {
			from = rand.Uint64()
		}
	case testing.Short():
		number /= 10
	}
	t.Logf("%d requests, -seed %d", number, from)
	cases := make(chan *Case)
	used := make([]atomic.Int64, len(c.Rows))
	var running sync.WaitGroup
	for range workers {
		running.Go(func() {
			for one := range cases {
				c.compare(t, one, used)
			}
		})
	}
	for _, row := range c.Rows {
		if row.Example != "" {
			cases <- &Case{Requests: []string{row.Example}}
		}
	}
	for g := newGenerator(from); number > 0 && !t.Failed(); {
		one := g.next()
		number -= len(one.Requests)
		cases <- one
	}
	close(cases)
	running.Wait()
	for i, row := range c.Rows {
		t.Logf("%7d: %s", used[i].Load(), row.Reason)
		if used[i].Load() == 0 && !testing.Short() && !t.Failed() {
			t.Errorf("nothing is different because %s", row.Reason)
		}
	}
}

// compare sends a case to both servers and checks the first difference.
func (c *Comparison) compare(t *testing.T, one *Case, used []atomic.Int64) {
	t.Helper()
	ours, theirs := asker{c.Ours, c.Tell, c.HalfClose}, asker{c.Theirs, c.Tell, c.HalfClose}
	got, err := ours.ask(one)
	if err != nil {
		t.Errorf("%.2000q: ours: %v", one.Requests, err)
	}
	want, err := theirs.ask(one)
	if err != nil {
		t.Errorf("%.2000q: the other: %v", one.Requests, err)
	}
	d := one.firstDifference(got, want)
	if d == nil {
		return
	}
	for i, row := range c.Rows {
		if row.Is(d) {
			used[i].Add(1)
			return
		}
	}
	t.Errorf("%.2000q\nours: %v\nthe other: %v", d.Text, &d.Got, &d.Want)
}

// firstDifference returns the first difference, or nil if the responses are equal.
func (c *Case) firstDifference(got, want []Answer) *Difference {
	for i := range max(len(got), len(want)) {
		d := &Difference{Text: strings.Join(c.Requests, "")}
		if i < len(got) {
			d.Got = got[i]
		}
		if 0 < i && i <= len(got) {
			d.Before = got[i-1]
		}
		if i < len(want) {
			d.Want = want[i]
		}
		if d.Got.Text != d.Want.Text {
			return d
		}
	}
	return nil
}
