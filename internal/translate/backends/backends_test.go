package backends

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/kinds"
	"github.com/k8singress/k8singress/internal/model/report"
	"github.com/k8singress/k8singress/internal/model/snapshot"
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

// find returns the backend for a port of the given Service, which is the only Service of the snapshot.
func find(object *corev1.Service, port string, o Options) (*ir.Backend, *report.Problem) {
	object.Namespace, object.Name = "shop", "web"
	store := snapshot.NewStore()
	store.Set(object)
	return Find(store.Take(), ir.Ref{Kind: kinds.Service, Namespace: "shop", Name: "web"}, port, ir.TCP, o)
}

// TestFieldsOfTheService checks the fields of a backend that come from the spec of the Service, except its ports.
func TestFieldsOfTheService(t *testing.T) {
	second := int32(1)
	for _, test := range []struct {
		name string
		spec corev1.ServiceSpec
		want ir.Backend
	}{
		{"plain", corev1.ServiceSpec{ClusterIP: "10.96.0.1"}, ir.Backend{VirtualAddress: "10.96.0.1:80"}},
		{
			"two families", corev1.ServiceSpec{ClusterIP: "fd00::1", ClusterIPs: []string{"fd00::1", "10.96.0.1"}},
			ir.Backend{VirtualAddress: "[fd00::1]:80"},
		},
		{"headless", corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone}, ir.Backend{}},
		{"no address yet", corev1.ServiceSpec{}, ir.Backend{}},
		{"not ready, too", corev1.ServiceSpec{PublishNotReadyAddresses: true}, ir.Backend{NotReadyToo: true}},
		{
			"affinity", corev1.ServiceSpec{SessionAffinity: corev1.ServiceAffinityClientIP},
			ir.Backend{LoadBalancing: ir.LoadBalancing{ClientIP: 3 * time.Hour}},
		},
		{
			"affinity with a time", corev1.ServiceSpec{
				SessionAffinity: corev1.ServiceAffinityClientIP,
				SessionAffinityConfig: &corev1.SessionAffinityConfig{
					ClientIP: &corev1.ClientIPConfig{TimeoutSeconds: &second},
				},
			},
			ir.Backend{LoadBalancing: ir.LoadBalancing{ClientIP: time.Second}},
		},
		{"no affinity", corev1.ServiceSpec{SessionAffinity: corev1.ServiceAffinityNone}, ir.Backend{}},
	} {
		t.Run(test.name, func(t *testing.T) {
			test.spec.Ports = []corev1.ServicePort{{Name: "http", Port: 80}}
			got, p := find(&corev1.Service{Spec: test.spec}, "80", Options{})
			want := test.want
			want.ID, want.Namespace, want.Service, want.Protocol, want.PortName = "shop/web/80", "shop", "web",
				ir.TCP, "http"
			if diff := cmp.Diff(&want, got); diff != "" || p != nil {
				t.Errorf("problem %v, backend (-want +got):\n%s", p, diff)
			}
		})
	}
}

// TestExternalName checks which external names are allowed. A backend whose name is not allowed has no address.
func TestExternalName(t *testing.T) {
	for _, test := range []struct{ name, want string }{
		{"example.org", "example.org:80"},
		{"example.org.", "example.org:80"},
		{"Example.ORG", "example.org:80"},
		{"db", "db:80"},
		{"192.0.2.7", "192.0.2.7:80"},
		{"10.0.0.7", "10.0.0.7:80"},
		{"2001:db8::7", "[2001:db8::7]:80"},
		{"::ffff:192.0.2.7", "192.0.2.7:80"},
		{"localhost.example.org", "localhost.example.org:80"},

		{"", ""},
		{".", ""},
		{"example.org..", ""},
		{"localhost", ""},
		{"LOCALHOST.", ""},
		{"db.localhost", ""},
		{"127.0.0.1", ""},
		{"127.0.0.1.", ""},
		{"127.9.9.9", ""},
		{"127.1", ""},
		{"2130706433", ""},
		{"0x7f000001", ""},
		{"0x7f.1", ""},
		{"0177.0.0.1", ""},
		{"127.0.0.08", ""},
		{"::1", ""},
		{"::ffff:127.0.0.1", ""},
		{"0.0.0.0", ""},
		{"::", ""},
		{"169.254.169.254", ""},
		{"fe80::1", ""},
		{"2001:db8::1%eth0", ""},
		{"224.0.0.1", ""},
		{"ff02::1", ""},
		{"http://example.org", ""},
		{"example.org:8080", ""},
		{"user@example.org", ""},
		{"{env.HOME}", ""},
		{"a b", ""},
		{"*.example.org", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			spec := corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: test.name}
			got, p := find(&corev1.Service{Spec: spec}, "80", Options{})
			if got.ExternalName != test.want || got.Missing != (test.want == "") || (p != nil) != got.Missing {
				t.Errorf("it is %q, missing %v, problem %v; want %q", got.ExternalName, got.Missing, p, test.want)
			}
			if off, p := find(&corev1.Service{Spec: spec}, "80", Options{ExternalNames: "off"}); p == nil ||
				off.ExternalName != "" || !off.Missing {
				t.Errorf("it is %q although such Services are turned off, problem %v", off.ExternalName, p)
			}
		})
	}
}

// TestPortOfAnExternalName checks that the port of an external name is the Service's target port if this is a number,
// and that the Service does not have to list the port.
func TestPortOfAnExternalName(t *testing.T) {
	ports := []corev1.ServicePort{
		{Name: "web", Port: 80}, {Name: "tls", Port: 443, TargetPort: intstr.FromInt32(8443)},
		{Name: "named", Port: 90, TargetPort: intstr.FromString("http")},
	}
	for _, test := range []struct {
		name   string
		ports  []corev1.ServicePort
		wanted string
		id     string
		want   string
	}{
		{"no ports", nil, "8080", "shop/web/8080", "example.org:8080"},
		{"number", ports, "80", "shop/web/80", "example.org:80"},
		{"name", ports, "web", "shop/web/80", "example.org:80"},
		{"target port", ports, "443", "shop/web/443", "example.org:8443"},
		{"name of a target port", ports, "named", "shop/web/90", "example.org:90"},
		{"a number that the Service has not", ports, "8080", "shop/web/8080", "example.org:8080"},
		{"a name that the Service has not", ports, "nope", "shop/web/nope", ""},
		{"a name and no ports", nil, "web", "shop/web/web", ""},
		{"zero", ports, "0", "shop/web/0", ""},
		{"too large", nil, "65536", "shop/web/65536", ""},
		{"nothing", nil, "", "shop/web/", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			object := service(test.ports...)
			object.Spec.Type, object.Spec.ExternalName = corev1.ServiceTypeExternalName, "example.org"
			got, p := find(object, test.wanted, Options{})
			if got.ID != test.id || got.ExternalName != test.want || got.Missing != (test.want == "") ||
				(p != nil) != got.Missing {
				t.Errorf("it is %s %q, missing %v, problem %v", got.ID, got.ExternalName, got.Missing, p)
			}
		})
	}
}
