package files

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/kinds"
	"github.com/k8singress/k8singress/internal/model/report"
	"github.com/k8singress/k8singress/internal/model/shrinking"
	"github.com/k8singress/k8singress/internal/model/snapshot"
)

// merger merges the objects of all files. If several files define the same object, the first definition is used.
// Definitions are ordered by file name, and then by position in the file. The merger keeps its state between merges, so
// that the cost of a merge depends on the number of changes.
type merger struct {
	// files are the files of the last merge, sorted by name.
	files []*parsed
	// claims maps the name of each object to all of its definitions. The first valid definition is used.
	claims shrinking.Map[ir.Ref, []*found]
	// slices maps each Service to the number of its EndpointSlices in the files. For a Service without EndpointSlices,
	// its Endpoints object is used instead.
	slices shrinking.Map[ir.Ref, int]
	// mirrors maps each Service to the names of the EndpointSlices that were made from its Endpoints object. mirrored
	// maps the name of each of these EndpointSlices to the Service.
	mirrors  shrinking.Map[ir.Ref, []ir.Ref]
	mirrored shrinking.Map[ir.Ref, ir.Ref]
	// objects maps the name of each object to the definition that is used, and problems maps it to the problems of all
	// definitions of the object. Both are kept between merges.
	objects  shrinking.Map[ir.Ref, kinds.Object]
	problems shrinking.Map[ir.Ref, []report.Problem]
	// round holds the work and the result of the current merge.
	round round
}

// round holds the names of the objects that one merge has to process, and the objects that the merge has set and
// removed.
type round struct {
	names, services todo
	set, gone       []kinds.Object
}

// todo is a list of the names of objects to process, without duplicates.
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

// merge takes the current files, sorted by name. It returns the objects that are new or changed, and the objects that
// are gone. Unchanged objects are in neither list.
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
	// Release the memory of the lists in round. They are long after the first merge, which processes all objects.
	m.round = round{}
	return set, gone
}

func (m *merger) add(p *parsed) {
	m.setProblems(fileRef(p.name), p.problems)
	for _, f := range p.objects {
		list := m.claims.Get(f.ref)
		// Insert the definition after the definitions in earlier files and in the same file.
		at, _ := slices.BinarySearchFunc(list, p.name+"\x00",
			func(f *found, name string) int { return strings.Compare(f.file, name) })
		m.claims.Set(f.ref, slices.Insert(list, at, f))
		m.touch(f, 1)
	}
}

func (m *merger) remove(p *parsed) {
	m.setProblems(fileRef(p.name), nil)
	for _, f := range p.objects {
		rest := slices.DeleteFunc(m.claims.Get(f.ref), func(other *found) bool { return other == f })
		if len(rest) == 0 {
			m.claims.Delete(f.ref)
		} else {
			m.claims.Set(f.ref, rest)
		}
		m.touch(f, -1)
	}
}

// touch marks the object of the definition f, so that merge resolves it again. by is 1 if the definition was added, and
// -1 if it was removed. If the object is an EndpointSlice, touch also updates the number of EndpointSlices of its
// Service.
func (m *merger) touch(f *found, by int) {
	m.round.names.add(f.ref)
	slice, ok := f.object.(*discoveryv1.EndpointSlice)
	if !ok {
		return
	}
	service := serviceRef(slice.Namespace, slice.Labels[discoveryv1.LabelServiceName])
	m.round.services.add(service)
	if number := m.slices.Get(service) + by; number == 0 {
		m.slices.Delete(service)
	} else {
		m.slices.Set(service, number)
	}
}

// resolve determines which definition of an object is used, and updates the merged objects and problems accordingly.
func (m *merger) resolve(ref ir.Ref) {
	first, problems := m.first(ref)
	if ref.Kind == endpointsKind {
		m.round.services.add(serviceRef(ref.Namespace, ref.Name))
		return
	}
	m.setProblems(ref, problems)
	service, mirrored := m.mirrored.Find(ref)
	if mirrored {
		m.round.services.add(service)
	}
	if first != nil || !mirrored {
		m.put(ref, first)
	}
}

// first returns the first valid definition of an object, or nil, together with the problems of all definitions.
func (m *merger) first(ref ir.Ref) (kinds.Object, []report.Problem) {
	var problems []report.Problem
	var first *found
	for _, f := range m.claims.Get(ref) {
		problems = append(problems, f.problems...)
		switch {
		case f.object == nil:
		case first == nil:
			first = f
		default:
			problems = append(problems, report.Problem{
				Severity: report.Warning, Reason: report.DuplicateObject,
				Message: fmt.Sprintf("%s:%d: ignored, because %s:%d defines the same object", f.file, f.line,
					first.file, first.line),
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
		m.problems.Delete(ref)
		return
	}
	m.problems.Set(ref, problems)
}

// put stores an object under the given name in the map of merged objects. If object is nil, put removes the name from
// the map.
func (m *merger) put(ref ir.Ref, object kinds.Object) {
	old := m.objects.Get(ref)
	switch {
	case object != nil && old != nil && kinds.SameVersion(old, object):
	case object != nil:
		m.objects.Set(ref, object)
		m.round.set = append(m.round.set, object)
	case old != nil:
		m.objects.Delete(ref)
		m.round.gone = append(m.round.gone, old)
	}
}

// mirrorEndpoints makes EndpointSlices from the Endpoints object of a Service, if the files contain no EndpointSlices
// for the Service.
func (m *merger) mirrorEndpoints(service ir.Ref) {
	ref := ir.Ref{Kind: endpointsKind, Namespace: service.Namespace, Name: service.Name}
	object, problems := m.first(ref)
	made := map[ir.Ref]kinds.Object{}
	switch o, _ := object.(*corev1.Endpoints); { //nolint:staticcheck // the old kind is the point
	case o == nil:
	case m.slices.Get(service) > 0:
		problems = append(problems, report.Problem{
			Severity: report.Info, Reason: report.DeprecatedVersion,
			Message: fmt.Sprintf("%s:%d: ignored, because the Service has EndpointSlices", m.claims.Get(ref)[0].file,
				m.claims.Get(ref)[0].line),
		})
	default:
		for _, slice := range mirror(o) {
			made[snapshot.RefOf(slice)] = slice
		}
	}
	m.setProblems(ref, problems)
	m.replace(service, made)
}

// replace removes the EndpointSlices that were made from the Endpoints object of a Service, and adds the EndpointSlices
// in made. If a file defines an EndpointSlice with the same name, the definition in the file takes precedence.
func (m *merger) replace(service ir.Ref, made map[ir.Ref]kinds.Object) {
	for _, ref := range m.mirrors.Get(service) {
		m.mirrored.Delete(ref)
		if own, _ := m.first(ref); made[ref] == nil && own == nil {
			m.put(ref, nil)
		}
	}
	var refs []ir.Ref
	for ref, slice := range made {
		refs = append(refs, ref)
		m.mirrored.Set(ref, service)
		if own, _ := m.first(ref); own == nil {
			m.put(ref, slice)
		}
	}
	if len(refs) == 0 {
		m.mirrors.Delete(service)
	} else {
		m.mirrors.Set(service, refs)
	}
}

func serviceRef(namespace, name string) ir.Ref {
	return ir.Ref{Kind: kinds.Service, Namespace: namespace, Name: name}
}

// verdicts returns the problems of files and objects, sorted by report.Compare.
func (m *merger) verdicts() []*report.Verdict {
	list := make([]*report.Verdict, 0, m.problems.Len())
	for ref, problems := range m.problems.All() {
		list = append(list, &report.Verdict{Object: ref, Problems: slices.Clone(problems)})
	}
	slices.SortFunc(list, func(a, b *report.Verdict) int { return report.Compare(a.Object, b.Object) })
	return list
}
