package status_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/k8singress/k8singress/internal/kube/status"
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/kinds"
	"github.com/k8singress/k8singress/internal/model/settings"
	"github.com/k8singress/k8singress/internal/tests/fixture"
)

func node(name string, addresses ...corev1.NodeAddress) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.NodeStatus{Addresses: addresses}}
}

func address(kind corev1.NodeAddressType, text string) corev1.NodeAddress {
	return corev1.NodeAddress{Type: kind, Address: text}
}

// pod returns a ready pod of the controller.
func pod(namespace, name, node string, changes ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name,
			Labels: map[string]string{"app": "edge", "pod-template-hash": name}},
		Spec: corev1.PodSpec{NodeName: node},
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady,
				Status: corev1.ConditionTrue}},
		},
	}
	for _, change := range changes {
		change(p)
	}
	return p
}

// twoNodes returns two nodes with ready replicas of the controller; only the first node has an external address. It
// also returns pods that are no ready replicas, or whose nodes have no address.
func twoNodes() []kinds.Object {
	return []kinds.Object{
		node("a", address(corev1.NodeHostName, "a.test"), address(corev1.NodeInternalIP, "10.0.0.1"),
			address(corev1.NodeExternalIP, "192.0.2.1")),
		node("b", address(corev1.NodeInternalIP, "10.0.0.2"), address(corev1.NodeInternalIP, "10.0.0.22")),
		node("c", address(corev1.NodeInternalIP, "10.0.0.3")), node("d", address(corev1.NodeInternalIP, "10.0.0.4")),
		node("e", address(corev1.NodeInternalIP, "10.0.0.5")),
		node("f", address(corev1.NodeInternalIP, "10.0.0.6")), node("none"),
		pod("a", "edge-0", "a"), pod("a", "edge-1", "b"), pod("a", "edge-2", "b"), pod("a", "edge-3", "none"),
		pod("a", "edge-4", "gone"),
		pod("a", "other", "c", func(p *corev1.Pod) { p.Labels["app"] = "other" }),
		pod("a", "unready", "d", func(p *corev1.Pod) { p.Status.Conditions[0].Status = corev1.ConditionFalse }),
		pod("a", "ending", "e", func(p *corev1.Pod) { p.DeletionTimestamp = new(metav1.Now()) }),
		pod("b", "edge-0", "f"),
	}
}

func TestNodeAddresses(t *testing.T) {
	s, own := taken(twoNodes()...), ir.Name{Namespace: "a", Name: "edge-0"}
	for _, c := range []struct {
		pod      ir.Name
		internal bool
		want     []string
	}{
		{pod: own, want: []string{"10.0.0.2", "192.0.2.1"}},
		{pod: own, internal: true, want: []string{"10.0.0.1", "10.0.0.2"}},
		{pod: ir.Name{Namespace: "a", Name: "missing"}},
		{},
	} {
		if diff := cmp.Diff(c.want, short(status.NodeAddresses(s, c.pod, c.internal))); diff != "" {
			t.Errorf("%v, internal %v: -want +got:\n%s", c.pod, c.internal, diff)
		}
	}
}

// TestNodeAddressesWithoutLabels checks that pods whose only label is pod-template-hash are not treated as replicas of
// each other.
func TestNodeAddressesWithoutLabels(t *testing.T) {
	bare := func(p *corev1.Pod) { p.Labels = map[string]string{"pod-template-hash": "x"} }
	s := taken(node("a", address(corev1.NodeInternalIP, "10.0.0.1")),
		node("b", address(corev1.NodeInternalIP, "10.0.0.2")),
		pod("a", "edge-0", "a", bare), pod("a", "edge-1", "b", bare))
	if got := short(status.NodeAddresses(s, ir.Name{Namespace: "a", Name: "edge-0"}, true)); len(got) != 1 ||
		got[0] != "10.0.0.1" {
		t.Errorf("the addresses are %v", got)
	}
}

// TestStatusHasTheNodesOfThePods checks that publish_nodes takes precedence over publish_service.
func TestStatusHasTheNodesOfThePods(t *testing.T) {
	web := ingress("web")
	client := clientOf(web)
	r := leader(t, client)
	o := settings.Config{PublishNodes: settings.PublishNodesExternal,
		PublishService: ir.Name{Namespace: "a", Name: "lb"}}
	r.Publish(reportOn("web"), taken(append(twoNodes(), web)...), o, nil)
	fixture.Holds(t, "the addresses are written",
		func() bool { return addressOf(t, client, "web") == "[10.0.0.2 192.0.2.1]" })
}
