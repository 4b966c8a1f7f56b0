package kubelet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The pause before a restart doubles from firstBackoff to lastBackoff. The real kubelet's goes from ten seconds to five
// minutes, and no test should wait for so long.
const (
	firstBackoff = time.Second
	lastBackoff  = 30 * time.Second
	// backoffReset is how long a run must last for the next pause to be the first again.
	backoffReset = time.Minute
)

// container runs one container of a pod, as often as its restart policy says.
type container struct {
	pod    *podWorker
	spec   *v1.Container
	policy v1.RestartPolicy

	// unhealthy carries the message of a failed probe that demands a restart.
	unhealthy chan string

	mu       sync.Mutex
	process  *process
	state    v1.ContainerState
	last     v1.ContainerState
	restarts int32
	started  bool
	ready    bool
	// ended says that there will be no further run.
	ended bool
}

func newContainer(pod *podWorker, spec *v1.Container, policy v1.RestartPolicy) *container {
	c := &container{pod: pod, spec: spec, policy: policy, unhealthy: make(chan string, 1)}
	c.state.Waiting = &v1.ContainerStateWaiting{Reason: "ContainerCreating"}
	return c
}

// run returns after the last run: the policy wants no other, or ctx has ended. killed ends the grace of that.
func (c *container) run(ctx, killed context.Context) {
	defer c.update(func() { c.ended = true })
	backoff := firstBackoff
	for ctx.Err() == nil {
		p, err := c.start(ctx)
		if err != nil {
			c.wait(ctx, "CreateContainerError", err.Error(), firstBackoff)
			continue
		}
		c.watch(ctx, killed, p)
		if ctx.Err() != nil || !c.restartsAfter(p.exitCode) {
			return
		}
		if p.finished.Sub(p.started) > backoffReset {
			backoff = firstBackoff
		}
		c.pod.event(v1.EventTypeWarning, "BackOff", fmt.Sprintf("Back-off restarting container %s", c.spec.Name))
		c.wait(ctx, "CrashLoopBackOff", "waiting "+backoff.String(), backoff)
		backoff = min(2*backoff, lastBackoff)
	}
}

func (c *container) restartsAfter(code int32) bool {
	switch c.policy {
	case v1.RestartPolicyAlways:
		return true
	case v1.RestartPolicyOnFailure:
		return code != 0
	default:
		return false
	}
}

// wait pauses, and shows the reason in the container's status.
func (c *container) wait(ctx context.Context, reason, message string, d time.Duration) {
	c.update(func() {
		if c.state.Terminated != nil {
			c.last = c.state
		}
		c.state = v1.ContainerState{Waiting: &v1.ContainerStateWaiting{Reason: reason, Message: message}}
	})
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

func (c *container) start(ctx context.Context) (*process, error) {
	s, err := c.sandbox(ctx)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	run := c.restarts
	if c.process != nil {
		run++
	}
	c.mu.Unlock()
	p, err := startProcess(s, c.pod.namespace, c.logPath(run))
	if err != nil {
		return nil, err
	}
	c.update(func() {
		c.process, c.restarts = p, run
		c.state = v1.ContainerState{Running: &v1.ContainerStateRunning{StartedAt: metav1.NewTime(p.started)}}
		c.started = c.spec.StartupProbe == nil
		c.ready = c.started && c.spec.ReadinessProbe == nil
	})
	c.pod.event(v1.EventTypeNormal, "Started", "Started container "+c.spec.Name)
	return p, nil
}

func (c *container) sandbox(ctx context.Context) (sandbox, error) {
	image, err := c.pod.kubelet.Images.Find(c.spec.Image)
	if err != nil {
		return sandbox{}, err
	}
	pod := c.pod.current()
	env := newEnvironment(c.pod.kubelet.Client, pod)
	if err := env.add(ctx, c.spec); err != nil {
		return sandbox{}, err
	}
	root := filepath.Join(c.pod.dir, c.spec.Name, "root")
	if err := os.MkdirAll(root, 0o755); err != nil {
		return sandbox{}, err
	}
	mounts, err := c.mounts(env)
	if err != nil {
		return sandbox{}, err
	}
	program := "/" + filepath.Base(image.Program)
	mounts = append(mounts, mount{Source: image.Program, Target: program, ReadOnly: true})
	return sandbox{
		Root: root, Hostname: hostname(pod),
		Mounts: mounts, Dir: or(c.spec.WorkingDir, "/"),
		Program: program, Args: arguments(c.spec, image, program, env), Env: env.list(),
	}, nil
}

// arguments is the command line: the container's command stands for the program, its args for the image's arguments.
func arguments(spec *v1.Container, image Image, program string, env *environment) []string {
	command, args := []string{program}, spec.Args
	if len(spec.Command) > 0 {
		command = spec.Command
	} else if len(args) == 0 {
		args = image.Arguments
	}
	return env.expandAll(append(command[:len(command):len(command)], args...))
}

func (c *container) mounts(env *environment) ([]mount, error) {
	mounts := []mount{{Source: c.pod.hostsFile(), Target: "/etc/hosts"}}
	for _, m := range c.spec.VolumeMounts {
		source, ok := c.pod.volumePath(m.Name)
		if !ok {
			return nil, fmt.Errorf("there is no volume %q", m.Name)
		}
		source = filepath.Join(source, or(m.SubPath, env.expand(m.SubPathExpr)))
		if _, err := os.Stat(source); errors.Is(err, os.ErrNotExist) {
			if err := os.MkdirAll(source, 0o777); err != nil {
				return nil, err
			}
		}
		mounts = append(mounts, mount{Source: source, Target: m.MountPath, ReadOnly: m.ReadOnly})
	}
	return mounts, nil
}

// watch probes a run until it has ended, of itself or because it must, and records how.
func (c *container) watch(ctx, killed context.Context, p *process) {
	probes, stopProbes := context.WithCancel(killed)
	defer stopProbes()
	go c.probeAll(probes, p)
	select {
	case <-p.done:
	case <-ctx.Done():
		c.stop(killed, p)
	case message := <-c.unhealthy:
		c.pod.event(v1.EventTypeWarning, "Killing", message)
		c.stop(killed, p)
	}
	// First of all, or a late success could make an ended container ready.
	stopProbes()
	reason := "Completed"
	if p.exitCode != 0 {
		reason = "Error"
	}
	c.update(func() {
		c.started, c.ready = false, false
		c.state = v1.ContainerState{Terminated: &v1.ContainerStateTerminated{
			ExitCode: p.exitCode, Reason: reason,
			StartedAt: metav1.NewTime(p.started), FinishedAt: metav1.NewTime(p.finished),
		}}
	})
}

// stop ends a run within the pod's grace, of which the preStop hook is a part, and at once when killed ends.
func (c *container) stop(killed context.Context, p *process) {
	ctx, cancel := context.WithTimeout(killed, c.pod.grace())
	defer cancel()
	c.preStop(ctx, p)
	p.signal(syscall.SIGTERM)
	select {
	case <-p.done:
		return
	case <-ctx.Done():
	}
	p.signal(syscall.SIGKILL)
	<-p.done
}

func (c *container) preStop(ctx context.Context, p *process) {
	if c.spec.Lifecycle == nil || c.spec.Lifecycle.PreStop == nil {
		return
	}
	switch hook := c.spec.Lifecycle.PreStop; {
	case hook.Sleep != nil:
		select {
		case <-ctx.Done():
		case <-p.done:
		case <-time.After(time.Duration(hook.Sleep.Seconds) * time.Second):
		}
	case hook.Exec != nil:
		_ = p.run(ctx, hook.Exec.Command, io.Discard)
	case hook.HTTPGet != nil:
		_, _ = c.get(ctx, hook.HTTPGet, time.Minute)
	}
}

func (c *container) logPath(run int32) string {
	return filepath.Join(c.pod.dir, c.spec.Name, strconv.Itoa(int(run))+".log")
}

// update changes the state and has the pod report it.
func (c *container) update(change func()) {
	c.mu.Lock()
	change()
	c.mu.Unlock()
	c.pod.report()
}

func (c *container) current() (*process, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.process == nil {
		return nil, fmt.Errorf("container %s has not started", c.spec.Name)
	}
	return c.process, nil
}

func (c *container) status() v1.ContainerStatus {
	c.mu.Lock()
	defer c.mu.Unlock()
	started := c.started
	status := v1.ContainerStatus{
		Name: c.spec.Name, Image: c.spec.Image, ImageID: "local://" + c.spec.Image,
		State: c.state, LastTerminationState: c.last,
		RestartCount: c.restarts, Started: &started, Ready: c.ready,
	}
	if c.process != nil {
		status.ContainerID = "process://" + strconv.Itoa(c.process.cmd.Process.Pid)
	}
	return status
}

func or(value, fallback string) string {
	if value != "" {
		return value
	}
	return fallback
}
