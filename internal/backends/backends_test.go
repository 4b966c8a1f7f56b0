package backends

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

func service(ports ...corev1.ServicePort) *corev1.Service {
	return &corev1.Service{Spec: corev1.ServiceSpec{Ports: ports}}
}

func TestFindPort(t *testing.T) {
	ports := []corev1.ServicePort{
		{Name: "dns", Port: 53, Protocol: corev1.ProtocolUDP, TargetPort: intstr.FromInt32(5353)},
		{Name: "dns-tcp", Port: 53, Protocol: corev1.ProtocolTCP, TargetPort: intstr.FromInt32(5353)},
		{Name: "web", Port: 80, TargetPort: intstr.FromString("http")},
		{Name: "admin", Port: 8080, Protocol: corev1.ProtocolTCP, TargetPort: intstr.FromInt32(80)},
		{Name: "9000", Port: 9001, Protocol: corev1.ProtocolTCP, TargetPort: intstr.FromInt32(9002)},
		{Name: "http", Port: 9002, Protocol: corev1.ProtocolTCP, TargetPort: intstr.FromInt32(9003)},
		{Name: "unset", Port: 7000, Protocol: corev1.ProtocolTCP},
	}
	for _, test := range []struct {
		name, wanted string
		protocol     corev1.Protocol
		want         string
	}{
		{"number", "8080", corev1.ProtocolTCP, "admin"},
		{"name", "admin", corev1.ProtocolTCP, "admin"},
		{"no protocol is TCP", "web", corev1.ProtocolTCP, "web"},
		{"no protocol is not UDP", "web", corev1.ProtocolUDP, ""},
		{"number before target port", "80", corev1.ProtocolTCP, "web"},
		{"number before target port, again", "9002", corev1.ProtocolTCP, "http"},
		{"name before target port", "http", corev1.ProtocolTCP, "http"},
		{"a name of digits", "9000", corev1.ProtocolTCP, "9000"},
		{"target port by number", "9003", corev1.ProtocolTCP, "http"},
		{"the protocol's own", "53", corev1.ProtocolUDP, "dns"},
		{"the protocol's own, again", "53", corev1.ProtocolTCP, "dns-tcp"},
		{"target port of the protocol", "5353", corev1.ProtocolTCP, "dns-tcp"},
		{"name of another protocol", "dns", corev1.ProtocolTCP, ""},
		{"no such number", "81", corev1.ProtocolTCP, ""},
		{"no such name", "nope", corev1.ProtocolTCP, ""},
		{"nothing", "", corev1.ProtocolTCP, ""},
		{"zero is no target port", "0", corev1.ProtocolTCP, ""},
		{"negative", "-1", corev1.ProtocolTCP, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := ""
			if p := findPort(service(ports...), test.wanted, test.protocol); p != nil {
				got = p.Name
			}
			if got != test.want {
				t.Errorf("port %s %s is %q instead of %q", test.wanted, test.protocol, got, test.want)
			}
		})
	}
	named := service(corev1.ServicePort{Port: 80, TargetPort: intstr.FromString("http")})
	if p := findPort(named, "http", corev1.ProtocolTCP); p == nil || p.Port != 80 {
		t.Errorf("a target port by name leads to %v", p)
	}
	unnamed := service(corev1.ServicePort{Port: 80})
	for _, wanted := range []string{"", "0"} {
		if p := findPort(unnamed, wanted, corev1.ProtocolTCP); p != nil {
			t.Errorf("%q finds the port without a name: %v", wanted, p)
		}
	}
	if p := findPort(service(), "80", corev1.ProtocolTCP); p != nil {
		t.Errorf("a Service without ports has %v", p)
	}
}
