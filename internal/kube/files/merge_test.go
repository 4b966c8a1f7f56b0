package files

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/kinds"
	"github.com/k8singress/k8singress/internal/model/report"
	"github.com/k8singress/k8singress/internal/model/snapshot"
	"github.com/k8singress/k8singress/internal/tests/fixture"
)

// TestMergeStepByStep checks that merging the changes of files one by one has the same result as reading the final
// files, and that the lists that merge returns describe each change completely.
func TestMergeStepByStep(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 0))
		m, files, objects := new(merger), map[string]*parsed{}, map[ir.Ref]kinds.Object{}
		for step := range 20 {
			for range r.IntN(3) {
				name := fmt.Sprintf("%d.yaml", r.IntN(4))
				delete(files, name)
				if r.IntN(4) > 0 {
					files[name] = parse(name, []byte(randomManifests(r)))
				}
			}
			list := slices.SortedFunc(maps.Values(files),
				func(a, b *parsed) int { return strings.Compare(a.name, b.name) })
			follow(objects, m, list)
			wantObjects, wantVerdicts := atOnce(list)
			if got := versions(objects); !maps.Equal(got, wantObjects) {
				t.Fatalf("seed %d, step %d: objects are\n%v, want\n%v", seed, step, got, wantObjects)
			}
			if got := m.verdicts(); !reflect.DeepEqual(got, wantVerdicts) {
				t.Fatalf("seed %d, step %d: verdicts differ", seed, step)
			}
		}
	}
}

// follow merges files, and applies the result to objects as a store does.
func follow(objects map[ir.Ref]kinds.Object, m *merger, files []*parsed) {
	set, gone := m.merge(files)
	for _, o := range gone {
		delete(objects, snapshot.RefOf(o))
	}
	for _, o := range set {
		objects[snapshot.RefOf(o)] = o
	}
}

func atOnce(files []*parsed) (map[ir.Ref]string, []*report.Verdict) {
	m, objects := new(merger), map[ir.Ref]kinds.Object{}
	follow(objects, m, files)
	return versions(objects), m.verdicts()
}

func versions(objects map[ir.Ref]kinds.Object) map[ir.Ref]string {
	result := map[ir.Ref]string{}
	for ref, o := range objects {
		result[ref] = o.GetResourceVersion()
	}
	return result
}

// randomManifests returns random manifests. It uses only a few names, so that many objects have the same name.
func randomManifests(r *rand.Rand) string {
	var b strings.Builder
	for range r.IntN(4) {
		service, n := string(rune('a'+r.IntN(2))), r.IntN(3)
		switch r.IntN(5) {
		case 0:
			fmt.Fprintf(&b, "apiVersion: v1\nkind: Endpoints\nmetadata: {name: %s}\n"+
				"subsets: [{addresses: [{ip: 10.0.0.%d}], ports: [{port: 80}]}]\n", service, n)
		case 1:
			// Sometimes use a name that a slice made from Endpoints has.
			name := []string{"x", service + "-ipv4-0", "a-ipv4-0"}[r.IntN(3)]
			fmt.Fprintf(&b, "apiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\naddressType: IPv4\n"+
				"metadata: {name: %s, labels: {kubernetes.io/service-name: %s}}\nendpoints: [{addresses: "+
				"[10.0.1.%d]}]\n", name, service, n)
		case 2:
			b.WriteString(configMap(service, fmt.Sprint(n)))
		case 3:
			fmt.Fprintf(&b, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s}\ndata: [broken %d]\n", service, n)
		default:
			fmt.Fprintf(&b, "apiVersion: v1\nkind: Service\nmetadata: {name: %s}\nspec: {clusterIP: 10.2.0.%d}\n",
				service, n)
		}
		b.WriteString("---\n")
	}
	return b.String()
}

// TestGoneManifestsLeaveNoMemory checks that manifests that are gone leave no memory in the merger. A tenth of their
// objects have problems.
func TestGoneManifestsLeaveNoMemory(t *testing.T) {
	m, kept := new(merger), parse("kept.yaml", []byte(service("kept")))
	m.merge([]*parsed{kept})
	fixture.ReleasesMemory(t, 1000, func(n int) {
		var text strings.Builder
		for i := range n {
			name := fmt.Sprint("gone-", i)
			text.WriteString(service(name))
			fmt.Fprintf(&text, "---\napiVersion: v1\nkind: Endpoints\nmetadata: {namespace: shop, name: %s}\n"+
				"subsets: [{addresses: [{ip: 10.0.0.1}], ports: [{port: 80}]}]\n", name)
			if i%10 == 0 {
				text.WriteString(service(name))
			}
		}
		m.merge([]*parsed{parse("gone.yaml", []byte(text.String())), kept})
	}, func(int) { m.merge([]*parsed{kept}) })
	runtime.KeepAlive(m)
}

// service returns the manifest of a Service.
func service(name string) string {
	return fmt.Sprintf("---\napiVersion: v1\nkind: Service\nmetadata: {namespace: shop, name: %s}\n"+
		"spec: {ports: [{port: 80}]}\n", name)
}
