package e2e

import (
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/utils/ptr"

	"github.com/k8singress/k8singress/test/harness"
)

// The two replicas of the test publish different addresses, so that the status shows which replica has written it.
var addresses = [2]string{"203.0.113.7", "203.0.113.8"}

// takeover is longer than the duration of a Lease (15 s) and the pause between two attempts to acquire it.
const takeover = 40 * time.Second

// TestStatusAndEvents checks that both of two replicas serve requests, and that only the holder of the Lease writes. It
// checks that the leader stops writing a status that another controller overwrites again and again.
func TestStatusAndEvents(t *testing.T) {
	c := newCluster(t)
	c.deploy("web", 1)
	c.awaitEndpoints("web", 1, 0)
	c.ingress("good", "web")
	c.ingress("bad", "absent")
	replicas := [2]*harness.Caddy{}
	for i := range replicas {
		replicas[i] = c.caddy(c.options(i, "publish_address "+addresses[i]))
		c.awaitCode(replicas[i], c.host("good"), "/", http.StatusOK, "web-")
	}

	leader := c.awaitLeader(replicas[:])
	other := 1 - leader
	c.awaitAddress("good", addresses[leader])
	c.awaitEvent("bad")
	c.heldLease()

	// By the time of the next check, a second Event or a write by the other replica would have happened.
	c.ingress("second", "web")
	c.awaitAddress("second", addresses[leader])
	c.awaitCode(replicas[other], c.host("second"), "/", http.StatusOK, "web-")
	c.checkEvents("bad")
	c.checkContention(replicas[leader], "second", addresses[leader])

	replicas[leader].Kill()
	c.awaitFor(takeover, "the other replica leads", func() error { return isLeader(c, replicas[other]) })
	c.awaitAddress("good", addresses[other])
	c.ingress("third", "web")
	c.awaitAddress("third", addresses[other])
}

// checkContention plays another controller that overwrites the status of an Ingress. It checks that the leader restores
// its address five times, then stops and reports it, and that it still writes the status of other Ingresses.
func (c *cluster) checkContention(leader *harness.Caddy, ingress, address string) {
	c.Helper()
	const restored = 5
	for i := range restored + 1 {
		c.writeForeign(ingress)
		// The change of any object restores the address.
		other := fmt.Sprintf("beside-%d", i)
		c.ingress(other, "web")
		c.awaitAddress(other, address)
		if i < restored {
			c.awaitAddress(ingress, address)
		}
	}
	c.awaitReason(leader, ingress, "StatusConflict")
	c.awaitEvent(ingress)
	if reason := c.warnings(ingress)[0].Reason; reason != "StatusConflict" {
		c.Errorf("the Event has the reason %s", reason)
	}
	got, err := leader.Metric(c.Context(), "k8singress_verdicts", `reason="StatusConflict"`)
	if err != nil || got != 1 {
		c.Errorf("k8singress_verdicts counts %v Ingresses with a conflict, %v; want 1", got, err)
	}
	c.ingress("beside", "web")
	c.awaitAddress("beside", address)
	c.awaitAddress(ingress, foreignAddress)
}

// TestStoppedLeaderHandsOver stops the leader like Kubernetes, and checks that the next leader does not wait until the
// Lease expires.
func TestStoppedLeaderHandsOver(t *testing.T) {
	c := newCluster(t)
	first := c.caddy(c.options(0, "publish_address "+addresses[0]))
	c.awaitFor(takeover, "the first replica leads", func() error { return isLeader(c, first) })
	second := c.caddy(c.options(1, "publish_address "+addresses[1]))
	if isLeader(c, second) == nil {
		t.Fatal("two replicas lead")
	}
	first.Stop()
	c.awaitFor(10*time.Second, "the second replica leads", func() error { return isLeader(c, second) })
}

// TestElectionOff checks that with election off, each of two replicas writes, although their account may not use the
// default Lease.
func TestElectionOff(t *testing.T) {
	c := newCluster(t)
	c.ingress("good", "web")
	var replicas [2]*harness.Caddy
	for i, address := range addresses {
		replicas[i] = c.caddy(c.options(i, "election off", "publish_address "+address))
		c.awaitAddress("good", address)
	}
	for _, replica := range replicas {
		c.must(isLeader(c, replica))
	}
}

// TestElectionTTL checks that the Lease is valid for election_ttl, after which another replica may take over.
func TestElectionTTL(t *testing.T) {
	c := newCluster(t)
	replica := c.caddy(c.options(0, "election_ttl 20s"))
	c.awaitFor(takeover, "the replica leads", func() error { return isLeader(c, replica) })
	if got := ptr.Deref(c.heldLease().Spec.LeaseDurationSeconds, 0); got != 20 {
		t.Errorf("the Lease is valid for %d seconds, want 20", got)
	}
}

func isLeader(c *cluster, replica *harness.Caddy) error {
	status, err := replica.Status(c.Context())
	if err == nil && !status.Leader {
		return errors.New("it does not lead")
	}
	return err
}

func (c *cluster) awaitLeader(replicas []*harness.Caddy) int {
	c.Helper()
	leader := -1
	c.awaitFor(takeover, "one leader", func() error {
		var leaders []int
		for i, replica := range replicas {
			if isLeader(c, replica) == nil {
				leaders = append(leaders, i)
			}
		}
		if len(leaders) != 1 {
			return fmt.Errorf("the leaders are %v", leaders)
		}
		leader = leaders[0]
		return nil
	})
	return leader
}

func (c *cluster) awaitAddress(ingress, address string) {
	c.Helper()
	c.await("status of Ingress "+ingress, func() error {
		object, err := c.NetworkingV1().Ingresses(c.namespace).Get(c.Context(), ingress, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if list := object.Status.LoadBalancer.Ingress; len(list) != 1 || list[0].IP != address {
			return fmt.Errorf("its addresses are %v", list)
		}
		return nil
	})
}

// warnings returns the Warning Events on an Ingress.
func (c *cluster) warnings(ingress string) []corev1.Event {
	c.Helper()
	selector := fields.Set{"involvedObject.kind": "Ingress", "involvedObject.name": ingress,
		"type": corev1.EventTypeWarning}
	list, err := c.CoreV1().Events(c.namespace).List(c.Context(), metav1.ListOptions{FieldSelector: selector.String()})
	c.must(err)
	return list.Items
}

func (c *cluster) awaitEvent(ingress string) {
	c.Helper()
	c.await("a Warning Event on Ingress "+ingress, func() error {
		if len(c.warnings(ingress)) == 0 {
			return errors.New("the Ingress has no Warning Event")
		}
		return nil
	})
	c.checkEvents(ingress)
}

func (c *cluster) checkEvents(ingress string) {
	c.Helper()
	events := c.warnings(ingress)
	if len(events) != 1 || events[0].Count > 1 || events[0].Series != nil {
		c.Errorf("there must be one Event, once: %+v", events)
	}
}

// heldLease returns our Lease, and fails the test if it has no holder. A Lease of ingress-nginx may exist at the same
// time.
func (c *cluster) heldLease() *coordinationv1.Lease {
	c.Helper()
	leases, err := c.CoordinationV1().Leases("").List(c.Context(), metav1.ListOptions{})
	c.must(err)
	var names []string
	for i := range leases.Items {
		lease := &leases.Items[i]
		if lease.Name == "k8singress-k8singress-leader" && ptr.Deref(lease.Spec.HolderIdentity, "") != "" {
			return lease
		}
		names = append(names, lease.Namespace+"/"+lease.Name)
	}
	c.Fatalf("no Lease k8singress-k8singress-leader with a holder, among %v", names)
	return nil
}
