package document

import (
	"reflect"

	"github.com/k8singress/k8singress/internal/ir"
)

// Delta is what changes between two Lives: entries that are new or different, and nil for those that are gone.
type Delta struct {
	Hosts        map[string]*Host
	Backends     map[string]*Backend
	Ports        map[string]*Port
	Certificates map[string]*ir.Certificate
	// ListenerGroups are whole.
	ListenerGroups map[string]*ListenerGroup
	// Global is nil when it stays.
	Global *ir.Global
}

// Empty says that nothing changes.
func (d *Delta) Empty() bool {
	return len(d.Hosts)+len(d.Backends)+len(d.Ports)+len(d.Certificates)+len(d.ListenerGroups) == 0 && d.Global == nil
}

// Diff returns what leads from one Live to another. Either may be nil, which is one without entries.
func Diff(from, to *Live) *Delta {
	if from == nil {
		from = &Live{}
	}
	if to == nil {
		to = &Live{}
	}
	return &Delta{
		Hosts:          diff(from.Hosts, to.Hosts),
		Backends:       diff(from.Backends, to.Backends),
		Ports:          diff(from.Ports, to.Ports),
		Certificates:   diff(from.Certificates, to.Certificates),
		ListenerGroups: diff(from.ListenerGroups, to.ListenerGroups),
		Global:         diffGlobal(from.Global, to.Global),
	}
}

// DiffHosts returns what changes between the hosts of two groups. Either may be nil.
func DiffHosts(from, to *ListenerGroup) map[string]*Host {
	if from == nil {
		from = &ListenerGroup{}
	}
	if to == nil {
		to = &ListenerGroup{}
	}
	return diff(from.Hosts, to.Hosts)
}

func diffGlobal(from, to *ir.Global) *ir.Global {
	switch {
	case to == nil && from == nil, to != nil && from != nil && reflect.DeepEqual(from, to):
		return nil
	case to == nil:
		return &ir.Global{}
	}
	return to
}

func diff[T any](from, to map[string]*T) map[string]*T {
	changes := map[string]*T{}
	for name, value := range to {
		if old, ok := from[name]; !ok || !reflect.DeepEqual(old, value) {
			changes[name] = value
		}
	}
	for name := range from {
		if _, ok := to[name]; !ok {
			changes[name] = nil
		}
	}
	return changes
}
