package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

const (
	readyTimeout = 2 * time.Minute
	pollInterval = 50 * time.Millisecond
	restartDelay = time.Second
	// componentGrace is the time that a component gets to end. The API server would wait for its watches.
	componentGrace = 3 * time.Second
)

// controlPlane keeps the components running.
type controlPlane struct {
	// logs is the folder with a log file for each component.
	logs string
	// stops has functions that end the components, in the order in which they were started.
	stops []func()
}

// start returns when pods can be created. Components that need the API server are started only after it is ready,
// because their own retries take seconds.
func (p *controlPlane) start(ctx context.Context, all []component, client kubernetes.Interface) error {
	if err := os.MkdirAll(p.logs, 0o755); err != nil {
		return err
	}
	for _, c := range all {
		if c.needsAPI {
			if err := await(ctx, func(ctx context.Context) error { return checkAPI(ctx, client) }); err != nil {
				return err
			}
		}
		if err := p.supervise(ctx, c); err != nil {
			return err
		}
	}
	// Pods need this account. The controllers create it when they have started.
	return await(ctx, func(ctx context.Context) error {
		_, err := client.CoreV1().ServiceAccounts("default").Get(ctx, "default", metav1.GetOptions{})
		return err
	})
}

func checkAPI(ctx context.Context, client kubernetes.Interface) error {
	return client.Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
}

func await(ctx context.Context, condition func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	for {
		err := condition(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the control plane did not start, see the folder logs: %w", err)
		case <-time.After(pollInterval):
		}
	}
}

// stop ends etcd last, because the other components would wait for it.
func (p *controlPlane) stop() {
	for i := len(p.stops) - 1; i >= 0; i-- {
		p.stops[i]()
	}
}

// supervise starts a component, and restarts it when it ends, because tests kill components. Only stop ends it for
// good, so that components keep running after the end of ctx until pods have ended.
func (p *controlPlane) supervise(ctx context.Context, c component) error {
	log, err := os.OpenFile(filepath.Join(p.logs, c.name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var ended sync.WaitGroup
	ended.Go(func() {
		defer log.Close()
		for ctx.Err() == nil {
			err := c.run(ctx, log)
			fmt.Fprintln(log, "testbed: ended:", err)
			select {
			case <-ctx.Done():
			case <-time.After(restartDelay):
			}
		}
	})
	p.stops = append(p.stops, func() {
		cancel()
		ended.Wait()
	})
	return nil
}

func (c component) run(ctx context.Context, log *os.File) error {
	cmd := exec.CommandContext(ctx, "/proc/self/exe", append([]string{c.name}, c.flags...)...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = componentGrace
	return cmd.Run()
}
