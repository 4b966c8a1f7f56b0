package kubelet

import (
	"context"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
	statusutil "k8s.io/kubernetes/pkg/util/pod"
)

const statusRetry = 500 * time.Millisecond

// report requests that the status is sent. Requests during a write are combined into one.
func (w *podWorker) report() {
	select {
	case w.dirty <- struct{}{}:
	default:
	}
}

func (w *podWorker) reportLoop(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.dirty:
		}
		if !w.sendStatus(ctx) && sleep(ctx, statusRetry) {
			w.report()
		}
	}
}

// sendStatus patches the status if it has changed since the last call. It must not be called concurrently.
func (w *podWorker) sendStatus(ctx context.Context) bool {
	pod := w.current()
	status := w.status(pod)
	w.mu.Lock()
	if w.refused != nil {
		status.Phase, status.Reason, status.Message = w.refused.Phase, w.refused.Reason, w.refused.Message
	}
	w.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	_, _, _, err := statusutil.PatchPodStatus(ctx, w.kubelet.Client, pod.Namespace, pod.Name, pod.UID,
		w.reported, status)
	if err != nil {
		return false
	}
	w.reported = status
	return true
}

func (w *podWorker) status(pod *v1.Pod) v1.PodStatus {
	status := *w.reported.DeepCopy()
	now := metav1.Now()
	if status.StartTime == nil {
		status.StartTime = &now
	}
	status.HostIP = pod.Status.HostIP
	status.HostIPs = []v1.HostIP{{IP: status.HostIP}}
	if ip := pod.Status.PodIP; ip != "" {
		status.PodIP = ip
		status.PodIPs = []v1.PodIP{{IP: ip}}
	}
	status.ObservedGeneration = pod.Generation
	status.InitContainerStatuses = w.statuses(w.inits)
	status.ContainerStatuses = w.statuses(w.containers)
	status.Phase = w.phase()
	w.setConditions(pod, &status)
	return status
}

// statuses returns the statuses of containers. If the pod is not set up, they contain the reason.
func (w *podWorker) statuses(containers []*container) []v1.ContainerStatus {
	w.mu.Lock()
	waiting := w.waiting
	w.mu.Unlock()
	var list []v1.ContainerStatus
	for _, c := range containers {
		status := c.status()
		if status.State.Waiting != nil && waiting != "" {
			status.State.Waiting.Message = waiting
		}
		list = append(list, status)
	}
	return list
}

func (w *podWorker) phase() v1.PodPhase {
	if !w.initialized() {
		for _, c := range w.inits {
			if c.hasEnded() && !c.succeeded() {
				return v1.PodFailed
			}
		}
		return v1.PodPending
	}
	ended, failed, ran := true, false, false
	for _, c := range w.containers {
		ended = ended && c.hasEnded()
		failed = failed || !c.succeeded()
		ran = ran || c.hasRun()
	}
	switch {
	case ended && failed:
		return v1.PodFailed
	case ended:
		return v1.PodSucceeded
	case ran:
		return v1.PodRunning
	}
	return v1.PodPending
}

func (w *podWorker) initialized() bool {
	for _, c := range w.inits {
		if isSidecar(c.spec) && !c.hasStarted() && !c.hasEnded() {
			return false
		}
		if !isSidecar(c.spec) && !(c.hasEnded() && c.succeeded()) {
			return false
		}
	}
	return true
}

func (w *podWorker) setConditions(pod *v1.Pod, status *v1.PodStatus) {
	ready := true
	for _, c := range w.containers {
		ready = ready && c.status().Ready
	}
	gates := true
	for _, gate := range pod.Spec.ReadinessGates {
		_, condition := podutil.GetPodCondition(&pod.Status, gate.ConditionType)
		gates = gates && condition != nil && condition.Status == v1.ConditionTrue
	}
	setCondition(status, v1.PodReadyToStartContainers, pod.Status.PodIP != "", "")
	setCondition(status, v1.PodInitialized, w.initialized(), "ContainersNotInitialized")
	setCondition(status, v1.ContainersReady, ready, "ContainersNotReady")
	reason := "ContainersNotReady"
	if ready {
		reason = "ReadinessGatesNotReady"
	}
	setCondition(status, v1.PodReady, ready && gates, reason)
}

func setCondition(status *v1.PodStatus, kind v1.PodConditionType, holds bool, reason string) {
	condition := &v1.PodCondition{Type: kind, Status: v1.ConditionFalse, Reason: reason}
	if holds {
		condition.Status, condition.Reason = v1.ConditionTrue, ""
	}
	podutil.UpdatePodCondition(status, condition)
}

func (c *container) hasStarted() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.started
}

func (c *container) hasEnded() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ended
}

func (c *container) hasRun() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.process != nil || c.state.Terminated != nil || c.last.Terminated != nil
}

// succeeded reports whether the last run has ended with exit code 0.
func (c *container) succeeded() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.state.Terminated != nil && c.state.Terminated.ExitCode == 0
}
