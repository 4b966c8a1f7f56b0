package issuance

import (
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// witness reads the log of one attempt. There alone certmagic says why the first of several issuers failed, and the client
// of ACME which headers an error came with. What it reads goes on to the real log, for those who look for faults only: what
// matters to users is said of the Ingress, once.
type witness struct {
	zapcore.Core
	fields []zapcore.Field
	seen   *seen
}

// seen is what the log of one attempt says. It is for several goroutines.
type seen struct {
	mu sync.Mutex
	// failed are the errors by key of the issuer.
	failed map[string]error
	// status and retryAfter are those of the last answer that was an error.
	status     int
	retryAfter time.Time
}

// watch returns a log for one attempt, and what it says.
func watch(log *zap.Logger) (*zap.Logger, *seen) {
	s := &seen{failed: map[string]error{}}
	return zap.New(&witness{Core: log.Core(), seen: s}), s
}

// Enabled says yes to all levels: the headers are logged at the lowest.
func (*witness) Enabled(zapcore.Level) bool { return true }

// With returns a witness to what is logged with these fields.
func (w *witness) With(fields []zapcore.Field) zapcore.Core {
	return &witness{Core: w.Core.With(fields), fields: slices.Concat(w.fields, fields), seen: w.seen}
}

// Check adds the witness to those who write.
func (w *witness) Check(e zapcore.Entry, c *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	return c.AddCore(e, w)
}

// Write reads an entry, and passes it on.
func (w *witness) Write(e zapcore.Entry, fields []zapcore.Field) error {
	w.seen.read(slices.Concat(w.fields, fields))
	if e.Level = zapcore.DebugLevel; !w.Core.Enabled(e.Level) {
		return nil
	}
	return w.Core.Write(e, fields)
}

func (s *seen) read(fields []zapcore.Field) {
	s.mu.Lock()
	defer s.mu.Unlock()
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
	if issuer != "" && failed != nil {
		s.failed[issuer] = failed
	}
	if status >= http.StatusBadRequest {
		s.status, s.retryAfter = status, retryAfter(headers, time.Now())
	}
}

// last returns the status of the last answer that was an error, and when to ask again by its headers.
func (s *seen) last() (status int, retryAfter time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.status, s.retryAfter
}

func (s *seen) errorOf(issuer string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failed[issuer]
}

// retryAfter reads the header, which has seconds or a date. Without it, or with another text, there is no time.
func retryAfter(headers http.Header, now time.Time) time.Time {
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
