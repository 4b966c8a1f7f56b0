package status_test

import (
	"bytes"
	"context"
	"errors"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/zap/zaptest"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"

	"github.com/k8singress/k8singress/internal/kube/status"
	"github.com/k8singress/k8singress/internal/model/report"
	"github.com/k8singress/k8singress/internal/tests/fixture"
)

func TestStatusIsPatchedOnce(t *testing.T) {
	web, last := ingress("web"), ingress("zz")
	client := clientOf(web, last)
	r := leader(t, client)
	for range 5 {
		r.Publish(reportOn("web"), taken(web), at("192.0.2.1"), nil)
		fixture.Holds(t, "the address is written", func() bool { return addressOf(t, client, "web") == "[192.0.2.1]" })
	}
	r.Publish(reportOn("web", "zz"), taken(web, last), at("192.0.2.1"), nil)
	fixture.Holds(t, "the other one is written", func() bool { return addressOf(t, client, "zz") == "[192.0.2.1]" })
	r.stop()
	if n := count(client, "patch", "ingresses", "web"); n != 1 {
		t.Errorf("%d patches", n)
	}
	for _, action := range client.Actions() {
		if action.Matches("patch", "ingresses") && action.GetSubresource() != "status" {
			t.Errorf("a patch of more than the status: %v", action)
		}
	}
}

// TestStatusIsRestored checks that a status is written again after another client has
// overwritten it.
func TestStatusIsRestored(t *testing.T) {
	web := ingress("web")
	client := clientOf(web)
	r := leader(t, client)
	r.Publish(reportOn("web"), taken(web), at("192.0.2.1"), nil)
	fixture.Holds(t, "the address is written", func() bool { return count(client, "patch", "ingresses", "web") == 1 })
	other := ingress("web", "192.0.2.66")
	other.ResourceVersion = "8"
	r.Publish(reportOn("web"), taken(other), at("192.0.2.1"), nil)
	fixture.Holds(t, "the address is written again",
		func() bool { return count(client, "patch", "ingresses", "web") == 2 })
}

func TestNewestAddressWins(t *testing.T) {
	web := ingress("web")
	client := clientOf(web)
	r := leader(t, client)
	s := taken(web)
	// The snapshot does not contain the first write yet.
	for _, address := range []string{"192.0.2.1", "192.0.2.2", "192.0.2.1", "192.0.2.3"} {
		r.Publish(reportOn("web"), s, at(address), nil)
		fixture.Holds(t, address+" is written", func() bool { return addressOf(t, client, "web") == "["+address+"]" })
	}
	for _, address := range []string{"192.0.2.4", "192.0.2.5", "192.0.2.6"} {
		r.Publish(reportOn("web"), s, at(address), nil)
	}
	fixture.Holds(t, "the last one is written", func() bool { return addressOf(t, client, "web") == "[192.0.2.6]" })
}

func TestFailedWritesAreTriedAgain(t *testing.T) {
	resource := schema.GroupResource{Group: "networking.k8s.io", Resource: "ingresses"}
	web := ingress("web")
	client := clientOf(web)
	conflict, oops := apierrors.NewConflict(resource, "web", errors.New("changed")),
		apierrors.NewInternalError(errors.New("oops"))
	refuse(client, "patch", "ingresses", conflict, oops)
	refuse(client, "create", "events", apierrors.NewTooManyRequests("slowly", 1))
	r := leader(t, client)
	r.Publish(warned("web", "no such Service"), taken(web), at("192.0.2.1"), nil)
	fixture.Holds(t, "the address is written", func() bool { return addressOf(t, client, "web") == "[192.0.2.1]" })
	fixture.Holds(t, "the Event is written", func() bool { return len(eventsIn(t, client)) == 1 })
	if n := count(client, "patch", "ingresses", "web"); n != 3 {
		t.Errorf("%d patches", n)
	}
}

func TestNewerAddressReplacesAFailedOne(t *testing.T) {
	web := ingress("web")
	client := clientOf(web)
	client.PrependReactor("patch", "ingresses", func(action clienttesting.Action) (bool, runtime.Object, error) {
		bad := bytes.Contains(action.(clienttesting.PatchAction).GetPatch(), []byte("192.0.2.1"))
		return bad, nil, apierrors.NewInternalError(errors.New("oops"))
	})
	r := leader(t, client)
	r.Publish(reportOn("web"), taken(web), at("192.0.2.1"), nil)
	fixture.Holds(t, "writing has failed", func() bool { return count(client, "patch", "ingresses", "web") > 1 })
	r.Publish(reportOn("web"), taken(web), at("192.0.2.2"), nil)
	fixture.Holds(t, "the newer address is written",
		func() bool { return addressOf(t, client, "web") == "[192.0.2.2]" })
}

func TestDeletedObjectIsNotAnError(t *testing.T) {
	gone, last := ingress("gone"), ingress("zz")
	client := clientOf(last)
	r := leader(t, client)
	r.Publish(reportOn("gone", "zz"), taken(gone, last), at("192.0.2.1"), nil)
	fixture.Holds(t, "the other one is written", func() bool { return addressOf(t, client, "zz") == "[192.0.2.1]" })
	fixture.Holds(t, "the missing one was tried",
		func() bool { return count(client, "patch", "ingresses", "gone") == 1 })
	r.Publish(reportOn("gone", "zz"), taken(gone, last), at("192.0.2.2"), nil)
	fixture.Holds(t, "the other one is written", func() bool { return addressOf(t, client, "zz") == "[192.0.2.2]" })
}

// TestEventsDoNotWaitForTheStatus checks that Events are written even if the status cannot be written, for example
// because RBAC forbids it.
func TestEventsDoNotWaitForTheStatus(t *testing.T) {
	web := ingress("web")
	client := clientOf(web)
	forbid(client, "patch", "ingresses")
	forbid(client, "update", "ingresses")
	r := leader(t, client)
	r.Publish(warned("web", "no such Service"), taken(web), at("192.0.2.1"), nil)
	fixture.Holds(t, "the Event is written", func() bool { return len(eventsIn(t, client)) == 1 })
}

func TestEventIsWrittenOnceByAllReplicas(t *testing.T) {
	web := ingress("web")
	client := clientOf(web)
	first := leader(t, client)
	for range 3 {
		first.Publish(warned("web", "no such Service"), taken(web), at("192.0.2.1"), nil)
		fixture.Holds(t, "the Event is written", func() bool { return len(eventsIn(t, client)) == 1 })
	}
	e := eventsIn(t, client)[0]
	if e.Note != "no such Service" || e.EventTime.IsZero() || e.ReportingInstance == "" {
		t.Errorf("the Event: %+v", e)
	}
	first.stop()
	if n := count(client, "create", "events", ""); n != 1 {
		t.Errorf("one replica wrote %d Events", n)
	}
	second := leader(t, client)
	second.Publish(warned("web", "no such Service"), taken(web), at("192.0.2.1"), nil)
	fixture.Holds(t, "the second replica has tried", func() bool { return count(client, "create", "events", "") == 2 })
	second.Publish(warned("web", "another problem"), taken(web), at("192.0.2.1"), nil)
	fixture.Holds(t, "what is new is written", func() bool { return len(eventsIn(t, client)) == 2 })
	second.stop()
	if n := count(client, "create", "events", ""); n != 3 {
		t.Errorf("both replicas tried %d times", n)
	}
}

func TestOnlyTheHolderOfTheLeaseWrites(t *testing.T) {
	web := ingress("web")
	client := clientOf(web)
	first := leader(t, client)
	second := start(t, client)
	second.Publish(reportOn("web"), taken(web), at("192.0.2.2"), nil)
	fixture.Holds(t, "the second replica has looked at the Lease",
		func() bool { return count(client, "get", "leases", "") > 5 })
	first.Publish(reportOn("web"), taken(web), at("192.0.2.1"), nil)
	fixture.Holds(t, "the leader writes", func() bool { return addressOf(t, client, "web") == "[192.0.2.1]" })
	if second.Leader() || count(client, "patch", "ingresses", "") != 1 {
		t.Errorf("the second replica leads, or there are %d patches", count(client, "patch", "ingresses", ""))
	}
	first.stop()
	if first.Leader() {
		t.Error("a replica that has ended says that it leads")
	}
	fixture.Holds(t, "the second replica takes over", second.Leader)
	fixture.Holds(t, "the second replica writes what it was told",
		func() bool { return addressOf(t, client, "web") == "[192.0.2.2]" })
}

func TestRunReturnsWhenTheLeaseCannotBeUsed(t *testing.T) {
	w, err := status.New(clientOf(), objects(clientOf()), status.Options{
		Log: zaptest.NewLogger(t), Times: status.Times{Duration: time.Second, Renew: time.Minute},
	})
	if err != nil {
		t.Fatal(err)
	}
	w.Run(t.Context())
	if w.Leader() {
		t.Error("it leads")
	}
}

// TestRunReturnsWhenTheLeaseIsLostForGood checks that Run returns if it is stopped after it has lost its Lease and
// cannot acquire it again. It must not wait for the work of a leader that has not started.
func TestRunReturnsWhenTheLeaseIsLostForGood(t *testing.T) {
	client := clientOf()
	var away atomic.Bool
	client.PrependReactor("update", "leases", func(clienttesting.Action) (bool, runtime.Object, error) {
		return away.Load(), nil, apierrors.NewInternalError(errors.New("away"))
	})
	r := leader(t, client)
	away.Store(true)
	fixture.Holds(t, "the Lease is lost", func() bool { return !r.Leader() })
	before := count(client, "update", "leases", "")
	fixture.Holds(t, "it tries to get it back", func() bool { return count(client, "update", "leases", "") > before+5 })
	r.stop()
}

// TestPublishFromManyGoroutines checks that Publish and Leader can be called concurrently with Run.
func TestPublishFromManyGoroutines(t *testing.T) {
	web := ingress("web")
	client := clientOf(web)
	r := start(t, client)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for i := range 4 {
		go func() {
			for ctx.Err() == nil && !r.Leader() {
				r.Publish(reportOn("web"), taken(web), at([]string{"192.0.2.1", "192.0.2.2"}[i%2]), nil)
			}
		}()
	}
	fixture.Holds(t, "an address is written", func() bool { return addressOf(t, client, "web") != "[]" })
}

func TestReportWithoutObjectsWritesNothing(t *testing.T) {
	client := clientOf(ingress("web"))
	r := leader(t, client)
	r.Publish(&report.Report{}, taken(), at("192.0.2.1"), nil)
	r.Publish(reportOn("web"), taken(), at("192.0.2.1"), nil)
	r.stop()
	if n := count(client, "patch", "ingresses", ""); n != 0 {
		t.Errorf("%d patches", n)
	}
}

// TestBackoffHoldsWhileOthersChange checks that a failed write keeps its retry delay while changes of other objects are
// published.
func TestBackoffHoldsWhileOthersChange(t *testing.T) {
	web, busy := ingress("web"), ingress("busy")
	client := clientOf(web, busy)
	client.PrependReactor("patch", "ingresses", func(action clienttesting.Action) (bool, runtime.Object, error) {
		bad := action.(clienttesting.PatchAction).GetName() == "web"
		return bad, nil, apierrors.NewInternalError(errors.New("oops"))
	})
	r := leader(t, client)
	const rounds = 50
	for i := range rounds {
		busy.ResourceVersion, busy.UID = strconv.Itoa(i+1), types.UID(strconv.Itoa(i)) // It is created again.
		r.Publish(reportOn("busy", "web"), taken(web, busy), at("192.0.2.1"), nil)
		fixture.Holds(t, "the other one is written",
			func() bool { return count(client, "patch", "ingresses", "busy") > i })
	}
	r.stop()
	// The tenth try is due more than a minute after the first.
	if n := count(client, "patch", "ingresses", "web"); n == 0 || n > 10 {
		t.Errorf("%d tries in %d rounds", n, rounds)
	}
}

// TestNewLeaderWritesEverything checks that a writer that has lost the Lease and becomes the leader again
// writes everything again, because another replica may have been the leader in the meantime.
func TestNewLeaderWritesEverything(t *testing.T) {
	web := ingress("web")
	client := clientOf(web)
	var away atomic.Bool
	client.PrependReactor("update", "leases", func(clienttesting.Action) (bool, runtime.Object, error) {
		return away.Load(), nil, apierrors.NewInternalError(errors.New("away"))
	})
	r := leader(t, client)
	r.Publish(reportOn("web"), taken(web), at("192.0.2.1"), nil)
	fixture.Holds(t, "the address is written", func() bool { return count(client, "patch", "ingresses", "web") == 1 })
	away.Store(true)
	fixture.Holds(t, "the Lease is lost", func() bool { return !r.Leader() })
	away.Store(false)
	fixture.Holds(t, "the address is written again",
		func() bool { return count(client, "patch", "ingresses", "web") == 2 })
}

// TestContendedStatus checks that a writer stops writing a status that another controller overwrites again and again,
// and that an Event says so.
func TestContendedStatus(t *testing.T) {
	client := clientOf(ingress("web"))
	r := leader(t, client)
	publish := func(version int) {
		other := ingress("web", "192.0.2.66")
		other.ResourceVersion = strconv.Itoa(version)
		r.Publish(reportOn("web").With(r.Verdicts()), taken(other), at("192.0.2.1"), nil)
	}
	const writes = 6 // Once, and again after five overwrites.
	for i := range writes {
		publish(10 + i)
		fixture.Holds(t, "the address is written",
			func() bool { return count(client, "patch", "ingresses", "web") == i+1 })
	}
	publish(20)
	fixture.Holds(t, "the conflict is reported", func() bool { return len(r.Verdicts()) == 1 })
	publish(21)
	fixture.Holds(t, "an Event is written", func() bool {
		events := eventsIn(t, client)
		return len(events) == 1 && events[0].Reason == string(report.StatusConflict)
	})
	if n := count(client, "patch", "ingresses", "web"); n != writes {
		t.Errorf("the status is written %d times, want %d", n, writes)
	}
	r.stop()
	if verdicts := r.Verdicts(); len(verdicts) > 0 {
		t.Errorf("a replica that is not the leader reports %v", verdicts)
	}
}
