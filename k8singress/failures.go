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
	// failurePeriod is the minimum time between two log lines for failures of one kind and one Ingress, because clients
	// can cause any number of failures.
	failurePeriod = time.Second
	// maxLogged is the maximum length, in bytes, of text from clients or endpoints in one log field.
	maxLogged = 512
)

// failureKey identifies failures that share one log line per period: the failures of one Ingress with the same message,
// status and level.
type failureKey struct {
	what, origin string
	status       int
	level        zapcore.Level
}

// failureLog logs failed requests at a limited rate, so that neither a client nor an endpoint can fill the log, and
// failures of one Ingress do not hide failures of another. Its methods may be called from any goroutine.
type failureLog struct {
	mu sync.Mutex
	// leftOut holds, for each key that was logged less than failurePeriod ago, the number of failures since then.
	leftOut map[failureKey]int
}

// failures is the failure log of all servers of the process.
var failures = failureLog{leftOut: map[failureKey]int{}}

// log logs a failure, or counts it for a later line with the number of failures that were left out.
func (f *failureLog) log(log *zap.Logger, level zapcore.Level, x *exchange.Exchange, what string, err error) {
	if x.Context().Err() != nil {
		// The client has gone, so its failures are only logged at debug level.
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
	entry.Write(zap.String("ingress", key.origin), zap.String("host", shortened(x.Host)),
		zap.String("method", shortened(x.Method)),
		zap.String("uri", shortened(x.Target)), zap.Int("status", key.status),
		zap.String("error", shortened(err.Error())))
}

// first reports whether a failure is logged now. Otherwise it counts the failure.
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

// count logs how many failures were left out. The next failure is logged again.
func (f *failureLog) count(log *zap.Logger, key failureKey) {
	f.mu.Lock()
	n := f.leftOut[key]
	delete(f.leftOut, key)
	f.mu.Unlock()
	if n == 0 {
		return
	}
	log.Log(key.level, "failures left out of the log: "+key.what,
		zap.String("ingress", key.origin), zap.Int("status", key.status), zap.Int("left_out", n))
}

// shortened truncates a text for the log.
func shortened(text string) string {
	if len(text) > maxLogged {
		return text[:maxLogged] + "..."
	}
	return text
}
