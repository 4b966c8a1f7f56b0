package caddyinternals

import (
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	_ "unsafe" // for go:linkname

	"github.com/caddyserver/caddy/v2"
)

// listenerPool is Caddy's pool of listeners, which counts the configurations that use each address. If a version of
// Caddy has no variable with this name, listenerPool is a nil pointer that only this package uses.
//
//go:linkname listenerPool github.com/caddyserver/caddy/v2.listenerPool
var listenerPool *caddy.UsagePool

// CountListener increments the number that caddy.ListenerUsage returns for an address, until uncount is called. It is
// needed because Caddy counts only the listeners of its own networks. If the number is less than two, Caddy assumes
// that the address is about to be closed. Each load of a configuration would then wait for the shutdown_delay of the
// http app.
//
// CountListener relies on the variable listenerPool being a *caddy.UsagePool with keys of the form NETWORK/ADDRESS. If
// it is not, CountListener returns an error and a function that does nothing.
func CountListener(network, address string) (uncount func(), err error) {
	uncount = func() {}
	// If the variable has another type, it may not contain a valid pointer. An invalid pointer then causes a panic,
	// which is recovered below, instead of ending the process.
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("counting a listener as Caddy does: %v", p)
		}
	}()
	if listenerPool == nil {
		return uncount, errors.New("caddy has no variable listenerPool")
	}
	key, before := network+"/"+address, caddy.ListenerUsage(network, address)
	listenerPool.LoadOrStore(key, nil)
	uncount = sync.OnceFunc(func() { _, _ = listenerPool.Delete(key) })
	if after := caddy.ListenerUsage(network, address); after <= before {
		return uncount, fmt.Errorf("caddy counts %d listeners, but counted %d before", after, before)
	}
	return uncount, nil
}
