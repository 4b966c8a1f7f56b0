package snapshot

import (
	"iter"
	"reflect"
	"strings"

	"github.com/tidwall/btree"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/k8singress/k8singress/internal/model/kinds"
)

// Objects holds the objects of one kind by namespace and name. Cluster-scoped objects have the namespace "".
type Objects[T kinds.Object] struct{ table *table }

// Get returns one object.
func (o Objects[T]) Get(namespace, name string) (T, bool) {
	object, ok := o.table.all.Get(key(namespace, name))
	typed, _ := object.(T)
	return typed, ok
}

// All yields the objects in the order of namespace and name.
func (o Objects[T]) All() iter.Seq[T] { return all[T](&o.table.all) }

// Len returns the number of objects.
func (o Objects[T]) Len() int { return o.table.all.Len() }

// Annotated yields the objects that have an annotation with the prefix kinds.OwnPrefix, in the order of namespace and
// name. ListsAnnotated must be set for the kind. Annotated reads an index, because even a large cluster has few of
// these objects.
func (o Objects[T]) Annotated() iter.Seq[T] { return all[T](&o.table.index) }

func all[T kinds.Object](t *tree) iter.Seq[T] {
	return func(yield func(T) bool) {
		t.Scan(func(_ string, object kinds.Object) bool { return yield(object.(T)) })
	}
}

// OwnedBy yields the objects of one owner, such as the EndpointSlices of a Service, in the order of their names. The
// kind must have an Owner function.
func (o Objects[T]) OwnedBy(namespace, owner string) iter.Seq[T] {
	prefix := key(namespace, owner) + separator
	return func(yield func(T) bool) {
		o.table.index.Ascend(prefix, func(k string, object kinds.Object) bool {
			return strings.HasPrefix(k, prefix) && yield(object.(T))
		})
	}
}

// separator sorts before every character of a name, so that the objects of a namespace are adjacent.
const separator = "\x00"

func key(namespace, name string) string { return namespace + separator + name }

// tree is a sorted map that can be copied in constant time: the copy shares the nodes until one of the two maps changes
// them.
type tree = btree.Map[string, kinds.Object]

// table holds the objects of one kind.
type table struct {
	row *kinds.Kind
	all tree
	// index is an additional map of objects. For kinds with an Owner, its keys consist of the namespace, the name of
	// the owner and the name of the object. For kinds with ListsAnnotated, it contains only the annotated objects, with
	// the same keys as all. It is empty for other kinds.
	index tree
	// stale is set if the table has changed since the last snapshot.
	stale bool
}

func (t *table) copy() *table {
	copied := &table{row: t.row, all: *t.all.Copy()}
	if t.index.Len() > 0 {
		copied.index = *t.index.Copy()
	}
	return copied
}

func (t *table) key(o kinds.Object) string {
	if t.row.ClusterScoped {
		return key("", o.GetName())
	}
	return key(o.GetNamespace(), o.GetName())
}

// get returns the object with the namespace and name of o, or nil if there is no such object.
func (t *table) get(o kinds.Object) kinds.Object {
	old, _ := t.all.Get(t.key(o))
	return old
}

// The method set adds o and returns the object that it replaces, or nil.
func (t *table) set(o kinds.Object) kinds.Object {
	t.stale = true
	old, _ := t.all.Set(t.key(o), o)
	before, after := t.indexKey(old), t.indexKey(o)
	if before != "" && before != after {
		t.index.Delete(before)
	}
	if after != "" {
		t.index.Set(after, o)
	}
	return old
}

// remove removes the object with the namespace and name of o and returns it. It returns nil if there is no such object.
func (t *table) remove(o kinds.Object) kinds.Object {
	old, ok := t.all.Delete(t.key(o))
	if k := t.indexKey(old); k != "" {
		t.index.Delete(k)
	}
	t.stale = t.stale || ok
	return old
}

// indexKey returns the key of an object in the index, or "" if the object is not in the index.
func (t *table) indexKey(o kinds.Object) string {
	switch {
	case o == nil:
	case t.row.Owner != nil:
		return key(o.GetNamespace(), t.row.Owner(o)) + separator + o.GetName()
	case t.row.ListsAnnotated && kinds.HasOwnAnnotation(o):
		return t.key(o)
	}
	return ""
}

// The method same reports whether two versions of an object are equal except for ignored changes, such as a new
// resourceVersion.
func (t *table) same(a, b kinds.Object) bool {
	return kinds.SameVersion(a, b) || equality.Semantic.DeepEqual(t.meaning(a), t.meaning(b))
}

// The method meaning returns a shallow copy of an object without the fields whose changes are ignored, such as the
// resourceVersion.
func (t *table) meaning(o kinds.Object) kinds.Object {
	copied := t.row.New()
	fields := reflect.ValueOf(copied).Elem()
	fields.Set(reflect.ValueOf(o).Elem())
	copied.SetResourceVersion("")
	copied.SetGeneration(0)
	copied.SetManagedFields(nil)
	if t.row.WritesStatus {
		fields.FieldByName("Status").SetZero()
	}
	return copied
}
