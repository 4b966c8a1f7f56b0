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

// requests is the number of requests to send. If it is set, each run sends different requests, unless the flag -seed is
// set. If it is 0, the test determines the number and always sends the same requests.
var requests = flag.Int("requests", 0, "how many random requests a differential test sends")

// seed is the random seed of an earlier test run with -requests. If it is set, the same requests are sent again.
var seed = flag.Uint64("seed", 0, "the seed of random requests")

// Difference is the first difference between the responses of the two servers.
type Difference struct {
	// Text contains all requests that were sent on the connection, without the tail that ends each case.
	Text string
	// Got is the response of our server, and Want is the response of the other server. If one of the servers has sent
	// fewer responses, its response is the zero value.
	Got, Want Answer
	// Before is our server's previous response on the connection.
	Before Answer
}

// Refused reports whether our server has rejected the request for one of the given reasons.
func (d *Difference) Refused(reasons ...string) bool { return slices.Contains(reasons, d.Got.Reason) }

// Row describes one kind of difference between the servers that is expected, and explains it.
type Row struct {
	// Reason explains why our server intentionally differs from the other server.
	Reason string
	// The function Is reports whether a difference is of this kind. If several rows match a difference, the first of
	// them explains it.
	Is func(*Difference) bool
	// Example is a request that causes the difference. It is set for differences that random requests rarely cause, and
	// may be empty.
	Example string
}

// Comparison compares our server with another server. It contains a table of the expected differences.
type Comparison struct {
	// Ours and Theirs are the addresses of our server and the other server.
	Ours, Theirs string
	// Tell returns the part of a response that must be equal for both servers.
	Tell func(response *http.Response, body []byte, err error) string
	// HalfClose makes clients close the sending direction of a connection after a case, because a server without a read
	// timeout would wait for the rest of an incomplete body.
	HalfClose bool
	Rows      []Row
	// Requests is the number of requests in a test run without -requests. Such a run always sends the same requests,
	// and must produce each kind of difference in the table of expected differences.
	Requests int
}

// workers is the number of cases that are sent concurrently.
const workers = 8

// Run compares the servers. The test fails for each difference that is not in the table of expected differences, and
// for each row of the table that explains no difference.
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

// compare sends a case to both servers. The test fails if the responses differ and the table of expected differences
// does not explain the first difference.
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

// firstDifference returns the first difference between the responses of the two servers, or nil if all responses are
// equal.
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
