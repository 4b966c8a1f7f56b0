package e2e

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const (
	// loadLine is the part of a line in the access log that only requests of a load have.
	loadLine = `"GET /load HTTP/1.1" `
	// ending is the time limit for the end of all pods: the time in which they end, and the rest of their logs.
	ending = time.Minute
)

// accessLogs counts the requests of a load in the logs of pods, from the start of each pod to its end.
type accessLogs struct {
	*cluster
	selector string
	// watching holds the watch for pods and the readers of their logs.
	watching sync.WaitGroup

	mu sync.Mutex
	// seen contains the pods whose logs were opened. open is the number of logs that have not ended.
	seen map[types.UID]bool
	open int
	// lines is the number of requests by pod template: the pods of one version have the same hash.
	lines    map[string]int64
	failures []error
}

// followLogs reads the logs of all pods that a selector matches, also of pods that start later, until the test ends.
func (c *cluster) followLogs(selector string) *accessLogs {
	c.Helper()
	a := &accessLogs{cluster: c, selector: selector, seen: map[types.UID]bool{}, lines: map[string]int64{}}
	pods, err := c.CoreV1().Pods(c.namespace).Watch(c.Context(), metav1.ListOptions{LabelSelector: selector})
	c.must(err)
	a.watching.Go(func() {
		defer pods.Stop()
		for event := range pods.ResultChan() {
			if pod, ok := event.Object.(*corev1.Pod); ok {
				a.observe(pod)
			}
		}
	})
	c.Cleanup(a.watching.Wait) // The context of the test has ended them.
	return a
}

// observe opens the log of a pod when its container runs.
func (a *accessLogs) observe(pod *corev1.Pod) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.seen[pod.UID] || !slices.ContainsFunc(pod.Status.ContainerStatuses, func(s corev1.ContainerStatus) bool {
		return s.State.Running != nil
	}) {
		return
	}
	a.seen[pod.UID] = true
	a.open++
	a.watching.Go(func() {
		lines, err := a.read(pod.Name)
		a.mu.Lock()
		defer a.mu.Unlock()
		a.open--
		if lines > 0 {
			a.lines[pod.Labels["pod-template-hash"]] += lines
		}
		if err != nil {
			a.failures = append(a.failures, fmt.Errorf("the log of %s: %w", pod.Name, err))
		}
	})
}

// read returns the number of requests in the log of a pod, after the pod has ended.
func (a *accessLogs) read(pod string) (lines int64, err error) {
	stream, err := a.CoreV1().Pods(a.namespace).GetLogs(pod, &corev1.PodLogOptions{Follow: true}).Stream(a.Context())
	if err != nil {
		return 0, err
	}
	defer stream.Close()
	for log := bufio.NewReader(stream); ; {
		line, err := log.ReadString('\n')
		if strings.Contains(line, loadLine) {
			lines++
		}
		if errors.Is(err, io.EOF) {
			return lines, nil
		}
		if err != nil {
			return lines, err
		}
	}
}

// check waits until all pods have ended. It checks that their logs contain each request of the client once, and that
// pods of several versions have served requests.
func (a *accessLogs) check(sent int64, versions int) {
	a.Helper()
	a.awaitFor(ending, "the end of all pods", func() error {
		pods, err := a.CoreV1().Pods(a.namespace).List(a.Context(), metav1.ListOptions{LabelSelector: a.selector})
		if err != nil {
			return err
		}
		a.mu.Lock()
		defer a.mu.Unlock()
		if len(pods.Items)+a.open > 0 {
			return fmt.Errorf("there are %d pods, and %d logs have not ended", len(pods.Items), a.open)
		}
		return nil
	})
	a.mu.Lock()
	defer a.mu.Unlock()
	var logged int64
	for _, lines := range a.lines {
		logged += lines
	}
	a.Logf("%d requests, and %d lines in the logs of %d pods, by version: %v", sent, logged, len(a.seen), a.lines)
	if err := errors.Join(a.failures...); logged != sent || len(a.lines) < versions || err != nil {
		a.Errorf("%d requests have %d lines in the access logs of %d versions, want %d; errors: %v", sent, logged,
			len(a.lines), versions, err)
	}
}
