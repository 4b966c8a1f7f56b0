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

// requests is how many requests are sent, if not as many as a test says. Their seed is then another one each time.
var requests = flag.Int("requests", 0, "how many random requests a differential test sends")

// seed repeats a run with -requests.
var seed = flag.Uint64("seed", 0, "the seed of random requests")

// Difference is the first place where two servers have not said the same.
type Difference struct {
	// Text is what was sent up to there and behind it, without what ends each case.
	Text string
	// Got is what our server answered, and Want what the other one did. One of them may be missing.
	Got, Want Answer
	// Before is what our server answered just before.
	Before Answer
}

// Refused says that our server has refused a request, for one of these reasons.
func (d *Difference) Refused(reasons ...string) bool { return slices.Contains(reasons, d.Got.Reason) }

// Row explains a kind of differences.
type Row struct {
	// Reason is why they are meant to be there.
	Reason string
	// Is says whether a difference is of that kind. The first row of a table that says so has explained it.
	Is func(*Difference) bool
	// Example is a request of that kind, where random ones are seldom.
	Example string
}

// Comparison is two servers, and what is known about their differences.
type Comparison struct {
	// Ours and Theirs are addresses.
	Ours, Theirs string
	// Tell returns what of an answer ought to be the same.
	Tell func(response *http.Response, body []byte, err error) string
	// HalfClose has clients end their direction behind a case: a server without a limit would wait for the rest of a body.
	HalfClose bool
	Rows      []Row
	// Requests is how many are sent by an ordinary run of the tests, always the same ones. They need each row of the table.
	Requests int
}

// workers is how many cases are asked at once.
const workers = 8

// Run fails the test for each difference without a row, and for each row without a difference.
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

// compare asks both servers.
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

// firstDifference returns nil if there is none.
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
