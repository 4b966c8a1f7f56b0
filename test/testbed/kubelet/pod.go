package kubelet

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/k8singress/k8singress/test/testbed/network"
	"github.com/k8singress/k8singress/test/testbed/services"
)

const (
	setUpRetry = time.Second
	// volumeRefresh is the maximum delay before the files of a changed ConfigMap or Secret are updated. The real
	// kubelet needs up to a minute.
	volumeRefresh = 5 * time.Second
)

// podWorker runs one pod, from its assignment to a node until it is removed from the API server.
type podWorker struct {
	kubelet *Kubelet
	node    *node
	dir     string

	// stop ends the pod with a grace period, and kill ends it immediately. They cancel the contexts of run.
	stop, kill context.CancelFunc
	// dirty requests a report of the status.
	dirty chan struct{}
	done  chan struct{}

	// These fields are set before the first container runs.
	ip        string
	namespace *network.Namespace
	ports     []*services.Forward
	volumes   *volumes

	inits, containers []*container

	mu       sync.Mutex
	pod      *v1.Pod
	paths    map[string]string
	waiting  string
	reported v1.PodStatus
	// refused is the status of a pod that was rejected.
	refused *v1.PodStatus
}

func newPodWorker(k *Kubelet, n *node, pod *v1.Pod) *podWorker {
	w := &podWorker{
		kubelet: k, node: n, pod: pod, dir: filepath.Join(k.Dir, string(pod.UID)), reported: pod.Status,
		dirty: make(chan struct{}, 1), done: make(chan struct{}),
	}
	w.volumes = &volumes{client: k.Client, dir: filepath.Join(w.dir, "volumes"), tokens: map[string]issuedToken{}}
	policy := pod.Spec.RestartPolicy
	for i := range pod.Spec.InitContainers {
		spec := &pod.Spec.InitContainers[i]
		w.inits = append(w.inits, newContainer(w, spec, initPolicy(spec, policy)))
	}
	for i := range pod.Spec.Containers {
		w.containers = append(w.containers, newContainer(w, &pod.Spec.Containers[i], policy))
	}
	return w
}

// initPolicy returns the restart policy of an init container. It runs until it has succeeded once, unless the pod
// forbids a second attempt.
func initPolicy(spec *v1.Container, pod v1.RestartPolicy) v1.RestartPolicy {
	switch {
	case isSidecar(spec):
		return v1.RestartPolicyAlways
	case pod == v1.RestartPolicyNever:
		return pod
	}
	return v1.RestartPolicyOnFailure
}

func isSidecar(spec *v1.Container) bool {
	return spec.RestartPolicy != nil && *spec.RestartPolicy == v1.ContainerRestartPolicyAlways
}

// run runs the pod. It returns after stopping has ended and the containers had their grace period, or after killed has
// ended.
func (w *podWorker) run(stopping, killed context.Context) {
	defer close(w.done)
	alive := context.WithoutCancel(killed)
	reports, stopReports := context.WithCancel(alive)
	reportsEnded := make(chan struct{})
	go func() {
		defer close(reportsEnded)
		w.reportLoop(reports)
	}()
	if w.admit(stopping) && w.setUp(stopping) {
		go w.refreshVolumes(stopping)
		w.runContainers(stopping, killed)
	}
	stopReports()
	<-reportsEnded
	for !w.sendStatus(alive) && sleep(killed, statusRetry) {
	}
	w.closePorts()
	// The kernel removes links slowly and one at a time, so run does not wait for it.
	go w.release()
	<-stopping.Done()
	w.removeFromAPI(killed)
}

// admit reports whether the pod may run here. If not, the pod has failed.
func (w *podWorker) admit(ctx context.Context) bool {
	reason, message, err := refusal(ctx, w.current())
	if err != nil {
		reason, message = "UnexpectedAdmissionError", err.Error()
	}
	if reason == "" {
		return true
	}
	w.mu.Lock()
	w.refused = &v1.PodStatus{Phase: v1.PodFailed, Reason: reason, Message: message}
	w.mu.Unlock()
	w.event(v1.EventTypeWarning, reason, message)
	return false
}

// setUp retries until volumes and network are ready, because objects that the pod needs may be created after the pod.
func (w *podWorker) setUp(stopping context.Context) bool {
	for {
		err := w.prepare(stopping)
		if err == nil {
			w.report()
			return true
		}
		w.mu.Lock()
		w.waiting = err.Error()
		w.mu.Unlock()
		w.event(v1.EventTypeWarning, "FailedMount", err.Error())
		w.report()
		if !sleep(stopping, setUpRetry) {
			return false
		}
	}
}

func (w *podWorker) prepare(ctx context.Context) error {
	if err := os.MkdirAll(w.dir, 0o755); err != nil {
		return err
	}
	if err := w.connect(); err != nil {
		return err
	}
	if err := w.setSysctls(); err != nil {
		return err
	}
	if err := w.openPorts(); err != nil {
		return err
	}
	if err := w.writeHosts(); err != nil {
		return err
	}
	return w.syncVolumes(ctx)
}

func (w *podWorker) connect() error {
	if w.ip != "" {
		return nil
	}
	if w.current().Spec.HostNetwork {
		w.namespace = w.node.namespace
		w.setIP(w.node.address)
		return nil
	}
	ip, err := w.kubelet.pool.Take()
	if err != nil {
		return err
	}
	if w.namespace, err = network.NewNamespace(linkName(ip), ip); err != nil {
		w.kubelet.pool.Give(ip)
		return err
	}
	w.setIP(ip)
	return nil
}

func (w *podWorker) setIP(ip string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ip = ip
}

// linkName returns a name such as "pod-1-7" for 10.244.1.7. It is unique because the address is.
func linkName(ip string) string {
	parts := strings.Split(ip, ".")
	return "pod-" + parts[2] + "-" + parts[3]
}

func (w *podWorker) hostsFile() string { return filepath.Join(w.dir, "hosts") }

// writeHosts writes /etc/hosts with the names that a pod can resolve. There is no DNS.
func (w *podWorker) writeHosts() error {
	pod := w.current()
	var text strings.Builder
	fmt.Fprintf(&text, "127.0.0.1 localhost\n%s %s\n", w.ip, hostname(pod))
	fmt.Fprintf(&text, "10.96.0.1 kubernetes kubernetes.default kubernetes.default.svc\n")
	for _, alias := range pod.Spec.HostAliases {
		fmt.Fprintf(&text, "%s %s\n", alias.IP, strings.Join(alias.Hostnames, " "))
	}
	return os.WriteFile(w.hostsFile(), []byte(text.String()), 0o644)
}

func (w *podWorker) syncVolumes(ctx context.Context) error {
	paths, err := w.volumes.sync(ctx, w.current())
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.paths, w.waiting = paths, ""
	return nil
}

func (w *podWorker) refreshVolumes(stopping context.Context) {
	for sleep(stopping, volumeRefresh) {
		if err := w.syncVolumes(stopping); err != nil && stopping.Err() == nil {
			w.event(v1.EventTypeWarning, "FailedMount", err.Error())
		}
	}
}

// runContainers runs all containers, and returns after their last runs.
func (w *podWorker) runContainers(stopping, killed context.Context) {
	// Sidecars end after all other containers.
	sidecars, stopSidecars := context.WithCancel(stopping)
	var sidecarsEnd, containersEnd sync.WaitGroup
	defer sidecarsEnd.Wait()
	defer stopSidecars()
	for _, c := range w.inits {
		if isSidecar(c.spec) {
			sidecarsEnd.Go(func() { c.run(sidecars, killed) })
			await(stopping, c.hasStarted)
			continue
		}
		if c.run(stopping, killed); stopping.Err() != nil || !c.succeeded() {
			return
		}
	}
	for _, c := range w.containers {
		containersEnd.Go(func() { c.run(stopping, killed) })
	}
	containersEnd.Wait()
}

func await(ctx context.Context, condition func() bool) {
	for !condition() && sleep(ctx, 50*time.Millisecond) {
	}
}

// release frees the network and the address. The logs of an ended pod are kept until the pod is deleted.
func (w *podWorker) release() {
	if w.namespace != nil && w.namespace != w.node.namespace {
		w.namespace.Close()
		w.kubelet.pool.Give(w.ip)
	}
}

// removeFromAPI deletes the object of a pod that is being deleted. It does nothing if the pod was killed, because the
// object is already gone or the cluster ends.
func (w *podWorker) removeFromAPI(killed context.Context) {
	_ = os.RemoveAll(w.dir)
	pod := w.current()
	if pod.DeletionTimestamp == nil {
		return
	}
	options := *metav1.NewDeleteOptions(0)
	options.Preconditions = metav1.NewUIDPreconditions(string(pod.UID))
	for {
		err := w.kubelet.Client.CoreV1().Pods(pod.Namespace).Delete(context.WithoutCancel(killed), pod.Name, options)
		if err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err) || !sleep(killed, statusRetry) {
			return
		}
	}
}

// update sets a newer version of the object.
func (w *podWorker) update(pod *v1.Pod) {
	w.mu.Lock()
	w.pod = pod
	w.mu.Unlock()
	if pod.DeletionTimestamp != nil {
		w.stop()
		if pod.DeletionGracePeriodSeconds != nil && *pod.DeletionGracePeriodSeconds == 0 {
			w.kill()
		}
	}
	if len(pod.Spec.ReadinessGates) > 0 {
		w.report()
	}
}

// current returns a copy of the object. Its status contains the addresses, which the API server may not have yet.
func (w *podWorker) current() *v1.Pod {
	w.mu.Lock()
	defer w.mu.Unlock()
	pod := w.pod.DeepCopy()
	pod.Status.PodIP = w.ip
	pod.Status.HostIP = w.node.address
	return pod
}

func (w *podWorker) grace() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	seconds := int64(30)
	if w.pod.Spec.TerminationGracePeriodSeconds != nil {
		seconds = *w.pod.Spec.TerminationGracePeriodSeconds
	}
	if w.pod.DeletionGracePeriodSeconds != nil {
		seconds = *w.pod.DeletionGracePeriodSeconds
	}
	return time.Duration(seconds) * time.Second
}

func (w *podWorker) volumePath(name string) (string, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	path, ok := w.paths[name]
	return path, ok
}

func (w *podWorker) allContainers() []*container { return slices.Concat(w.inits, w.containers) }

func (w *podWorker) container(name string) (*container, error) {
	for _, c := range w.allContainers() {
		if c.spec.Name == name {
			return c, nil
		}
	}
	return nil, fmt.Errorf("pod %s has no container %q", w.pod.Name, name)
}

func (w *podWorker) event(kind, reason, message string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.kubelet.events.Event(w.pod, kind, reason, message)
}
