package serviceports

import (
	"cmp"
	"encoding/json"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/k8singress/k8singress/internal/model/kinds"
)

// entriesOf splits the ports of a Service into our own entries, which the field manager kinds.PortsManager owns, and
// the entries of other field managers. If another field manager owns the name or the target port of an entry, the entry
// is not counted as ours.
func entriesOf(service *corev1.Service) (theirs, own []corev1.ServicePort) {
	applied := appliedTo(service)
	for _, entry := range service.Spec.Ports {
		// If the protocol is not set, the API server sets it to TCP.
		entry.Protocol = cmp.Or(entry.Protocol, corev1.ProtocolTCP)
		if slices.Contains(applied, listKey{entry.Port, entry.Protocol}) {
			own = append(own, entry)
		} else {
			theirs = append(theirs, entry)
		}
	}
	return theirs, own
}

// listKey identifies an entry of spec.ports, as Kubernetes does in managedFields.
type listKey struct {
	Port     int32           `json:"port"`
	Protocol corev1.Protocol `json:"protocol"`
}

// appliedTo returns the keys of the entries that our field manager, kinds.PortsManager, owns according to the
// managedFields of the Service.
func appliedTo(service *corev1.Service) []listKey {
	var keys []listKey
	for _, managed := range service.ManagedFields {
		if managed.Manager != kinds.PortsManager || managed.Operation != metav1.ManagedFieldsOperationApply ||
			managed.FieldsV1 == nil {
			continue
		}
		var fields struct {
			Spec struct {
				Ports map[string]map[string]struct{} `json:"f:ports"`
			} `json:"f:spec"`
		}
		// A managedFields entry that cannot be decoded is ignored.
		_ = json.Unmarshal(managed.FieldsV1.GetRawBytes(), &fields)
		for text, entry := range fields.Spec.Ports {
			var key listKey
			_, named := entry["f:name"]
			_, targeted := entry["f:targetPort"]
			if named && targeted && len(text) > 2 && json.Unmarshal([]byte(text[2:]), &key) == nil {
				keys = append(keys, key)
			}
		}
	}
	return keys
}
