package status_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/k8singress/k8singress/internal/kube/status"
	"github.com/k8singress/k8singress/internal/model/ir"
)

// short formats each address as "IP" or "/HOSTNAME".
func short(all []networkingv1.IngressLoadBalancerIngress) []string {
	var list []string
	for _, a := range all {
		if a.Hostname != "" {
			a.IP += "/" + a.Hostname
		}
		list = append(list, a.IP)
	}
	return list
}

func TestAddressesOfAService(t *testing.T) {
	balancer := func(all ...corev1.LoadBalancerIngress) corev1.ServiceStatus {
		return corev1.ServiceStatus{LoadBalancer: corev1.LoadBalancerStatus{Ingress: all}}
	}
	for name, c := range map[string]struct {
		spec   corev1.ServiceSpec
		status corev1.ServiceStatus
		want   []string
	}{
		"ClusterIP": {spec: corev1.ServiceSpec{Type: corev1.ServiceTypeClusterIP, ClusterIP: "10.0.0.1"},
			want: []string{"10.0.0.1"}},
		"no type": {spec: corev1.ServiceSpec{ClusterIP: "10.0.0.1"}, want: []string{"10.0.0.1"}},
		"headless": {spec: corev1.ServiceSpec{Type: corev1.ServiceTypeClusterIP,
			ClusterIP: corev1.ClusterIPNone}},
		"no address yet": {spec: corev1.ServiceSpec{Type: corev1.ServiceTypeClusterIP}},
		"NodePort": {spec: corev1.ServiceSpec{Type: corev1.ServiceTypeNodePort, ClusterIP: "10.0.0.1"},
			want: []string{"10.0.0.1"}},
		"NodePort with external addresses": {
			spec: corev1.ServiceSpec{Type: corev1.ServiceTypeNodePort, ClusterIP: "10.0.0.1",
				ExternalIPs: []string{"192.0.2.2", "192.0.2.1"}},
			want: []string{"192.0.2.1", "192.0.2.2"},
		},
		"ExternalName": {
			spec: corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "lb.example"},
			want: []string{"/lb.example"},
		},
		"ExternalName without name": {spec: corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName}},
		"LoadBalancer": {
			spec: corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer, ClusterIP: "10.0.0.1",
				ExternalIPs: []string{"192.0.2.9", "192.0.2.1"}},
			status: balancer(corev1.LoadBalancerIngress{Hostname: "lb.example"},
				corev1.LoadBalancerIngress{IP: "192.0.2.1"},
				corev1.LoadBalancerIngress{IP: "192.0.2.1"}, corev1.LoadBalancerIngress{}),
			want: []string{"/lb.example", "192.0.2.1", "192.0.2.9"},
		},
		"LoadBalancer that is pending": {spec: corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer,
			ClusterIP: "10.0.0.1"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := taken(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "lb"}, Spec: c.spec,
				Status: c.status})
			if d := cmp.Diff(c.want, short(status.Addresses(s, nil, ir.Name{Namespace: "a", Name: "lb"}))); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestGivenAddresses(t *testing.T) {
	s := taken(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "lb"},
		Spec: corev1.ServiceSpec{ClusterIP: "10.0.0.1"}})
	got := status.Addresses(s, []string{"lb.example", "192.0.2.1", "2001:db8::1", "192.0.2.1", ""},
		ir.Name{Namespace: "a", Name: "lb"})
	if d := cmp.Diff([]string{"/lb.example", "192.0.2.1", "2001:db8::1"}, short(got)); d != "" {
		t.Error(d)
	}
	for _, service := range []ir.Name{{}, {Namespace: "a", Name: "missing"}, {Name: "lb"}} {
		if got := status.Addresses(s, nil, service); len(got) != 0 {
			t.Errorf("Service %q: %v", service, got)
		}
	}
}
