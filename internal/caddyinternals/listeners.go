package caddyinternals

import (
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	_ "unsafe" // for go:linkname

	"github.com/caddyserver/caddy/v2"
)

// listenerPool is where Caddy counts the configurations that listen on an address. Where a version of Caddy has no variable of this
// name, it is a nil pointer of this package alone.
//
//go:linkname listenerPool github.com/caddyserver/caddy/v2.listenerPool
var listenerPool *caddy.UsagePool

// CountListener has caddy.ListenerUsage count one configuration more that listens on an address, until uncount is called. Caddy
// counts the listeners of its own networks only. An address with less than two of them is about to be closed for Caddy, and each
// load of a configuration would wait for the shutdown_delay of its http app.
//
// It relies on the variable listenerPool being a *caddy.UsagePool with keys of the form NETWORK/ADDRESS. Otherwise it returns an
// error, and a function that does nothing.
func CountListener(network, address string) (uncount func(), err error) {
	uncount = func() {}
	// A variable of another type could hold what is no such pointer.
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
		return uncount, fmt.Errorf("caddy counts %d listeners, and %d before", after, before)
	}
	return uncount, nil
}
