package apply

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"go.uber.org/zap"

	"github.com/k8singress/k8singress/internal/control/structure"
	"github.com/k8singress/k8singress/internal/http/front"
	"github.com/k8singress/k8singress/internal/http/live"
	"github.com/k8singress/k8singress/internal/model/document"
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/report"
	"github.com/k8singress/k8singress/internal/process/netaddr"
)

// servers maps each listener protocol to the name of an HTTP server. The limits and TLS settings of this server also
// apply to the listeners with the protocol.
var servers = map[ir.ListenerProtocol]string{ir.ListenerHTTP: structure.HTTPServer,
	ir.ListenerHTTPS: structure.HTTPSServer}

// listening is the state of the listeners of all listener groups. A listener group consists of additional ports and of
// hosts that are served only on these ports. Its listeners are opened in addition to the listeners of the HTTP servers.
type listening struct {
	groups map[string]*document.ListenerGroup
	// opened holds the open listen addresses. A key consists of the protocol and the address.
	opened map[string]*front.Opened
	// bound has the same keys as opened, and lists the listeners that share each open address. leaving lists closed
	// addresses that still have open connections. Requests on these connections are still routed to the hosts of the
	// closed listeners.
	bound   map[string][]live.Listener
	leaving []departed
	// gone is the set of removed listener groups. A group is deleted from the set when the last connection of its
	// listeners has ended.
	gone map[string]bool
	// early is set if a listener is not open yet because the HTTP server that handles its connections has not started.
	early bool
	// refused holds the problems of the listeners that could not be opened.
	refused []*report.Verdict
	// admin is the address of the admin API, or settings.AdminOff.
	admin string
}

// departed is a closed listen address, with the listeners that used it.
type departed struct {
	opened    *front.Opened
	listeners []live.Listener
}

// bound is a listener of a listener group, together with the name of the group and the object that defines the group.
type bound struct {
	ir.Listener
	group  string
	origin ir.Ref
}

// name returns the name of the listener in the form GROUP/LISTENER, which is unique among all listener groups.
func (b *bound) name() string { return b.group + "/" + b.Name }

// updateGroups applies changed and removed listener groups: it updates the hosts in the routing table and the
// certificates of the listeners. The hosts of a removed group are kept until its listeners have been closed and have no
// connections.
func (l *Live) updateGroups(changes map[string]*document.ListenerGroup) {
	for name, g := range changes {
		before := l.listening.groups[name]
		for _, of := range boundOf(name, before) {
			if !slices.ContainsFunc(boundOf(name, g), func(b bound) bool { return b.Name == of.Name }) {
				l.Certificates.UpdateListener(of.name(), ir.Ref{}, nil)
			}
		}
		for _, of := range boundOf(name, g) {
			l.Certificates.UpdateListener(of.name(), of.origin, of.Certificates)
		}
		if g == nil {
			delete(l.listening.groups, name)
			continue
		}
		l.listening.groups[name] = g
		if l.listening.gone[name] {
			// A removed listener group with the same name may still have open connections. Discard it, because the new
			// group replaces it.
			l.forgetGroup(name)
		}
		l.Table.UpdateGroup(name, document.DiffHosts(before, g))
	}
}

func boundOf(name string, g *document.ListenerGroup) (all []bound) {
	if g == nil {
		return nil
	}
	for _, of := range g.Listeners {
		all = append(all, bound{of, name, g.Origin})
	}
	return all
}

// Listen opens and closes the ports of listener groups, which are additional ports with their own hosts. It must be
// called after Apply, once the contents of the Secrets to which the listeners refer have been set.
func (l *Live) Listen(d *document.Delta) {
	if len(d.ListenerGroups) == 0 {
		return
	}
	for name, g := range d.ListenerGroups {
		if g == nil {
			l.listening.gone[name] = true
		}
	}
	l.listen()
}

// IsEarly reports whether a listener is not open yet because the HTTP server that handles its connections has not
// started. StartListeners opens it later.
func (l *Live) IsEarly() bool { return l.listening.early }

// StartListeners opens the ports of listeners whose HTTP server has started.
func (l *Live) StartListeners() { l.listen() }

func (l *Live) forgetGroup(name string) {
	l.Table.RemoveGroup(name)
	delete(l.listening.gone, name)
}

// listen opens and closes ports so that they match the listeners of the current listener groups.
func (l *Live) listen() {
	s := &l.listening
	s.refused, s.early = nil, false
	ports := l.claimPorts()
	var accepted []live.Listener
	wanted := map[string][]live.Listener{}
	for _, p := range ports {
		p.addresses, p.err = l.addresses(p)
		of := p.entries()
		for _, address := range p.addresses {
			wanted[p.key(address)] = of
		}
		accepted = append(accepted, of...)
	}
	l.closeAllBut(wanted)
	s.bound = wanted
	l.Table.SetListeners(s.withLeaving(accepted))
	for name := range s.gone {
		if !s.isLeaving(name) {
			l.forgetGroup(name)
		}
	}
	for _, p := range ports {
		if err := cmp.Or(p.err, l.open(p)); err != nil {
			s.early = s.early || errors.Is(err, front.ErrNotStarted)
			for i := range p.listeners {
				s.refuse(&p.listeners[i], err)
			}
		}
	}
	l.guardPorts()
}

// closeAllBut closes the listen addresses that are not in wanted or whose HTTP server has stopped. It adds them to
// leaving, the list of closed addresses. Addresses without open connections are removed from leaving.
func (l *Live) closeAllBut(wanted map[string][]live.Listener) {
	s := &l.listening
	for key, opened := range s.opened {
		if wanted[key] == nil || !opened.IsOpen() {
			opened.Close()
			delete(s.opened, key)
			s.leaving = append(s.leaving, departed{opened, s.bound[key]})
			l.log.Info("closed a listener", zap.String("address", key))
		}
	}
	s.leaving = slices.DeleteFunc(s.leaving, func(d departed) bool { return d.opened.Ended() })
}

// withLeaving returns the open listeners and, in addition, the closed listeners that still have open connections. It
// omits a closed listener if its port is open again.
func (s *listening) withLeaving(open []live.Listener) []live.Listener {
	all := slices.Clone(open)
	for _, d := range s.leaving {
		for _, of := range d.listeners {
			if !slices.ContainsFunc(open, func(o live.Listener) bool { return o.Port == of.Port }) {
				all = append(all, of)
			}
		}
	}
	return all
}

// isLeaving reports whether a listener of the group is closed but still has open connections.
func (s *listening) isLeaving(group string) bool {
	return slices.ContainsFunc(s.leaving, func(d departed) bool {
		return slices.ContainsFunc(d.listeners, func(of live.Listener) bool { return of.Group == group })
	})
}

// claimedPort is a port number with the listeners of listener groups that share it. All of them use the same protocol.
type claimedPort struct {
	protocol  ir.ListenerProtocol
	listeners []bound
	addresses []caddy.NetworkAddress
	err       error
}

// entries returns the listeners that share the port, in the form that the routing table expects.
func (p *claimedPort) entries() (all []live.Listener) {
	for i := range p.listeners {
		of := &p.listeners[i]
		all = append(all, live.Listener{Name: of.name(), Port: of.Port, Hostname: of.Hostname, Group: of.group})
	}
	return all
}

func (p *claimedPort) key(address caddy.NetworkAddress) string {
	return string(p.protocol) + " " + caddy.JoinNetworkAddress(address.Network, address.Host,
		strconv.Itoa(int(address.StartPort)))
}

// claimPorts returns the ports to open, sorted by number, each with the listeners that share it. The first listener
// with a port number gets the port. Other listeners share the port if they are compatible with the first one. Otherwise
// they are added to refused, the list of listeners that could not be opened.
func (l *Live) claimPorts() []*claimedPort {
	all := map[uint16]*claimedPort{}
	for _, group := range slices.Sorted(maps.Keys(l.listening.groups)) {
		for _, of := range boundOf(group, l.listening.groups[group]) {
			if err := all[of.Port].fits(&of); err != nil {
				l.listening.refuse(&of, err)
				continue
			}
			if all[of.Port] == nil {
				all[of.Port] = &claimedPort{protocol: of.Protocol}
			}
			all[of.Port].listeners = append(all[of.Port].listeners, of)
		}
	}
	var sorted []*claimedPort
	for _, port := range slices.Sorted(maps.Keys(all)) {
		sorted = append(sorted, all[port])
	}
	return sorted
}

// fits returns an error if a listener is not valid, or cannot share the port with the listeners that already use it. p
// is nil if no listener uses the port yet.
func (p *claimedPort) fits(of *bound) error {
	switch {
	case of.Port == 0:
		return errors.New("the listener has no port")
	case servers[of.Protocol] == "":
		return fmt.Errorf("the protocol %q is not supported: use %s or %s", of.Protocol, ir.ListenerHTTP,
			ir.ListenerHTTPS)
	case p == nil:
		return nil
	case p.protocol != of.Protocol:
		return fmt.Errorf(
			"the listener %s already uses this port with the protocol %s: use another port or the same protocol",
			p.listeners[0].name(), p.protocol)
	}
	if i := slices.IndexFunc(p.listeners, func(other bound) bool { return other.Hostname == of.Hostname }); i >= 0 {
		return fmt.Errorf("the listener %s already uses this port for the same host name: use another port or host "+
			"name",
			p.listeners[i].name())
	}
	return nil
}

// addresses returns the addresses to open for a port. It returns an error if the admin API or a TCP or UDP port uses
// one of them.
func (l *Live) addresses(p *claimedPort) ([]caddy.NetworkAddress, error) {
	all, err := front.Process().Addresses(servers[p.protocol], p.listeners[0].Port)
	if err != nil {
		option := strings.ToLower(string(p.protocol))
		return nil, fmt.Errorf("the option %s has no TCP address for %s: %w", option, p.protocol, err)
	}
	for _, address := range all {
		if admin, err := caddy.ParseNetworkAddressWithDefaults(l.listening.admin, "tcp", 0); err == nil &&
			netaddr.Overlap(admin, address) {
			return nil, errors.New(
				"the admin API already uses this port: use another port for the listener or for the admin API")
		}
		if err := l.ports.Check(address); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// open opens the addresses of a port that are not open yet.
func (l *Live) open(p *claimedPort) error {
	var errs []error
	for _, address := range p.addresses {
		key := p.key(address)
		if l.listening.opened[key] != nil {
			continue
		}
		opened, err := front.Process().Open(l.ctx, address, servers[p.protocol])
		if err != nil {
			errs = append(errs, err)
			continue
		}
		l.listening.opened[key] = opened
		l.log.Info("opened a listener", zap.String("address", key), zap.String("listener", p.listeners[0].name()),
			zap.Stringer("of", p.listeners[0].origin))
	}
	return errors.Join(errs...)
}

// refuse records that a listener could not be opened because of err. The problem is reported on the object that defines
// the listener.
func (s *listening) refuse(of *bound, err error) {
	p := report.Problem{
		Severity: report.Error, Reason: report.PortConflict,
		Message: fmt.Sprintf("port tcp/%d of the listener %s is left out: %v", of.Port, of.Name, err),
	}
	if errors.Is(err, netaddr.ErrHeld) {
		p.Message += ". " + listeners["tcp"] + " lists the processes that listen on each port"
	}
	s.refused = append(s.refused, &report.Verdict{Object: of.origin, Problems: []report.Problem{p}})
}

// close closes the open addresses of all listeners.
func (s *listening) close() {
	for _, opened := range s.opened {
		opened.Close()
	}
	clear(s.opened)
}
