package caddyinternals

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	_ "unsafe" // for go:linkname

	// The variables below belong to this package.
	_ "github.com/caddyserver/caddy/v2"

	"github.com/k8singress/k8singress/internal/process/panics"
)

// rawCfgJSON is the JSON of Caddy's running configuration, and rawCfgMu is its lock, which Caddy holds while it loads a
// configuration. If a version of Caddy has no variables with these names, they are zero values that only this package
// uses.
//
//go:linkname rawCfgJSON github.com/caddyserver/caddy/v2.rawCfgJSON
var rawCfgJSON []byte

//go:linkname rawCfgMu github.com/caddyserver/caddy/v2.rawCfgMu
var rawCfgMu sync.RWMutex

// RunningConfig returns a copy of the JSON of Caddy's running configuration, which GET /config/ of the admin API
// returns, too. If Caddy is loading a configuration, RunningConfig waits until this is complete or ctx ends. It is
// needed because Caddy logs each request to the admin API.
//
// RunningConfig relies on the variables rawCfgJSON, a slice of bytes, and rawCfgMu, a sync.RWMutex. If they do not
// exist, or if no configuration is running, RunningConfig returns an error.
func RunningConfig(ctx context.Context) ([]byte, error) {
	type result struct {
		config []byte
		err    error
	}
	read := make(chan result, 1)
	panics.Go("caddyinternals/config", func() {
		config, err := lockedConfig()
		read <- result{config, err}
	})
	select {
	case r := <-read:
		return r.config, r.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func lockedConfig() (config []byte, err error) {
	// If a variable has another type, it may not contain a valid pointer. An invalid pointer then causes a panic, which
	// is recovered below, instead of ending the process.
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("reading Caddy's configuration: %v", p)
		}
	}()
	rawCfgMu.RLock()
	defer rawCfgMu.RUnlock()
	if len(rawCfgJSON) == 0 {
		return nil, errors.New("caddy has no configuration, or no variable rawCfgJSON")
	}
	return append([]byte(nil), rawCfgJSON...), nil
}
