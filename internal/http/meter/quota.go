package meter

import "github.com/k8singress/k8singress/internal/model/shrinking"

// quota counts the label sets of each namespace, so that one namespace cannot use up the label sets of the others.
// Package budget shares units among owners by the same rule.
type quota struct {
	used int
	of   shrinking.Map[string, int]
}

// reserve is the part of the label sets that one namespace leaves to the others, as a fraction of its maximum.
const reserve = 8

// isReached reports whether a namespace may not have another label set. If only one namespace has label sets, it may
// have maximum label sets. In general, a namespace may have reserve times as many as are free.
func (q *quota) isReached(namespace string, maximum int) bool {
	free := maximum + maximum/reserve - q.used
	return q.of.Get(namespace) >= reserve*free
}

// add adds a number to the label sets of a namespace. The number may be negative.
func (q *quota) add(namespace string, number int) {
	q.used += number
	number += q.of.Get(namespace)
	if number == 0 {
		q.of.Delete(namespace)
	} else {
		q.of.Set(namespace, number)
	}
}
