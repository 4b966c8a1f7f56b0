package report

import (
	"slices"

	"github.com/k8singress/k8singress/internal/model/ir"
)

// Parent holds the conditions of an attached object for one of its parents, such as the Gateway of a route. Conditions
// can differ between parents: one Gateway may accept a route while another Gateway rejects it.
type Parent struct {
	ParentRef
	// Conditions contains at most one condition of each type.
	Conditions []Condition `json:"conditions"`
}

// ParentRef refers to a parent like a parentRef of Gateway API. SectionName and Port select a part of the parent, such
// as a listener. If both are zero, ParentRef refers to the whole parent.
type ParentRef struct {
	Object      ir.Ref `json:"object"`
	SectionName string `json:"sectionName,omitempty"`
	Port        int32  `json:"port,omitempty"`
}

// Condition is one condition of an object that is attached to a parent, such as a route of a Gateway.
type Condition struct {
	// Type is a condition type of Gateway API: Accepted, ResolvedRefs, Programmed and others.
	Type   string          `json:"type"`
	Status ConditionStatus `json:"status"`
	Reason Reason          `json:"reason"`
	// Message is a readable explanation of the condition. It may be empty.
	Message string `json:"message,omitempty"`
	// ObservedGeneration is metadata.generation of the object that the condition describes.
	ObservedGeneration int64 `json:"observedGeneration"`
}

// ConditionStatus says whether a condition is met.
type ConditionStatus string

// The values that Kubernetes defines for a condition's status.
const (
	True    ConditionStatus = "True"
	False   ConditionStatus = "False"
	Unknown ConditionStatus = "Unknown"
)

// Stated returns the parents in v for which there is at least one condition.
func (v *Verdict) Stated() []Parent {
	return slices.DeleteFunc(slices.Clone(v.Parents), func(p Parent) bool { return len(p.Conditions) == 0 })
}

func (p Parent) equal(other Parent) bool {
	return p.ParentRef == other.ParentRef && slices.Equal(p.Conditions, other.Conditions)
}

// joinParents merges two lists of parents, and the conditions of each parent. If both lists contain a condition of the
// same type for a parent, the result contains the condition from the second list (more).
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
