package main

import (
	"context"
	"fmt"
	"os"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/k8singress/k8singress/test/harness"
)

const (
	// endpointInterval is the time between two changes of endpoints. It results in 50 changes per second.
	endpointInterval = 20 * time.Millisecond
	// firstChurning is the number of the first Service whose endpoints change. churning is the number of these
	// Services.
	firstChurning, churning = 10, 10
	// warming is the number of changes before the first measurement of memory.
	warming = 100
	// settle is longer than the time for which idle connections to removed endpoints are kept, which is two sweeps of
	// five seconds.
	settle = 12 * time.Second
	// longestChurn limits the duration of the load if the API server is slow.
	longestChurn = 20 * time.Minute
)

// churn is the result of many changes of endpoints.
type churn struct {
	sum
	// perSecond is the number of changes per second that the API server accepted.
	perSecond float64
	// reloads is the number of configurations that Caddy loaded during the changes. updates is the number of updates of
	// endpoints.
	reloads, updates float64
	// before, middle and after are measured under the same load.
	before, middle, after memory
}

// memory holds the resident memory, and the size of the heap after a garbage collection. Both are in bytes.
type memory struct{ resident, heap int64 }

const (
	reloadsMetric = "k8singress_config_reloads_total"
	updatesMetric = "k8singress_endpoint_updates_total"
)

// churn replaces endpoints of Services during requests, like rollouts. Each new endpoint has an address that was not
// used before.
func (w *world) churn(ctx context.Context, caddy *harness.Caddy, o options, f *figures) error {
	var hosts []string
	for i := range churning {
		hosts = append(hosts, hostOf(firstChurning+i))
	}
	l, err := startLoad(w.cluster, caddy, longestChurn, hosts...)
	if err != nil {
		return err
	}
	err = w.replaceAll(ctx, caddy, o, &f.churn)
	l.end()
	result, loadErr := l.result()
	f.churn.sum = result
	if err != nil {
		return err
	}
	return loadErr
}

func (w *world) replaceAll(ctx context.Context, caddy *harness.Caddy, o options, c *churn) error {
	count := func(before float64) error {
		reloads, err := caddy.Metric(ctx, reloadsMetric)
		if err != nil {
			return err
		}
		updates, err := caddy.Metric(ctx, updatesMetric)
		c.reloads, c.updates = reloads+before*c.reloads, updates+before*c.updates
		return err
	}
	if err := count(0); err != nil {
		return err
	}
	half := o.endpointChanges / 2
	var took time.Duration
	profiled := o.profileCPU(ctx, caddy, "cpu-endpoints")
	for _, step := range []struct {
		from, to int
		into     *memory
	}{{0, warming, &c.before}, {warming, half, &c.middle}, {half, o.endpointChanges, &c.after}} {
		d, err := every(ctx, endpointInterval, step.to-step.from,
			func(i int) error { return w.replaceEndpoint(ctx, o, step.from+i) })
		if err != nil {
			return err
		}
		took += d
		// After two sweeps, only permanent data remains. In between, connections to removed endpoints would be
		// included.
		if _, err := every(ctx, settle, 2, func(int) error { return nil }); err != nil {
			return err
		}
		if *step.into, err = memoryOf(ctx, caddy); err != nil {
			return err
		}
		fmt.Fprintf(os.Stderr, "after %d changes of endpoints: %s\n", step.to, *step.into)
	}
	c.perSecond = float64(o.endpointChanges) / took.Seconds()
	if profiled != nil {
		if err := <-profiled; err != nil {
			return err
		}
	}
	return count(-1)
}

// replaceEndpoint replaces one endpoint. The calls use the Services in turn, and the endpoints of each Service in turn.
func (w *world) replaceEndpoint(ctx context.Context, o options, i int) error {
	const replace = `[{"op":"replace","path":"/endpoints/%d/addresses/0","value":"%s"}]`
	patch := fmt.Appendf(nil, replace, i/churning%o.endpoints, addressOf(o.ingresses*o.endpoints+i))
	slices := w.client.DiscoveryV1().EndpointSlices(namespace)
	_, err := slices.Patch(ctx, nameOf(firstChurning+i%churning), types.JSONPatchType, patch, metav1.PatchOptions{})
	return err
}

func memoryOf(ctx context.Context, caddy *harness.Caddy) (memory, error) {
	heap, err := caddy.LiveHeap(ctx)
	if err != nil {
		return memory{}, err
	}
	resident, err := caddy.Memory("VmRSS")
	return memory{resident, heap}, err
}

func (m memory) String() string {
	return fmt.Sprintf("%s resident, %.1f MB live heap", megabytes(m.resident), float64(m.heap)/(1<<20))
}
