package kubelet

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/probe"
	grpcprobe "k8s.io/kubernetes/pkg/probe/grpc"
	httpprobe "k8s.io/kubernetes/pkg/probe/http"
	tcpprobe "k8s.io/kubernetes/pkg/probe/tcp"
)

// quickPeriod is the interval of readiness probes before the first success. The real kubelet uses the period of the
// probe, which is ten seconds by default. Failures before the first success have no effect, so the shorter interval
// only saves time.
const quickPeriod = 200 * time.Millisecond

var (
	httpProber = httpprobe.New(false)
	tcpProber  = tcpprobe.New()
	grpcProber = grpcprobe.New()
)

// probeAll runs all probes of one run until ctx ends. Liveness and readiness probes start after the startup probe has
// succeeded.
func (c *container) probeAll(ctx context.Context, p *process) {
	if startup := c.spec.StartupProbe; startup != nil {
		if !c.awaitStartup(ctx, p, startup) {
			return
		}
		c.update(func() { c.started, c.ready = true, c.spec.ReadinessProbe == nil })
	}
	if liveness := c.spec.LivenessProbe; liveness != nil {
		go c.probeLiveness(ctx, p, liveness)
	}
	if readiness := c.spec.ReadinessProbe; readiness != nil {
		c.probeReadiness(ctx, p, readiness)
	}
}

func (c *container) awaitStartup(ctx context.Context, p *process, spec *v1.Probe) bool {
	for failures := int32(0); sleep(ctx, delay(spec, failures == 0)); {
		if c.try(ctx, p, spec) == nil {
			return true
		}
		if failures++; failures >= spec.FailureThreshold {
			c.fail(fmt.Sprintf("Container %s failed startup probe, will be restarted", c.spec.Name))
			return false
		}
	}
	return false
}

func (c *container) probeLiveness(ctx context.Context, p *process, spec *v1.Probe) {
	first := true
	for failures := int32(0); sleep(ctx, delay(spec, first)); first = false {
		err := c.try(ctx, p, spec)
		if err == nil {
			failures = 0
			continue
		}
		if failures++; failures >= spec.FailureThreshold {
			c.fail(fmt.Sprintf("Container %s failed liveness probe, will be restarted", c.spec.Name))
			return
		}
	}
}

func (c *container) probeReadiness(ctx context.Context, p *process, spec *v1.Probe) {
	var successes, failures int32
	wait := delay(spec, true)
	for succeeded := false; sleep(ctx, wait); {
		err := c.try(ctx, p, spec)
		if err == nil {
			successes, failures, succeeded = successes+1, 0, true
		} else {
			successes, failures = 0, failures+1
			c.reportFailure("Readiness", err, failures)
		}
		switch {
		case successes >= spec.SuccessThreshold:
			c.setReady(ctx, true)
		case failures >= spec.FailureThreshold:
			c.setReady(ctx, false)
		}
		if wait = delay(spec, false); !succeeded {
			wait = min(wait, quickPeriod)
		}
	}
}

// reportFailure writes one Event for consecutive failures.
func (c *container) reportFailure(kind string, err error, failures int32) {
	if failures == 1 {
		c.pod.event(v1.EventTypeWarning, "Unhealthy", kind+" probe failed: "+err.Error())
	}
}

func (c *container) setReady(ctx context.Context, ready bool) {
	c.mu.Lock()
	same := c.ready == ready
	c.mu.Unlock()
	if !same && ctx.Err() == nil {
		c.update(func() { c.ready = ready && c.state.Running != nil })
	}
}

func (c *container) fail(message string) {
	select {
	case c.unhealthy <- message:
	default:
	}
}

// try runs a probe once. It returns nil if the probe succeeds.
func (c *container) try(ctx context.Context, p *process, spec *v1.Probe) error {
	timeout := time.Duration(spec.TimeoutSeconds) * time.Second
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	result, output, err := c.perform(ctx, p, spec, timeout)
	if err != nil {
		return err
	}
	if result != probe.Success && result != probe.Warning {
		return errors.New(output)
	}
	return nil
}

func (c *container) perform(
	ctx context.Context, p *process, spec *v1.Probe, timeout time.Duration,
) (probe.Result, string, error) {
	switch {
	case spec.HTTPGet != nil:
		result, err := c.get(ctx, spec.HTTPGet, timeout)
		return result.status, result.output, err
	case spec.TCPSocket != nil:
		port, err := probe.ResolveContainerPort(spec.TCPSocket.Port, c.spec)
		if err != nil {
			return probe.Failure, "", err
		}
		return tcpProber.Probe(cmp.Or(spec.TCPSocket.Host, c.pod.ip), port, timeout)
	case spec.GRPC != nil:
		service := ""
		if spec.GRPC.Service != nil {
			service = *spec.GRPC.Service
		}
		return grpcProber.Probe(c.pod.ip, service, int(spec.GRPC.Port), timeout)
	case spec.Exec != nil:
		var output bytes.Buffer
		if err := p.run(ctx, spec.Exec.Command, &output); err != nil {
			return probe.Failure, "", fmt.Errorf("%w: %s", err, output.String())
		}
	}
	return probe.Success, "", nil
}

type answer struct {
	status probe.Result
	output string
}

// get sends the HTTP request of a probe or of a preStop hook, with the code of the real kubelet.
func (c *container) get(ctx context.Context, action *v1.HTTPGetAction, timeout time.Duration) (answer, error) {
	request, err := httpprobe.NewRequestForHTTPGetAction(action, c.spec, c.pod.ip, "probe")
	if err != nil {
		return answer{status: probe.Failure}, err
	}
	status, output, err := httpProber.Probe(request.WithContext(ctx), timeout)
	return answer{status: status, output: output}, err
}

func delay(spec *v1.Probe, first bool) time.Duration {
	if first {
		return time.Duration(spec.InitialDelaySeconds) * time.Second
	}
	return time.Duration(spec.PeriodSeconds) * time.Second
}

// sleep returns true after d. It returns false if ctx ends first.
func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}
