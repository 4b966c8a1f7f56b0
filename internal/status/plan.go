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

	"github.com/k8singress/k8singress/internal/ir"
	"github.com/k8singress/k8singress/internal/kinds"
	"github.com/k8singress/k8singress/internal/report"
	"github.com/k8singress/k8singress/internal/snapshot"
)

// Change is what is to be written about one object.
type Change struct {
	// Status is a JSON merge patch for the status of the object; an empty one leaves the status alone.
	Status string
	// Events are about the object. Their names are made of their contents, so that an Event is written once.
	Events []*eventsv1.Event
	// Version is the resourceVersion of the object that the change was planned from.
	Version string
}

// equal reports whether two changes ask for the same. Events are compared by their names.
func (c *Change) equal(other *Change) bool {
	return c.Version == other.Version && c.Status == other.Status &&
		slices.EqualFunc(c.Events, other.Events, func(a, b *eventsv1.Event) bool { return a.Name == b.Name })
}

// controllerName is how Events name their author.
const controllerName = "k8singress"

// Limits of the API server, in bytes.
const (
	maxNote = 1024
	maxName = 253
)

// Plan returns what is to be written, without the objects that need nothing. Objects of other controllers get Events only.
func Plan(r *report.Report, s *snapshot.Snapshot, addresses []networkingv1.IngressLoadBalancerIngress) map[ir.Ref]*Change {
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
				plan[v.Object] = &Change{Version: object.GetResourceVersion(), Status: patch, Events: events}
			}
		}
		rest = rest[end:]
	}
	return plan
}

// fewVerdicts is the share of the objects of a kind, as 1 of so many, below which each is looked up.
const fewVerdicts = 8

// judged yields verdicts on one kind, which are sorted, with the objects that they are on. Where most objects have a verdict,
// it goes through both in their order: to look up each of ten thousand Ingresses would be most of what a change costs.
func judged(verdicts []*report.Verdict, objects snapshot.Objects[kinds.Object]) iter.Seq2[*report.Verdict, kinds.Object] {
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

// before reports whether a verdict is on an object that sorts before the one with a namespace and name.
func before(ref ir.Ref, namespace, name string) bool {
	return ref.Namespace < namespace || ref.Namespace == namespace && ref.Name < name
}

// maxEvents is how many Events there are about an object: annotations have room for thousands of problems, and every edit makes all of
// them again.
const maxEvents = 20

// eventsOf returns an Event for each problem. Where there are too many, errors come before warnings, and the last Event counts the
// others.
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
			"and %d more: GET /k8singress/objects of the admin API has all, and caddy k8singress lint prints them", more+1)})
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
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%d\x00%s\x00%s", object.GetUID(), object.GetGeneration(), p.Reason, note))
	return &eventsv1.Event{
		// kubectl looks here for Events on objects of the whole cluster.
		ObjectMeta: metav1.ObjectMeta{
			Namespace: cmp.Or(ref.Namespace, metav1.NamespaceDefault), Name: eventName(ref.Name, hex.EncodeToString(sum[:8])),
		},
		Regarding: corev1.ObjectReference{
			APIVersion: kind.GroupVersion.String(), Kind: ref.Kind, Namespace: ref.Namespace, Name: ref.Name,
			UID: object.GetUID(), ResourceVersion: object.GetResourceVersion(),
		},
		Type: corev1.EventTypeWarning, Reason: string(p.Reason), Action: "Translate", Note: note,
		ReportingController: controllerName,
	}
}

// eventName appends a sum to the name of an object, which it shortens if the result would be too long.
func eventName(object, sum string) string {
	if most := maxName - len(".") - len(sum); len(object) > most {
		object = strings.TrimRight(object[:most], ".-")
	}
	return object + "." + sum
}
