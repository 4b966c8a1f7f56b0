package document

import (
	"reflect"

	"github.com/k8singress/k8singress/internal/model/ir"
)

// Delta holds the changes from one live configuration to another. Each map contains only the objects that were added,
// changed or removed, under the keys that they have in Live. The value of a removed object is nil.
type Delta struct {
	Hosts        map[string]*Host
	Backends     map[string]*Backend
	Ports        map[string]*Port
	Certificates map[string]*ir.Certificate
	// ListenerGroups maps the name of each new or changed listener group to the complete new group, and the name of
	// each removed group to nil.
	ListenerGroups map[string]*ListenerGroup
	// Global holds the new global settings, or is nil if they did not change.
	Global *ir.Global
}

// Empty reports whether there are no changes.
func (d *Delta) Empty() bool {
	return len(d.Hosts)+len(d.Backends)+len(d.Ports)+len(d.Certificates)+len(d.ListenerGroups) == 0 && d.Global == nil
}

// Diff returns the changes from one live configuration to another. A nil pointer stands for an empty configuration.
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

// DiffHosts returns the new, changed and removed hosts between two versions of a listener group, keyed by host name.
// The value of a removed host is nil. A nil group has no hosts.
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
