package status

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"iter"
	"slices"
	"strings"
	"unicode/utf8"

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
	// Addresses are to stand in the status of an Ingress; nil leaves the status alone.
	Addresses []networkingv1.IngressLoadBalancerIngress
	// Events are about the object. Their names follow from what they say, so that writing one twice is writing it once.
	Events []*eventsv1.Event
	// Version is the resourceVersion of the object that the change was planned from.
	Version string
}

// equal says that two changes ask for the same. Events are compared by their names, which follow from what they say.
func (c *Change) equal(other *Change) bool {
	return c.Version == other.Version && slices.EqualFunc(c.Addresses, other.Addresses, same) &&
		slices.EqualFunc(c.Events, other.Events, func(a, b *eventsv1.Event) bool { return a.Name == b.Name })
}

// controllerName is how Events name their author.
const controllerName = "k8singress"

// What the API server takes at most, in bytes.
const (
	maxNote = 1024
	maxName = 253
)

// Plan returns what is to be written. Objects about which there is nothing to write are not in it, nor are those of other
// controllers, but for their Events.
func Plan(r *report.Report, s *snapshot.Snapshot, addresses []networkingv1.IngressLoadBalancerIngress) map[ir.Ref]*Change {
	plan := map[ir.Ref]*Change{}
	for v, object := range judged(r, s) {
		events := eventsOf(v, object)
		var wanted []networkingv1.IngressLoadBalancerIngress
		if ingress, ok := object.(*networkingv1.Ingress); ok && !v.Foreign && len(addresses) > 0 &&
			!slices.EqualFunc(ingress.Status.LoadBalancer.Ingress, addresses, same) {
			wanted = addresses
		}
		if wanted != nil || len(events) > 0 {
			plan[v.Object] = &Change{Version: object.GetResourceVersion(), Addresses: wanted, Events: events}
		}
	}
	return plan
}

// judged yields the verdicts with the objects that they are on. Ingresses come in the order of both, because to look up each
// of ten thousand would be most of what a change costs.
func judged(r *report.Report, s *snapshot.Snapshot) iter.Seq2[*report.Verdict, kinds.Object] {
	return func(yield func(*report.Verdict, kinds.Object) bool) {
		for _, v := range r.Verdicts {
			if v.Object.Kind == kinds.Ingress {
				continue
			}
			object, ok := s.OfKind(v.Object.Kind).Get(v.Object.Namespace, v.Object.Name)
			if ok && !yield(v, object) {
				return
			}
		}
		first := slices.IndexFunc(r.Verdicts, func(v *report.Verdict) bool { return v.Object.Kind == kinds.Ingress })
		if first < 0 {
			return
		}
		rest := r.Verdicts[first:]
		for object := range snapshot.Of[*networkingv1.Ingress](s).All() {
			for len(rest) > 0 && !isOn(rest[0], object) && report.Compare(rest[0].Object, snapshot.RefOf(object)) < 0 {
				rest = rest[1:]
			}
			if len(rest) == 0 || isOn(rest[0], object) && !yield(rest[0], object) {
				return
			}
		}
	}
}

// isOn compares what is nearly always the same string.
func isOn(v *report.Verdict, object *networkingv1.Ingress) bool {
	return v.Object.Name == object.Name && v.Object.Namespace == object.Namespace && v.Object.Kind == kinds.Ingress
}

func eventsOf(v *report.Verdict, object kinds.Object) []*eventsv1.Event {
	var events []*eventsv1.Event
	for _, p := range v.Problems {
		if p.Severity != report.Info {
			events = append(events, eventOf(v.Object, p, object))
		}
	}
	return events
}

func eventOf(ref ir.Ref, p report.Problem, object kinds.Object) *eventsv1.Event {
	note := p.Message
	if p.Field != "" {
		note = p.Field + ": " + note
	}
	note = cut(note)
	kind, _ := kinds.ByName(ref.Kind)
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%d\x00%s\x00%s", object.GetUID(), object.GetGeneration(), p.Reason, note))
	return &eventsv1.Event{
		// Events on objects of the whole cluster are looked for in this namespace.
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

// cut shortens a note, between two characters: half of one would be replaced on its way, by more bytes.
func cut(note string) string {
	note = strings.ToValidUTF8(note, "\uFFFD")
	if len(note) <= maxNote {
		return note
	}
	end := maxNote - len("...")
	for !utf8.RuneStart(note[end]) {
		end--
	}
	return note[:end] + "..."
}

// eventName puts a sum behind the name of an object, of which it leaves out what is too long.
func eventName(object, sum string) string {
	if most := maxName - len(".") - len(sum); len(object) > most {
		object = strings.TrimRight(object[:most], ".-")
	}
	return object + "." + sum
}
