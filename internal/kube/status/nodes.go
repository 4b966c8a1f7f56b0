package status

import (
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/snapshot"
)

// ofOnePod lists the labels that Kubernetes adds to pods and whose values can differ between the pods of one
// controller.
var ofOnePod = []string{
	appsv1.DefaultDeploymentUniqueLabelKey, appsv1.ControllerRevisionHashLabelKey, "pod-template-generation",
	appsv1.StatefulSetPodNameLabel, appsv1.PodIndexLabel, corev1.LabelTopologyZone, corev1.LabelTopologyRegion,
}

// NodeAddresses returns the addresses of the nodes on which the controller's ready pods run, sorted and without
// duplicates. pod is one of these pods; the other pods are in the same namespace and have the same labels. For each
// node, the result contains the first external address, or the first internal address if there is no external one or if
// internal is set.
func NodeAddresses(s *snapshot.Snapshot, pod ir.Name, internal bool) []networkingv1.IngressLoadBalancerIngress {
	pods := snapshot.Of[*corev1.Pod](s)
	own, ok := pods.Get(pod.Namespace, pod.Name)
	if !ok {
		return nil
	}
	common := maps.Clone(own.Labels)
	maps.DeleteFunc(common, func(name, _ string) bool { return slices.Contains(ofOnePod, name) })
	var addresses []string
	for p := range pods.All() {
		same := p == own || len(common) > 0 && labels.SelectorFromSet(common).Matches(labels.Set(p.Labels))
		if node, ok := snapshot.Of[*corev1.Node](s).Get("", p.Spec.NodeName); ok && same &&
			p.Namespace == pod.Namespace && serves(p) {
			addresses = append(addresses, addressOf(node, internal))
		}
	}
	return ordered(entries(slices.DeleteFunc(addresses, func(a string) bool { return a == "" })))
}

// serves reports whether a pod is ready and not being deleted.
func serves(p *corev1.Pod) bool {
	ready := func(c corev1.PodCondition) bool { return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue }
	return p.DeletionTimestamp == nil && p.Status.Phase == corev1.PodRunning &&
		slices.ContainsFunc(p.Status.Conditions, ready)
}

func addressOf(node *corev1.Node, internal bool) string {
	first := func(kind corev1.NodeAddressType) string {
		for _, a := range node.Status.Addresses {
			if a.Type == kind && a.Address != "" {
				return a.Address
			}
		}
		return ""
	}
	if external := first(corev1.NodeExternalIP); external != "" && !internal {
		return external
	}
	return first(corev1.NodeInternalIP)
}
