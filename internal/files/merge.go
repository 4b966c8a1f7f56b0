package files

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/k8singress/k8singress/internal/ir"
	"github.com/k8singress/k8singress/internal/kinds"
	"github.com/k8singress/k8singress/internal/report"
	"github.com/k8singress/k8singress/internal/snapshot"
)

// merger makes one cluster of many files. Of two objects with the same name, the first one counts, by the names of the
// files and then by their place. It keeps what it knows, so that a merge costs as much as what changed.
type merger struct {
	// files are the files of the last merge, sorted by name.
	files []*parsed
	// claims are the objects of all files with one name, the one that counts first.
	claims map[ir.Ref][]*found
	// slices counts the EndpointSlices that files have for a Service. Where there is none, Endpoints take their place.
	slices map[ir.Ref]int
	// mirrors are the names of the slices that a Service's Endpoints became, and mirrored the Service of each.
	mirrors  map[ir.Ref][]ir.Ref
	mirrored map[ir.Ref]ir.Ref
	// objects and problems are the result.
	objects  map[ir.Ref]kinds.Object
	problems map[ir.Ref][]report.Problem
	// round is the merge in progress.
	round round
}

// round is the work of one merge, and its result.
type round struct {
	names, services todo
	set, gone       []kinds.Object
}

// todo lists names once each.
type todo struct {
	list []ir.Ref
	seen map[ir.Ref]bool
}

func (t *todo) add(ref ir.Ref) {
	if !t.seen[ref] {
		t.seen[ref] = true
		t.list = append(t.list, ref)
	}
}

func newMerger() *merger {
	return &merger{
		claims: map[ir.Ref][]*found{}, slices: map[ir.Ref]int{}, mirrors: map[ir.Ref][]ir.Ref{}, mirrored: map[ir.Ref]ir.Ref{},
		objects: map[ir.Ref]kinds.Object{}, problems: map[ir.Ref][]report.Problem{},
	}
}

// merge takes the files as they are now, sorted by name, and returns the objects that are new or other than before, and
// those that have gone. An object of which nothing changed is in neither list.
func (m *merger) merge(files []*parsed) (set, gone []kinds.Object) {
	m.round = round{names: todo{seen: map[ir.Ref]bool{}}, services: todo{seen: map[ir.Ref]bool{}}}
	old, next := m.files, files
	m.files = files
	for len(old) > 0 || len(next) > 0 {
		switch {
		case len(old) > 0 && len(next) > 0 && old[0] == next[0]:
			old, next = old[1:], next[1:]
		case len(next) == 0 || len(old) > 0 && old[0].name <= next[0].name:
			m.remove(old[0])
			old = old[1:]
		default:
			m.add(next[0])
			next = next[1:]
		}
	}
	for _, ref := range m.round.names.list {
		m.resolve(ref)
	}
	for _, service := range m.round.services.list {
		m.mirrorEndpoints(service)
	}
	set, gone = m.round.set, m.round.gone
	// The first round has the names of all objects.
	m.round = round{}
	return set, gone
}

func (m *merger) add(p *parsed) {
	m.setProblems(fileRef(p.name), p.problems)
	for _, f := range p.objects {
		list := m.claims[f.ref]
		// After the objects of earlier files, and of its own file.
		at, _ := slices.BinarySearchFunc(list, p.name+"\x00", func(f *found, name string) int { return strings.Compare(f.file, name) })
		m.claims[f.ref] = slices.Insert(list, at, f)
		m.touch(f, 1)
	}
}

func (m *merger) remove(p *parsed) {
	m.setProblems(fileRef(p.name), nil)
	for _, f := range p.objects {
		rest := slices.DeleteFunc(m.claims[f.ref], func(other *found) bool { return other == f })
		if m.claims[f.ref] = rest; len(rest) == 0 {
			delete(m.claims, f.ref)
		}
		m.touch(f, -1)
	}
}

// touch notes the names that a new or removed claim may change.
func (m *merger) touch(f *found, by int) {
	m.round.names.add(f.ref)
	slice, ok := f.object.(*discoveryv1.EndpointSlice)
	if !ok {
		return
	}
	service := serviceRef(slice.Namespace, slice.Labels[discoveryv1.LabelServiceName])
	m.round.services.add(service)
	if m.slices[service] += by; m.slices[service] == 0 {
		delete(m.slices, service)
	}
}

// resolve decides which object a name stands for.
func (m *merger) resolve(ref ir.Ref) {
	first, problems := m.first(ref)
	if ref.Kind == endpointsKind {
		m.round.services.add(serviceRef(ref.Namespace, ref.Name))
		return
	}
	m.setProblems(ref, problems)
	service, mirrored := m.mirrored[ref]
	if mirrored {
		m.round.services.add(service)
	}
	if first != nil || !mirrored {
		m.put(ref, first)
	}
}

// first returns the object that counts, or nil, and the problems of all objects with the name.
func (m *merger) first(ref ir.Ref) (kinds.Object, []report.Problem) {
	var problems []report.Problem
	var first *found
	for _, f := range m.claims[ref] {
		problems = append(problems, f.problems...)
		switch {
		case f.object == nil:
		case first == nil:
			first = f
		default:
			problems = append(problems, report.Problem{
				Severity: report.Warning, Reason: report.DuplicateObject,
				Message: fmt.Sprintf("%s:%d: ignored, because %s:%d defines the same object", f.file, f.line, first.file, first.line),
			})
		}
	}
	if first == nil {
		return nil, problems
	}
	return first.object, problems
}

func (m *merger) setProblems(ref ir.Ref, problems []report.Problem) {
	if len(problems) == 0 {
		delete(m.problems, ref)
		return
	}
	m.problems[ref] = problems
}

// put stores the object that a name stands for; nil removes it.
func (m *merger) put(ref ir.Ref, object kinds.Object) {
	old := m.objects[ref]
	switch {
	case object != nil && old != nil && kinds.SameVersion(old, object):
	case object != nil:
		m.objects[ref] = object
		m.round.set = append(m.round.set, object)
	case old != nil:
		delete(m.objects, ref)
		m.round.gone = append(m.round.gone, old)
	}
}

// mirrorEndpoints makes slices of a Service's Endpoints where the files have none for it.
func (m *merger) mirrorEndpoints(service ir.Ref) {
	ref := ir.Ref{Kind: endpointsKind, Namespace: service.Namespace, Name: service.Name}
	object, problems := m.first(ref)
	made := map[ir.Ref]kinds.Object{}
	switch o, _ := object.(*corev1.Endpoints); { //nolint:staticcheck // the old kind is the point
	case o == nil:
	case m.slices[service] > 0:
		problems = append(problems, report.Problem{
			Severity: report.Info, Reason: report.DeprecatedVersion,
			Message: fmt.Sprintf("%s:%d: ignored, because the Service has EndpointSlices", m.claims[ref][0].file, m.claims[ref][0].line),
		})
	default:
		for _, slice := range mirror(o) {
			made[snapshot.RefOf(slice)] = slice
		}
	}
	m.setProblems(ref, problems)
	m.replace(service, made)
}

// replace puts the slices of a Service's Endpoints in the place of those before. A slice of a file with the same name
// goes first.
func (m *merger) replace(service ir.Ref, made map[ir.Ref]kinds.Object) {
	for _, ref := range m.mirrors[service] {
		delete(m.mirrored, ref)
		if own, _ := m.first(ref); made[ref] == nil && own == nil {
			m.put(ref, nil)
		}
	}
	delete(m.mirrors, service)
	for ref, slice := range made {
		m.mirrors[service] = append(m.mirrors[service], ref)
		m.mirrored[ref] = service
		if own, _ := m.first(ref); own == nil {
			m.put(ref, slice)
		}
	}
}

func serviceRef(namespace, name string) ir.Ref {
	return ir.Ref{Kind: kinds.Service, Namespace: namespace, Name: name}
}

// verdicts are on files and objects with problems, sorted by report.Compare.
func (m *merger) verdicts() []*report.Verdict {
	list := make([]*report.Verdict, 0, len(m.problems))
	for ref, problems := range m.problems {
		list = append(list, &report.Verdict{Object: ref, Problems: slices.Clone(problems)})
	}
	slices.SortFunc(list, func(a, b *report.Verdict) int { return report.Compare(a.Object, b.Object) })
	return list
}
