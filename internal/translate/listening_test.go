package translate_test

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/k8singress/k8singress/internal/model/kinds"
	"github.com/k8singress/k8singress/internal/model/snapshot"
	"github.com/k8singress/k8singress/internal/translate"
)

// TestPortsOfHTTPSnippet checks that a port which http-snippet opens stays closed for Services and ConfigMaps, as long
// as http-snippet opens it. Otherwise both would get a part of the connections.
func TestPortsOfHTTPSnippet(t *testing.T) {
	store, translator := fill(1), translate.New()
	set := func(name string, data map[string]string) {
		store.Set(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: name}, Data: data})
	}
	snippet := func(port string) {
		set("global", map[string]string{"http-snippet": "server { listen " + port + "; return 200; }"})
	}
	set("tcp", map[string]string{"2443": "a/s0:80", "2444": "a/s0:80"})
	store.Set(exposing(1, "2445:80"))
	for _, c := range []struct {
		change func()
		want   []uint16
	}{
		{func() { snippet("2443") }, []uint16{2444, 2445}},
		{func() { snippet("2444") }, []uint16{2443, 2445}},
		{func() { snippet("2445") }, []uint16{2443, 2444}},
		{func() { set("global", nil) }, []uint16{2443, 2444, 2445}},
	} {
		c.change()
		config, report := translator.Translate(store.Take(), options)
		var got []uint16
		for _, r := range config.StreamRoutes {
			got = append(got, r.Port)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("the ports of Services are %d, want %d", got, c.want)
		}
		all := append(problemsOf(report, options.Streams.TCP.Of(kinds.ConfigMap)),
			problemsOf(report, snapshot.RefOf(exposing(1, "")))...)
		conflict := slices.ContainsFunc(all, func(problem string) bool {
			return strings.HasPrefix(problem, "PortConflict") && strings.Contains(problem, "is the http-snippet port")
		})
		if conflict != (len(got) < 3) {
			t.Errorf("the problems are %q", all)
		}
	}
}
