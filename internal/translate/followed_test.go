package translate_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/snapshot"
	"github.com/k8singress/k8singress/internal/translate"
)

// followedPort returns a Service port that a Caddy module uses, such as "a/s0:80".
func followedPort(t *testing.T, text string) ir.FollowedPort {
	t.Helper()
	port, err := ir.ParseServicePort(text)
	if err != nil {
		t.Fatal(err)
	}
	return ir.FollowedPort{ServicePort: port, Protocol: ir.TCP}
}

// TestFollowedServices checks the backend of a Service that only Caddy modules use, and the problem that is reported
// on it.
func TestFollowedServices(t *testing.T) {
	for _, c := range []struct {
		port, id, problem string
		namespaces        []string
	}{
		{port: "a/s0:80", id: "a/s0/80"},
		{port: "a/s0:http", id: "a/s0/80"},
		{port: "a/s0", id: "a/s0/80"},
		{port: "a/s0:80", id: "a/s0/80", namespaces: []string{"a"}},
		{port: "a/s0:web", id: "a/s0/web", problem: "the Service a/s0 has no TCP port web"},
		{port: "a/gone:80", id: "a/gone/80", problem: "the Service a/gone does not exist"},
		{port: "a/s0:80", id: "a/s0/80", namespaces: []string{"b"}, problem: "its namespace is not watched"},
	} {
		o := options
		o.Followed, o.Namespaces = []ir.FollowedPort{followedPort(t, c.port)}, c.namespaces
		store := fill(1)
		store.Delete(numbered(0, "/"))
		config, verdicts := translate.Translate(store.Take(), o)
		if len(config.Followed) != 1 || len(config.Backends) != 1 {
			t.Errorf("%s: %d backends, %d followed", c.port, len(config.Backends), len(config.Followed))
			continue
		}
		found, problems := config.Followed[0], problemsOf(verdicts, o.Followed[0].Service.Of("Service"))
		if found.Backend.ID != c.id || config.Backends[0] != found.Backend {
			t.Errorf("%s: the backend is %s", c.port, found.Backend.ID)
		}
		if (found.Problem != "") != (c.problem != "") || found.Backend.Missing != (c.problem != "") ||
			!strings.Contains(found.Problem, c.problem) {
			t.Errorf("%s: the problem is %q", c.port, found.Problem)
		}
		if c.problem != "" && (len(problems) != 1 || !strings.Contains(problems[0], c.problem)) {
			t.Errorf("%s: the problems are %q", c.port, problems)
		}
	}
}

// TestFollowedServiceChanges checks that a change of a followed Service, or of the followed Services, changes only
// their backends.
func TestFollowedServiceChanges(t *testing.T) {
	store, translator, o := fill(2), translate.New(), options
	before, _ := translator.Translate(store.Take(), o)
	o.Followed = []ir.FollowedPort{followedPort(t, "a/new:http")}
	missing, _ := translator.Translate(store.Take(), o)
	object := &corev1.Service{Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "http", Port: 8080}}}}
	object.Namespace, object.Name = "a", "new"
	store.Set(object)
	found, verdicts := translator.Translate(store.Take(), o)
	if !missing.Followed[0].Backend.Missing || found.Followed[0].Backend.ID != "a/new/8080" ||
		found.VirtualHosts[0] != before.VirtualHosts[0] || found.Backends[1] != before.Backends[0] {
		t.Errorf("without and with the Service: %+v, %+v", missing.Followed[0].Backend, found.Followed[0].Backend)
	}
	if got := problemsOf(verdicts, snapshot.RefOf(object)); len(got) > 0 {
		t.Errorf("the Service exists, and has the problems %q", got)
	}
	after, _ := translator.Translate(store.Take(), options)
	if len(after.Followed) != 0 || len(after.Backends) != len(before.Backends) {
		t.Errorf("no Service is followed, and there are %d backends", len(after.Backends))
	}
}
