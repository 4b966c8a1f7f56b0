package httpserver

import (
	"net/http"
	"sync/atomic"
	"time"
)

// processStart is the reference time for deadlines. Measuring the time since processStart is cheaper than reading the
// wall clock.
var processStart = time.Now()

// deadline is a read or write deadline of a connection. It is not changed for each read or write, because this would be
// expensive.
type deadline struct {
	// until is the deadline, relative to processStart. Zero means that there is no deadline.
	until time.Duration
	set   func(time.Time) error
}

// extend ensures that the deadline is at least limit and at most about 4/3 of limit from now. A limit of zero removes
// the deadline.
func (d *deadline) extend(limit time.Duration) {
	if limit <= 0 {
		if d.until != 0 {
			d.until = 0
			_ = d.set(time.Time{})
		}
		return
	}
	now := time.Since(processStart)
	if left := d.until - now; left >= limit && left <= limit+limit/3 {
		return
	}
	d.fix(now + limit + min(time.Second, limit/4))
}

// limit sets the deadline to the current time plus from. If from is zero, it removes the deadline.
func (d *deadline) limit(from time.Duration) {
	if from > 0 {
		d.fix(time.Since(processStart) + from)
	} else {
		d.extend(0)
	}
}

// fix sets the deadline to a time relative to processStart.
func (d *deadline) fix(until time.Duration) {
	d.until = until
	_ = d.set(processStart.Add(until)) // If the connection is closed, its next use returns an error.
}

// invalidate is called after other code has changed the deadline of the connection. The next call of extend then sets
// the deadline again.
func (d *deadline) invalidate() { d.until = -1 }

// cachedDate is the value of the Date field, and the time until which it is valid, relative to processStart.
type cachedDate struct {
	until time.Duration
	text  string
}

var lastDate atomic.Pointer[cachedDate]

// date returns the current value of the Date field.
func date() string {
	since := time.Since(processStart)
	last := lastDate.Load()
	if last == nil || since >= last.until {
		now := time.Now()
		last = &cachedDate{since + time.Second - time.Duration(now.Nanosecond()), now.UTC().Format(http.TimeFormat)}
		lastDate.Store(last)
	}
	return last.text
}
