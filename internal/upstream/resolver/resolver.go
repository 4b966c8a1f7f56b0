// Package resolver resolves the DNS names of ExternalName Services. It looks up each name again when the TTL of the
// response has passed.
//
// This package does not use net.Resolver, which does not return the TTL: all names would have to be looked up at the
// same interval, although some names fail over to another address within seconds. It uses package dns instead.
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

	"github.com/k8singress/k8singress/internal/model/shrinking"
	"github.com/k8singress/k8singress/internal/process/delayqueue"
	"github.com/k8singress/k8singress/internal/process/turns"
	"github.com/k8singress/k8singress/internal/process/wake"
	"github.com/k8singress/k8singress/internal/upstream/reach"
)

// Access defines to which addresses a DNS name may resolve. The author of a Service chooses the name, and the owner of
// the name chooses the addresses. Without a restriction, both could make this process connect to addresses that other
// machines cannot reach.
type Access int

const (
	// Usual rejects loopback and link-local addresses, addresses of this machine, of the API server and of cloud
	// metadata services, and other addresses that reach.Name rejects. Private networks are allowed, because the pods of
	// Services use them.
	Usual Access = iota
	// Everything allows all addresses.
	Everything
	// Nothing disables all lookups.
	Nothing
)

// Options are the settings of a Resolver that may change at runtime.
type Options struct {
	// Servers are the IP addresses of the DNS servers, with or without a port. If empty, the servers in
	// /etc/resolv.conf are used.
	Servers []string
	Access  Access
}

// Resolver keeps the addresses of names up to date. It is safe for concurrent use. Names are looked up only while Run
// is running, and only after Configure was called.
type Resolver struct {
	log   *zap.Logger
	set   func(id string, addresses []string)
	wake  wake.Signal
	files systemFiles
	own   func() ([]netip.Addr, error)

	mu      sync.Mutex
	options Options
	// client is nil until Configure is called.
	client *client
	names  shrinking.Map[string, *name]
	ids    shrinking.Map[string, target]
	// queue holds the names, ordered by the time of their next lookup. A name whose lookup is due is moved to the queue
	// due. It stays there while it waits because too many lookups are running, and while it is looked up.
	queue *delayqueue.Queue[*name]
	due   *turns.Queue[turn]
}

// target is the host and the port of a backend. The port is empty if the Service specifies an invalid port.
type target struct{ host, port string }

// name is a host name to resolve, with the backends that use it.
type name struct {
	host string
	// ports maps the IDs of the backends that use the name to their ports.
	ports map[string]string

	// resolved is true after the first lookup has ended, even if it failed.
	resolved bool
	// found holds the addresses in the last response. use holds the addresses in found that are allowed. refused
	// describes the addresses in found that are not allowed, with the reasons.
	found    []netip.Addr
	use      []netip.Addr
	refused  []string
	warned   bool
	err      error
	failures int
	// waiting holds the namespaces in whose queues (Resolver.due) the name waits for its next lookup.
	waiting []string
}

// turn is a name that waits for its lookup in the queue of one namespace. A name that several namespaces use waits in
// several queues, and is looked up as soon as it reaches the front of one of them. So the other namespaces cannot delay
// the lookup.
type turn struct {
	*name
	namespace string
}

// New returns a resolver that does not resolve any names yet.
//
// The resolver calls set for each backend after the first lookup of its name, and whenever the addresses have changed.
// The addresses have the form host:port and are sorted. After Unfollow has returned, set is no longer called for the
// backend. set must not call the resolver.
func New(set func(id string, addresses []string), log *zap.Logger) *Resolver {
	return &Resolver{
		log: log, set: set, wake: wake.New(), files: theSystem, own: reach.MachineAddresses,
		queue: delayqueue.New[*name](),
		due:   turns.New[turn](maxLookups, maxPerNamespace),
	}
}

// Configure sets the options and reads resolv.conf and the hosts file. If the options or the files have changed, all
// names are looked up again.
func (r *Resolver) Configure(o Options) {
	c := newClient(o.Servers, r.files)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.client != nil && reflect.DeepEqual(r.client, c) && r.options.Access == o.Access {
		return
	}
	r.client, r.options = c, o
	now := time.Now()
	for n := range r.names.Values() {
		if n.resolved || o.Access == Nothing {
			r.sift(n, n.found)
		}
		// Skip a name that is not in the queue: it is being looked up now, and is added to the queue afterwards.
		if r.queue.Contains(n) {
			r.queue.Set(n, now)
		}
	}
	r.wake.Send()
}

// Follow starts resolving the name of the backend with the given ID. external has the form "name:port". The backend
// keeps its current addresses until the first lookup has ended.
func (r *Resolver) Follow(id, external string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	t := split(external)
	if old, ok := r.ids.Find(id); ok && old == t {
		return
	}
	r.unfollow(id)
	r.ids.Set(id, t)
	n := r.names.Get(t.host)
	if n == nil {
		n = &name{host: t.host, ports: map[string]string{}}
		r.names.Set(t.host, n)
		r.queue.Set(n, time.Now())
		r.wake.Send()
	}
	n.ports[id] = t.port
	if len(n.waiting) > 0 {
		// The name may wait behind names of another namespace that do not respond.
		r.takeTurns(n)
		r.wake.Send()
	}
	if n.resolved || r.options.Access == Nothing {
		r.publish(n, id)
	}
}

// Unfollow stops resolving the name of a backend. It does nothing if Follow was not called for the backend.
func (r *Resolver) Unfollow(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.unfollow(id)
}

func (r *Resolver) unfollow(id string) {
	n := r.names.Get(r.ids.Get(id).host)
	if n == nil {
		return
	}
	r.ids.Delete(id)
	delete(n.ports, id)
	if len(n.ports) == 0 {
		r.names.Delete(n.host)
		r.queue.Remove(n)
		r.forgetTurns(n)
	}
}

// takeTurns adds a name to the queues of all namespaces that use it. In a queue that already holds the name, it keeps
// its position.
func (r *Resolver) takeTurns(n *name) {
	for _, namespace := range n.namespaces() {
		if !slices.Contains(n.waiting, namespace) {
			n.waiting = append(n.waiting, namespace)
			r.due.Push(namespace, turn{n, namespace}, n.failures == 0)
		}
	}
}

// forgetTurns removes a name from the queues of all namespaces.
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

// State describes the result of resolving the name of a backend.
type State struct {
	Name string
	// Err is the error of the last lookup, or nil. After an error, the previous addresses stay in use.
	Err error
	// Refused lists the addresses of the name that are not used, with the reasons.
	Refused []string
}

// State returns the state of a backend's name. It returns false if Follow was not called for the backend.
func (r *Resolver) State(id string) (State, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	t, ok := r.ids.Find(id)
	n := r.names.Get(t.host)
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

// sift stores the addresses that were found for a name, and passes the allowed ones to the backends that use the name.
// If it is not known which addresses are allowed, because of an error, the backends get no addresses.
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

// allowed returns the addresses in found that are allowed. It also describes the other addresses, with the reasons why
// they are not allowed.
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

// split splits a string of the form "name:port". In the result, the port is empty if it is invalid.
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
