package report

import (
	"slices"

	"github.com/k8singress/k8singress/internal/ir"
)

// Parent is an object that another one belongs to, and what the controller states of the other one there: a route of two
// Gateways may be accepted by one of them alone.
type Parent struct {
	ParentRef
	// Conditions have a type of their own each.
	Conditions []Condition `json:"conditions"`
}

// ParentRef names a parent as a parentRef of Gateway API does. SectionName and Port select a part of it, such as a listener;
// their zero values stand for the whole parent.
type ParentRef struct {
	Object      ir.Ref `json:"object"`
	SectionName string `json:"sectionName,omitempty"`
	Port        int32  `json:"port,omitempty"`
}

// Condition is one statement about an object under a parent.
type Condition struct {
	// Type is the word of Gateway API: Accepted, ResolvedRefs, Programmed and others.
	Type   string          `json:"type"`
	Status ConditionStatus `json:"status"`
	Reason Reason          `json:"reason"`
	// Message is for people; it may be empty.
	Message string `json:"message,omitempty"`
	// ObservedGeneration is metadata.generation of the object that the statement is about.
	ObservedGeneration int64 `json:"observedGeneration"`
}

// ConditionStatus is whether a condition holds.
type ConditionStatus string

// The values that Kubernetes has for it.
const (
	True    ConditionStatus = "True"
	False   ConditionStatus = "False"
	Unknown ConditionStatus = "Unknown"
)

// Stated returns the parents under which conditions are stated of the object.
func (v *Verdict) Stated() []Parent {
	return slices.DeleteFunc(slices.Clone(v.Parents), func(p Parent) bool { return len(p.Conditions) == 0 })
}

func (p Parent) equal(other Parent) bool {
	return p.ParentRef == other.ParentRef && slices.Equal(p.Conditions, other.Conditions)
}

// joinParents returns the parents of both lists, with the conditions of both: of two with one type, the one of more counts.
func joinParents(list, more []Parent) []Parent {
	if len(more) == 0 {
		return list
	}
	joined := slices.Clone(list)
	for _, p := range more {
		i := slices.IndexFunc(joined, func(other Parent) bool { return other.ParentRef == p.ParentRef })
		if i < 0 {
			joined = append(joined, p)
			continue
		}
		joined[i].Conditions = joinConditions(joined[i].Conditions, p.Conditions)
	}
	return joined
}

func joinConditions(list, more []Condition) []Condition {
	joined := slices.Clone(list)
	for _, c := range more {
		i := slices.IndexFunc(joined, func(other Condition) bool { return other.Type == c.Type })
		if i < 0 {
			joined = append(joined, c)
			continue
		}
		joined[i] = c
	}
	return joined
}
