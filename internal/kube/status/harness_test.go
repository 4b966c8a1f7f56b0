package status_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"go.uber.org/goleak"
	"go.uber.org/zap/zaptest"
	eventsv1 "k8s.io/api/events/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/metadata"
	metadatafake "k8s.io/client-go/metadata/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/k8singress/k8singress/internal/kube/status"
	"github.com/k8singress/k8singress/internal/model/settings"
	"github.com/k8singress/k8singress/internal/tests/fixture"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is how long a test waits for an expected change.
const patience = fixture.Patience

// replica is a running writer.
type replica struct {
	*status.Writer
	stop func()
}

// start runs a writer until stop is called or the test ends.
func start(t *testing.T, client *fake.Clientset) *replica {
	t.Helper()
	return startWith(t, client, func(*status.Options) {})
}

// startWith is like start, with changed options.
func startWith(t *testing.T, client *fake.Clientset, change func(*status.Options)) *replica {
	t.Helper()
	o := status.Options{
		LeaseName: "lease", LeaseNamespace: "a", Pod: "edge-0", PodNamespace: "a", Log: zaptest.NewLogger(t),
		Times: status.Times{Duration: 2 * time.Second, Renew: time.Second, Retry: 20 * time.Millisecond},
	}
	change(&o)
	w, err := status.New(client, objects(client), o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		w.Run(ctx)
	}()
	stop := func() {
		cancel()
		select {
		case <-ended:
		case <-time.After(patience):
			t.Error("Run did not return after its context ended")
		}
	}
	t.Cleanup(stop)
	return &replica{w, stop}
}

// objects returns a metadata client for the same objects as client.
func objects(client *fake.Clientset) metadata.Interface {
	c := metadatafake.NewSimpleMetadataClient(metadatafake.NewTestScheme())
	c.PrependReactor("*", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
		_, err := client.Invokes(action, nil)
		return true, &metav1.PartialObjectMetadata{}, err
	})
	return c
}

// leader starts a writer, and waits until it holds the Lease.
func leader(t *testing.T, client *fake.Clientset) *replica {
	t.Helper()
	r := start(t, client)
	fixture.Holds(t, "the replica leads", r.Leader)
	return r
}

// at returns options with which the status contains one address.
func at(address string) settings.Config { return settings.Config{PublishAddress: []string{address}} }

func clientOf(all ...*networkingv1.Ingress) *fake.Clientset {
	var objects []runtime.Object
	for _, o := range all {
		objects = append(objects, o.DeepCopy())
	}
	return fake.NewClientset(objects...)
}

// addressOf returns the addresses in the status of an Ingress.
func addressOf(t *testing.T, client *fake.Clientset, name string) string {
	t.Helper()
	o, err := client.NetworkingV1().Ingresses("a").Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(short(o.Status.LoadBalancer.Ingress))
}

func eventsIn(t *testing.T, client *fake.Clientset) []eventsv1.Event {
	t.Helper()
	list, err := client.EventsV1().Events("a").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return list.Items
}

// count returns the number of requests with a verb for a resource and, unless name is empty, an object name.
func count(client *fake.Clientset, verb, resource, name string) int {
	n := 0
	for _, action := range client.Actions() {
		named, ok := action.(interface{ GetName() string })
		if action.Matches(verb, resource) && (name == "" || ok && named.GetName() == name) {
			n++
		}
	}
	return n
}

// refuse makes the next requests with a verb for a resource fail, one with each error.
func refuse(client *fake.Clientset, verb, resource string, errs ...error) {
	answers := make(chan error, len(errs))
	for _, err := range errs {
		answers <- err
	}
	client.PrependReactor(verb, resource, func(clienttesting.Action) (bool, runtime.Object, error) {
		select {
		case err := <-answers:
			return true, nil, err
		default:
			return false, nil, nil
		}
	})
}
