package status_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/k8singress/k8singress/internal/kube/status"
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/kinds"
	"github.com/k8singress/k8singress/internal/model/report"
	"github.com/k8singress/k8singress/internal/model/snapshot"
)

// taken returns a snapshot that contains these objects.
func taken(objects ...kinds.Object) *snapshot.Snapshot {
	store := snapshot.NewStore()
	for _, o := range objects {
		store.Set(o.DeepCopyObject().(kinds.Object))
	}
	return store.Take()
}

// ingress returns an Ingress of namespace a with these addresses in its status.
func ingress(name string, addresses ...string) *networkingv1.Ingress {
	o := &networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{
		Namespace: "a", Name: name, UID: types.UID("uid-" + name), ResourceVersion: "7", Generation: 2,
	}}
	for _, address := range addresses {
		o.Status.LoadBalancer.Ingress = append(o.Status.LoadBalancer.Ingress,
			networkingv1.IngressLoadBalancerIngress{IP: address})
	}
	return o
}

func refOf(name string) ir.Ref { return ir.Ref{Kind: kinds.Ingress, Namespace: "a", Name: name} }

// reportOn returns a report with a verdict on each of these Ingresses of namespace a.
func reportOn(names ...string) *report.Report {
	r := &report.Report{}
	slices.Sort(names)
	for _, name := range names {
		r.Verdicts = append(r.Verdicts, &report.Verdict{Object: refOf(name), Parents: []report.Parent{{}}})
	}
	return r
}

func problem(severity report.Severity, message string) report.Problem {
	return report.Problem{Severity: severity, Reason: report.ServiceNotFound, Message: message}
}

// warned returns a report on one Ingress with one problem.
func warned(name, message string) *report.Report {
	r := reportOn(name)
	r.Verdicts[0].Problems = []report.Problem{problem(report.Warning, message)}
	return r
}

func addresses(all ...string) []networkingv1.IngressLoadBalancerIngress {
	return status.Addresses(taken(), all, ir.Name{})
}

func TestPlanOfAddresses(t *testing.T) {
	s := taken(ingress("old", "192.0.2.9"), ingress("new"), ingress("right", "192.0.2.1", "192.0.2.2"),
		ingress("foreign"))
	r := reportOn("foreign", "missing", "new", "old", "right")
	r.Get(refOf("foreign")).Parents = nil
	const want = `{"status":{"loadBalancer":{"ingress":[{"ip":"192.0.2.1"},{"ip":"192.0.2.2"}]}}}`
	plan := status.Plan(r, s, addresses("192.0.2.2", "192.0.2.1"))
	if d := cmp.Diff(map[ir.Ref]*status.Change{
		refOf("old"): {Status: want, Version: "7", UID: "uid-old"},
		refOf("new"): {Status: want, Version: "7", UID: "uid-new"},
	}, plan); d != "" {
		t.Error(d)
	}
	if plan := status.Plan(r, s, nil); len(plan) != 0 {
		t.Errorf("without an address there is %d to write", len(plan))
	}
}

func TestPlanOfEvents(t *testing.T) {
	r := reportOn("foreign", "quiet", "web")
	r.Get(refOf("web")).Problems = []report.Problem{
		{Severity: report.Error, Reason: report.InvalidPath, Field: "spec.rules[0]", Message: "a bad path"},
		problem(report.Warning, "no such Service"), problem(report.Info, "for the curious"),
	}
	r.Get(refOf("quiet")).Problems = []report.Problem{problem(report.Info, "for the curious")}
	r.Get(refOf("foreign")).Problems = []report.Problem{problem(report.Error, "an unknown class")}
	r.Get(refOf("foreign")).Parents = nil
	plan := status.Plan(r, taken(ingress("web"), ingress("quiet"), ingress("foreign")), nil)
	if len(plan) != 2 || len(plan[refOf("foreign")].Events) != 1 {
		t.Fatalf("the plan has %d objects", len(plan))
	}
	var notes []string
	for _, e := range plan[refOf("web")].Events {
		notes = append(notes, e.Type+" "+e.Reason+" "+e.Note)
		wantAbout(t, e)
	}
	if d := cmp.Diff([]string{"Warning InvalidPath spec.rules[0]: a bad path",
		"Warning ServiceNotFound no such Service"}, notes); d != "" {
		t.Error(d)
	}
}

// TestEventOnAnObjectOfTheCluster checks that Events on cluster-scoped objects are in the namespace default, and that
// their reference to the object has no namespace.
func TestEventOnAnObjectOfTheCluster(t *testing.T) {
	ref := ir.Ref{Kind: kinds.IngressClass, Name: "nginx"}
	r := &report.Report{Verdicts: []*report.Verdict{{Object: ref,
		Problems: []report.Problem{problem(report.Warning, "no parameters")}}}}
	class := &networkingv1.IngressClass{ObjectMeta: metav1.ObjectMeta{Name: "nginx", UID: "uid"}}
	change := status.Plan(r, taken(class), nil)[ref]
	if change == nil || len(change.Events) != 1 || change.Status != "" {
		t.Fatalf("the plan is %+v", change)
	}
	e := change.Events[0]
	if e.Namespace != "default" || e.Regarding.Namespace != "" || e.Regarding.APIVersion != "networking.k8s.io/v1" ||
		e.Regarding.UID != "uid" {
		t.Errorf("the Event is in %q, about %+v", e.Namespace, e.Regarding)
	}
}

// TestEventOnAService checks that a problem of a Service becomes an Event, which the owner of a Service that requests
// ports sees in kubectl describe.
func TestEventOnAService(t *testing.T) {
	ref := ir.Ref{Kind: kinds.Service, Namespace: "a", Name: "db"}
	r := &report.Report{Verdicts: []*report.Verdict{{Object: ref, Problems: []report.Problem{
		{Severity: report.Error, Reason: report.PortConflict, Field: "metadata.annotations[k8singress.io/tcp-ports]",
			Message: "taken"},
	}}}}
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "db", UID: "uid"}}
	change := status.Plan(r, taken(service), nil)[ref]
	if change == nil || len(change.Events) != 1 || change.Status != "" {
		t.Fatalf("the plan is %+v", change)
	}
	e := change.Events[0]
	want := corev1.ObjectReference{APIVersion: "v1", Kind: "Service", Namespace: "a", Name: "db", UID: "uid"}
	if d := cmp.Diff(want, e.Regarding); d != "" || e.Namespace != "a" || e.Reason != "PortConflict" ||
		e.Note != "metadata.annotations[k8singress.io/tcp-ports]: taken" {
		t.Errorf("the Event says %s %q in %q: %s", e.Reason, e.Note, e.Namespace, d)
	}
}

func wantAbout(t *testing.T, e *eventsv1.Event) {
	t.Helper()
	want := corev1.ObjectReference{
		APIVersion: "networking.k8s.io/v1", Kind: "Ingress", Namespace: "a", Name: "web", UID: "uid-web",
		ResourceVersion: "7",
	}
	if d := cmp.Diff(want, e.Regarding); d != "" {
		t.Error(d)
	}
	if e.Namespace != "a" || e.Action == "" || e.ReportingController != "k8singress" {
		t.Errorf("an Event that the API server refuses: %+v", e)
	}
}

// TestNamesOfEvents checks that the name of an Event depends on its content and its object. Other replicas that want to
// write the same Event detect by the name that it exists.
func TestNamesOfEvents(t *testing.T) {
	name := func(message string, edit func(*networkingv1.Ingress)) string {
		o := ingress("web")
		edit(o)
		return status.Plan(warned("web", message), taken(o), nil)[refOf("web")].Events[0].Name
	}
	first := name("one", func(*networkingv1.Ingress) {})
	if again := name("one", func(o *networkingv1.Ingress) { o.ResourceVersion = "8" }); again != first {
		t.Errorf("the name changed from %s to %s with a version that says nothing", first, again)
	}
	for what, other := range map[string]string{
		"message":    name("two", func(*networkingv1.Ingress) {}),
		"generation": name("one", func(o *networkingv1.Ingress) { o.Generation++ }),
		"object":     name("one", func(o *networkingv1.Ingress) { o.UID = "another" }),
	} {
		if other == first {
			t.Errorf("another %s has the same name", what)
		}
	}
}

func TestEventsFitTheLimitsOfTheAPI(t *testing.T) {
	for name, c := range map[string]struct{ object, message, want string }{
		"short":      {"web", "ä", "ä"},
		"just fits":  {"web", strings.Repeat("x", 1024), strings.Repeat("x", 1024)},
		"long":       {"web", strings.Repeat("x", 1025), strings.Repeat("x", 1021) + "…"},
		"wide":       {"web", strings.Repeat("ä", 600), strings.Repeat("ä", 510) + "…"},
		"wider":      {"web", "x" + strings.Repeat("\U0001F600", 300), "x" + strings.Repeat("\U0001F600", 255) + "…"},
		"words":      {"web", strings.Repeat("word, ", 171), strings.Repeat("word, ", 169) + "word…"},
		"not UTF-8":  {"web", "a\xffb", "a\uFFFDb"},
		"grows":      {"web", strings.Repeat("\xff-", 500), strings.Repeat("\uFFFD-", 255) + "…"},
		"long name":  {strings.Repeat("n", 253), "x", "x"},
		"ends badly": {strings.Repeat("n", 235) + ".-nnnnnnnnnnnnnnnn", "x", "x"},
	} {
		t.Run(name, func(t *testing.T) {
			e := status.Plan(warned(c.object, c.message), taken(ingress(c.object)), nil)[refOf(c.object)].Events[0]
			if e.Note != c.want || len(e.Note) > 1024 || !utf8.ValidString(e.Note) {
				t.Errorf("a note of %d bytes: %q", len(e.Note), e.Note)
			}
			if faults := validation.IsDNS1123Subdomain(e.Name); len(faults) > 0 {
				t.Errorf("the name %s: %v", e.Name, faults)
			}
		})
	}
}

// TestTenant10EventsOfAnObject checks that the number of Events is limited if an annotation contains thousands of
// mistakes.
func TestTenant10EventsOfAnObject(t *testing.T) {
	r := reportOn("web")
	for n := range 1500 {
		severity := report.Warning
		if n%500 == 499 {
			severity = report.Error
		}
		r.Verdicts[0].Problems = append(r.Verdicts[0].Problems, problem(severity, fmt.Sprint("mistake ", n)))
	}
	events := status.Plan(r, taken(ingress("web")), nil)[refOf("web")].Events
	if len(events) != 20 || events[0].Note != "mistake 499" || events[3].Note != "mistake 0" {
		t.Fatalf("%d Events, of which the first are %q and %q", len(events), events[0].Note, events[3].Note)
	}
	if last := events[19]; last.Reason != "MoreProblems" || !strings.HasPrefix(last.Note, "and 1481 more problems, ") {
		t.Errorf("the last Event says %s: %s", last.Reason, last.Note)
	}
	r.Verdicts[0].Problems = r.Verdicts[0].Problems[:20]
	if events := status.Plan(r, taken(ingress("web")), nil)[refOf("web")].Events; len(events) != 20 ||
		events[19].Note != "mistake 19" {
		t.Errorf("%d Events for 20 problems", len(events))
	}
}
