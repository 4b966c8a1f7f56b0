package e2e

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// own is the namespace of the controller in deploy/. ownController is the name of its Deployment and its Service.
const (
	own           = "k8singress"
	ownController = own + "-controller"
)

// deployed is a controller in pods, from deploy/cluster.
type deployed struct {
	*reader
	tcp, udp func(map[string]string)
}

// TestPublishedPorts runs the controller in pods with deploy/cluster, and checks how a port gets from the ConfigMap to
// the Service and to the client: which ports of the Service the controller owns, which replica writes them, and which
// Events report that it cannot write them.
func TestPublishedPorts(t *testing.T) {
	c := newCluster(t)
	c.deploy("web", 1)
	c.udpService("web-udp", "web")
	d := &deployed{c.reader(), c.entriesIn(own, "tcp-services"), c.entriesIn(own, "udp-services")}
	d.start()
	before := d.ports()

	d.tcp(map[string]string{"5432": c.to("web:http")})
	d.udp(map[string]string{"5353": c.to("web-udp:stream")})
	// The controller may not change the Service yet.
	c.awaitEventIn(own, "Service", ownController, "PortNotPublished", "grant the controller permission")
	d.checkPorts(before)
	d.allow()
	d.awaitPorts("http", "https", "tcp-5432", "udp-5353")
	d.checkPorts(before)
	d.awaitHTTP("5432")
	d.awaitUDP("5353")

	d.tcp(map[string]string{})
	d.awaitPorts("http", "https", "udp-5353")
	d.checkPorts(before)
	d.awaitUDP("5353")

	d.foreign()
	d.anotherLeader()
	d.madeAnew()
}

// start applies deploy/cluster, which does not include the right to change the Service, and waits until both pods are
// ready.
func (d *deployed) start() {
	d.Helper()
	d.tcp(nil)
	d.udp(nil)
	d.apply()
	d.Cleanup(d.stop)
	d.await("two pods of the controller serve", func() error {
		deployment, err := d.AppsV1().Deployments(own).Get(d.Context(), ownController, metav1.GetOptions{})
		if err == nil && deployment.Status.ReadyReplicas != 2 {
			return fmt.Errorf("%d are ready", deployment.Status.ReadyReplicas)
		}
		return err
	})
}

// apply applies the manifests, which restores all objects.
func (d *deployed) apply() {
	d.Helper()
	d.kubectl(d.Context(), "apply", "--kustomize", "testdata/published-ports")
}

// allow grants the right to change the Service. apply removes it again.
func (d *deployed) allow() {
	d.Helper()
	d.run(d.scripts("kubernetes.md", "## Ports of the Service", 1)[0])
}

// stop deletes the objects that start has created. If the test fails, it prints the logs of the pods.
func (d *deployed) stop() {
	ctx := context.Background()
	if d.Failed() {
		for _, pod := range d.controllers(ctx) {
			log, _ := d.CoreV1().Pods(own).GetLogs(pod, &corev1.PodLogOptions{}).DoRaw(ctx)
			d.Logf("log of %s, its end:\n%s", pod, log[max(0, len(log)-6000):])
		}
	}
	d.kubectl(ctx, "delete", "deployment,service,configmap,networkpolicy,poddisruptionbudget,role", "--namespace", own,
		"--selector", "app.kubernetes.io/name="+own)
	d.kubectl(ctx, "delete", "configmap", "--namespace", own, "tcp-services", "udp-services")
	d.deleteClass(own)
	if err := d.inside.MakeAccount(ctx); err != nil {
		d.Error(err)
	}
}

func (d *deployed) controllers(ctx context.Context) []string {
	pods, err := d.CoreV1().Pods(own).List(ctx, metav1.ListOptions{LabelSelector: "app.kubernetes.io/name=" + own})
	if err != nil {
		d.Error(err)
		return nil
	}
	var names []string
	for i := range pods.Items {
		names = append(names, pods.Items[i].Name)
	}
	return names
}

func (d *deployed) service() *corev1.Service {
	d.Helper()
	service, err := d.CoreV1().Services(own).Get(d.Context(), ownController, metav1.GetOptions{})
	d.must(err)
	return service
}

func (d *deployed) ports() []corev1.ServicePort { return d.service().Spec.Ports }

// awaitPorts waits until the Service has exactly the ports with these names.
func (d *deployed) awaitPorts(names ...string) {
	d.Helper()
	d.await(fmt.Sprintf("the Service has %v", names), func() error {
		var have []string
		for _, port := range d.ports() {
			have = append(have, port.Name)
		}
		slices.Sort(have)
		if !slices.Equal(have, slices.Sorted(slices.Values(names))) {
			return fmt.Errorf("it has %v", have)
		}
		return nil
	})
}

// checkPorts fails the test if one of these ports has changed or has another node port.
func (d *deployed) checkPorts(before []corev1.ServicePort) {
	d.Helper()
	now := d.ports()
	for _, port := range before {
		same := func(other corev1.ServicePort) bool { return equality.Semantic.DeepEqual(port, other) }
		if port.NodePort == 0 || !slices.ContainsFunc(now, same) {
			d.Errorf("%+v is not among %+v any more", port, now)
		}
	}
}

// awaitHTTP waits until a request through the address of the Service succeeds.
func (d *deployed) awaitHTTP(port string) {
	d.Helper()
	address := net.JoinHostPort(d.service().Spec.ClusterIP, port)
	d.await("an answer through port "+port+" of the Service", func() error {
		r, err := once(d.Context(), address, "http://tcp.test/")
		if err == nil && !strings.HasPrefix(r.pod, "web-") {
			return fmt.Errorf("answered by pod %q", r.pod)
		}
		return err
	})
}

func (d *deployed) awaitUDP(port string) {
	d.Helper()
	d.awaitEchoAt("udp", net.JoinHostPort(d.service().Spec.ClusterIP, port))
}

// foreign checks that an entry of another owner in the Service stays when the ConfigMap has the same port.
func (d *deployed) foreign() {
	d.Helper()
	entry := corev1.ServicePort{Name: "cache", Port: 6379, Protocol: corev1.ProtocolTCP,
		TargetPort: intstr.FromInt32(16379)}
	service := d.service()
	service.Spec.Ports = append(service.Spec.Ports, entry)
	service, err := d.CoreV1().Services(own).Update(d.Context(), service,
		metav1.UpdateOptions{FieldManager: "somebody"})
	d.must(err)
	d.tcp(map[string]string{"6379": d.to("web:http"), "5433": d.to("web:http")})
	d.awaitEventIn(own, "ConfigMap", "tcp-services", "PortNotPublished", "6379/TCP")
	d.awaitPorts("http", "https", "udp-5353", "cache", "tcp-5433")
	d.checkPorts(service.Spec.Ports)
	d.awaitHTTP("5433")
}

// anotherLeader deletes the pod that holds the Lease, and checks that only this pod had written until then.
func (d *deployed) anotherLeader() {
	d.Helper()
	const wrote = "updated the ports of the Service"
	leader := d.leader()
	for _, pod := range d.controllers(d.Context()) {
		log, err := d.CoreV1().Pods(own).GetLogs(pod, &corev1.PodLogOptions{}).DoRaw(d.Context())
		d.must(err)
		if strings.Contains(string(log), wrote) != (pod == leader) {
			d.Errorf("%s leads, and the log of %s says:\n%s", leader, pod, log)
		}
	}
	d.must(d.CoreV1().Pods(own).Delete(d.Context(), leader, metav1.DeleteOptions{}))
	d.await("another pod leads", func() error {
		if now := d.leader(); now == leader || now == "" {
			return errors.New("it does not")
		}
		return nil
	})
	d.tcp(map[string]string{"5434": d.to("web:http")})
	d.awaitPorts("http", "https", "udp-5353", "cache", "tcp-5434")
	d.awaitHTTP("5434")
}

// leader returns the name of the pod that holds the Lease, or "".
func (d *deployed) leader() string {
	d.Helper()
	lease, err := d.CoordinationV1().Leases(own).Get(d.Context(), own+"-k8singress-leader", metav1.GetOptions{})
	d.must(err)
	if lease.Spec.HolderIdentity == nil {
		return ""
	}
	pod, _, _ := strings.Cut(*lease.Spec.HolderIdentity, "_")
	return pod
}

// madeAnew deletes the Service and creates it again in its original form, like an administrator.
func (d *deployed) madeAnew() {
	d.Helper()
	services := d.CoreV1().Services(own)
	d.must(services.Delete(d.Context(), ownController, metav1.DeleteOptions{}))
	d.awaitEventIn(own, "ConfigMap", "tcp-services", "PortNotPublished", "does not exist: create it")
	d.awaitEventIn(own, "ConfigMap", "tcp-services", "PortUnreachable", "5434/TCP")
	if _, err := services.Get(d.Context(), ownController, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		d.Errorf("the Service is there again: %v", err)
	}
	d.apply()
	d.allow()
	d.awaitPorts("http", "https", "tcp-5434", "udp-5353")
	d.awaitHTTP("5434")
}
