package files

import (
	"fmt"
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/k8singress/k8singress/internal/model/kinds"
)

// endpointsKind is the deprecated kind Endpoints, which EndpointSlice has replaced. It is not in kinds.Table, because
// clusters convert Endpoints to EndpointSlices themselves.
const endpointsKind = "Endpoints"

// mirror converts an Endpoints object to EndpointSlices as a cluster does: it returns one EndpointSlice for each subset
// and address family.
func mirror(o *corev1.Endpoints) []kinds.Object { //nolint:staticcheck // the old kind is the point
	var list []kinds.Object
	for i := range o.Subsets {
		for _, family := range []discoveryv1.AddressType{discoveryv1.AddressTypeIPv4, discoveryv1.AddressTypeIPv6} {
			slice := &discoveryv1.EndpointSlice{AddressType: family, ObjectMeta: metav1.ObjectMeta{
				Namespace: o.Namespace, Name: fmt.Sprintf("%s-%s-%d", o.Name, familyNames[family], i),
				Labels:          map[string]string{discoveryv1.LabelServiceName: o.Name},
				ResourceVersion: o.ResourceVersion, CreationTimestamp: o.CreationTimestamp,
			}}
			subset := &o.Subsets[i]
			slice.Endpoints = appendFamily(slice.Endpoints, subset.Addresses, family, true)
			slice.Endpoints = appendFamily(slice.Endpoints, subset.NotReadyAddresses, family, false)
			if len(slice.Endpoints) > 0 {
				slice.Ports = portsOf(subset)
				list = append(list, slice)
			}
		}
	}
	return list
}

var familyNames = map[discoveryv1.AddressType]string{
	discoveryv1.AddressTypeIPv4: "ipv4",
	discoveryv1.AddressTypeIPv6: "ipv6",
}

func portsOf(subset *corev1.EndpointSubset) []discoveryv1.EndpointPort { //nolint:staticcheck // as above
	var ports []discoveryv1.EndpointPort
	for i := range subset.Ports {
		p := &subset.Ports[i]
		port := discoveryv1.EndpointPort{Name: &p.Name, Port: &p.Port, AppProtocol: p.AppProtocol}
		if p.Protocol != "" {
			port.Protocol = &p.Protocol
		}
		ports = append(ports, port)
	}
	return ports
}

func appendFamily(
	list []discoveryv1.Endpoint, addresses []corev1.EndpointAddress, family discoveryv1.AddressType, ready bool,
) []discoveryv1.Endpoint {
	for _, a := range addresses {
		ip, err := netip.ParseAddr(a.IP)
		if err == nil && ip.Is4() == (family == discoveryv1.AddressTypeIPv4) {
			list = append(list, discoveryv1.Endpoint{
				Addresses: []string{a.IP}, Conditions: discoveryv1.EndpointConditions{Ready: &ready},
			})
		}
	}
	return list
}
