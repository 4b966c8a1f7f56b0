// Package resolver resolves the DNS names of ExternalName Services. It looks up each name again when the TTL of the
// response has passed.
//
// It uses package dns because net.Resolver does not return the TTL. Without the TTL, names that fail over within
// seconds would have to be queried as rarely as names that never change.
package resolver

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/k8singress/k8singress/internal/process/delayqueue"
	"github.com/k8singress/k8singress/internal/process/turns"
	"github.com/k8singress/k8singress/internal/upstream/reach"
)

// Access limits the addresses that a name may have. The author of a Service chooses the name, and the owner of the name
// chooses the addresses. Both could choose addresses that only this machine can reach.
type Access int

const (
	// Usual rejects addresses that are not unique between machines, the machine's own addresses, and the addresses of
	// internal interfaces of clouds and the cluster. Private networks are allowed, because Services are there.
	Usual Access = iota
	// Everything allows all addresses.
	Everything
	// Nothing disables all look-ups.
	Nothing
)

// Options are the settings that may change at runtime.
type Options struct {
	// Servers are the IP addresses of the DNS servers, with or without a port. If empty, the servers in
	// /etc/resolv.conf are used.
	Servers []string
	Access  Access
}

// Resolver keeps the addresses of names up to date. Its methods may be called from any goroutine. Names are looked up
// while Run runs, and only after Configure was called.
type Resolver struct {
	log   *zap.Logger
	set   func(id string, addresses []string)
	wake  chan struct{}
	files systemFiles
	own   func() ([]netip.Addr, error)

	mu      sync.Mutex
	options Options
	// client is nil until Configure is called.
	client *client
	names  map[string]*name
	ids    map[string]target
	// queue holds the names by the time of their next look-up. due holds the names that wait for their turn or are
	// being looked up.
	queue *delayqueue.Queue[*name]
	due   *turns.Queue[turn]
}

// target is the parsed "name:port" of a backend.
type target struct{ host, port string }

// name is one host name, with the backends that use it.
type name struct {
	host string
	// ports maps backend IDs to ports.
	ports map[string]string

	// resolved means that at least one look-up has ended.
	resolved bool
	// found holds the addresses of the last response. use holds the allowed addresses among them, and refused the
	// other addresses with the reasons.
	found    []netip.Addr
	use      []netip.Addr
	refused  []string
	warned   bool
	err      error
	failures int
	// waiting are the namespaces in whose queues the name waits for its turn.
	waiting []string
}

// turn is a name in the queue of one of the namespaces that use it. A name is looked up as soon as the first of these
// namespaces has its turn, so that other namespaces cannot delay it.
type turn struct {
	*name
	namespace string
}

// New returns a resolver without names.
//
// The resolver calls set for a backend after the first look-up of its name and whenever the addresses change. The
// addresses are sorted and have the form host:port. After Unfollow has returned, set is no longer called for the
// backend. set must not call the resolver.
func New(set func(id string, addresses []string), log *zap.Logger) *Resolver {
	return &Resolver{
		log: log, set: set, wake: make(chan struct{}, 1), files: theSystem, own: reach.MachineAddresses,
		names: map[string]*name{}, ids: map[string]target{}, queue: delayqueue.New[*name](),
		due: turns.New[turn](maxLookups, maxPerNamespace),
	}
}

// Configure reads the system's files. If these or the options have changed, it looks up all names again.
func (r *Resolver) Configure(o Options) {
	c := newClient(o.Servers, r.files)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.client != nil && reflect.DeepEqual(r.client, c) && r.options.Access == o.Access {
		return
	}
	r.client, r.options = c, o
	now := time.Now()
	for _, n := range r.names {
		if n.resolved || o.Access == Nothing {
			r.sift(n, n.found)
		}
		// A name that is not queued is being looked up, and is queued again afterwards.
		if r.queue.Contains(n) {
			r.queue.Set(n, now)
		}
	}
	r.rouse()
}

// rouse makes Run check the queue.
func (r *Resolver) rouse() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// Follow starts resolving the name of a backend, given as "name:port". The backend keeps its old addresses until the
// first look-up has ended.
func (r *Resolver) Follow(id, external string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	t := split(external)
	if old, ok := r.ids[id]; ok && old == t {
		return
	}
	r.unfollow(id)
	r.ids[id] = t
	n := r.names[t.host]
	if n == nil {
		n = &name{host: t.host, ports: map[string]string{}}
		r.names[t.host] = n
		r.queue.Set(n, time.Now())
		r.rouse()
	}
	n.ports[id] = t.port
	if n.resolved || r.options.Access == Nothing {
		r.publish(n, id)
	}
}

// Unfollow stops resolving the name of a backend. It does nothing if the backend is not followed.
func (r *Resolver) Unfollow(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.unfollow(id)
}

func (r *Resolver) unfollow(id string) {
	n := r.names[r.ids[id].host]
	if n == nil {
		return
	}
	delete(r.ids, id)
	delete(n.ports, id)
	if len(n.ports) == 0 {
		delete(r.names, n.host)
		r.queue.Remove(n)
		r.forgetTurns(n)
	}
}

// forgetTurns removes a name from the queues in which it waits.
func (r *Resolver) forgetTurns(n *name) {
	for _, namespace := range n.waiting {
		r.due.Remove(turn{n, namespace})
	}
	n.waiting = nil
}

// namespaces returns the namespaces of the backends that use the name.
func (n *name) namespaces() []string {
	var all []string
	for id := range n.ports {
		namespace, _, _ := strings.Cut(id, "/")
		all = append(all, namespace)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// State is the state of the name of a backend.
type State struct {
	Name string
	// Err is the error of the last look-up, or nil. After an error the previous addresses stay in use.
	Err error
	// Refused are the addresses of the name that are not used, with the reasons.
	Refused []string
}

// State returns the state of a backend's name. It returns false if the backend is not followed.
func (r *Resolver) State(id string) (State, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	t, ok := r.ids[id]
	n := r.names[t.host]
	switch {
	case !ok:
		return State{}, false
	case t.port == "":
		return State{Name: t.host, Err: errors.New("it must have the form name:port, with a port from 1 to 65535")},
			true
	case r.options.Access == Nothing:
		return State{Name: t.host, Err: errors.New("names are not looked up, because external_names is off")}, true
	}
	return State{Name: n.host, Err: n.err, Refused: n.refused}, true
}

// sift puts the allowed addresses of a response into use. If it cannot be determined which are allowed, none is used.
func (r *Resolver) sift(n *name, found []netip.Addr) {
	use, refused, err := r.allowed(found)
	if err != nil {
		n.err = err
		use = nil
	}
	changed := !n.resolved || !slices.Equal(use, n.use)
	n.resolved, n.found, n.use, n.refused = true, found, use, refused
	if len(refused) > 0 && !n.warned {
		n.warned = true
		r.log.Warn("ignoring addresses to which a name must not resolve; the option external_names all allows them",
			zap.String("name", n.host), zap.Strings("addresses", refused))
	}
	if changed {
		for id := range n.ports {
			r.publish(n, id)
		}
	}
}

// allowed splits the addresses of a response into those that may be used, and the rejected ones with the reasons.
func (r *Resolver) allowed(found []netip.Addr) (use []netip.Addr, refused []string, err error) {
	switch r.options.Access {
	case Everything:
		return found, nil, nil
	case Nothing:
		return nil, nil, nil
	case Usual:
	}
	own, err := r.own()
	if err != nil {
		return nil, nil, fmt.Errorf("listing the addresses of this machine, to which names must not resolve: %w", err)
	}
	for _, a := range reachable(found, own) {
		if why := reach.Name(a, own); why != "" {
			refused = append(refused, a.String()+" ("+string(why)+")")
			continue
		}
		use = append(use, a)
	}
	return use, refused, nil
}

func (r *Resolver) publish(n *name, id string) {
	var list []string
	if port := n.ports[id]; port != "" {
		for _, a := range n.use {
			list = append(list, net.JoinHostPort(a.String(), port))
		}
	}
	r.set(id, list)
}

// split parses "name:port". The port is empty if it is invalid.
func split(external string) target {
	host, port, err := net.SplitHostPort(external)
	if err != nil {
		return target{host: external}
	}
	if number, err := strconv.ParseUint(port, 10, 16); err != nil || number == 0 {
		port = ""
	}
	return target{strings.ToLower(host), port}
}
