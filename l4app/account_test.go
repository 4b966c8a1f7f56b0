package l4app

import (
	"maps"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/tests/fixture"
)

// metrics returns the values of all metrics by name and labels, without the prefix k8singress_stream_.
func (w *world) metrics() map[string]float64 {
	w.t.Helper()
	all := map[string]float64{}
	for name, family := range fixture.Collect(w.t, w.ports.Collector()) {
		for _, metric := range family.GetMetric() {
			if len(metric.GetLabel()) == 0 {
				continue // The metric does not belong to one port.
			}
			var labels []string
			for _, l := range metric.GetLabel() {
				labels = append(labels, l.GetValue())
			}
			key := strings.TrimPrefix(name, "k8singress_stream_") + " " + strings.Join(labels, " ")
			all[key] = metric.GetCounter().GetValue() + metric.GetGauge().GetValue()
		}
	}
	return all
}

func TestMetrics(t *testing.T) {
	w := newWorld(t)
	r := route(ir.TCP, freePort(t), "a")
	// The bytes of open connections are counted eight times within the idle timeout.
	r.Policy.IdleTimeout = 8 * time.Second
	w.set(r, named(t, "a"))
	conn := dial(t, r)
	send(t, conn, "hello")
	expect(t, conn, "ahello")
	on := strconv.Itoa(int(r.Port)) + " tcp"
	want := map[string]float64{
		"bytes_total in " + on: 5, "bytes_total out " + on: 6, "connections_active " + on: 1,
		"connections_total " + on: 1,
	}
	for _, reason := range reasons {
		want["failures_total "+on+" "+reason] = 0
	}
	await(t, "what is counted while it is open", func() bool { return maps.Equal(w.metrics(), want) })
	conn.Close()
	await(t, "the end", func() bool { return w.active(r) == 0 })
	want["connections_active "+on] = 0
	if diff := cmp.Diff(want, w.metrics()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	// The counters continue with new handlers, and the account of a removed port is deleted.
	w.set(route(ir.TCP, r.Port, "b"))
	if diff := cmp.Diff(want, w.metrics()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	w.remove(r)
	await(t, "the end of its metrics", func() bool { return len(w.metrics()) == 0 })
}

func TestLogMessages(t *testing.T) {
	core, logs := observer.New(zapcore.DebugLevel)
	w := newWorld(t)
	r := route(ir.TCP, freePort(t), "a")
	r.Policy.MaxConnections = 1
	w.ports.log = zap.New(core)
	w.set(r, named(t, "a"))
	conn := dial(t, r)
	expect(t, conn, "a")
	for range 20 {
		expectEnd(t, dial(t, r))
	}
	await(t, "the count of all", func() bool { return w.failed(r, tooMany) == 20 })
	lines := logs.FilterMessageSnippet("rejecting a connection").All()
	if len(lines) != 1 || !strings.HasPrefix(lines[0].ContextMap()["client"].(string), "127.0.0.1:") {
		t.Errorf("logged is %v", lines)
	}
	conn.Close()
	ended := logs.FilterMessage("a connection has ended")
	await(t, "the line of its end", func() bool {
		ended = logs.FilterMessage("a connection has ended")
		return ended.Len() == 1
	})
	line := ended.All()[0]
	if line.Level != zap.DebugLevel || line.ContextMap()["client"] != conn.LocalAddr().String() ||
		line.ContextMap()["bytes_out"] != uint64(1) {
		t.Errorf("logged is %v", line.ContextMap())
	}
	await(t, "the end", func() bool { return w.active(r) == 0 })
	w.endpoints(r)
	unreachable := dial(t, r)
	expectEnd(t, unreachable)
	await(t, "the line of a failure",
		func() bool { return logs.FilterMessage("no endpoint is available for a connection").Len() == 1 })
	line = logs.FilterMessage("no endpoint is available for a connection").All()[0]
	if line.ContextMap()["client"] != unreachable.LocalAddr().String() {
		t.Errorf("logged is %v", line.ContextMap())
	}
}
