package k8singress

import (
	"sync"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/k8singress/k8singress/internal/http/exchange"
	"github.com/k8singress/k8singress/internal/process/panics"
)

const (
	// failurePeriod is the minimum time between two log lines for similar failures of one Ingress. It limits the size
	// of the log, because clients can cause any number of failures.
	failurePeriod = time.Second
	// maxLogged is the maximum length, in bytes, of a client's or endpoint's string in a log field. Longer strings are
	// truncated.
	maxLogged = 512
)

// failureKey identifies similar failures, for which at most one line is logged per failurePeriod: failures of the same
// Ingress with the same message, status and level. Failures of connections have neither a status nor an Ingress.
type failureKey struct {
	what, origin string
	status       int
	level        zapcore.Level
}

// failureLog logs failed requests with a rate limit, so that clients and endpoints cannot fill the log, and failures of
// one Ingress do not hide failures of other Ingresses. It is safe for concurrent use.
type failureLog struct {
	mu sync.Mutex
	// leftOut counts the failures that were not logged. It has an entry for each key that was logged less than
	// failurePeriod ago.
	leftOut map[failureKey]int
}

// failures logs the requests that fail at any server of the process.
var failures = failureLog{leftOut: map[failureKey]int{}}

// log logs a failure, or counts it if a similar failure was just logged. The number of failures that were not logged is
// logged later.
func (f *failureLog) log(log *zap.Logger, level zapcore.Level, x *exchange.Exchange, what string, err error) {
	if x.Context().Err() != nil {
		// The client has disconnected, which is not an error of the controller or the endpoint.
		level = zap.DebugLevel
	}
	entry := log.Check(level, what)
	if entry == nil {
		return
	}
	key := failureKey{what: what, status: exchange.StatusOf(err), level: level}
	if x.Route != nil {
		key.origin = x.Route.Origin
	}
	if !f.first(log, key) {
		return
	}
	entry.Write(zap.String("ingress", key.origin), zap.String("request_id", x.ID()),
		zap.String("host", shortened(x.Host)),
		zap.String("method", shortened(x.Method)),
		zap.String("uri", shortened(x.Target)), zap.Int("status", key.status),
		zap.String("error", shortened(err.Error())))
}

// first reports whether a failure must be logged. If a similar failure was logged less than failurePeriod ago, it
// counts the failure and returns false.
func (f *failureLog) first(log *zap.Logger, key failureKey) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if n, ok := f.leftOut[key]; ok {
		f.leftOut[key] = n + 1
		return false
	}
	f.leftOut[key] = 0
	panics.AfterFunc("k8singress/failures", failurePeriod, func() { f.count(log, key) })
	return true
}

// count must be called when failurePeriod has passed since a failure was logged. It logs how many similar failures have
// occurred since then, and allows the next one to be logged.
func (f *failureLog) count(log *zap.Logger, key failureKey) {
	f.mu.Lock()
	n := f.leftOut[key]
	delete(f.leftOut, key)
	f.mu.Unlock()
	if n == 0 {
		return
	}
	var fields []zap.Field
	if key.status != 0 {
		fields = append(fields, zap.String("ingress", key.origin), zap.Int("status", key.status))
	}
	log.Log(key.level, "failures left out of the log: "+key.what, append(fields, zap.Int("left_out", n))...)
}

// shortened truncates a string that is longer than maxLogged.
func shortened(text string) string {
	if len(text) > maxLogged {
		return text[:maxLogged] + "..."
	}
	return text
}
