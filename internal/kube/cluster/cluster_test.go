package cluster

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest"
	"go.uber.org/zap/zaptest/observer"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/kinds"
	"github.com/k8singress/k8singress/internal/model/snapshot"
	"github.com/k8singress/k8singress/internal/tests/fixture"
)

func object(kind, namespace, name string) kinds.Object {
	row, _ := kinds.ByName(kind)
	o := row.New()
	o.SetName(name)
	switch {
	case row.OwnNamespace:
		// This is the namespace in the kubeconfig.
		o.SetNamespace("ingress")
	case !row.ClusterScoped:
		o.SetNamespace(namespace)
	}
	if slice, ok := o.(*discoveryv1.EndpointSlice); ok {
		slice.Labels = map[string]string{discoveryv1.LabelServiceName: name}
	}
	return o
}

func oneOfEach(namespace, name string) []kinds.Object {
	list := make([]kinds.Object, 0, len(kinds.All))
	for _, row := range kinds.All {
		list = append(list, object(row.Name, namespace, name))
	}
	return list
}

// optional returns the names of all optional kinds.
func optional() []string {
	var names []string
	for _, row := range kinds.All {
		if row.Optional {
			names = append(names, row.Name)
		}
	}
	return names
}

// run starts a cluster, and stops it at the end of the test.
func run(t testing.TB, o Options, log *zap.Logger) *Cluster {
	t.Helper()
	c, err := New(o, log)
	if err != nil {
		t.Fatal(err)
	}
	fixture.Run(t, "the source", c.Run)
	return c
}

func waitSynced(t testing.TB, c *Cluster) {
	t.Helper()
	select {
	case <-c.Synced():
	case <-time.After(fixture.Patience):
		t.Fatal("the cluster does not sync")
	}
}

func isSynced(c *Cluster) bool {
	select {
	case <-c.Synced():
		return true
	default:
		return false
	}
}

// eventually waits until a condition on the store holds. It checks the condition at each change of the store.
func eventually(t testing.TB, s *snapshot.Store, what string, condition func() bool) {
	t.Helper()
	deadline := time.After(fixture.Patience)
	for !condition() {
		select {
		case <-s.Changed():
		case <-deadline:
			t.Fatalf("in vain: %s", what)
		}
	}
}

func quietLog(t testing.TB) *zap.Logger {
	return zaptest.NewLogger(t, zaptest.Level(zap.PanicLevel))
}

func TestWatchesCluster(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	t.Run("all kinds", func(t *testing.T) {
		api := startAPIServer(t)
		api.set(oneOfEach("shop", "web")...)
		c := run(t, Options{Kubeconfig: api.kubeconfig(t), Optional: optional()}, quietLog(t))
		waitSynced(t, c)
		if got := len(c.Store().Take().Changed); got != len(kinds.All) {
			t.Errorf("%d objects after Synced, want one of each kind", got)
		}
		for _, o := range oneOfEach("shop", "web") {
			// Trim keeps this field for every kind.
			o.SetCreationTimestamp(metav1.Unix(1, 0))
			api.set(o)
			eventually(t, c.Store(), "a change of "+kindOf(o), func() bool {
				created := c.Store().Get(o).GetCreationTimestamp()
				return created.Unix() == 1
			})
			api.remove(o)
			eventually(t, c.Store(), "the end of "+kindOf(o), func() bool { return c.Store().Get(o) == nil })
		}
	})
}

func TestOneCopyOfEachObject(t *testing.T) {
	api := startAPIServer(t)
	api.set(oneOfEach("shop", "web")...)
	c := run(t, Options{Kubeconfig: api.kubeconfig(t)}, quietLog(t))
	waitSynced(t, c)
	for _, i := range c.informers {
		for _, o := range i.shared.GetStore().List() {
			if c.Store().Get(o.(kinds.Object)) != o {
				t.Errorf("%s: the informer has another copy", i.kind.Name)
			}
		}
	}
}

func TestObjectsAreTrimmed(t *testing.T) {
	api := startAPIServer(t)
	o := object(kinds.Service, "shop", "web")
	o.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "kubectl"}})
	api.set(o)
	c := run(t, Options{Kubeconfig: api.kubeconfig(t)}, quietLog(t))
	waitSynced(t, c)
	if got := c.Store().Get(o).GetManagedFields(); got != nil {
		t.Errorf("managed fields %v are kept", got)
	}
}

func TestNoRequestsBeforeRun(t *testing.T) {
	api := startAPIServer(t)
	c, err := New(Options{Kubeconfig: api.kubeconfig(t)}, quietLog(t))
	if err != nil {
		t.Fatal(err)
	}
	if got := api.seen(func(*http.Request) bool { return true }); len(got) != 0 {
		t.Errorf("New asked for %s", got[0].URL)
	}
	if c.Namespace() != "ingress" || c.Client() == nil {
		t.Errorf("namespace %q, want the one of the kubeconfig's context", c.Namespace())
	}
}

func TestSyncedWaitsForEveryKind(t *testing.T) {
	for _, row := range kinds.All {
		t.Run(row.Name, func(t *testing.T) {
			api := startAPIServer(t)
			release := api.hold(row.Resource)
			defer release()
			api.set(oneOfEach("shop", "web")...)
			c := run(t, Options{Kubeconfig: api.kubeconfig(t), Optional: optional()}, quietLog(t))
			for _, o := range oneOfEach("shop", "web") {
				if kindOf(o) != row.Name {
					eventually(t, c.Store(), "a "+kindOf(o), func() bool { return c.Store().Get(o) != nil })
				}
			}
			if isSynced(c) {
				t.Fatal("synced without " + row.Resource)
			}
			release()
			waitSynced(t, c)
			if c.Store().Get(object(row.Name, "shop", "web")) == nil {
				t.Fatal("synced before the object was in the store")
			}
		})
	}
}

func TestNamespaces(t *testing.T) {
	api := startAPIServer(t)
	for _, namespace := range []string{"shop", "web", "private"} {
		api.set(oneOfEach(namespace, "x")...)
	}
	api.set(object(kinds.Secret, "private", "y"))
	c := run(t, Options{
		Kubeconfig: api.kubeconfig(t), Namespaces: []string{"web", "shop", "web"},
		Also: []ir.Ref{
			{Kind: kinds.Secret, Namespace: "private", Name: "y"},
			{Kind: kinds.Secret, Namespace: "private", Name: "y"},
			{Kind: kinds.Secret, Namespace: "shop", Name: "x"},
		},
	}, quietLog(t))
	waitSynced(t, c)
	s := c.Store().Take()
	if got := snapshot.Of[*networkingv1.Ingress](s).Len() + snapshot.Of[*corev1.Secret](s).Len(); got != 5 {
		t.Errorf("%d Ingresses and Secrets, want one of each in shop and web, and private/y", got)
	}
	if _, ok := snapshot.Of[*corev1.Secret](s).Get("private", "y"); !ok {
		t.Error("the object that an option names is missing")
	}
	if snapshot.Of[*networkingv1.IngressClass](s).Len() != 1 {
		t.Error("objects of the whole cluster are read in any case")
	}
	for _, r := range api.seen(func(*http.Request) bool { return true }) {
		if r.URL.Path == "/api/v1/namespaces" || r.URL.Path == "/api/v1/secrets" ||
			strings.Contains(r.URL.Path, "/private/ingresses") {
			t.Errorf("asked for %s", r.URL.Path)
		}
	}
}

func TestFieldSelectorsAreSent(t *testing.T) {
	api := startAPIServer(t)
	helm := object(kinds.Secret, "shop", "sh.helm.release.v1.web.v1").(*corev1.Secret)
	helm.Type = "helm.sh/release.v1"
	tls := object(kinds.Secret, "shop", "tls").(*corev1.Secret)
	tls.Type = corev1.SecretTypeTLS
	api.set(helm, tls, object(kinds.ConfigMap, "shop", "kube-root-ca.crt"), object(kinds.ConfigMap, "shop", "settings"))
	c := run(t, Options{
		Kubeconfig: api.kubeconfig(t), Namespaces: []string{"shop"},
		Also: []ir.Ref{{Kind: kinds.Secret, Namespace: "private", Name: "y"}},
	}, quietLog(t))
	waitSynced(t, c)
	s := c.Store().Take()
	if snapshot.Of[*corev1.Secret](s).Len() != 1 || snapshot.Of[*corev1.ConfigMap](s).Len() != 1 {
		t.Errorf("%d Secrets and %d ConfigMaps, want one of each", snapshot.Of[*corev1.Secret](s).Len(),
			snapshot.Of[*corev1.ConfigMap](s).Len())
	}
	for path, want := range map[string]string{
		"/api/v1/namespaces/shop/secrets":                          "type!=helm.sh/release.v1",
		"/api/v1/namespaces/private/secrets":                       "type!=helm.sh/release.v1,metadata.name=y",
		"/api/v1/namespaces/shop/configmaps":                       "metadata.name!=kube-root-ca.crt",
		"/apis/networking.k8s.io/v1/namespaces/shop/ingresses":     "",
		"/apis/discovery.k8s.io/v1/namespaces/shop/endpointslices": "",
	} {
		requests := api.seen(func(r *http.Request) bool { return r.URL.Path == path })
		if len(requests) == 0 {
			t.Errorf("nothing asked for %s", path)
		}
		for _, r := range requests {
			if got := r.URL.Query().Get("fieldSelector"); got != want {
				t.Errorf("%s: field selector %q, want %q", path, got, want)
			}
			if got := r.Header.Get("Accept"); !strings.HasPrefix(got, runtime.ContentTypeProtobuf) {
				t.Errorf("%s: accepts %q, want protobuf first", path, got)
			}
		}
	}
}

// TestLostWatch checks that an object that is deleted while the watch is interrupted leaves the store after the next
// list, and that the list causes no other change.
func TestLostWatch(t *testing.T) {
	api := startAPIServer(t)
	gone, stays := oneOfEach("shop", "gone"), oneOfEach("shop", "stays")
	api.set(gone...)
	api.set(stays...)
	c := run(t, Options{Kubeconfig: api.kubeconfig(t)}, quietLog(t))
	waitSynced(t, c)
	before := make([]kinds.Object, len(stays))
	for i, o := range stays {
		before[i] = c.Store().Get(o)
	}
	c.Store().Take()
	for _, o := range gone {
		api.vanish(o)
	}
	for _, o := range gone {
		eventually(t, c.Store(), "the end of "+kindOf(o), func() bool { return c.Store().Get(o) == nil })
	}
	var names []string
	for _, ref := range c.Store().Take().Changed {
		names = append(names, ref.Name)
	}
	if slices.Contains(names, "stays") {
		t.Errorf("changed %v: what was only listed again is no news", names)
	}
	for i, o := range stays {
		if c.Store().Get(o) != before[i] {
			t.Errorf("%s: listed again, it became another copy", kindOf(o))
		}
	}
}

func TestServerIsAwayAtTheStart(t *testing.T) {
	address := fixture.Address(t)
	failed := make(chan string, 100)
	c := run(t, Options{
		Kubeconfig: writeKubeconfig(t, address), OnWatchError: func(kind string) { failed <- kind },
	}, quietLog(t))
	select {
	case <-failed:
	case <-time.After(fixture.Patience):
		t.Fatal("no error is counted although nobody listens")
	}
	if isSynced(c) {
		t.Fatal("synced without API server")
	}
	api := newAPIServer(t)
	api.set(oneOfEach("shop", "web")...)
	var err error
	if api.http.Listener, err = net.Listen("tcp", address); err != nil {
		t.Fatal(err)
	}
	api.http.Start()
	waitSynced(t, c)
}

func TestStopsWhileTheServerIsAway(t *testing.T) {
	failed := make(chan string, 100)
	api := newAPIServer(t)
	kubeconfig := api.kubeconfig(t)
	if err := api.http.Listener.Close(); err != nil {
		t.Fatal(err)
	}
	c, err := New(Options{Kubeconfig: kubeconfig, OnWatchError: func(kind string) { failed <- kind }}, quietLog(t))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.Run(ctx)
	}()
	fixture.Receive(t, "a watch that fails", failed)
	cancel()
	select {
	case <-done:
	case <-time.After(fixture.Patience):
		t.Fatal("Run does not end")
	}
}

func TestTombstones(t *testing.T) {
	for _, row := range kinds.All {
		store, o := snapshot.NewStore(), object(row.Name, "shop", "web")
		h, key := handler{kind: row, store: store}, o.GetNamespace()+"/web"
		if row.ClusterScoped {
			key = "web"
		}
		for _, last := range []any{o, nil} {
			h.OnAdd(o, false)
			h.OnDelete(cache.DeletedFinalStateUnknown{Key: key, Obj: last})
			if store.Get(o) != nil {
				t.Errorf("%s is still there, last state known: %v", row.Name, last != nil)
			}
		}
		h.OnAdd("no object", false)
		h.OnDelete("no object")
	}
}

func TestForbiddenClasses(t *testing.T) {
	api := startAPIServer(t)
	api.refuseClasses(true)
	api.set(oneOfEach("shop", "web")...)
	core, logged := observer.New(zap.WarnLevel)
	c := run(t, Options{Kubeconfig: api.kubeconfig(t), Namespaces: []string{"shop"}}, zap.New(core))
	waitSynced(t, c)
	if snapshot.Of[*networkingv1.Ingress](c.Store().Take()).Len() != 1 {
		t.Error("the Ingress of the namespace is missing")
	}
	if got := logged.FilterMessageSnippet("cannot read ingressclasses in the whole cluster").Len(); got != 1 {
		t.Errorf("%d messages say that ingressclasses cannot be read, want one: %v", got, logged.All())
	}
	all := ir.Ref{Kind: kinds.IngressClass}
	eventually(t, c.Store(), "the kind is denied", func() bool { return c.Store().Take().Denied(all) })
	api.refuseClasses(false)
	class := object(kinds.IngressClass, "", "web")
	eventually(t, c.Store(), "the class, once it is allowed", func() bool { return c.Store().Get(class) != nil })
	eventually(t, c.Store(), "the kind is not denied any more", func() bool { return !c.Store().Take().Denied(all) })
}

func TestForbiddenWithoutNamespaces(t *testing.T) {
	api := startAPIServer(t)
	api.refuseClasses(true)
	api.set(oneOfEach("shop", "web")...)
	failed := make(chan string, 100)
	c := run(t, Options{Kubeconfig: api.kubeconfig(t), OnWatchError: func(kind string) { failed <- kind }}, quietLog(t))
	if kind := fixture.Receive(t, "a watch that fails", failed); kind != kinds.IngressClass || isSynced(c) {
		t.Fatalf("%s failed; synced: %v", kind, isSynced(c))
	}
	api.refuseClasses(false)
	waitSynced(t, c)
}

func TestStartIsFast(t *testing.T) {
	const n = 10_000
	api := startAPIServer(t)
	for i := range n {
		name := fmt.Sprintf("web-%d", i)
		ingress := object(kinds.Ingress, "shop", name).(*networkingv1.Ingress)
		ingress.Spec.Rules = []networkingv1.IngressRule{{Host: name + ".example"}}
		api.set(ingress, object(kinds.Service, "shop", name), object(kinds.EndpointSlice, "shop", name))
	}
	start := time.Now()
	c := run(t, Options{Kubeconfig: api.kubeconfig(t)}, quietLog(t))
	waitSynced(t, c)
	took := time.Since(start)
	s := c.Store().Take()
	if snapshot.Of[*networkingv1.Ingress](s).Len() != n || snapshot.Of[*corev1.Service](s).Len() != n ||
		len(s.Changed) != 3*n {
		t.Errorf("%d Ingresses, %d Services, %d objects",
			snapshot.Of[*networkingv1.Ingress](s).Len(), snapshot.Of[*corev1.Service](s).Len(), len(s.Changed))
	}
	t.Logf("read %d objects in %s", 3*n, took)
	if took > fixture.Patience {
		t.Errorf("reading %d objects took %s", 3*n, took)
	}
}
