package ingress_test

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/kinds"
	"github.com/k8singress/k8singress/internal/model/report"
	"github.com/k8singress/k8singress/internal/model/snapshot"
	"github.com/k8singress/k8singress/internal/translate/ingress"
)

const (
	ourController = "k8s.io/ingress-nginx"
	classKey      = "kubernetes.io/ingress.class"
)

func class(name, controller, isDefault string) *networkingv1.IngressClass {
	c := &networkingv1.IngressClass{ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: networkingv1.IngressClassSpec{Controller: controller}}
	if isDefault != "" {
		c.Annotations = map[string]string{networkingv1.AnnotationIsDefaultIngressClass: isDefault}
	}
	return c
}

func TestClass(t *testing.T) {
	named := ingress.Options{ControllerName: ourController, ClassName: "nginx"}
	without, assume, byName := named, named, named
	without.WatchWithoutClass, assume.Folder, byName.ClassByName = true, true, true
	list := func(classes ...kinds.Object) []kinds.Object { return classes }
	ours, theirs := list(class("nginx", ourController, "")), list(class("other", "example.com/other", ""))
	taken, public := list(class("nginx", "example.com/other", "")), list(class("public", ourController, ""))
	ourDefault, notDefault := list(class("nginx", ourController, "true")), list(class("nginx", ourController, "false"))
	theirDefault := list(ours[0], class("other", "example.com/other", "true"))
	nginx, other, missing, empty := new("nginx"), new("other"), new("nobody"), new("")

	for _, test := range []struct {
		name       string
		options    ingress.Options
		classes    []kinds.Object
		denied     bool
		field      *string
		annotation *string
		ours       bool
		reason     report.Reason
	}{
		{name: "field", options: named, classes: ours, field: nginx, ours: true},
		{name: "another name for a class of ours", options: named, classes: public, field: new("public"), ours: true},
		{name: "our name for a class of others", options: named, classes: taken, field: nginx},
		{name: "class of others", options: without, classes: list(ours[0], theirs[0]), field: other},
		{name: "no such class", options: without, classes: ours, field: missing, reason: report.IngressClassNotFound},
		{name: "no such class, with our name", options: named, field: nginx, reason: report.IngressClassNotFound},
		{name: "no such class, with our name, in a folder", options: assume, field: nginx, ours: true},
		{name: "no such class, in a folder", options: assume, field: missing, reason: report.IngressClassNotFound},
		{name: "class of others, in a folder", options: assume, classes: taken, field: nginx,
			reason: report.OtherClass},

		{name: "no such class, by name", options: byName, field: nginx, ours: true},
		{name: "our name for a class of others, by name", options: byName, classes: taken, field: nginx, ours: true},
		{name: "another name for a class of ours, by name", options: byName, classes: public,
			field: new("public"), ours: true},
		{name: "class of others, by name", options: byName, classes: theirs, field: other},
		{name: "no such class, with another name, by name", options: byName, field: missing,
			reason: report.IngressClassNotFound},
		{name: "classes cannot be read", options: named, denied: true, field: nginx, ours: true},
		{name: "classes cannot be read, another name", options: named, denied: true, field: other},

		{name: "annotation", options: named, annotation: nginx, ours: true},
		{name: "annotation needs no class", options: named, classes: theirs, annotation: nginx, ours: true},
		{name: "annotation of others", options: without, classes: ours, annotation: other},
		{
			name: "the field beats the annotation of others", options: named, classes: ours, annotation: other,
			field: nginx, ours: true,
			reason: report.ClassConflict,
		},
		{
			name: "the field of others beats the annotation", options: named, classes: theirs,
			annotation: nginx, field: other,
			reason: report.ClassConflict,
		},
		{name: "both are of others", options: named, classes: theirs, annotation: new("third"), field: other},
		{name: "both are ours", options: named, classes: public, annotation: nginx, field: new("public"), ours: true},
		{name: "both name a class of ours", options: named, classes: public, annotation: new("public"),
			field: new("public"), ours: true},
		{name: "both name a class that others took", options: named, classes: taken, annotation: nginx, field: nginx},
		{name: "annotation and an empty field", options: named, classes: ours, annotation: other, field: empty},
		{name: "empty annotation", options: named, classes: ours, annotation: empty},
		{name: "empty annotation, all without class", options: without, annotation: empty, ours: true},

		{name: "nothing", options: named, classes: ours},
		{name: "nothing, all without class", options: without, classes: ours, ours: true},
		{name: "nothing, default class", options: named, classes: list(theirs[0], ourDefault[0]), ours: true},
		{name: "nothing, default class of others", options: named, classes: theirDefault},
		{name: "nothing, class that is not default", options: named, classes: notDefault},
		{name: "empty field, default class", options: named, classes: ourDefault, field: empty, ours: true},

		{name: "annotation of others, in a folder", options: assume, annotation: other, reason: report.OtherClass},
		{name: "empty annotation, in a folder", options: assume, annotation: empty, reason: report.MissingClass},
		{name: "nothing, in a folder", options: assume, reason: report.MissingClass},
		{name: "nothing, default class, in a folder", options: assume, classes: ourDefault, ours: true},
	} {
		t.Run(test.name, func(t *testing.T) {
			o := object("web", "a.example", prefix("/", backend("web", 80)))
			o.Spec.IngressClassName = test.field
			if test.annotation != nil {
				o.Annotations = map[string]string{classKey: *test.annotation}
			}
			store := snapshot.NewStore()
			store.Apply(append([]kinds.Object{service("web", corev1.ServicePort{Port: 80})}, test.classes...), nil)
			store.Deny(ir.Ref{Kind: kinds.IngressClass}, test.denied)
			r := ingress.Translate(store.Take(), o, test.options)
			if r.Ours != test.ours || (len(r.Paths) > 0) != test.ours {
				t.Errorf("Ours is %v, with paths %v", r.Ours, r.Paths)
			}
			var reason report.Reason
			if len(r.Problems) > 0 {
				reason = r.Problems[0].Reason
			}
			if reason != test.reason || len(r.Problems) > 1 {
				t.Errorf("problems %v, want %q", r.Problems, test.reason)
			}
			if !slices.Contains(r.Refs, ir.Ref{Kind: kinds.IngressClass}) {
				t.Error("nobody would look at it again when a class changes")
			}
		})
	}
}

// TestMessageOfAMissingClass checks that the message names existing classes.
func TestMessageOfAMissingClass(t *testing.T) {
	named := ingress.Options{ControllerName: ourController, ClassName: "nginx"}
	folder := named
	folder.Folder = true
	for _, test := range []struct {
		name    string
		options ingress.Options
		classes string
		class   string
		want    string
	}{
		{"misspelt", named, "edge nginx", "nginxx", "did you mean nginx? Otherwise create it, with"},
		{"misspelt, in a folder without classes", folder, "", "ngnix", "did you mean nginx? Otherwise create it, with"},
		{"another word", named, "edge nginx", "traefik",
			"serves this Ingress: write edge or nginx, or create it, with"},
		{"another word, in a folder", folder, "zone", "traefik",
			"serves this Ingress: write nginx or zone, or create it, with"},
		{"many classes", named, "a b c d e f g", "traefik",
			"write a, b, c, d, e or one of 2 others, or create it, with"},
		{"no classes", named, "", "nginx", "serves this Ingress: create it, with spec.controller k8s.io/ingress-nginx"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var classes []kinds.Object
			for name := range strings.FieldsSeq(test.classes) {
				classes = append(classes, class(name, "example.com/other", ""))
			}
			o := object("web", "a.example", prefix("/", backend("web", 80)))
			o.Spec.IngressClassName = &test.class
			r := ingress.Translate(take(classes...), o, test.options)
			if len(r.Problems) != 1 || !strings.Contains(r.Problems[0].Message, test.want) {
				t.Errorf("problems %v, want %q", r.Problems, test.want)
			}
		})
	}
}
