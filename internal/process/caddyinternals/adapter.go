package caddyinternals

import (
	"fmt"
	"runtime/debug"
	_ "unsafe" // for go:linkname

	"github.com/caddyserver/caddy/v2/caddyconfig"
)

// configAdapters is Caddy's map of configuration adapters. If a version of Caddy has no variable with this name,
// configAdapters is an empty map that only this package uses.
//
//go:linkname configAdapters github.com/caddyserver/caddy/v2/caddyconfig.configAdapters
var configAdapters map[string]caddyconfig.Adapter

// WrapAdapter replaces the configuration adapter with the given name with the result of wrap. This is necessary because
// caddyconfig.RegisterAdapter panics if the name is already registered. WrapAdapter must be called from an init
// function, when nothing else uses the map.
//
// WrapAdapter relies on the variable caddyconfig.configAdapters being a map by name. If it is not, WrapAdapter returns
// an error and does not change the adapter.
func WrapAdapter(name string, wrap func(next caddyconfig.Adapter) caddyconfig.Adapter) (err error) {
	// If the variable has another type, it may not contain valid pointers. An invalid pointer then causes a panic,
	// which is recovered below, instead of ending the process.
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("reading Caddy's list of configuration adapters: %v", p)
		}
	}()
	next := configAdapters[name]
	if next == nil || next != caddyconfig.GetAdapter(name) {
		return fmt.Errorf(
			"the configuration adapter %q is not in the variable configAdapters of Caddy's package caddyconfig", name)
	}
	configAdapters[name] = wrap(next)
	return nil
}
