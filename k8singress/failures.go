package k8singress

import (
	"sync"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/k8singress/k8singress/internal/exchange"
	"github.com/k8singress/k8singress/internal/panics"
)

const (
	// failurePeriod is how often failures of one kind are noted for one Ingress: clients make them as often as they like.
	failurePeriod = time.Second
	// longestNoted is how much of what others have written is in one line.
	longestNoted = 512
)

// failureKey is what has one line in each time: the failures of an Ingress with a status, and of a level.
type failureKey struct {
	what, origin string
	status       int
	level        zapcore.Level
}

// failureLog notes requests that fail, so that neither a client nor an endpoint fills the log, and the failures of one Ingress hide those of no
// other. Its methods may be called from any goroutine.
type failureLog struct {
	mu sync.Mutex
	// leftOut counts what has had its line a short time ago, since then.
	leftOut map[failureKey]int
}

// failures are those of all servers of the process.
var failures = failureLog{leftOut: map[failureKey]int{}}

// note notes a failure, or counts it for a line that says how many there were.
func (f *failureLog) note(log *zap.Logger, level zapcore.Level, x *exchange.Exchange, what string, err error) {
	if x.Context().Err() != nil {
		// The client has gone.
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
	entry.Write(zap.String("ingress", key.origin), zap.String("host", noted(x.Host)), zap.String("method", noted(x.Method)),
		zap.String("uri", noted(x.Target)), zap.Int("status", key.status), zap.String("error", noted(err.Error())))
}

// first says whether a failure has its line now.
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

// count says how many failures have had no line, and lets the next one have one.
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

// noted is a text as it stands in a line.
func noted(text string) string {
	if len(text) > longestNoted {
		return text[:longestNoted] + "..."
	}
	return text
}
