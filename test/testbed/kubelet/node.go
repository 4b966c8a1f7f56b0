package kubelet

import (
	"context"
	"fmt"
	"runtime"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/k8singress/k8singress/test/testbed/network"
)

// node is a network with an address. Pods of the node with hostNetwork join it.
type node struct {
	name, address string
	namespace     *network.Namespace
}

// makeNodes creates the networks of the nodes and registers the nodes.
func (k *Kubelet) makeNodes(ctx context.Context) error {
	k.nodes = map[string]*node{}
	for i := range k.Nodes {
		n := &node{name: fmt.Sprintf("node-%d", i), address: network.NodeAddress(i)}
		var err error
		if n.namespace, err = network.NewNamespace(n.name, n.address); err != nil {
			return err
		}
		if err := k.register(ctx, n); err != nil {
			return err
		}
		k.nodes[n.name] = n
	}
	return nil
}

// register creates a node that is always ready and never full. The object is not changed later, so that changes by
// tests are kept: labels, taints and more addresses.
func (k *Kubelet) register(ctx context.Context, n *node) error {
	room := v1.ResourceList{
		v1.ResourceCPU:              resource.MustParse("64"),
		v1.ResourceMemory:           resource.MustParse("256Gi"),
		v1.ResourceEphemeralStorage: resource.MustParse("256Gi"),
		v1.ResourcePods:             resource.MustParse("1000"),
	}
	object := &v1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: n.name, Labels: map[string]string{
			v1.LabelHostname: n.name, v1.LabelOSStable: "linux", v1.LabelArchStable: runtime.GOARCH,
		}},
		Status: v1.NodeStatus{
			Capacity: room, Allocatable: room,
			Conditions: []v1.NodeCondition{{Type: v1.NodeReady, Status: v1.ConditionTrue, Reason: "TestbedReady"}},
			Addresses: []v1.NodeAddress{
				{Type: v1.NodeInternalIP, Address: n.address}, {Type: v1.NodeHostName, Address: n.name},
			},
			DaemonEndpoints: v1.NodeDaemonEndpoints{KubeletEndpoint: v1.DaemonEndpoint{Port: Port}},
			NodeInfo: v1.NodeSystemInfo{
				OperatingSystem: "linux", Architecture: runtime.GOARCH, KubeletVersion: "v1.36.3-testbed",
			},
		},
	}
	if _, err := k.Client.CoreV1().Nodes().Create(ctx, object, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("registering %s: %w", n.name, err)
	}
	return nil
}
