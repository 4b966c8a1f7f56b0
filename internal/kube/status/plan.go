package status

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"iter"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/kinds"
	"github.com/k8singress/k8singress/internal/model/report"
	"github.com/k8singress/k8singress/internal/model/snapshot"
)

// Change holds the writes that are planned for one object.
type Change struct {
	// Status is a JSON merge patch for the status of the object. If it is empty, the status is not changed.
	Status string
	// Events are the Events about the object. The name of an Event is derived from its contents, so that the same Event
	// is written only once.
	Events []*eventsv1.Event
	// Version is the resourceVersion of the object when the change was planned.
	Version string
	// UID is the UID of the object.
	UID types.UID
}

// equal reports whether two changes are equal. Events are equal if their names are equal.
func (c *Change) equal(other *Change) bool {
	return c.Version == other.Version && c.Status == other.Status &&
		slices.EqualFunc(c.Events, other.Events, func(a, b *eventsv1.Event) bool { return a.Name == b.Name })
}

// controllerName is the name under which the controller writes Events.
const controllerName = "k8singress"

// The maximum lengths, in bytes, that the API server accepts for the note and the name of an Event.
const (
	maxNote = 1024
	maxName = 253
)

// Plan returns the planned changes of all objects whose status or Events must be written. For objects that other
// controllers serve, only Events are written.
func Plan(r *report.Report, s *snapshot.Snapshot,
	addresses []networkingv1.IngressLoadBalancerIngress) map[ir.Ref]*Change {
	plan := map[ir.Ref]*Change{}
	for rest := r.Verdicts; len(rest) > 0; {
		kind := rest[0].Object.Kind
		end := slices.IndexFunc(rest, func(v *report.Verdict) bool { return v.Object.Kind != kind })
		if end < 0 {
			end = len(rest)
		}
		status := func(*report.Verdict, kinds.Object) string { return "" }
		if row, ok := patchers[kind]; ok {
			status = row(addresses)
		}
		for v, object := range judged(rest[:end], s.OfKind(kind)) {
			events, patch := eventsOf(v, object), status(v, object)
			if patch != "" || len(events) > 0 {
				plan[v.Object] = &Change{Version: object.GetResourceVersion(), UID: object.GetUID(), Status: patch,
					Events: events}
			}
		}
		rest = rest[end:]
	}
	return plan
}

// fewVerdicts determines how the function judged finds the objects with problems: if less than 1/fewVerdicts of the
// objects of a kind have a verdict, judged looks up each of them by name.
const fewVerdicts = 8

// judged yields each object of one kind that has a verdict, together with the verdict, which holds the problems of the
// object. verdicts must be sorted. If many objects have a verdict, judged iterates over verdicts and the sorted objects
// in parallel, because looking up thousands of objects by name takes longer.
func judged(verdicts []*report.Verdict,
	objects snapshot.Objects[kinds.Object]) iter.Seq2[*report.Verdict, kinds.Object] {
	return func(yield func(*report.Verdict, kinds.Object) bool) {
		if len(verdicts) < objects.Len()/fewVerdicts {
			for _, v := range verdicts {
				object, ok := objects.Get(v.Object.Namespace, v.Object.Name)
				if ok && !yield(v, object) {
					return
				}
			}
			return
		}
		rest := verdicts
		for object := range objects.All() {
			namespace, name := object.GetNamespace(), object.GetName()
			for len(rest) > 0 && before(rest[0].Object, namespace, name) {
				rest = rest[1:]
			}
			if len(rest) == 0 {
				return
			}
			if rest[0].Object.Name == name && rest[0].Object.Namespace == namespace && !yield(rest[0], object) {
				return
			}
		}
	}
}

// before reports whether the object of a verdict sorts before the object with the given namespace and name.
func before(ref ir.Ref, namespace, name string) bool {
	return ref.Namespace < namespace || ref.Namespace == namespace && ref.Name < name
}

// maxEvents is the maximum number of Events per object. The limit is necessary because an annotation can cause
// thousands of problems, and each edit of it would create new Events for all of them.
const maxEvents = 20

// eventsOf returns an Event for each problem of an object. If there are too many problems, errors take precedence over
// warnings, and the last Event says how many problems are omitted.
func eventsOf(v *report.Verdict, object kinds.Object) []*eventsv1.Event {
	var errors, warnings []report.Problem
	for _, p := range v.Problems {
		switch p.Severity {
		case report.Error:
			errors = append(errors, p)
		case report.Warning:
			warnings = append(warnings, p)
		case report.Info:
		}
	}
	all := slices.Concat(errors, warnings)
	if more := len(all) - maxEvents; more > 0 {
		all = append(all[:maxEvents-1], report.Problem{Reason: report.MoreProblems, Message: fmt.Sprintf(
			"and %d more problems, which GET /k8singress/objects of the admin API lists and caddy k8singress "+
				"lint prints",
			more+1)})
	}
	var events []*eventsv1.Event
	for _, p := range all {
		events = append(events, eventOf(v.Object, p, object))
	}
	return events
}

func eventOf(ref ir.Ref, p report.Problem, object kinds.Object) *eventsv1.Event {
	note := p.Message
	if p.Field != "" {
		note = p.Field + ": " + note
	}
	note = report.Cut(strings.ToValidUTF8(note, "\uFFFD"), maxNote)
	kind, _ := kinds.ByName(ref.Kind)
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%d\x00%s\x00%s", object.GetUID(), object.GetGeneration(),
		p.Reason, note))
	return &eventsv1.Event{
		// kubectl looks for Events on cluster-scoped objects in the namespace default.
		ObjectMeta: metav1.ObjectMeta{
			Namespace: cmp.Or(ref.Namespace, metav1.NamespaceDefault),
			Name:      eventName(ref.Name, hex.EncodeToString(sum[:8])),
		},
		Regarding: corev1.ObjectReference{
			APIVersion: kind.GroupVersion.String(), Kind: ref.Kind, Namespace: ref.Namespace, Name: ref.Name,
			UID: object.GetUID(), ResourceVersion: object.GetResourceVersion(),
		},
		Type: corev1.EventTypeWarning, Reason: string(p.Reason), Action: "Translate", Note: note,
		ReportingController: controllerName,
	}
}

// eventName returns the name of an Event: the name of the object and a hash. The name of the object is shortened if the
// result would be too long.
func eventName(object, sum string) string {
	if most := maxName - len(".") - len(sum); len(object) > most {
		object = strings.TrimRight(object[:most], ".-")
	}
	return object + "." + sum
}
