package kubelet

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
)

// postStart runs the hook of a container that has just started. If the hook fails, the run ends.
func (c *container) postStart(ctx, killed context.Context, p *process) {
	if c.spec.Lifecycle == nil || c.spec.Lifecycle.PostStart == nil {
		return
	}
	if err := c.hook(ctx, p, c.spec.Lifecycle.PostStart); err != nil {
		c.pod.event(v1.EventTypeWarning, "FailedPostStartHook", "PostStartHook failed: "+err.Error())
		c.stop(killed, p)
	}
}

// preStop runs the hook of a container that must end. The container ends even if the hook fails.
func (c *container) preStop(ctx context.Context, p *process) {
	if c.spec.Lifecycle == nil || c.spec.Lifecycle.PreStop == nil {
		return
	}
	if err := c.hook(ctx, p, c.spec.Lifecycle.PreStop); err != nil {
		c.pod.event(v1.EventTypeWarning, "FailedPreStopHook", "PreStopHook failed: "+err.Error())
	}
}

func (c *container) hook(ctx context.Context, p *process, hook *v1.LifecycleHandler) error {
	switch {
	case hook.Sleep != nil:
		select {
		case <-ctx.Done():
		case <-p.done:
		case <-time.After(time.Duration(hook.Sleep.Seconds) * time.Second):
		}
	case hook.Exec != nil:
		var output bytes.Buffer
		if err := p.run(ctx, hook.Exec.Command, &output); err != nil {
			return fmt.Errorf("%w: %s", err, output.String())
		}
	case hook.HTTPGet != nil:
		_, err := c.get(ctx, hook.HTTPGet, time.Minute)
		return err
	default:
		return errors.New("the testbed knows the hooks exec, httpGet and sleep alone: use one of these")
	}
	return nil
}
