package caddyinternals

import (
	"fmt"
	"runtime/debug"
	_ "unsafe" // for go:linkname

	"github.com/caddyserver/caddy/v2/caddyconfig"
)

// configAdapters is Caddy's list of configuration adapters. Where a version of Caddy has no variable of this name, it is an
// empty map of this package alone.
//
//go:linkname configAdapters github.com/caddyserver/caddy/v2/caddyconfig.configAdapters
var configAdapters map[string]caddyconfig.Adapter

// WrapAdapter replaces the configuration adapter of a name by what wrap makes of it. caddyconfig.RegisterAdapter panics for a
// name that is registered already. It is to be called from an init function, when nothing else uses the list.
//
// It relies on the variable caddyconfig.configAdapters being a map by name. Otherwise it returns an error, and the adapter
// stays as it was.
func WrapAdapter(name string, wrap func(next caddyconfig.Adapter) caddyconfig.Adapter) (err error) {
	// A variable of another type could hold what is no pointer.
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("reading Caddy's list of configuration adapters: %v", p)
		}
	}()
	next := configAdapters[name]
	if next == nil || next != caddyconfig.GetAdapter(name) {
		return fmt.Errorf("the configuration adapter %q is not in the variable configAdapters of Caddy's package caddyconfig", name)
	}
	configAdapters[name] = wrap(next)
	return nil
}
