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

// LogTap collects information about one certificate order from its log entries: why each issuer failed, and the status
// and Retry-After header of the certificate authority's last error response. The errors of certmagic and acmez do not
// contain this information. LogTap is safe for concurrent use.
//
// LogTap relies on the fields issuer and error of the entry that certmagic logs if an issuer fails, and on the fields
// status_code and response_headers of the debug entry that acmez logs for each response. Without these fields it
// collects nothing.
type LogTap struct {
	mu         sync.Mutex
	failed     map[string]error
	status     int
	retryAfter time.Time
}

// TapLog returns a logger for one certificate order, and the LogTap that collects information from the entries of this
// logger. The entries are forwarded to log at debug level only, because problems that matter to users are reported in
// another way.
func TapLog(log *zap.Logger) (*zap.Logger, *LogTap) {
	t := &LogTap{failed: map[string]error{}}
	return zap.New(&tappedCore{Core: log.Core(), tap: t}), t
}

// LastError returns the status of the last error response and the time to retry according to its Retry-After header.
// Both are zero if there was no error response.
func (t *LogTap) LastError() (status int, retryAfter time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.status, t.retryAfter
}

// ErrorOf returns the error of the issuer with the given issuer key, or nil if the error is unknown.
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

// parseRetryAfter parses the Retry-After header, which contains seconds or a date. It returns the zero time if the
// header is missing or invalid.
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

// tappedCore is a zapcore.Core that passes entries to a LogTap before it forwards them.
type tappedCore struct {
	zapcore.Core
	fields []zapcore.Field
	tap    *LogTap
}

// Enabled returns true for all levels, because acmez logs headers at debug level.
func (*tappedCore) Enabled(zapcore.Level) bool { return true }

// With implements zapcore.Core. It returns a core with additional fields and the same LogTap.
func (c *tappedCore) With(fields []zapcore.Field) zapcore.Core {
	return &tappedCore{Core: c.Core.With(fields), fields: slices.Concat(c.fields, fields), tap: c.tap}
}

// Check adds the core to checked, so that zap calls Write for the entry.
func (c *tappedCore) Check(e zapcore.Entry, checked *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	return checked.AddCore(e, c)
}

// Write passes an entry to the LogTap and forwards it.
func (c *tappedCore) Write(e zapcore.Entry, fields []zapcore.Field) error {
	c.tap.read(slices.Concat(c.fields, fields))
	if e.Level = zapcore.DebugLevel; !c.Core.Enabled(e.Level) {
		return nil
	}
	return c.Core.Write(e, fields)
}
