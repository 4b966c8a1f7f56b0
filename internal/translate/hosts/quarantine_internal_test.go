package hosts

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/kinds"
	"github.com/k8singress/k8singress/internal/model/report"
)

// aged returns the contribution of an Ingress with one path of a.example. If path is "", the Ingress has a default
// backend for every host instead.
func aged(age int, name, path string) *Contribution {
	object := &networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: name, CreationTimestamp: metav1.NewTime(time.Unix(int64(age), 0)),
	}}
	p := &Path{Match: ir.PathMatch{Type: ir.MatchPrefix, Path: path}, Backend: &ir.Backend{ID: "shop/" + name + "/80"}}
	if path == "" {
		p.Match.Path, p.Last = "/", true
		return &Contribution{Object: object, Fallback: p}
	}
	return &Contribution{Object: object, Paths: map[string][]*Path{"a.example": {p}}}
}

// served returns one line for each route, with its path, the name of its Ingress and its filters.
func served(m *Merged) []string {
	var lines []string
	if m.Host == nil {
		return nil
	}
	for _, r := range m.Host.Routes {
		lines = append(lines, fmt.Sprintf("%s %s %v", r.Match.Path, r.Origin.Name, r.Filters))
	}
	return lines
}

// TestPanicInAnIngressIsIsolated checks which Ingresses return 503 if Merge panics, and that they get a problem.
func TestPanicInAnIngressIsIsolated(t *testing.T) {
	results := []*Contribution{aged(3, "three", "/three"), aged(1, "one", "/one"), aged(2, "two", "/two"),
		aged(4, "four", "/four")}
	fallbacks := []*Contribution{aged(5, "five", ""), aged(6, "six", "")}
	// fails returns a merge that panics if it gets an Ingress in names, unless its paths return 503. For an Ingress in
	// closed, it panics even if its paths return 503.
	fails := func(names, closed string) merge {
		return func(host string, results, fallbacks []*Contribution) *Merged {
			for _, r := range slices.Concat(results, fallbacks) {
				p := r.Fallback
				if p == nil {
					p = r.Paths[host][0]
				}
				if strings.Contains(names, r.Object.GetName()) && p.Filters == nil ||
					strings.Contains(closed, r.Object.GetName()) {
					panic("fault of " + r.Object.GetName())
				}
			}
			return Merge(host, results, fallbacks, &HostContext{})
		}
	}
	for name, c := range map[string]struct {
		merge merge
		// want is the expected routes. told lists the Ingresses that get a problem.
		want, told string
	}{
		"none": {fails("", ""), "/three three []; /four four []; /one one []; /two two []; / five []", ""},
		"the oldest": {fails("one", ""),
			"/three three []; /four four []; /one one [{503}]; /two two []; / five []", "one"},
		"the newest": {fails("four", ""),
			"/three three []; /four four [{503}]; /one one []; /two two []; / five []", "four"},
		"two": {fails("two four", ""),
			"/three three []; /four four [{503}]; /one one []; /two two [{503}]; / five []", "four two"},
		"a fallback": {fails("five", ""),
			"/three three []; /four four []; /one one []; /two two []; / five [{503}]", "five"},
		"both": {fails("five three", ""),
			"/three three [{503}]; /four four []; /one one []; /two two []; / five [{503}]", "five three"},
		"even closed": {fails("", "two"), "/three three []; /four four []; /one one []; / five []", "two"},
		"all, closed": {fails("", "one two three four five six"), "", "five four one six three two"},
	} {
		t.Run(name, func(t *testing.T) {
			m := isolatingPanics(c.merge, "a.example", slices.Clone(results), slices.Clone(fallbacks))
			if got := strings.Join(served(m), "; "); got != c.want {
				t.Errorf("served is\n%s, want\n%s", got, c.want)
			}
			var told []string
			for ref, problems := range m.Problems {
				told = append(told, ref.Name)
				p := problems[len(problems)-1]
				if ref.Kind != kinds.Ingress || p.Reason != report.Quarantined ||
					!strings.HasSuffix(p.Message, "fault of "+ref.Name) {
					t.Errorf("%s is told %+v", ref, problems)
				}
			}
			slices.Sort(told)
			if got := strings.Join(told, " "); got != c.told {
				t.Errorf("told are %s, want %s", got, c.told)
			}
		})
	}
}

// TestPanicInMerge checks that a panic of merge does not end the process, even if leaving out Ingresses does not
// prevent it.
func TestPanicInMerge(t *testing.T) {
	broken := merge(func(string, []*Contribution, []*Contribution) *Merged { panic("always") })
	if m := isolatingPanics(broken, "a.example", []*Contribution{aged(1, "one", "/")}, nil); m.Host != nil ||
		len(m.Problems) != 1 {
		t.Errorf("merged is %+v", m)
	}
	if m := isolatingPanics(broken, "a.example", nil, nil); m.Host != nil || len(m.Problems) != 0 {
		t.Errorf("merged is %+v", m)
	}
}

// TestNilPath checks that an Ingress with a nil path, which makes the real Merge panic, does not affect the
// other Ingresses.
func TestNilPath(t *testing.T) {
	bad := aged(1, "bad", "/bad")
	bad.Paths["a.example"] = append(bad.Paths["a.example"], nil)
	m := MergeIsolatingPanics("a.example", []*Contribution{bad, aged(2, "good", "/good")}, nil, &HostContext{})
	if got := strings.Join(served(m), "; "); got != "/good good []; /bad bad [{503}]" {
		t.Errorf("served is %s", got)
	}
}

// TestPanicKeepsTheHost checks that the host keeps the TLS policy, the client authentication and the
// certificate from an Ingress that makes Merge panic, because these also protect the paths of other Ingresses.
func TestPanicKeepsTheHost(t *testing.T) {
	bad := aged(1, "bad", "/bad")
	bad.Paths["a.example"] = append(bad.Paths["a.example"], nil)
	bad.ClientAuth = &ir.ClientAuth{Closed: true}
	bad.TLS, bad.AsksCiphers = ir.TLSPolicy{Version: ir.TLS12, Ciphers: []string{"one"}}, true
	bad.Implied = map[string]*Implied{"a.example": {Certificate: &ir.Certificate{Host: "a.example", Automated: true}}}
	m := MergeIsolatingPanics("a.example", []*Contribution{bad, aged(2, "good", "/good")}, nil, &HostContext{})
	if m.Host.ClientAuth == nil || !reflect.DeepEqual(*m.Host.TLS, bad.TLS) {
		t.Errorf("the host is %+v", m.Host)
	}
	if m.Implied == nil || !m.Secure {
		t.Errorf("its certificate is %+v, and it is secure: %t", m.Implied, m.Secure)
	}
}
