package serviceports_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/k8singress/k8singress/internal/kube/serviceports"
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/kinds"
)

// edge is the name of the controller's Service.
var edge = ir.Name{Namespace: "k8singress", Name: "edge"}

// entry parses "NAME PORT/PROTOCOL TARGET" and returns the port with its managed fields. With a fourth word "ours", the
// controller owns the fields of the entry, except the field in a fifth word, which another manager has taken over.
// Without a fourth word, it owns no field.
func entry(t *testing.T, text string) (corev1.ServicePort, string) {
	t.Helper()
	words := strings.Fields(text)
	number, protocol, _ := strings.Cut(words[1], "/")
	port, err := strconv.Atoi(number)
	if err != nil {
		t.Fatal(err)
	}
	e := corev1.ServicePort{
		Name: strings.Trim(words[0], "-"), Port: int32(port), Protocol: corev1.Protocol(protocol),
		TargetPort: intstr.Parse(words[2]),
	}
	if words[0] != "-" {
		e.Name = words[0]
	}
	if len(words) < 4 {
		return e, ""
	}
	var fields []string
	for _, field := range []string{".", "f:name", "f:port", "f:protocol", "f:targetPort"} {
		if len(words) == 4 || words[4] != field {
			fields = append(fields, fmt.Sprintf("%q:{}", field))
		}
	}
	key := fmt.Sprintf(`k:{"port":%d,"protocol":%q}`, e.Port, e.Protocol)
	return e, fmt.Sprintf("%q:{%s}", key, strings.Join(fields, ","))
}

// service returns the controller's Service with these entries and with managed fields, as the API server stores it.
func service(t *testing.T, kind corev1.ServiceType, entries ...string) *corev1.Service {
	t.Helper()
	s := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "k8singress", Name: "edge"},
		Spec:       corev1.ServiceSpec{Type: kind, ClusterIP: "10.96.0.9"},
	}
	var ours []string
	for _, text := range entries {
		e, fields := entry(t, text)
		s.Spec.Ports = append(s.Spec.Ports, e)
		if fields != "" {
			ours = append(ours, fields)
		}
	}
	managed := func(manager string, operation metav1.ManagedFieldsOperationType, fields string) {
		s.ManagedFields = append(s.ManagedFields, metav1.ManagedFieldsEntry{
			Manager: manager, Operation: operation, FieldsType: "FieldsV1", APIVersion: "v1",
			FieldsV1: metav1.NewFieldsV1(fields),
		})
	}
	managed("kubectl", metav1.ManagedFieldsOperationUpdate,
		`{"f:spec":{"f:ports":{".":{},"k:{\"port\":80,\"protocol\":\"TCP\"}":{".":{},"f:name":{},"f:targetPort":{}}}}}`)
	if len(ours) > 0 {
		managed(kinds.PortsManager, metav1.ManagedFieldsOperationApply,
			`{"f:spec":{"f:ports":{`+strings.Join(ours, ",")+`}}}`)
	}
	return s
}

// routes parses "PROTOCOL/PORT", optionally followed by the name of the ConfigMap if it is not tcp-services.
func routes(t *testing.T, all ...string) []*ir.StreamRoute {
	t.Helper()
	var list []*ir.StreamRoute
	for _, text := range all {
		text, origin, found := strings.Cut(text, " ")
		protocol, number, _ := strings.Cut(text, "/")
		port, err := strconv.ParseUint(number, 10, 16)
		if err != nil {
			t.Fatal(err)
		}
		if !found {
			origin = "tcp-services"
		}
		list = append(list, &ir.StreamRoute{
			Protocol: ir.Protocol(protocol), Port: uint16(port),
			Origin: ir.Ref{Kind: kinds.ConfigMap, Namespace: "k8singress", Name: origin},
		})
	}
	return list
}

// outcome is a plan in a form that tests can compare.
type outcome struct {
	Ports    []string
	Write    bool
	Problems []string
}

func outcomeOf(p serviceports.Plan) outcome {
	o := outcome{Write: p.Write}
	for _, e := range p.Ports {
		o.Ports = append(o.Ports, fmt.Sprintf("%s %d/%s %s", e.Name, e.Port, e.Protocol, e.TargetPort.String()))
	}
	for _, v := range p.Verdicts {
		for _, problem := range v.Problems {
			o.Problems = append(o.Problems, fmt.Sprintf("%s %s: %s", v.Object.Name, problem.Reason, problem.Message))
		}
	}
	return o
}

const (
	http   = "http 80/TCP http"
	https  = "https 443/TCP https"
	public = corev1.ServiceTypeLoadBalancer
	inside = corev1.ServiceTypeClusterIP
)

func TestEntries(t *testing.T) {
	for name, test := range map[string]struct {
		service []string
		open    []string
		want    outcome
	}{
		"nothing is open": {[]string{http, https}, nil, outcome{}},
		"ports appear": {
			[]string{http, https}, []string{"tcp/5432", "udp/53 udp-services"},
			outcome{Ports: []string{"tcp-5432 5432/TCP 5432", "udp-53 53/UDP 53"}, Write: true},
		},
		"they stand there": {
			[]string{http, "udp-53 53/UDP 53 ours", "tcp-5432 5432/TCP 5432 ours"}, []string{"tcp/5432", "udp/53"},
			outcome{Ports: []string{"tcp-5432 5432/TCP 5432", "udp-53 53/UDP 53"}},
		},
		"one goes": {
			[]string{http, "tcp-5432 5432/TCP 5432 ours", "tcp-6379 6379/TCP 6379 ours"}, []string{"tcp/6379"},
			outcome{Ports: []string{"tcp-6379 6379/TCP 6379"}, Write: true},
		},
		"the last one goes": {[]string{http, "tcp-5432 5432/TCP 5432 ours"}, nil, outcome{Write: true}},
		"one number for both protocols": {
			[]string{http, "tcp-53 53/TCP 53 ours"}, []string{"tcp/53", "udp/53"},
			outcome{Ports: []string{"tcp-53 53/TCP 53", "udp-53 53/UDP 53"}, Write: true},
		},
		"the name is taken": {
			[]string{http, "tcp-5432 15432/TCP 15432", "tcp-5432-2 25432/TCP 25432"}, []string{"tcp/5432"},
			outcome{Ports: []string{"tcp-5432-3 5432/TCP 5432"}, Write: true},
		},
		"the other name stays": {
			[]string{http, "tcp-5432-2 5432/TCP 5432 ours"}, []string{"tcp/5432"},
			outcome{Ports: []string{"tcp-5432-2 5432/TCP 5432"}},
		},
		"somebody has added the port by hand": {[]string{http, "postgres 5432/TCP 5432"},
			[]string{"tcp/5432"}, outcome{}},
		"and by a name": {[]string{http, "postgres 5432/TCP postgres"},
			[]string{"tcp/5432"}, outcome{}},
		"and without a target":   {[]string{http, "postgres 5432/TCP 0"}, []string{"tcp/5432"}, outcome{}},
		"and without a protocol": {[]string{http, "postgres 5432/ 5432"}, []string{"tcp/5432"}, outcome{}},
		"somebody else's leads elsewhere": {
			[]string{http, "postgres 5432/TCP 15432"}, []string{"tcp/5432", "tcp/6379"},
			outcome{Ports: []string{"tcp-6379 6379/TCP 6379"}, Write: true, Problems: []string{
				"tcp-services PortNotPublished: the Service k8singress/edge already has a port, set by another " +
					"field manager, that forwards port 5432/TCP to a different port of the pods: remove that port " +
					"from the Service, or set its targetPort to the same number",
			}},
		},
		"somebody else's has the other protocol": {
			[]string{http, "dns 53/UDP 1053"}, []string{"tcp/53"},
			outcome{Ports: []string{"tcp-53 53/TCP 53"}, Write: true},
		},
		"ours was taken over": {
			[]string{http, "tcp-5432 5432/TCP 15432 ours f:targetPort"}, []string{"tcp/5432"},
			outcome{Problems: []string{
				"tcp-services PortNotPublished: the Service k8singress/edge already has a port, set by another " +
					"field manager, that forwards port 5432/TCP to a different port of the pods: remove that port " +
					"from the Service, or set its targetPort to the same number",
			}},
		},
		"ours has another target": {
			[]string{http, "tcp-5432 5432/TCP 15432 ours"}, []string{"tcp/5432"},
			outcome{Ports: []string{"tcp-5432 5432/TCP 5432"}, Write: true},
		},
		"the only port has no name": {
			[]string{"- 80/TCP 80"}, []string{"tcp/5432", "tcp/80"},
			outcome{Problems: []string{
				"tcp-services PortNotPublished: the only port of the Service k8singress/edge has no name, but a " +
					"Service with several ports requires names: give the only port a name, so that port " +
					"5432/TCP can be added",
			}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			plan := serviceports.Make(serviceports.Situation{
				Name: edge, Service: service(t, public, test.service...), Publish: true,
				Routes: routes(t, test.open...),
			})
			if diff := cmp.Diff(test.want, outcomeOf(plan)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestSwitchedOffOnlyOursGo(t *testing.T) {
	s := serviceports.Situation{
		Name: edge, Service: service(t, public, http, "tcp-5432 5432/TCP 5432 ours"), Routes: routes(t, "tcp/5432"),
	}
	if diff := cmp.Diff(outcome{Write: true}, outcomeOf(serviceports.Make(s))); diff != "" {
		t.Error(diff)
	}
	s.Service = service(t, public, http, "tcp-6379 6379/TCP 6379")
	if diff := cmp.Diff(outcome{}, outcomeOf(serviceports.Make(s))); diff != "" {
		t.Error(diff)
	}
}

func TestServicesThatForwardNothing(t *testing.T) {
	headless := service(t, inside, http, "tcp-5432 5432/TCP 5432 ours")
	headless.Spec.ClusterIP = corev1.ClusterIPNone
	for name, test := range map[string]struct {
		service *corev1.Service
		write   bool
		want    string
	}{
		"missing":  {nil, false, "publish_service names the Service k8singress/edge, which does not exist"},
		"headless": {headless, true, "the Service k8singress/edge is headless"},
		"a name": {service(t, corev1.ServiceTypeExternalName, http), false,
			"the Service k8singress/edge has the type ExternalName"},
	} {
		t.Run(name, func(t *testing.T) {
			got := outcomeOf(serviceports.Make(serviceports.Situation{
				Name: edge, Service: test.service, Publish: true,
				Routes: routes(t, "tcp/5432", "tcp/6379", "udp/53 udp-services"),
			}))
			if got.Write != test.write || len(got.Ports) > 0 || len(got.Problems) != 2 {
				t.Fatalf("the plan is %+v", got)
			}
			for i, want := range []string{"tcp-services PortNotPublished: ", "udp-services PortNotPublished: "} {
				if !strings.HasPrefix(got.Problems[i], want+test.want) {
					t.Errorf("told: %s", got.Problems[i])
				}
			}
			if !strings.HasSuffix(got.Problems[0], "so that the ports 5432/TCP, 6379/TCP can be added") ||
				!strings.HasSuffix(got.Problems[1], "so that port 53/UDP can be added") {
				t.Errorf("told: %q", got.Problems)
			}
		})
	}
}

// pod returns a pod with these container ports, which may be ports of its node, as in a DaemonSet.
func pod(ports ...corev1.ContainerPort) *corev1.Pod {
	return &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "helper"}, {Ports: ports}}}}
}

func TestPortsThatNodesDoNotForward(t *testing.T) {
	listed := pod(
		corev1.ContainerPort{ContainerPort: 80, HostPort: 80},
		corev1.ContainerPort{ContainerPort: 6379, HostPort: 16379},
		corev1.ContainerPort{ContainerPort: 53, HostPort: 53, Protocol: corev1.ProtocolUDP},
		corev1.ContainerPort{ContainerPort: 9000})
	onHost := listed.DeepCopy()
	onHost.Spec.HostNetwork = true
	for name, test := range map[string]struct {
		pod       *corev1.Pod
		kind      corev1.ServiceType
		published bool
		want      string
	}{
		"nothing is known":                      {nil, inside, true, ""},
		"the network of the node":               {onHost, inside, true, ""},
		"no port of the node":                   {pod(corev1.ContainerPort{ContainerPort: 80}), inside, true, ""},
		"without a Service":                     {listed, "", false, "5432/TCP, 9000/TCP, 53/TCP"},
		"with a Service of the cluster":         {listed, inside, true, "5432/TCP, 9000/TCP, 53/TCP"},
		"with a Service that has not the ports": {listed, public, false, "5432/TCP, 9000/TCP, 53/TCP"},
		"with a Service that gets them":         {listed, public, true, ""},
		"with a Service for nodes":              {listed, corev1.ServiceTypeNodePort, true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := serviceports.Situation{
				Name: edge, Publish: test.published, Pod: test.pod,
				Routes: routes(t, "tcp/5432", "tcp/6379", "tcp/9000", "udp/53", "tcp/53"),
			}
			if test.kind != "" {
				s.Service = service(t, test.kind, http)
			}
			problems := outcomeOf(serviceports.Make(s)).Problems
			if test.want == "" {
				if len(problems) > 0 {
					t.Errorf("told: %q", problems)
				}
				return
			}
			if len(problems) != 1 || !strings.HasPrefix(problems[0], "tcp-services PortUnreachable: ") ||
				!strings.Contains(problems[0], "connect to the ports "+test.want+": ") {
				t.Errorf("told: %q", problems)
			}
		})
	}
}

// TestPortsAtLoopback checks that ports that only listen on loopback addresses get a warning if the Service has them or
// the process runs in a pod. Outside of a cluster there is no warning.
func TestPortsAtLoopback(t *testing.T) {
	for name, test := range map[string]struct {
		published bool
		pod       *corev1.Pod
		want      int
	}{
		"published": {true, nil, 1}, "in a pod": {false, &corev1.Pod{}, 1}, "on a machine": {false, nil, 0},
	} {
		s := serviceports.Situation{
			Name: edge, Service: service(t, corev1.ServiceTypeLoadBalancer, "http 80/TCP http"),
			Publish: test.published,
			Pod:     test.pod, Loopback: true, Routes: routes(t, "tcp/5432", "udp/53"),
		}
		problems := outcomeOf(serviceports.Make(s)).Problems
		if len(problems) != test.want {
			t.Fatalf("%s: told %q", name, problems)
		}
		for _, p := range problems {
			if !strings.HasPrefix(p, "tcp-services PortUnreachable: stream_bind contains only loopback addresses") ||
				!strings.Contains(p, "connect to the ports 5432/TCP, 53/UDP: ") {
				t.Errorf("%s: told %q", name, p)
			}
		}
	}
}

func TestMessagesOfManyPortsAreShort(t *testing.T) {
	var many []string
	for port := range 200 {
		many = append(many, fmt.Sprint("tcp/", 10000+port))
	}
	problems := outcomeOf(serviceports.Make(serviceports.Situation{Name: edge, Publish: true,
		Routes: routes(t, many...)})).Problems
	if len(problems) != 1 || !strings.HasSuffix(problems[0], "10008/TCP, 10009/TCP, and 190 more can be added") {
		t.Errorf("told: %q", problems)
	}
}
