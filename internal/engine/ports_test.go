package engine_test

import (
	"net"
	"strconv"
	"testing"

	"go.uber.org/zap/zaptest"
	corev1 "k8s.io/api/core/v1"

	"github.com/k8singress/k8singress/internal/engine"
	"github.com/k8singress/k8singress/internal/ir"
	"github.com/k8singress/k8singress/internal/kinds"
	"github.com/k8singress/k8singress/internal/report"
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

// Ports that are not open are not published, before they are.
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
	o.TCPServices, o.StreamBind = "a/tcp", []string{"127.0.0.1"}
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

func TestVerdictsOfThePublisher(t *testing.T) {
	s, p := newSource(service()), newPublisher()
	e := adoptedBy(t, provisioned(t), engine.New(s, p, zaptest.NewLogger(t)), options())
	close(s.synced)
	e.await(1)
	web := ir.Ref{Kind: kinds.Service, Namespace: "a", Name: "web"}
	p.mu.Lock()
	p.verdicts = []*report.Verdict{{Object: web, Problems: []report.Problem{{Severity: report.Warning, Reason: report.PortNotPublished}}}}
	p.mu.Unlock()
	p.changed <- struct{}{}
	e.await(2)
	if v := e.Report().Get(web); v == nil || len(v.Problems) != 1 || v.Problems[0].Reason != report.PortNotPublished {
		t.Errorf("the verdict is %+v", v)
	}
}
