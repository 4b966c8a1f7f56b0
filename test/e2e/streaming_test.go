package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/client-go/transport/spdy"
	"k8s.io/client-go/util/exec"
	"k8s.io/streaming/pkg/httpstream"
)

// This file tests the streams of the testbed's kubelet, with both protocols that clients use.

// TestExec checks that a command in a pod gets the streams of the client, and that the client gets its exit code.
func TestExec(t *testing.T) {
	c := newCluster(t)
	c.deploy("open", 1)
	c.awaitEndpoints("open", 1, 0)
	pod := c.podOf("open").Name
	for name, connect := range map[string]connectExec{"SPDY": execBySPDY, "WebSocket": execByWebSocket} {
		t.Run(name, func(t *testing.T) {
			c := c.in(t)
			stdout, stderr, err := c.exec(connect, pod, "some input", "sh", "-c",
				"cat; echo $HOSTNAME; echo trouble >&2; exit 3")
			if stdout != "some input"+pod+"\n" || stderr != "trouble\n" {
				t.Errorf("it wrote %q and %q", stdout, stderr)
			}
			if exit := new(exec.CodeExitError); !errors.As(err, exit) || exit.Code != 3 {
				t.Errorf("it ended with %v", err)
			}
		})
	}
}

// TestPortForward checks requests to a pod through a forwarded port.
func TestPortForward(t *testing.T) {
	c := newCluster(t)
	c.deploy("open", 1)
	c.awaitEndpoints("open", 1, 0)
	pod := c.podOf("open").Name
	for name, connect := range map[string]connectPort{"SPDY": portBySPDY, "WebSocket": portByWebSocket} {
		t.Run(name, func(t *testing.T) {
			c := c.in(t)
			c.awaitAnswerOf(pod, c.portForward(connect, pod, 8080))
		})
	}
}

type (
	connectExec func(*rest.Config, *url.URL) (remotecommand.Executor, error)
	connectPort func(*rest.Config, *url.URL) (httpstream.Dialer, error)
)

func execBySPDY(config *rest.Config, at *url.URL) (remotecommand.Executor, error) {
	return remotecommand.NewSPDYExecutor(config, http.MethodPost, at)
}

func execByWebSocket(config *rest.Config, at *url.URL) (remotecommand.Executor, error) {
	return remotecommand.NewWebSocketExecutor(config, http.MethodGet, at.String())
}

func portBySPDY(config *rest.Config, at *url.URL) (httpstream.Dialer, error) {
	transport, upgrader, err := spdy.RoundTripperFor(config)
	return spdy.NewDialerForStreaming(upgrader, &http.Client{Transport: transport}, http.MethodPost, at), err
}

func portByWebSocket(config *rest.Config, at *url.URL) (httpstream.Dialer, error) {
	return portforward.NewSPDYOverWebsocketDialerForStreaming(at, config)
}

// exec runs a command in the only container of a pod.
func (c *cluster) exec(connect connectExec, pod, stdin string, command ...string) (stdout, stderr string, err error) {
	c.Helper()
	config, err := c.inside.Config()
	c.must(err)
	executor, err := connect(config, c.streamURL(pod, "exec", &corev1.PodExecOptions{
		Command: command, Stdin: true, Stdout: true, Stderr: true,
	}))
	c.must(err)
	var out, errs bytes.Buffer
	err = executor.StreamWithContext(c.Context(),
		remotecommand.StreamOptions{Stdin: strings.NewReader(stdin), Stdout: &out, Stderr: &errs})
	return out.String(), errs.String(), err
}

// portForward returns an address that forwards to a port in a pod until the test ends.
func (c *cluster) portForward(connect connectPort, pod string, port int) string {
	c.Helper()
	config, err := c.inside.Config()
	c.must(err)
	dialer, err := connect(config, c.streamURL(pod, "portforward", &corev1.PodPortForwardOptions{}))
	c.must(err)
	stop, ready, ended := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	forwarder, err := portforward.NewForStreaming(dialer, []string{fmt.Sprintf("0:%d", port)}, stop, ready,
		io.Discard, io.Discard)
	c.must(err)
	go func() { ended <- forwarder.ForwardPorts() }()
	c.Cleanup(func() {
		close(stop)
		if err := <-ended; err != nil {
			c.Error(err)
		}
	})
	select {
	case <-ready:
	case err := <-ended:
		ended <- nil
		c.Fatal(err)
	}
	ports, err := forwarder.GetPorts()
	c.must(err)
	return fmt.Sprintf("127.0.0.1:%d", ports[0].Local)
}

func (c *cluster) streamURL(pod, subresource string, options runtime.Object) *url.URL {
	return c.CoreV1().RESTClient().Post().Namespace(c.namespace).Resource("pods").Name(pod).SubResource(subresource).
		VersionedParams(options, scheme.ParameterCodec).URL()
}
