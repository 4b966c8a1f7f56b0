package k8singress

import (
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/k8singress/k8singress/internal/http/errorlog"
	"github.com/k8singress/k8singress/internal/process/logs"
	"github.com/k8singress/k8singress/internal/process/panics"
)

func init() {
	panics.SetReporter(func(place string, caught *panics.Panic, leftOut int) {
		logs.Logger("k8singress").Error("a panic ended one connection or one job", zap.String("place", place),
			zap.String("panic", errorlog.Shortened(caught.Error())), zap.Int("left_out", leftOut),
			zap.ByteString("stack", caught.Stack))
	})
}

// panicCounter counts the panics that were recovered in goroutines of this process.
var panicCounter = prometheus.NewCounterFunc(prometheus.CounterOpts{
	Name: "k8singress_panics_total",
	Help: "The number of caught panics, each of which ended one connection or one job. The log has their stack " +
		"traces. Usually zero.",
}, func() (total float64) {
	for _, n := range panics.Counts() {
		total += float64(n)
	}
	return total
})
