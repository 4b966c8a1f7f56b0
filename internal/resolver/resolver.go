// Package resolver follows DNS names: it keeps the addresses of ExternalName Services, and looks a name up again when the
// TTL of the answer has passed.
//
// It asks with package dns because net.Resolver does not return the TTL: a name that fails over within seconds and one
// that never changes would have to be asked for equally often.
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

	"github.com/k8singress/k8singress/internal/delayqueue"
	"github.com/k8singress/k8singress/internal/reach"
	"github.com/k8singress/k8singress/internal/turns"
)

// Access says which addresses an answer may have. Who may create a Service chooses the name, and who owns the name
// chooses the addresses, so both could point at what only this machine reaches.
type Access int

const (
	// Usual leaves out what no other machine has for an address, what is this machine's own, and where clouds and the
	// cluster keep their own interfaces. Private networks are allowed: that is where Services are.
	Usual Access = iota
	// Everything leaves nothing out.
	Everything
	// Nothing looks up no name.
	Nothing
)

// Options are what may change while names are followed.
type Options struct {
	// Servers are the IP addresses of the DNS servers, with or without a port. Empty means those of /etc/resolv.conf.
	Servers []string
	Access  Access
}

// Resolver keeps the addresses of names. Its methods may be called from any goroutine. Names are looked up while Run
// runs, and not before Configure.
type Resolver struct {
	log   *zap.Logger
	set   func(id string, addresses []string)
	wake  chan struct{}
	files systemFiles
	own   func() ([]netip.Addr, error)

	mu      sync.Mutex
	options Options
	// client is nil until Configure.
	client *client
	names  map[string]*name
	ids    map[string]target
	// queue has the names by the time when they are to be looked up, due those that wait for their turn, or are looked up.
	queue *delayqueue.Queue[*name]
	due   *turns.Queue[turn]
}

// target is what a backend's "name:port" says.
type target struct{ host, port string }

// name is one host name, and who wants its addresses.
type name struct {
	host string
	// ports has the port by backend ID.
	ports map[string]string

	// asked says that a look-up has ended.
	asked bool
	// found is the last answer, use what of it may be used, and refused what may not.
	found    []netip.Addr
	use      []netip.Addr
	refused  []string
	warned   bool
	err      error
	failures int
	// waiting are the namespaces in whose lines it waits for its turn.
	waiting []string
}

// turn is a name in the line of one of the namespaces that have it. It is looked up when the first of them has its turn, so that no
// other namespace can hold it up.
type turn struct {
	*name
	namespace string
}

// New returns a resolver that follows no name.
//
// It calls set for a backend with its addresses, host:port each and sorted, after the first look-up of its name and
// whenever they change. No call comes after Unfollow has returned. Set must not call the resolver.
func New(set func(id string, addresses []string), log *zap.Logger) *Resolver {
	return &Resolver{
		log: log, set: set, wake: make(chan struct{}, 1), files: theSystem, own: reach.MachineAddresses,
		names: map[string]*name{}, ids: map[string]target{}, queue: delayqueue.New[*name](), due: turns.New[turn](atOnce, share),
	}
}

// Configure reads the files of the system, and looks all names up again if they or the options are others than before.
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
		if n.asked || o.Access == Nothing {
			r.sift(n, n.found)
		}
		// One that is not queued is being looked up, and is queued again when that ends.
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

// Follow keeps the addresses of a backend, given its "name:port". What the backend had before stays until the first
// look-up of the name has ended.
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
	if n.asked || r.options.Access == Nothing {
		r.publish(n, id)
	}
}

// Unfollow ends Follow for a backend. It need not be followed.
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

// forgetTurns takes a name out of the lines in which it waits.
func (r *Resolver) forgetTurns(n *name) {
	for _, namespace := range n.waiting {
		r.due.Remove(turn{n, namespace})
	}
	n.waiting = nil
}

// namespaces are those of the backends that have the name.
func (n *name) namespaces() []string {
	var all []string
	for id := range n.ports {
		namespace, _, _ := strings.Cut(id, "/")
		all = append(all, namespace)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// State is how the name of a backend stands.
type State struct {
	Name string
	// Err is how the last look-up failed. The addresses of the one before it are used then.
	Err error
	// Refused are addresses of the name that are left out, with the reason.
	Refused []string
}

// State returns that of a backend, and false for one that is not followed.
func (r *Resolver) State(id string) (State, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	t, ok := r.ids[id]
	n := r.names[t.host]
	switch {
	case !ok:
		return State{}, false
	case t.port == "":
		return State{Name: t.host, Err: errors.New("it is not written as name:port, with a port from 1 to 65535")}, true
	case r.options.Access == Nothing:
		return State{Name: t.host, Err: errors.New("no name is looked up, because external_names is off")}, true
	}
	return State{Name: n.host, Err: n.err, Refused: n.refused}, true
}

// sift takes an answer into use, but for what is refused; nothing of it, when that cannot be told.
func (r *Resolver) sift(n *name, found []netip.Addr) {
	use, refused, err := r.allowed(found)
	if err != nil {
		n.err = err
		use = nil
	}
	changed := !n.asked || !slices.Equal(use, n.use)
	n.asked, n.found, n.use, n.refused = true, found, use, refused
	if len(refused) > 0 && !n.warned {
		n.warned = true
		r.log.Warn("addresses of a name are left out: it may not lead there; the option external_names all allows it",
			zap.String("name", n.host), zap.Strings("addresses", refused))
	}
	if changed {
		for id := range n.ports {
			r.publish(n, id)
		}
	}
}

// allowed divides an answer into what may be used, and what may not.
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
		return nil, nil, fmt.Errorf("listing the addresses of this machine, which a name must not lead to: %w", err)
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

// split reads "name:port". The port is empty when it is none.
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
