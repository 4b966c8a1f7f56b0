package client

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/go-logr/logr"
	"go.uber.org/zap"
	"k8s.io/klog/v2"
)

// sinkLog is the logger that gets client-go's messages. It is a global variable because klog's logger is global, too.
var (
	sinkLog  atomic.Pointer[zap.Logger]
	sinkOnce sync.Once
)

// QuietKlog redirects the messages of client-go to log. Errors are logged as warnings, because client-go retries by
// itself. All other messages are logged at debug level.
func QuietKlog(log *zap.Logger) {
	sinkLog.Store(log.Named("client-go").WithOptions(zap.AddCallerSkip(2)))
	sinkOnce.Do(func() { klog.SetLogger(logr.New(sink{})) })
}

// sink is a logr.LogSink that writes to sinkLog.
type sink struct{ values []any }

func (s sink) Init(logr.RuntimeInfo) {}

func (s sink) Enabled(level int) bool { return level == 0 }

func (s sink) Info(_ int, message string, pairs ...any) {
	sinkLog.Load().Debug(message, s.fields(pairs)...)
}

func (s sink) Error(err error, message string, pairs ...any) {
	sinkLog.Load().Warn(message, append(s.fields(pairs), zap.Error(err))...)
}

func (s sink) WithName(string) logr.LogSink { return s }

func (s sink) WithValues(pairs ...any) logr.LogSink {
	return sink{values: append(s.values[:len(s.values):len(s.values)], pairs...)}
}

func (s sink) fields(pairs []any) []zap.Field {
	all := append(s.values[:len(s.values):len(s.values)], pairs...)
	fields := make([]zap.Field, 0, len(all)/2+1)
	for i := 0; i+1 < len(all); i += 2 {
		fields = append(fields, zap.Any(fmt.Sprint(all[i]), all[i+1]))
	}
	return fields
}
