package main

import (
	"context"
	"path/filepath"

	"github.com/k8singress/k8singress/test/harness"
)

// profile writes a profile of Caddy, unless profiling is disabled.
func (o options) profile(ctx context.Context, caddy *harness.Caddy, profile, name string) error {
	if o.profiles == "" {
		return nil
	}
	return caddy.Profile(ctx, profile, filepath.Join(o.profiles, name+".pprof"))
}

// profileCPU starts a CPU profile. The channel receives its error when it is complete. A nil channel means that
// profiling is disabled.
func (o options) profileCPU(ctx context.Context, caddy *harness.Caddy, name string) <-chan error {
	if o.profiles == "" {
		return nil
	}
	ended := make(chan error, 1)
	go func() { ended <- o.profile(ctx, caddy, "profile?seconds=8", name) }()
	return ended
}
