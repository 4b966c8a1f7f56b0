package kubelet

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os/exec"
	"strconv"
	"time"

	"k8s.io/cri-streaming/pkg/streaming/portforward"
	"k8s.io/cri-streaming/pkg/streaming/remotecommand"
	utilexec "k8s.io/utils/exec"

	"github.com/k8singress/k8singress/test/testbed/network"
)

// streamIdle is the idle timeout of streams for kubectl exec and port-forward.
const streamIdle = time.Hour

// outputDelay is the time limit for reading the output of kubectl exec after the command has ended. A remaining child
// process could keep the pipe open forever.
const outputDelay = time.Minute

// serveExec runs a command in a container for kubectl exec. The API server uses SPDY, regardless of the protocol of the
// client.
func (k *Kubelet) serveExec(w http.ResponseWriter, r *http.Request) {
	c, err := k.containerOf(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusNotFound)
		return
	}
	p, err := c.current()
	if err != nil {
		http.Error(w, err.Error(), http.StatusConflict)
		return
	}
	options, err := remotecommand.NewOptions(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	remotecommand.ServeExec(w, r, executor{p}, r.PathValue("pod"), "", c.spec.Name, r.Form["command"], options,
		streamIdle, remotecommand.DefaultStreamCreationTimeout, remotecommand.SupportedStreamingProtocols)
}

// executor implements remotecommand.Executor for a run of a container.
type executor struct{ *process }

// ExecInContainer implements remotecommand.Executor. There are no terminals.
func (e executor) ExecInContainer( //nolint:revive // remotecommand has so many parameters
	ctx context.Context, _, _, _ string, argv []string, in io.Reader, out, errs io.WriteCloser,
	tty bool, _ <-chan remotecommand.TerminalSize, _ time.Duration,
) error {
	if tty {
		return errors.New("the testbed has no terminals: leave --tty out")
	}
	cmd := e.command(ctx, argv)
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = out, errs, outputDelay
	if in != nil {
		// Do not use cmd.Stdin, because Wait would wait for its end.
		stdin, err := cmd.StdinPipe()
		if err != nil {
			return err
		}
		go func() {
			_, _ = io.Copy(stdin, in)
			_ = stdin.Close()
		}()
	}
	err := e.start(cmd)
	if err == nil {
		err = cmd.Wait()
	}
	if exit := new(exec.ExitError); errors.As(err, &exit) {
		return utilexec.CodeExitError{Err: err, Code: int(exitCode(exit.ProcessState))}
	}
	return err
}

// servePortForward connects clients to ports of a pod for kubectl port-forward.
func (k *Kubelet) servePortForward(w http.ResponseWriter, r *http.Request) {
	worker, err := k.find(r.PathValue("namespace"), r.PathValue("pod"))
	if err == nil && worker.current().Status.PodIP == "" {
		err = errors.New("the pod has no network yet")
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusNotFound)
		return
	}
	options, err := portforward.NewV4Options(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	portforward.ServePortForward(w, r, forwarder{worker.namespace}, r.PathValue("pod"), "", options,
		streamIdle, remotecommand.DefaultStreamCreationTimeout, portforward.SupportedProtocols)
}

// forwarder implements portforward.PortForwarder for the network of a pod.
type forwarder struct{ *network.Namespace }

// PortForward implements portforward.PortForwarder.
func (f forwarder) PortForward(_ context.Context, _, _ string, port int32, stream io.ReadWriteCloser) error {
	var conn net.Conn
	err := f.Do(func() (err error) {
		conn, err = net.Dial("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(int(port))))
		return err
	})
	if err != nil {
		return err
	}
	defer conn.Close()
	go func() {
		_, _ = io.Copy(conn, stream)
		_ = conn.(*net.TCPConn).CloseWrite()
	}()
	_, err = io.Copy(stream, conn)
	return err
}
