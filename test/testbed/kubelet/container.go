package kubelet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The pause before a restart doubles from firstBackoff to lastBackoff. The real kubelet waits from ten seconds to five
// minutes, which would be too long for tests.
const (
	firstBackoff = time.Second
	lastBackoff  = 30 * time.Second
	// backoffReset is the duration of a run after which the next pause is firstBackoff again.
	backoffReset = time.Minute
)

// container runs one container of a pod as often as its restart policy requires.
type container struct {
	pod    *podWorker
	spec   *v1.Container
	policy v1.RestartPolicy

	// unhealthy receives the message of a failed probe that requires a restart.
	unhealthy chan string

	mu       sync.Mutex
	process  *process
	state    v1.ContainerState
	last     v1.ContainerState
	restarts int32
	// tried reports whether there was a run, or an attempt to start one.
	tried   bool
	started bool
	ready   bool
	// ended reports whether there will be no further run.
	ended bool
}

func newContainer(pod *podWorker, spec *v1.Container, policy v1.RestartPolicy) *container {
	c := &container{pod: pod, spec: spec, policy: policy, unhealthy: make(chan string, 1)}
	c.state.Waiting = &v1.ContainerStateWaiting{Reason: "ContainerCreating"}
	return c
}

// failure is the reason why a container cannot run.
type failure struct {
	// reason is the reason in the status, in the words of the real kubelet.
	reason string
	cause  error
}

func (f failure) Error() string { return f.cause.Error() }

func (f failure) Unwrap() error { return f.cause }

// cannotRun is the reason for a container whose program could not be started. Unlike other failures, it counts as a
// run.
const cannotRun = "RunContainerError"

// startErrorCode is the exit code of such a run.
const startErrorCode = 128

// run returns after the last run, because of the restart policy or because ctx has ended. killed ends the grace period.
func (c *container) run(ctx, killed context.Context) {
	defer c.update(func() { c.ended = true })
	backoff := firstBackoff
	for ctx.Err() == nil {
		pause := v1.ContainerStateWaiting{Reason: "CrashLoopBackOff", Message: "waiting " + backoff.String()}
		code, lasted, err := c.runOnce(ctx, killed)
		if err != nil {
			c.pod.event(v1.EventTypeWarning, "Failed", "Error: "+err.Error())
			pause = v1.ContainerStateWaiting{Reason: reasonOf(err), Message: err.Error()}
			if pause.Reason != cannotRun {
				c.wait(ctx, pause, firstBackoff)
				continue
			}
		}
		if ctx.Err() != nil || !c.restartsAfter(code) {
			return
		}
		if lasted > backoffReset {
			backoff = firstBackoff
		}
		c.pod.event(v1.EventTypeWarning, "BackOff", fmt.Sprintf("Back-off restarting container %s", c.spec.Name))
		c.wait(ctx, pause, backoff)
		backoff = min(2*backoff, lastBackoff)
	}
}

func reasonOf(err error) string {
	if f := (failure{}); errors.As(err, &f) {
		return f.reason
	}
	return "CreateContainerError"
}

// runOnce returns the exit code and the duration of a run. It returns an error if there was no run.
func (c *container) runOnce(ctx, killed context.Context) (code int32, lasted time.Duration, err error) {
	p, err := c.start(ctx)
	if err == nil {
		c.watch(ctx, killed, p)
		return p.exitCode, p.finished.Sub(p.started), nil
	}
	if reasonOf(err) == cannotRun {
		now := metav1.Now()
		c.update(func() {
			c.state = v1.ContainerState{Terminated: &v1.ContainerStateTerminated{
				ExitCode: startErrorCode, Reason: "StartError", Message: err.Error(), FinishedAt: now,
			}}
		})
	}
	return startErrorCode, 0, err
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

// wait pauses, and shows the reason in the status of the container.
func (c *container) wait(ctx context.Context, why v1.ContainerStateWaiting, d time.Duration) {
	c.update(func() {
		if c.state.Terminated != nil {
			c.last = c.state
		}
		c.state = v1.ContainerState{Waiting: &why}
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
	run := c.nextRun()
	p, err := startProcess(s, c.pod.namespace, c.logPath(run))
	if err != nil {
		return nil, failure{cannotRun, err}
	}
	c.update(func() {
		c.process = p
		c.state = v1.ContainerState{Running: &v1.ContainerStateRunning{StartedAt: metav1.NewTime(p.started)}}
		c.started = c.spec.StartupProbe == nil
		c.ready = c.started && c.spec.ReadinessProbe == nil
	})
	c.pod.event(v1.EventTypeNormal, "Started", "Started container "+c.spec.Name)
	return p, nil
}

// nextRun counts a run and returns its number.
func (c *container) nextRun() int32 {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.tried {
		c.restarts++
	}
	c.tried = true
	return c.restarts
}

func (c *container) sandbox(ctx context.Context) (sandbox, error) {
	image, err := c.pod.kubelet.Images.Pull(ctx, c.spec.Image)
	if err != nil {
		return sandbox{}, failure{"ErrImagePull", err}
	}
	pod := c.pod.current()
	allowed, guard, err := security(pod, c.spec, image)
	if err != nil {
		return sandbox{}, err
	}
	env := newEnvironment(c.pod.kubelet.Client, pod, append([]string{"HOME=" + allowed.Home}, image.Config.Env...))
	if err := env.add(ctx, c.spec); err != nil {
		return sandbox{}, failure{"CreateContainerConfigError", err}
	}
	args := arguments(c.spec, image, env)
	if len(args) == 0 {
		return sandbox{}, errors.New("no command specified")
	}
	files, err := c.files(image, env)
	if err != nil {
		return sandbox{}, err
	}
	files.protection = guard
	s := sandbox{
		root: files, Hostname: hostname(pod),
		Dir: cmp.Or(c.spec.WorkingDir, cmp.Or(image.Config.WorkingDir, "/")), Args: args, Env: env.list(),
		Privileges: allowed,
	}
	if image.Program != "" {
		s.Program = image.Config.Entrypoint[0]
	}
	return s, nil
}

// arguments returns the command line. The command of the container replaces the whole command line of the image, and
// its args replace the arguments of the image.
func arguments(spec *v1.Container, image Image, env *environment) []string {
	command, args := image.Config.Entrypoint, image.Config.Cmd
	if len(spec.Command) > 0 {
		command, args = env.expandAll(spec.Command), nil
	}
	if len(spec.Args) > 0 {
		args = env.expandAll(spec.Args)
	}
	return slices.Concat(command, args)
}

// files creates the folders for the root of a run.
func (c *container) files(image Image, env *environment) (root, error) {
	dir := filepath.Join(c.pod.dir, c.spec.Name)
	r := root{Folder: filepath.Join(dir, "root"), Changes: filepath.Join(dir, "changes"), Image: image.Root}
	for _, folder := range []string{r.Folder, r.Changes} {
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return r, err
		}
	}
	mounts, err := c.mounts(env)
	if err != nil {
		return r, err
	}
	r.Mounts = mounts
	if image.Program != "" {
		r.Mounts = append(r.Mounts, mount{Source: image.Program, Target: image.Config.Entrypoint[0], ReadOnly: true})
	}
	return r, nil
}

func (c *container) mounts(env *environment) ([]mount, error) {
	mounts := []mount{{Source: c.pod.hostsFile(), Target: "/etc/hosts"}}
	for _, m := range c.spec.VolumeMounts {
		source, ok := c.pod.volumePath(m.Name)
		if !ok {
			return nil, fmt.Errorf("there is no volume %q", m.Name)
		}
		source, err := subPath(source, cmp.Or(m.SubPath, env.expand(m.SubPathExpr)))
		if err != nil {
			return nil, err
		}
		mounts = append(mounts, mount{Source: source, Target: m.MountPath, ReadOnly: m.ReadOnly})
	}
	return mounts, nil
}

// subPath returns a path in a volume. It creates a missing folder with the mode of the volume.
func subPath(volume, path string) (string, error) {
	source := filepath.Join(volume, path)
	if _, err := os.Stat(source); !errors.Is(err, os.ErrNotExist) {
		return source, err
	}
	info, err := os.Stat(volume)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(source, 0o755); err != nil {
		return "", err
	}
	return source, os.Chmod(source, info.Mode())
}

// watch probes a run until it has ended, by itself or because it must end, and records the result.
func (c *container) watch(ctx, killed context.Context, p *process) {
	c.postStart(ctx, killed, p)
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
	// Stop probes first. Otherwise a late success could make an ended container ready.
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

// stop ends a run within the grace period of the pod, which includes the preStop hook, and immediately when killed
// ends.
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

func (c *container) logPath(run int32) string {
	return filepath.Join(c.pod.dir, c.spec.Name, strconv.Itoa(int(run))+".log")
}

// update changes the state and requests a report of the pod's status.
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
		Name: c.spec.Name, Image: c.spec.Image, ImageID: c.imageID(),
		State: c.state, LastTerminationState: c.last,
		RestartCount: c.restarts, Started: &started, Ready: c.ready,
	}
	if c.process != nil {
		status.ContainerID = "process://" + strconv.Itoa(c.process.cmd.Process.Pid)
	}
	return status
}

func (c *container) imageID() string {
	image, err := c.pod.kubelet.Images.Find(c.spec.Image)
	if err != nil {
		return ""
	}
	return image.ID
}
