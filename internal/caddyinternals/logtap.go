package caddyinternals

import (
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// LogTap keeps what the log of one order says and no error of certmagic or acmez has: why each issuer failed, and the
// status and the Retry-After header of the last answer of an authority that was an error. Its methods may be called from any
// goroutine.
//
// It relies on the fields issuer and error of what certmagic logs of an issuer that fails, and on the fields status_code and
// response_headers of what acmez logs of each answer at the level debug. Without them it knows nothing.
type LogTap struct {
	mu         sync.Mutex
	failed     map[string]error
	status     int
	retryAfter time.Time
}

// TapLog returns a log for one order, and what it says. Entries go on to log at the level debug: what matters to users
// becomes a verdict.
func TapLog(log *zap.Logger) (*zap.Logger, *LogTap) {
	t := &LogTap{failed: map[string]error{}}
	return zap.New(&tappedCore{Core: log.Core(), tap: t}), t
}

// LastError returns the status of the last answer that was an error, and when to ask again by its Retry-After header. Both are
// zero where there was none.
func (t *LogTap) LastError() (status int, retryAfter time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.status, t.retryAfter
}

// ErrorOf returns why the issuer with a key failed, or nil where that is not known.
func (t *LogTap) ErrorOf(issuer string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.failed[issuer]
}

func (t *LogTap) read(fields []zapcore.Field) {
	var issuer string
	var failed error
	var status int
	var headers http.Header
	for _, f := range fields {
		switch f.Key {
		case "issuer":
			issuer = f.String
		case "error":
			failed, _ = f.Interface.(error)
		case "status_code":
			status = int(f.Integer)
		case "response_headers":
			headers, _ = f.Interface.(http.Header)
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if issuer != "" && failed != nil {
		t.failed[issuer] = failed
	}
	if status >= http.StatusBadRequest {
		t.status, t.retryAfter = status, parseRetryAfter(headers, time.Now())
	}
}

// parseRetryAfter reads the header, which has seconds or a date. It returns no time without the header, or with another text.
func parseRetryAfter(headers http.Header, now time.Time) time.Time {
	text := headers.Get("Retry-After")
	if seconds, err := strconv.ParseUint(text, 10, 31); err == nil {
		return now.Add(time.Duration(seconds) * time.Second)
	}
	at, err := http.ParseTime(text)
	if err != nil {
		return time.Time{}
	}
	return at
}

// tappedCore shows entries to a tap before it passes them on.
type tappedCore struct {
	zapcore.Core
	fields []zapcore.Field
	tap    *LogTap
}

// Enabled returns true for all levels: acmez logs headers at the lowest one.
func (*tappedCore) Enabled(zapcore.Level) bool { return true }

// With returns a core with the same tap for entries that have these fields.
func (c *tappedCore) With(fields []zapcore.Field) zapcore.Core {
	return &tappedCore{Core: c.Core.With(fields), fields: slices.Concat(c.fields, fields), tap: c.tap}
}

// Check adds the core to the entry's writers.
func (c *tappedCore) Check(e zapcore.Entry, checked *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	return checked.AddCore(e, c)
}

// Write reads an entry, and passes it on.
func (c *tappedCore) Write(e zapcore.Entry, fields []zapcore.Field) error {
	c.tap.read(slices.Concat(c.fields, fields))
	if e.Level = zapcore.DebugLevel; !c.Core.Enabled(e.Level) {
		return nil
	}
	return c.Core.Write(e, fields)
}
