package kubelet

import (
	"fmt"
	"net"
	"strconv"

	v1 "k8s.io/api/core/v1"

	"github.com/k8singress/k8singress/test/testbed/services"
)

// openPorts forwards all host ports of the containers, or none. As with a Service, the pod sees the address of the
// control plane as the client. A pod in the network of its node has the ports already.
func (w *podWorker) openPorts() error {
	if w.current().Spec.HostNetwork || len(w.ports) > 0 {
		return nil
	}
	for _, c := range w.allContainers() {
		for i := range c.spec.Ports {
			if err := w.openPort(&c.spec.Ports[i]); err != nil {
				w.closePorts()
				return err
			}
		}
	}
	return nil
}

func (w *podWorker) openPort(port *v1.ContainerPort) error {
	if port.HostPort == 0 {
		return nil
	}
	at := services.Address{Protocol: port.Protocol, IP: port.HostIP, Port: port.HostPort}
	endpoint := net.JoinHostPort(w.ip, strconv.Itoa(int(port.ContainerPort)))
	forward, err := services.Open(w.node.namespace, at, []string{endpoint})
	if err != nil {
		return fmt.Errorf("opening port %d of %s: %w", port.HostPort, w.node.name, err)
	}
	w.ports = append(w.ports, forward)
	return nil
}

func (w *podWorker) closePorts() {
	for _, forward := range w.ports {
		forward.Close()
	}
	w.ports = nil
}
