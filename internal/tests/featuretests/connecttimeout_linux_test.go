package featuretests

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/k8singress/k8singress/internal/tests/fixture"
)

// TestConnectTimeout checks that connecting to an endpoint times out after proxy-connect-timeout, set in the ConfigMap
// or in the Ingress, even if the request itself may wait for an hour. The default is five seconds.
func TestConnectTimeout(t *testing.T) {
	ip, port := hostPort(t, fixture.Unreachable(t))
	last := []string{"proxy-next-upstream", "off"}
	in := start(t, class+service("one", port, ip)+annotated("key", "key.example", "one", last...)+
		annotated("long", "long.example", "one", append(last, "proxy-connect-timeout", "3600")...)+
		global(`proxy-connect-timeout: "6"`), "configmap default/global")
	waiting := make(chan int, 1)
	go func() { waiting <- in.get("long.example", "/").status }()
	begin := time.Now()
	if got := in.get("key.example", "/"); got.status != http.StatusGatewayTimeout {
		t.Errorf("the request that may wait for six seconds gets %d", got.status)
	}
	took(t, "the request that may wait for six seconds", begin, 6*time.Second)
	select {
	case got := <-waiting:
		t.Errorf("the request that may wait gets %d", got)
	default:
	}
	in.write("manifests.yaml", class+service("one", port)+annotated("long", "long.example", "one"))
	if got := await(t, "the end of the request that may wait", waiting); got != http.StatusServiceUnavailable {
		t.Errorf("the request that may wait gets %d at the end", got)
	}
}

// TestServiceConnectTimeout checks that a connection to a port of a Service ends if its endpoint cannot be reached
// within stream-connect-timeout. The default is five seconds.
func TestServiceConnectTimeout(t *testing.T) {
	ip, endpointPort := hostPort(t, fixture.Unreachable(t))
	port := fixture.Port(t)
	in := start(t, class+exposed("one", endpointPort, ip, "tcp-ports: "+port+":80", "stream-connect-timeout: 6s"),
		servicePorts)
	_ = in.accepted("127.0.0.1:" + port).Close()
	begin := time.Now()
	_, _ = connect(t, "127.0.0.1:"+port).Read(make([]byte, 1))
	took(t, "the connection", begin, 6*time.Second)
}

// TestStreamTriesTimeout checks that no other endpoint is tried after proxy-stream-next-upstream-timeout.
func TestStreamTriesTimeout(t *testing.T) {
	gone, gonePort := hostPort(t, fixture.Unreachable(t))
	f := newFleet(t, 1, nil)
	port := fixture.Port(t)
	two := strings.Replace(service("one", f.port, f.ip(0)), "metadata: {name: one}",
		`metadata: {name: one, annotations: {k8singress.io/tcp-ports: "`+
			port+`:80", k8singress.io/stream-connect-timeout: 1s}}`, 1)
	_, slice, _ := strings.Cut(strings.TrimPrefix(service("one", gonePort, gone), "---\n"), "---\n")
	two += "---\n" + strings.ReplaceAll(slice, "one-1", "one-2")
	in := start(t, class+two, servicePorts, "configmap default/global")
	in.overTCP(port)
	for range 4 {
		if _, err := tryTCP(port); err != nil {
			t.Errorf("by default, a connection ends: %v", err)
		}
	}
	in.globalKeys("proxy-stream-next-upstream-timeout=1s")
	in.eventually("a connection that ends", func() error {
		if answer, err := tryTCP(port); err == nil {
			return fmt.Errorf("it is answered with %q", answer)
		}
		return nil
	})
}
