package status_test

import (
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/k8singress/k8singress/internal/kube/status"
	"github.com/k8singress/k8singress/internal/model/settings"
	"github.com/k8singress/k8singress/internal/tests/fixture"
)

// forbid rejects all requests with a verb for a resource. If a name is given, it only rejects requests for this object.
func forbid(client *fake.Clientset, verb, resource string, names ...string) {
	client.PrependReactor(verb, resource, func(action clienttesting.Action) (bool, runtime.Object, error) {
		named, ok := action.(interface{ GetName() string })
		if len(names) > 0 && (!ok || named.GetName() != names[0]) {
			return false, nil, nil
		}
		return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: resource}, "", errors.New("no"))
	})
}

// TestStatusIsUpdatedWherePatchIsForbidden checks that the status is written by an update if a patch is forbidden, as
// with the RBAC rules of ingress-nginx. The update replaces the whole status and changes nothing else.
func TestStatusIsUpdatedWherePatchIsForbidden(t *testing.T) {
	web := ingress("web", "192.0.2.66", "192.0.2.67")
	web.Labels = map[string]string{"app": "web"}
	client := clientOf(web)
	forbid(client, "patch", "ingresses")
	refuse(client, "update", "ingresses",
		apierrors.NewConflict(schema.GroupResource{Resource: "ingresses"}, "web", errors.New("changed")))
	r := leader(t, client)
	r.Publish(reportOn("web"), taken(web), at("192.0.2.1"), nil)
	fixture.Holds(t, "the address is written", func() bool { return addressOf(t, client, "web") == "[192.0.2.1]" })
	r.Publish(reportOn("web"), taken(web), at("192.0.2.2"), nil)
	fixture.Holds(t, "the next one is written", func() bool { return addressOf(t, client, "web") == "[192.0.2.2]" })
	r.stop()
	if patches, updates := count(client, "patch", "ingresses", ""),
		count(client, "update", "ingresses", ""); patches != 1 || updates != 3 {
		t.Errorf("%d patches and %d updates, of which the first has a conflict", patches, updates)
	}
	for _, action := range client.Actions() {
		if action.Matches("update", "ingresses") && action.GetSubresource() != "status" {
			t.Errorf("an update of more than the status: %v", action)
		}
	}
	object, err := client.NetworkingV1().Ingresses("a").Get(t.Context(), "web", metav1.GetOptions{})
	if err != nil || object.Labels["app"] != "web" {
		t.Errorf("the Ingress is %v, error %v", object, err)
	}
}

// TestEventsOfTheCoreAPI checks that Events are written to the core API if events.k8s.io is forbidden.
func TestEventsOfTheCoreAPI(t *testing.T) {
	web := ingress("web")
	client := clientOf(web)
	client.PrependReactor("create", "events", func(action clienttesting.Action) (bool, runtime.Object, error) {
		forbidden := action.GetResource().Group != ""
		return forbidden, nil, apierrors.NewForbidden(action.GetResource().GroupResource(), "", errors.New("no"))
	})
	r := leader(t, client)
	r.Publish(warned("web", "no such Service"), taken(web), at("192.0.2.1"), nil)
	fixture.Holds(t, "the Event is written", func() bool {
		list, err := client.CoreV1().Events("a").List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range list.Items {
			if e.Message == "no such Service" && e.InvolvedObject.Name == "web" && e.Count == 1 &&
				!e.LastTimestamp.IsZero() && e.EventTime.IsZero() {
				return true
			}
		}
		return false
	})
}

// TestFallbackLease checks that the fallback Lease is used only if the configured Lease is forbidden, since RBAC rules
// may allow only a single name.
func TestFallbackLease(t *testing.T) {
	for _, c := range []struct {
		forbidden, want string
	}{{"", "lease"}, {"lease", "named"}} {
		client := clientOf()
		if c.forbidden != "" {
			forbid(client, "get", "leases", c.forbidden)
		}
		r := startWith(t, client, func(o *status.Options) { o.LeaseFallback = "named" })
		fixture.Holds(t, "the replica leads", r.Leader)
		if _, err := client.CoordinationV1().Leases("a").Get(t.Context(), c.want, metav1.GetOptions{}); err != nil {
			t.Errorf("without %q: %v", c.forbidden, err)
		}
		r.stop()
	}
}

// TestNeitherLease checks that a writer for which both Leases are forbidden waits until one of them is allowed.
func TestNeitherLease(t *testing.T) {
	client := clientOf()
	refusals := make([]error, 5)
	for i := range refusals {
		refusals[i] = apierrors.NewForbidden(schema.GroupResource{Resource: "leases"}, "", errors.New("no"))
	}
	refuse(client, "get", "leases", refusals...)
	r := startWith(t, client, func(o *status.Options) { o.LeaseFallback = "named" })
	fixture.Holds(t, "the replica leads", r.Leader)
}

// TestWithoutElection checks that each replica writes, without a Lease, if the election is off.
func TestWithoutElection(t *testing.T) {
	web := ingress("web")
	client := clientOf(web)
	forbid(client, "*", "leases")
	for _, address := range []string{"192.0.2.1", "192.0.2.2"} {
		r := startWith(t, client, func(o *status.Options) { o.NoElection = true })
		fixture.Holds(t, "the replica leads", r.Leader)
		r.Publish(reportOn("web"), taken(web), at(address), nil)
		fixture.Holds(t, "the address is written",
			func() bool { return addressOf(t, client, "web") == "["+address+"]" })
	}
	if n := count(client, "get", "leases", ""); n > 0 {
		t.Errorf("%d requests for a Lease", n)
	}
}

// TestStatusOff checks that no addresses are written if the option is off, and that Events still are. Addresses that
// were written before stay.
func TestStatusOff(t *testing.T) {
	web := ingress("web", "192.0.2.9")
	client := clientOf(web)
	r := leader(t, client)
	config := at("192.0.2.1")
	config.Status = settings.StatusOff
	r.Publish(warned("web", "something is wrong"), taken(web), config, nil)
	fixture.Holds(t, "the Event is written", func() bool { return len(eventsIn(t, client)) == 1 })
	r.Publish(warned("web", "something else is wrong"), taken(web), config, nil)
	fixture.Holds(t, "the second Event is written", func() bool { return len(eventsIn(t, client)) == 2 })
	if n := count(client, "patch", "ingresses", ""); n != 0 {
		t.Errorf("the status was written %d times", n)
	}
	config.Status = ""
	r.Publish(warned("web", "something else is wrong"), taken(web), config, nil)
	fixture.Holds(t, "the status is written", func() bool { return addressOf(t, client, "web") == "[192.0.2.1]" })
}
