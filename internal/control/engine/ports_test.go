package engine_test

import (
	"net"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap/zaptest"
	corev1 "k8s.io/api/core/v1"

	"github.com/k8singress/k8singress/internal/control/engine"
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/kinds"
	"github.com/k8singress/k8singress/internal/model/report"
	"github.com/k8singress/k8singress/internal/model/settings"
	"github.com/k8singress/k8singress/internal/tests/fixture"
)

func (p *publisher) ports() []uint16 {
	p.mu.Lock()
	defer p.mu.Unlock()
	var ports []uint16
	for _, route := range p.open {
		ports = append(ports, route.Port)
	}
	return ports
}

// TestOpenPortsArePublished checks that a port is published only after it has been opened.
func TestOpenPortsArePublished(t *testing.T) {
	holder, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer holder.Close()
	port := uint16(holder.Addr().(*net.TCPAddr).Port)
	entries := &corev1.ConfigMap{ObjectMeta: meta("tcp"), Data: map[string]string{strconv.Itoa(int(port)): "a/web:80"}}
	s, p := newSource(service(), entries), newPublisher()
	o := options()
	o.TCPServices, o.StreamBind = ir.Name{Namespace: "a", Name: "tcp"}, []string{"127.0.0.1"}
	e := adoptedBy(t, provisioned(t), engine.New(s, p, zaptest.NewLogger(t)), o)
	close(s.synced)
	e.await(1)
	e.eventually("something is published", func() bool { return p.times() > 0 })
	if ports := p.ports(); len(ports) > 0 {
		t.Errorf("%v are published", ports)
	}
	if err := holder.Close(); err != nil {
		t.Fatal(err)
	}
	e.eventually("the port is published", func() bool { return len(p.ports()) == 1 && p.ports()[0] == port })
	s.set(&corev1.ConfigMap{ObjectMeta: meta("tcp")})
	e.eventually("no port is published", func() bool { return len(p.ports()) == 0 })
}

// TestPortOfTheWebhook checks that no TCP service gets the port of the admission webhook.
func TestPortOfTheWebhook(t *testing.T) {
	port := fixture.Port(t)
	entries := &corev1.ConfigMap{ObjectMeta: meta("tcp"), Data: map[string]string{port: "a/web:80"}}
	o := options()
	o.TCPServices = ir.Name{Namespace: "a", Name: "tcp"}
	o.AdmissionWebhook = &settings.AdmissionWebhook{Listen: "127.0.0.1:" + port, Certificate: "cert", Key: "key"}
	s := newSource(service(), entries)
	e := adoptedBy(t, provisioned(t), engine.New(s, nil, zaptest.NewLogger(t)), o)
	close(s.synced)
	e.await(1)
	v := e.Report().Get(ir.Ref{Kind: kinds.ConfigMap, Namespace: "a", Name: "tcp"})
	if v == nil || len(v.Problems) != 1 || v.Problems[0].Reason != report.PortConflict ||
		!strings.Contains(v.Problems[0].Message, "is the admission_webhook port of the controller itself") {
		t.Errorf("the verdict is %+v", v)
	}
}

func TestVerdictsOfThePublisher(t *testing.T) {
	s, p := newSource(service()), newPublisher()
	e := adoptedBy(t, provisioned(t), engine.New(s, p, zaptest.NewLogger(t)), options())
	close(s.synced)
	e.await(1)
	web := ir.Ref{Kind: kinds.Service, Namespace: "a", Name: "web"}
	p.tell(&report.Verdict{Object: web,
		Problems: []report.Problem{{Severity: report.Warning, Reason: report.PortNotPublished}}})
	e.await(2)
	if v := e.Report().Get(web); v == nil || len(v.Problems) != 1 || v.Problems[0].Reason != report.PortNotPublished {
		t.Errorf("the verdict is %+v", v)
	}
}

// TestPortsWithoutEndpoints checks that a port without endpoints causes a problem for its entry, whose message
// describes the effect on clients of the protocol.
func TestPortsWithoutEndpoints(t *testing.T) {
	web := service()
	web.Spec.Ports = append(web.Spec.Ports, corev1.ServicePort{Name: "dns", Port: 53, Protocol: corev1.ProtocolUDP})
	one, two, dns := fixture.Port(t), fixture.Port(t), fixture.Port(t)
	s := newSource(web,
		&corev1.ConfigMap{ObjectMeta: meta("tcp"), Data: map[string]string{one: "a/web:80", two: "a/web:80"}},
		&corev1.ConfigMap{ObjectMeta: meta("udp"), Data: map[string]string{dns: "a/web:dns"}})
	o := options()
	o.TCPServices, o.UDPServices, o.StreamBind = ir.Name{Namespace: "a", Name: "tcp"},
		ir.Name{Namespace: "a", Name: "udp"}, []string{"127.0.0.1"}
	e := adoptedBy(t, provisioned(t), engine.New(s, newPublisher(), zaptest.NewLogger(t)), o)
	close(s.synced)
	e.await(1)
	for name, want := range map[string]map[string]string{
		"tcp": {"data[" + one + "]": "connections are closed", "data[" + two + "]": "connections are closed"},
		"udp": {"data[" + dns + "]": "datagrams are dropped"},
	} {
		got := map[string]string{}
		for _, p := range e.Report().Get(ir.Ref{Kind: kinds.ConfigMap, Namespace: "a", Name: name}).Problems {
			got[p.Field] = strings.TrimPrefix(p.Message, "the Service a/web has no ready endpoints: ")
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
