package status_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/kinds"
	"github.com/k8singress/k8singress/internal/model/report"
	"github.com/k8singress/k8singress/internal/model/settings"
	"github.com/k8singress/k8singress/internal/tests/fixture"
)

// edge returns the Service of the controller.
func edge(name string) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: name, UID: types.UID("uid-" + name), ResourceVersion: "1"},
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeLoadBalancer, ClusterIP: "10.96.0.9",
			Ports: []corev1.ServicePort{
				{Name: "http", Port: 80, Protocol: corev1.ProtocolTCP, TargetPort: intstr.FromString("http"),
					NodePort: 30080},
			},
		},
	}
}

func publishing(service string) settings.Config {
	return settings.Config{PublishService: ir.Name{Namespace: "a", Name: service}, PublishPorts: true}
}

func open(ports ...uint16) []*ir.StreamRoute {
	var routes []*ir.StreamRoute
	for _, port := range ports {
		routes = append(routes, &ir.StreamRoute{
			Protocol: ir.TCP, Port: port, Origin: ir.Ref{Kind: kinds.ConfigMap, Namespace: "a", Name: "tcp-services"},
		})
	}
	return routes
}

// portsTest is a leader and the API server that it writes to.
type portsTest struct {
	*testing.T
	*replica
	client *fake.Clientset
}

func newPortsTest(t *testing.T, client *fake.Clientset) *portsTest {
	t.Helper()
	return &portsTest{t, leader(t, client), client}
}

// publish passes the current Services of the API server, the options and the open ports to the writer, as the engine
// does.
func (p *portsTest) publish(o settings.Config, open []*ir.StreamRoute) {
	p.Helper()
	list, err := p.client.CoreV1().Services("a").List(p.Context(), metav1.ListOptions{})
	if err != nil {
		p.Fatal(err)
	}
	var objects []kinds.Object
	for i := range list.Items {
		objects = append(objects, &list.Items[i])
	}
	p.Publish(&report.Report{}, taken(objects...), o, open)
}

// ports returns the ports of a Service.
func (p *portsTest) ports(service string) string {
	p.Helper()
	o, err := p.client.CoreV1().Services("a").Get(p.Context(), service, metav1.GetOptions{})
	if err != nil {
		p.Fatal(err)
	}
	var words []string
	for _, e := range o.Spec.Ports {
		words = append(words, fmt.Sprintf("%s:%d:%s:%d", e.Name, e.Port, e.TargetPort.String(), e.NodePort))
	}
	return strings.Join(words, " ")
}

func (p *portsTest) await(service, want string) {
	p.Helper()
	fixture.Holds(p.T, service+" has "+want, func() bool { return p.ports(service) == want })
}

// problemTexts waits for a number of verdicts and returns them as text.
func (p *portsTest) problemTexts(count int) []string {
	p.Helper()
	fixture.Holds(p.T, fmt.Sprint(count, " verdicts"), func() bool { return len(p.Verdicts()) == count })
	var words []string
	for _, v := range p.Verdicts() {
		for _, problem := range v.Problems {
			words = append(words, v.Object.String()+": "+problem.Message)
		}
	}
	return words
}

const ownPort = "http:80:http:30080"

func TestPortsComeAndGo(t *testing.T) {
	p := newPortsTest(t, fake.NewClientset(edge("edge")))
	p.publish(publishing("edge"), open(5432))
	p.await("edge", ownPort+" tcp-5432:5432:5432:0")
	p.publish(publishing("edge"), open(5432, 6379))
	p.await("edge", ownPort+" tcp-5432:5432:5432:0 tcp-6379:6379:6379:0")
	p.publish(publishing("edge"), open(6379))
	p.await("edge", ownPort+" tcp-6379:6379:6379:0")
	p.publish(settings.Config{PublishService: ir.Name{Namespace: "a", Name: "edge"}}, open(6379))
	p.await("edge", ownPort)
	p.stop()
	if n := count(p.client, "patch", "services", "edge"); n != 4 {
		t.Errorf("%d patches", n)
	}
	for _, action := range p.client.Actions() {
		if patch, ok := action.(clienttesting.PatchAction); ok && patch.GetPatchType() == types.ApplyPatchType &&
			!strings.Contains(string(patch.GetPatch()), `"uid":"uid-edge"`) {
			t.Errorf("a patch that could make a Service: %s", patch.GetPatch())
		}
	}
	p.problemTexts(0)
}

// TestWithoutTheOptionNothingIsWritten checks that a process without the option does not change ports that another
// process may have published.
func TestWithoutTheOptionNothingIsWritten(t *testing.T) {
	inside := edge("edge")
	inside.Spec.Type = corev1.ServiceTypeClusterIP
	p := newPortsTest(t, fake.NewClientset(inside, daemon()))
	p.publish(publishing("edge"), open(5432))
	p.await("edge", ownPort+" tcp-5432:5432:5432:0")
	p.stop()
	p.problemTexts(0)
	second := &portsTest{t, leader(t, p.client), p.client}
	second.publish(settings.Config{PublishService: ir.Name{Namespace: "a", Name: "edge"}}, open(6379))
	// The Service has been processed when its verdict is there.
	second.problemTexts(1)
	if n := count(p.client, "patch", "services", "edge"); n != 1 {
		t.Errorf("%d patches", n)
	}
}

func TestPortsMoveToAnotherService(t *testing.T) {
	p := newPortsTest(t, fake.NewClientset(edge("edge"), edge("other")))
	p.publish(publishing("edge"), open(5432))
	p.await("edge", ownPort+" tcp-5432:5432:5432:0")
	p.publish(publishing("other"), open(5432))
	p.await("other", ownPort+" tcp-5432:5432:5432:0")
	p.await("edge", ownPort)
}

func TestServiceMadeAnewIsFilledAgain(t *testing.T) {
	p := newPortsTest(t, fake.NewClientset(edge("edge")))
	services := p.client.CoreV1().Services("a")
	p.publish(publishing("edge"), open(5432))
	p.await("edge", ownPort+" tcp-5432:5432:5432:0")
	if err := services.Delete(t.Context(), "edge", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	p.publish(publishing("edge"), open(5432))
	if told := p.problemTexts(1); !strings.HasPrefix(told[0],
		"ConfigMap/a/tcp-services: publish_service names the Service a/edge, ") {
		t.Errorf("told: %q", told)
	}
	anew := edge("edge")
	anew.UID = "another"
	if _, err := services.Create(t.Context(), anew, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	p.publish(publishing("edge"), open(5432))
	p.await("edge", ownPort+" tcp-5432:5432:5432:0")
	p.problemTexts(0)
}

// TestPortsAreRewrittenWithBackoff checks that the controller writes the ports with growing delays if
// another client keeps replacing the whole Service.
func TestPortsAreRewrittenWithBackoff(t *testing.T) {
	p := newPortsTest(t, fake.NewClientset(edge("edge")))
	begin := time.Now()
	for version := range 3 {
		p.publish(publishing("edge"), open(5432))
		p.await("edge", ownPort+" tcp-5432:5432:5432:0")
		undone := edge("edge")
		undone.ResourceVersion = fmt.Sprint(version + 2)
		if _, err := p.client.CoreV1().Services("a").Update(t.Context(), undone, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	// The delay is 200 ms before the second write and 400 ms before the third.
	if took := time.Since(begin); took < 600*time.Millisecond {
		t.Errorf("three times took %v", took)
	}
}

var forbidden = apierrors.NewForbidden(schema.GroupResource{Resource: "services"}, "edge", nil)

func TestMissingRightIsReportedOnce(t *testing.T) {
	client := fake.NewClientset(edge("edge"))
	refuse(client, "patch", "services", forbidden, forbidden)
	p := newPortsTest(t, client)
	p.publish(publishing("edge"), open(5432))
	want := "Service/a/edge: publish_ports cannot change this Service, because RBAC forbids it: grant the controller " +
		"permission to patch it, as the chart does with k8singress.options.publish_ports, or remove the option " +
		"publish_ports"
	if told := p.problemTexts(1); told[0] != want {
		t.Errorf("told: %q", told)
	}
	select {
	case <-p.Changed():
	case <-time.After(patience):
		t.Error("nobody hears of it")
	}
	p.await("edge", ownPort+" tcp-5432:5432:5432:0")
	p.problemTexts(0)
	if n := count(p.client, "patch", "services", "edge"); n != 3 {
		t.Errorf("%d patches", n)
	}
}

func TestPortsAreWrittenAgainAfterAFailure(t *testing.T) {
	client := fake.NewClientset(edge("edge"))
	refuse(client, "patch", "services",
		apierrors.NewServerTimeout(schema.GroupResource{}, "patch", 1), apierrors.NewInternalError(fmt.Errorf("no")))
	p := newPortsTest(t, client)
	p.publish(publishing("edge"), open(5432))
	p.await("edge", ownPort+" tcp-5432:5432:5432:0")
	p.problemTexts(0)
}

// daemon returns the pod in which the writer of these tests runs. The pod has one host port.
func daemon() *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "edge-0"}, Spec: corev1.PodSpec{
		Containers: []corev1.Container{{Ports: []corev1.ContainerPort{{ContainerPort: 80, HostPort: 80}}}},
	}}
}

func TestOwnPod(t *testing.T) {
	t.Run("read", func(t *testing.T) {
		p := newPortsTest(t, fake.NewClientset(daemon()))
		p.publish(settings.Config{}, open(5432))
		if told := p.problemTexts(1); !strings.Contains(told[0], "connect to port 5432/TCP: ") {
			t.Errorf("told: %q", told)
		}
		for range 3 {
			p.publish(settings.Config{}, open(5432, 6379))
		}
		fixture.Holds(t, "both ports are told",
			func() bool { return strings.Contains(p.problemTexts(1)[0], "the ports 5432/TCP, 6379/TCP") })
		if n := count(p.client, "get", "pods", "edge-0"); n != 1 {
			t.Errorf("the pod was read %d times", n)
		}
		p.stop()
		p.problemTexts(0)
	})
	t.Run("without the right", func(t *testing.T) {
		client := fake.NewClientset(daemon(), edge("edge"))
		refuse(client, "get", "pods", forbidden)
		p := newPortsTest(t, client)
		p.publish(publishing("edge"), open(5432))
		p.await("edge", ownPort+" tcp-5432:5432:5432:0")
		p.publish(settings.Config{PublishService: ir.Name{Namespace: "a", Name: "edge"}}, open(5432))
		p.await("edge", ownPort)
		p.problemTexts(0)
		if n := count(p.client, "get", "pods", "edge-0"); n != 1 {
			t.Errorf("the pod was read %d times", n)
		}
	})
}

// TestPortsAtLoopbackAreReported checks that there is a verdict if the ports of the Service only listen on loopback
// addresses, because clients cannot connect to them.
func TestPortsAtLoopbackAreReported(t *testing.T) {
	p := newPortsTest(t, fake.NewClientset(edge("edge")))
	o := publishing("edge")
	o.StreamBind = []string{"127.0.0.1", "::1"}
	p.publish(o, open(5432))
	if told := p.problemTexts(1); !strings.Contains(told[0], "stream_bind contains only loopback addresses") {
		t.Errorf("told: %q", told)
	}
	o.StreamBind = []string{"127.0.0.1", "192.0.2.1"}
	p.publish(o, open(5432))
	p.problemTexts(0)
}
