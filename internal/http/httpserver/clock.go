package httpserver

import (
	"net/http"
	"sync/atomic"
	"time"
)

// processStart is the reference time for deadlines: they are stored as durations since processStart, because measuring
// such a duration is cheaper than reading the wall clock.
var processStart = time.Now()

// deadline caches the read or write deadline of a connection, so that it does not have to be set for each read or
// write, which would be expensive.
type deadline struct {
	// until is the deadline as a duration since processStart. Zero means that there is no deadline.
	until time.Duration
	// last is the latest value that until may have, because of the time limit for a whole request or response. Zero
	// means that there is no such limit.
	last time.Duration
	set  func(time.Time) error
}

// whole sets the time limit for a whole request or response, which starts now. A limit of zero removes the previous
// time limit.
func (d *deadline) whole(limit time.Duration) {
	if limit <= 0 {
		d.last = 0
		return
	}
	d.last = time.Since(processStart) + limit
	if d.until == 0 || d.until > d.last {
		d.fix(d.last)
	}
}

// extend ensures that at least the duration limit is left until the deadline. It only sets a new deadline if the time
// left is shorter than limit or longer than 4/3 of limit. A limit of zero removes the deadline, except for the time
// limit of a whole request or response.
func (d *deadline) extend(limit time.Duration) {
	if limit <= 0 {
		switch {
		case d.last != 0:
			d.fix(d.last)
		case d.until != 0:
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

// d.limit(from) sets the deadline to the current time plus the duration from. If from is zero, it removes the deadline.
func (d *deadline) limit(from time.Duration) {
	if from > 0 {
		d.fix(time.Since(processStart) + from)
	} else {
		d.extend(0)
	}
}

// fix sets the deadline to until, a duration since processStart, or to d.last if that is earlier.
func (d *deadline) fix(until time.Duration) {
	if d.last != 0 && until >= d.last {
		if until = d.last; until == d.until {
			return
		}
	}
	d.until = until
	_ = d.set(processStart.Add(until)) // If the connection is closed, its next use returns an error.
}

// invalidate marks the cached deadline as outdated, after other code has changed the deadline of the connection. The
// next call of extend then sets the deadline again.
func (d *deadline) invalidate() { d.until = -1 }

// cachedDate is a value of the Date header field. until is the time at which it expires, as a duration since
// processStart.
type cachedDate struct {
	until time.Duration
	text  string
}

var lastDate atomic.Pointer[cachedDate]

// date returns the value of the Date header field for the current time.
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
