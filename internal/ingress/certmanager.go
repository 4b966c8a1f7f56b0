package ingress

import (
	"maps"
	"slices"
	"strings"
)

// What cert-manager goes by, in an Ingress of a user and in one that it makes to answer an HTTP-01 challenge.
const (
	managerPrefix = "acme.cert-manager.io/"
	managerSolver = "acme.cert-manager.io/http01-solver"
	managerOld    = "kubernetes.io/tls-acme"
)

var managerIssuers = []string{"cert-manager.io/cluster-issuer", "cert-manager.io/issuer"}

// manager returns the annotation or label by which the Ingress is cert-manager's, or nothing. No certificate is asked for
// then: two that do so for one host would be in each other's way.
func (r *reading) manager() string {
	if r.Object.Labels[managerSolver] == "true" {
		return managerSolver
	}
	for _, key := range slices.Sorted(maps.Keys(r.Object.Annotations)) {
		value := r.Object.Annotations[key]
		switch {
		case value == "":
		case slices.Contains(managerIssuers, key), strings.HasPrefix(key, managerPrefix), key == managerOld && value == "true":
			return key
		}
	}
	return ""
}
