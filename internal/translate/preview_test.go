package translate_test

import (
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"
	networkingv1 "k8s.io/api/networking/v1"
	"pgregory.net/rapid"

	"github.com/k8singress/k8singress/internal/model/report"
	"github.com/k8singress/k8singress/internal/model/snapshot"
	"github.com/k8singress/k8singress/internal/translate"
	"github.com/k8singress/k8singress/internal/translate/admission"
	"github.com/k8singress/k8singress/internal/translate/annotations"
)

// aliases are values of server-alias that conflict with the hosts of other Ingresses, and with each other.
var aliases = []string{"a.example", "c.example", "*.example", "*.a.example", "d.example, e.example", "e.example",
	"~^f.*$", "*.com", "c.a.example"}

// reviewOptions are options under which reviews are compared with verdicts.
var reviewOptions = map[string]translate.Options{
	"open": options, "narrow": narrow, "issuance": scarce, "owned": owned(scarce), "reserved": reserved(owned(options)),
}

// TestReviewsEqualVerdicts checks that the review of a random Ingress has the same problems as the verdict that the
// Ingress gets once it is stored.
func TestReviewsEqualVerdicts(t *testing.T) {
	all := readTables(t)
	for name, o := range reviewOptions {
		o.Views = true
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) { checkReviews(t, newWorld(all), o) })
		})
	}
}

// FuzzReviews is TestReviewsEqualVerdicts with input from the fuzzer.
func FuzzReviews(f *testing.F) {
	all := readTables(f)
	f.Fuzz(rapid.MakeFuzz(func(t *rapid.T) {
		o := reviewOptions[draw(t, []string{"open", "narrow", "issuance", "owned", "reserved"})]
		o.Views = true
		checkReviews(t, newWorld(all), o)
	}))
}

// checkReviews reviews Ingresses, stores them, and compares the review with the verdict. Other objects change, too.
func checkReviews(t *rapid.T, w *world, o translate.Options) {
	translator := translate.New()
	for range rapid.IntRange(1, 8).Draw(t, "reviews") {
		for range rapid.IntRange(0, 6).Draw(t, "steps") {
			w.step(t)
		}
		s := w.store.Take()
		translator.Translate(s, o)
		view := translator.View(s)

		object := drawIngress(t, w.tables)
		if once(t, 3, "aliases") {
			object.Annotations[annotations.Prefix+"server-alias"] = draw(t, aliases)
		}
		ref := snapshot.RefOf(object)
		old := w.ingresses[ref]
		if old != nil {
			object.CreationTimestamp = old.CreationTimestamp
		}
		preview := view.Preview(object, never)
		answer := admission.Review(view, object, old, never)

		w.store.Set(object)
		w.ingresses[ref] = object
		_, verdicts := translator.Translate(w.store.Take(), o)
		var stored []report.Problem
		if v := verdicts.Get(ref); v != nil {
			stored = v.Problems
		}
		want := reviewable(stored)
		if diff := cmp.Diff(want, reviewable(preview.Problems)); diff != "" {
			t.Fatalf("problems of %s (-verdict +review):\n%s", ref, diff)
		}
		if preview.Ours && !unchanged(object, old) {
			checkAnswer(t, answer, preview)
		}
	}
}

func never() bool { return false }

func unchanged(object, old *networkingv1.Ingress) bool {
	return old != nil && cmp.Equal(object.Spec, old.Spec) && cmp.Equal(object.Annotations, old.Annotations)
}

// reviewable returns the problems that are compared. They omit limits that several Ingresses of a namespace share, and
// conflicts about the load balancing of a backend: reviews lack them if a canary uses the backend, and verdicts lack
// them if no route does.
func reviewable(problems []report.Problem) []report.Problem {
	return slices.DeleteFunc(slices.Clone(problems), func(p report.Problem) bool {
		return p.Reason == report.QuotaExceeded || p.Reason == report.BackendConflict
	})
}

// checkAnswer checks that each problem is a refusal or a warning, and that there are no others.
func checkAnswer(t *rapid.T, a *admission.Answer, p *translate.Preview) {
	refused := strings.Split(a.Refusal, "\n")[1:]
	lines := append(slices.Clone(a.Warnings), refused...)
	cut := slices.ContainsFunc(lines, func(line string) bool {
		return strings.Contains(line, "more problems: see the Events") || strings.Contains(line, "not listed: ")
	})
	taken := map[string]bool{}
	for _, each := range p.Taken {
		taken[each.Field] = true
	}
	for _, problem := range p.Problems {
		refused := problem.Reason == report.PathConflict && taken[problem.Field]
		isLine := func(line string) bool { return says(line, problem) }
		if !cut && !refused && !slices.ContainsFunc(lines, isLine) {
			t.Fatalf("the answer\n%s\nlacks %+v", strings.Join(lines, "\n"), problem)
		}
	}
	for _, line := range lines {
		known := slices.ContainsFunc(p.Problems, func(problem report.Problem) bool { return says(line, problem) })
		byReview := strings.Contains(line, " has the path ") || strings.Contains(line, "which the pathType")
		if !cut && !known && !byReview {
			t.Fatalf("the answer says %q, but the problems are %+v", line, p.Problems)
		}
	}
}

// says reports whether a line of an answer is about a problem. Lines may be cut.
func says(line string, p report.Problem) bool {
	text := p.Message
	if p.Field != "" {
		text = p.Field + ": " + text
	}
	whole := strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "\uFFFD"))
	return strings.HasPrefix(whole, strings.TrimSuffix(line, "…"))
}
