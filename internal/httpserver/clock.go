package httpserver

import (
	"net/http"
	"sync/atomic"
	"time"
)

// began is what deadlines are counted from: a time since then is cheaper than a time.
var began = time.Now()

// deadline is one of a connection, which is moved at most once a second.
type deadline struct {
	// until is when it ends, since began; zero is never.
	until time.Duration
	set   func(time.Time) error
}

// extend makes sure that at least limit is left, and not much more.
func (d *deadline) extend(limit time.Duration) {
	if limit <= 0 {
		if d.until != 0 {
			d.until = 0
			_ = d.set(time.Time{})
		}
		return
	}
	now := time.Since(began)
	if left := d.until - now; left >= limit && left <= limit+limit/3 {
		return
	}
	d.fix(now + limit + min(time.Second, limit/4))
}

// limit sets it to a time from now, and takes it away where that is zero.
func (d *deadline) limit(from time.Duration) {
	if from > 0 {
		d.fix(time.Since(began) + from)
	} else {
		d.extend(0)
	}
}

// fix sets it to a time.
func (d *deadline) fix(until time.Duration) {
	d.until = until
	_ = d.set(began.Add(until)) // A connection that has been closed says so when it is used.
}

// spoil forgets it after somebody else has changed it.
func (d *deadline) spoil() { d.until = -1 }

// dated is the value of a Date field, and until when it is right.
type dated struct {
	until time.Duration
	text  string
}

var lastDate atomic.Pointer[dated]

// date returns the value of the Date field.
func date() string {
	since := time.Since(began)
	last := lastDate.Load()
	if last == nil || since >= last.until {
		now := time.Now()
		last = &dated{since + time.Second - time.Duration(now.Nanosecond()), now.UTC().Format(http.TimeFormat)}
		lastDate.Store(last)
	}
	return last.text
}
