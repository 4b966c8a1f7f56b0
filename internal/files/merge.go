package files

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/k8singress/k8singress/internal/ir"
	"github.com/k8singress/k8singress/internal/kinds"
	"github.com/k8singress/k8singress/internal/report"
	"github.com/k8singress/k8singress/internal/snapshot"
)

// merge makes one cluster of many files, which come in the order of their names. Of two objects with the same name, the
// first one counts.
func merge(list []*parsed) ([]kinds.Object, []*report.Verdict) {
	m := &merger{first: map[ir.Ref]*found{}, problems: map[ir.Ref][]report.Problem{}, sliced: map[ir.Ref]bool{}}
	for _, p := range list {
		m.problems[fileRef(p.name)] = p.problems
		for _, f := range p.objects {
			m.add(f)
		}
	}
	for _, f := range m.endpoints {
		m.mirror(f)
	}
	return m.objects, m.verdicts()
}

type merger struct {
	first    map[ir.Ref]*found
	problems map[ir.Ref][]report.Problem
	objects  []kinds.Object
	// sliced are the Services that have EndpointSlices, and endpoints those Endpoints that may have to be made into some.
	sliced    map[ir.Ref]bool
	endpoints []*found
}

func (m *merger) add(f *found) {
	m.problems[f.ref] = append(m.problems[f.ref], f.problems...)
	if f.object == nil {
		return
	}
	if first, ok := m.first[f.ref]; ok {
		m.problems[f.ref] = append(m.problems[f.ref], report.Problem{
			Severity: report.Warning, Reason: report.DuplicateObject,
			Message: fmt.Sprintf("%s:%d: left out, %s:%d has the same object", f.file, f.line, first.file, first.line),
		})
		return
	}
	m.first[f.ref] = f
	switch o := f.object.(type) {
	case *corev1.Endpoints: //nolint:staticcheck // the old kind is the point
		m.endpoints = append(m.endpoints, f)
		return
	case *discoveryv1.EndpointSlice:
		m.sliced[serviceRef(o.Namespace, snapshot.ServiceOf(o))] = true
	}
	m.objects = append(m.objects, f.object)
}

// mirror uses Endpoints where the Service has no slices.
func (m *merger) mirror(f *found) {
	if m.sliced[serviceRef(f.ref.Namespace, f.ref.Name)] {
		m.problems[f.ref] = append(m.problems[f.ref], report.Problem{
			Severity: report.Info, Reason: report.OldVersion,
			Message: fmt.Sprintf("%s:%d: left out, because the Service has EndpointSlices", f.file, f.line),
		})
		return
	}
	for _, o := range mirror(f.object.(*corev1.Endpoints)) { //nolint:staticcheck // as above
		ref := snapshot.RefOf(o)
		if _, taken := m.first[ref]; !taken {
			m.first[ref] = f
			m.objects = append(m.objects, o)
		}
	}
}

func serviceRef(namespace, name string) ir.Ref {
	return ir.Ref{Kind: kinds.Service, Namespace: namespace, Name: name}
}

func (m *merger) verdicts() []*report.Verdict {
	var list []*report.Verdict
	for ref, problems := range m.problems {
		if len(problems) > 0 {
			list = append(list, &report.Verdict{Object: ref, Problems: slices.Clone(problems)})
		}
	}
	slices.SortFunc(list, func(a, b *report.Verdict) int { return report.Compare(a.Object, b.Object) })
	return list
}
