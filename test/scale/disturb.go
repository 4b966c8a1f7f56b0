package main

import (
	"context"
	"fmt"
	"os"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/k8singress/k8singress/test/harness"
)

const (
	// changeInterval is the time between two changes of one Ingress.
	changeInterval = 100 * time.Millisecond
	// unloadedTime is the duration of the measurement of Caddy's processor time for changes without requests.
	unloadedTime = 10 * time.Second
)

// disturbance is the cost of an Ingress that changes continuously.
type disturbance struct {
	// quiet and changing have one entry for each round. Both have the same number of writes to the API server.
	quiet, changing []sum
	// cpu is the share of one processor that Caddy used for changes without requests. written is the number of these
	// changes, and runs is the number of runs in which Caddy applied them.
	cpu           float64
	runs, written int
}

// writer writes the change with the given number.
type writer func(context.Context, int) error

// disturb measures requests while an Ingress changes, and while an object changes that Caddy does not read, so that
// both include the work of the API server.
func (w *world) disturb(ctx context.Context, caddy *harness.Caddy, o options, f *figures) error {
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "changing"}}
	if _, err := w.client.CoordinationV1().Leases(namespace).Create(ctx, lease, metav1.CreateOptions{}); err != nil {
		return err
	}
	for i := range o.rounds {
		var both [2]sum
		// The order alternates, because other work on the machine varies.
		for _, which := range [2]int{i % 2, 1 - i%2} {
			var err error
			if both[which], err = w.underLoad(ctx, caddy, o,
				[2]writer{w.changeLease, w.changeIngress}[which]); err != nil {
				return err
			}
		}
		f.quiet, f.changing = append(f.quiet, both[0]), append(f.changing, both[1])
		fmt.Fprintf(os.Stderr, "p99 without changes %v, with changes %v\n", both[0].P99, both[1].P99)
	}
	return w.unloaded(ctx, caddy, o, f)
}

// underLoad sends requests to two hosts during changes. One of the hosts belongs to the changed Ingress.
func (w *world) underLoad(ctx context.Context, caddy *harness.Caddy, o options, change writer) (sum, error) {
	l, err := startLoad(w.cluster, caddy, o.duration, hostOf(0), hostOf(changingIngress))
	if err != nil {
		return sum{}, err
	}
	_, err = every(ctx, changeInterval, o.changesIn(o.duration+warmUp), func(i int) error { return change(ctx, i) })
	if err != nil {
		l.end()
		_, _ = l.result()
		return sum{}, err
	}
	return l.result()
}

// unloaded measures the cost of changes without requests.
func (w *world) unloaded(ctx context.Context, caddy *harness.Caddy, o options, f *figures) error {
	const runs = "k8singress_apply_duration_seconds_count"
	runsBefore, err := caddy.Metric(ctx, runs)
	if err != nil {
		return err
	}
	before, err := caddy.CPU()
	if err != nil {
		return err
	}
	f.written = o.changesIn(unloadedTime)
	took, err := every(ctx, changeInterval, f.written, func(i int) error { return w.changeIngress(ctx, i) })
	if err != nil {
		return err
	}
	after, err := caddy.CPU()
	if err != nil {
		return err
	}
	runsAfter, err := caddy.Metric(ctx, runs)
	f.cpu, f.runs = (after-before).Seconds()/took.Seconds(), int(runsAfter-runsBefore)
	if err != nil {
		return err
	}
	// Repeat the changes for the profile, so that profiling does not affect the measurement.
	end := o.profileCPU(ctx, caddy, "cpu-ingress")
	if end != nil {
		if _, err = every(ctx, changeInterval, f.written,
			func(i int) error { return w.changeIngress(ctx, i) }); err != nil {
			return err
		}
		if err := <-end; err != nil {
			return err
		}
	}
	return w.changed(f.written-1).awaitServed(ctx, w.newClient(caddy))
}

// changingIngress is the number of the Ingress that changes.
const changingIngress = 1

// changeIngress sets the second path of an Ingress, which is different for each change.
func (w *world) changeIngress(ctx context.Context, i int) error {
	const paths = `[{"op":"replace","path":"/spec/rules/0/http/paths","value":[
		{"path":"/","pathType":"Prefix","backend":{"service":{"name":"%s","port":{"number":80}}}},
		{"path":"%s","pathType":"Exact","backend":{"service":{"name":"%s","port":{"number":80}}}}]}]`
	patch := fmt.Appendf(nil, paths, nameOf(changingIngress), changedPath(i), otherBackend)
	_, err := w.client.NetworkingV1().Ingresses(namespace).
		Patch(ctx, nameOf(changingIngress), types.JSONPatchType, patch, metav1.PatchOptions{})
	return err
}

func changedPath(i int) string { return fmt.Sprintf("/change-%d", i) }

// changed returns the request and the response that show a change of changeIngress.
func (*world) changed(i int) change {
	return change{url: "http://" + hostOf(changingIngress) + changedPath(i), body: otherBackend}
}

// changeLease changes an object that Caddy does not read.
func (w *world) changeLease(ctx context.Context, i int) error {
	patch := fmt.Appendf(nil, `{"spec":{"holderIdentity":"change-%d"}}`, i)
	_, err := w.client.CoordinationV1().Leases(namespace).Patch(ctx, "changing", types.MergePatchType, patch,
		metav1.PatchOptions{})
	return err
}
