package status

import (
	"encoding/json"
	"slices"

	networkingv1 "k8s.io/api/networking/v1"

	"github.com/k8singress/k8singress/internal/kinds"
	"github.com/k8singress/k8singress/internal/report"
)

// patcher returns the JSON merge patch that gives an object the status that follows from the verdict on it, or an empty string
// if it has that status.
type patcher func(v *report.Verdict, object kinds.Object) string

// patchers has a row for each kind with kinds.Kind.WritesStatus. A row gets the addresses of the ingress, and returns the patcher
// for all objects of its kind.
var patchers = map[string]func(addresses []networkingv1.IngressLoadBalancerIngress) patcher{
	kinds.Ingress: ingressPatcher,
}

// ingressPatcher writes the addresses to each Ingress of this controller. As long as none is known, the status stays as it is.
func ingressPatcher(addresses []networkingv1.IngressLoadBalancerIngress) patcher {
	patch := mergePatch(map[string]any{"loadBalancer": networkingv1.IngressLoadBalancerStatus{Ingress: addresses}})
	return func(v *report.Verdict, object kinds.Object) string {
		current := object.(*networkingv1.Ingress).Status.LoadBalancer.Ingress
		if len(v.Parents) == 0 || len(addresses) == 0 || slices.EqualFunc(current, addresses, same) {
			return ""
		}
		return patch
	}
}

// mergePatch panics if the status cannot be encoded.
func mergePatch(status map[string]any) string {
	patch, err := json.Marshal(map[string]any{"status": status})
	if err != nil {
		panic(err)
	}
	return string(patch)
}
