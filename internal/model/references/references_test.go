package references_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/k8singress/k8singress/internal/model/document"
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/references"
	"github.com/k8singress/k8singress/internal/model/report"
)

type reference = references.Reference[ir.Name, string]

// to returns the references of a part of the configuration. Each one is "secret origin field user".
func to(all ...string) (refs []reference) {
	for _, text := range all {
		var secret, origin, field, user string
		if _, err := fmt.Sscan(text, &secret, &origin, &field, &user); err != nil {
			panic(err)
		}
		if origin == "-" {
			origin = ""
		}
		refs = append(refs, reference{Key: ir.Name{Namespace: "shop", Name: secret}, Origin: ir.ParseRef(origin),
			Field: field, User: user})
	}
	return refs
}

// TestBook checks which Secrets are new, that the value for a Secret stays the same as long as the configuration refers
// to the Secret, and that other Secrets have no value.
func TestBook(t *testing.T) {
	created := 0
	b := references.NewBook[ir.Name, string](func(ir.Name) *int {
		created++
		value := created
		return &value
	})
	update := func(want string, changed map[string][]reference) {
		t.Helper()
		if got := fmt.Sprint(b.Update(changed)); got != want {
			t.Errorf("new are %s, want %s", got, want)
		}
	}
	name := ir.Name{Namespace: "shop", Name: "a"}
	if _, found := b.Find(name); found {
		t.Error("an unknown Secret has a value")
	}
	update("[shop/a shop/b]", map[string][]reference{"one": to("b x f u", "a x f u"), "two": to("a x f u")})
	a := b.Get(name)
	update("[]", map[string][]reference{"one": to("a x f u")})
	update("[]", map[string][]reference{"one": nil})
	update("[]", map[string][]reference{"two": to("a y f u")})
	if b.Get(name) != a || b.Contains(func(value *int) bool { return value != a }) ||
		!b.Contains(func(value *int) bool { return value == a }) {
		t.Error("the value is another one, or not the only one")
	}
	update("[]", map[string][]reference{"two": nil, "three": nil})
	if _, found := b.Find(name); found {
		t.Error("the value is kept although there is no reference")
	}
	update("[shop/a]", map[string][]reference{"two": to("a x f u")})
	if b.Get(name) == a {
		t.Error("the value is used again")
	}
}

// TestProblems checks the order of the problems, that references from the same field are reported together, and that
// references without an origin are not reported.
func TestProblems(t *testing.T) {
	b := references.NewBook[ir.Name, string](func(of ir.Name) string { return of.Name })
	b.Update(map[string][]reference{
		"one": to("b Ingress/shop/x f two", "b Ingress/shop/x f one", "a Ingress/shop/y f one", "a - f one"),
		"two": to("b Ingress/shop/x f two", "b Ingress/shop/x e one", "good Ingress/shop/x f one"),
	})
	var got []string
	for _, v := range b.Problems(func(value string, ref *reference, users string) []report.Problem {
		if value == "good" {
			return nil
		}
		return []report.Problem{{Field: ref.Field, Message: value + " for " + users}}
	}) {
		got = append(got, fmt.Sprint(v.Object, " ", v.Problems[0].Field, ": ", v.Problems[0].Message))
	}
	want := []string{"Ingress/shop/y f: a for one", "Ingress/shop/x e: b for one", "Ingress/shop/x f: b for one, two"}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

// TestOf checks that the references of a listener group belong together, and that removed parts have no references.
func TestOf(t *testing.T) {
	h := new(document.Host)
	got := references.Of(&document.Delta{
		Hosts: map[string]*document.Host{"a.example": h, "": h, "gone.example": nil},
		ListenerGroups: map[string]*document.ListenerGroup{"gone": nil,
			"g": {Hosts: map[string]*document.Host{"a.example": h, "b.example": h}}},
	}, func(user string, _ *document.Host) []string { return []string{user} })
	slices.Sort(got["listener group g"])
	want := "map[host :[every other host] host a.example:[a.example] host gone.example:[] " +
		"listener group g:[a.example b.example] listener group gone:[]]"
	if fmt.Sprint(got) != want {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}
