package httpserver

import (
	"net/http"
	"sync/atomic"
	"time"
)

// processStart is the reference time for deadlines. Measuring the time since processStart is cheaper than reading the
// wall clock.
var processStart = time.Now()

// deadline is a read or write deadline of a connection. It is changed at most once a second.
type deadline struct {
	// until is the deadline, relative to processStart. Zero means that there is no deadline.
	until time.Duration
	set   func(time.Time) error
}

// extend ensures that at least limit is left, and not much more. A limit of zero removes the deadline.
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

// limit sets the deadline to a duration from now. Zero removes it.
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

// invalidate forgets the deadline after other code has changed it, so that the next extend sets it again.
func (d *deadline) invalidate() { d.until = -1 }

// cachedDate is the value of the Date field, with the time until which it is valid.
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
