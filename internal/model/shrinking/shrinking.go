// Package shrinking provides maps that release memory when elements are deleted. A Go map keeps the memory of the
// largest number of elements that it ever had. So without this package, a controller of a cluster that once had ten
// thousand hosts would keep their memory until it is restarted.
//
// Use Map for a map that lives as long as the process and holds one element for each object, host or backend. Maps that
// are created for one operation, and maps that have few elements, can be Go maps.
package shrinking

import (
	"iter"
	"maps"
)

// Map is a map whose memory depends on the number of its elements, and not on their number in the past. The zero value
// is an empty map. As with Go maps, methods that only read may run concurrently, and on a nil pointer they find no
// elements. Set, Delete and Clear panic on a nil pointer.
//
// Delete sometimes copies the remaining elements to a smaller Go map. This happens when at least three quarters of the
// elements were deleted, so on average a deletion copies less than one element.
type Map[K comparable, V any] struct {
	elements map[K]V
	// peak is the largest length seen by Delete since the Go map was created.
	peak int
	// replacements is the number of Go maps that Delete and Clear have replaced. All compares it to see that this has
	// happened.
	replacements int
}

const (
	// smallest is the number of elements for which a Go map needs as much memory as for one element.
	smallest = 8
	// remaining is the part of the elements that is left when they are copied to a smaller map, as a fraction.
	remaining = 4
)

// Get returns the value of a key, or the zero value if the key does not exist.
func (m *Map[K, V]) Get(key K) V { return m.read()[key] }

// Find returns the value of a key. It returns false if the key does not exist.
func (m *Map[K, V]) Find(key K) (V, bool) {
	value, ok := m.read()[key]
	return value, ok
}

// Has reports whether a key exists.
func (m *Map[K, V]) Has(key K) bool {
	_, ok := m.read()[key]
	return ok
}

// Len returns the number of elements.
func (m *Map[K, V]) Len() int { return len(m.read()) }

func (m *Map[K, V]) read() map[K]V {
	if m == nil {
		return nil
	}
	return m.elements
}

// Set adds an element, or replaces the value of its key.
func (m *Map[K, V]) Set(key K, value V) {
	if m.elements == nil {
		m.elements = map[K]V{}
	}
	m.elements[key] = value
}

// Delete removes an element. It does nothing if the key does not exist.
func (m *Map[K, V]) Delete(key K) {
	m.peak = max(m.peak, len(m.elements))
	delete(m.elements, key)
	if n := len(m.elements); m.peak > smallest && n < m.peak/remaining {
		m.replace(Copy(m.elements))
	}
}

// Clear removes all elements.
func (m *Map[K, V]) Clear() {
	if max(m.peak, len(m.elements)) > smallest {
		m.replace(nil)
	} else {
		clear(m.elements)
	}
}

func (m *Map[K, V]) replace(elements map[K]V) {
	m.elements, m.peak = elements, len(elements)
	m.replacements++
}

// All yields all elements in no particular order. As with a Go map, the loop may change the map: it does not get
// elements that it has deleted before their turn, and it may or may not get elements that it has added.
func (m *Map[K, V]) All() iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		if m == nil {
			return
		}
		replacements := m.replacements
		for key, value := range m.elements {
			if m.replacements != replacements {
				// The loop has deleted elements, and now ranges over the old Go map, which still has them.
				var ok bool
				if value, ok = m.elements[key]; !ok {
					continue
				}
			}
			if !yield(key, value) {
				return
			}
		}
	}
}

// Keys yields all keys, under the conditions of All.
func (m *Map[K, V]) Keys() iter.Seq[K] {
	return func(yield func(K) bool) {
		for key := range m.All() {
			if !yield(key) {
				return
			}
		}
	}
}

// Values yields all values, under the conditions of All.
func (m *Map[K, V]) Values() iter.Seq[V] {
	return func(yield func(V) bool) {
		for _, value := range m.All() {
			if !yield(value) {
				return
			}
		}
	}
}

// Clone returns a copy of the map.
func (m *Map[K, V]) Clone() *Map[K, V] {
	return &Map[K, V]{elements: maps.Clone(m.read()), peak: max(m.peak, m.Len())}
}

// Copy returns a copy of a Go map that has only the memory that its elements need, or nil for an empty map. A copy by
// maps.Clone has as much memory as the original. Use it for a map that is copied whenever it changes, after deletions.
func Copy[K comparable, V any](m map[K]V) map[K]V {
	if len(m) == 0 {
		return nil
	}
	copied := make(map[K]V, len(m))
	maps.Copy(copied, m)
	return copied
}

// Trim returns a list without most of its unused capacity: if less than a quarter of the capacity is used, it returns a
// copy. Use it after elements of a list that lives long were deleted.
func Trim[S ~[]E, E any](list S) S {
	if cap(list) > smallest && len(list) < cap(list)/remaining {
		return append(make(S, 0, len(list)), list...)
	}
	return list
}
