package kinds

import (
	"reflect"
	"strings"
	"sync"
	"testing"
	"unsafe"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
)

func TestRowsAgreeWithTheAPI(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, discoveryv1.AddToScheme,
		networkingv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	for _, row := range All {
		t.Run(row.Name, func(t *testing.T) {
			gvk := row.GroupVersion.WithKind(row.Name)
			if resource, _ := meta.UnsafeGuessKindToResource(gvk); resource.Resource != row.Resource {
				t.Errorf("resource %q, want %q", row.Resource, resource.Resource)
			}
			for o, want := range map[runtime.Object]string{row.New(): row.Name, row.NewList(): row.Name + "List"} {
				gvks, _, err := scheme.ObjectKinds(o)
				if err != nil || gvks[0] != row.GroupVersion.WithKind(want) {
					t.Errorf("%T is %v, want %s: %v", o, gvks, want, err)
				}
			}
			if err := meta.SetList(row.NewList(), []runtime.Object{row.New()}); err != nil {
				t.Errorf("the list does not take the object: %v", err)
			}
			if _, err := fields.ParseSelector(row.FieldSelector); err != nil {
				t.Errorf("field selector: %v", err)
			}
			if _, ok := reflect.TypeOf(row.New()).Elem().FieldByName("Status"); row.WritesStatus && !ok {
				t.Error("WritesStatus is set for a kind without a status")
			}
		})
	}
}

func TestRowsAreFoundByNameAndByObject(t *testing.T) {
	for _, row := range All {
		if got, ok := ByName(row.Name); !ok || got.Resource != row.Resource {
			t.Errorf("%s: ByName returns %v, %v", row.Name, got, ok)
		}
		if got := Of(row.New()); got == nil || got.Name != row.Name {
			t.Errorf("%s: Of returns %v", row.Name, got)
		}
	}
	if _, ok := ByName("Event"); ok || Of(&corev1.Event{}) != nil {
		t.Error("the table has Events")
	}
}

// full returns an object that has all the fields that Trim removes.
func full(row Kind) Object {
	o := row.New()
	o.SetName("web")
	o.SetLabels(map[string]string{discoveryv1.LabelServiceName: "web", "app": "web"})
	o.SetResourceVersion("7")
	o.SetAnnotations(map[string]string{lastApplied: "{}", leader: "{}",
		"nginx.ingress.kubernetes.io/rewrite-target": "/"})
	o.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "kubectl"}})
	o.SetOwnerReferences([]metav1.OwnerReference{{Name: "owner"}})
	o.SetFinalizers([]string{"a/b"})
	if service, ok := o.(*corev1.Service); ok {
		policy, traffic := corev1.IPFamilyPolicySingleStack, corev1.ServiceInternalTrafficPolicyCluster
		service.Spec = corev1.ServiceSpec{
			ClusterIP: "10.96.0.1", ClusterIPs: []string{"10.96.0.1"}, Selector: map[string]string{"app": "web"},
			IPFamilies: []corev1.IPFamily{corev1.IPv4Protocol}, IPFamilyPolicy: &policy,
			InternalTrafficPolicy: &traffic,
		}
	}
	if slice, ok := o.(*discoveryv1.EndpointSlice); ok {
		node, host := "node-1", "web-0"
		slice.Endpoints = []discoveryv1.Endpoint{{
			Addresses: []string{"10.0.0.1"}, NodeName: &node, Hostname: &host,
			TargetRef:          &corev1.ObjectReference{Name: "web-0"},
			DeprecatedTopology: map[string]string{"zone": "a"},
			Hints:              &discoveryv1.EndpointHints{ForZones: []discoveryv1.ForZone{{Name: "a"}}},
		}}
	}
	switch o := o.(type) {
	case *corev1.Pod:
		o.Spec = corev1.PodSpec{NodeName: "node-1", HostNetwork: true}
		o.Status = corev1.PodStatus{PodIP: "10.0.0.1", Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{
			{Type: corev1.PodScheduled, Status: corev1.ConditionTrue},
			{Type: corev1.PodReady, Status: corev1.ConditionTrue, Reason: "because"},
		}}
	case *corev1.Node:
		o.Spec.PodCIDR = "10.0.0.0/24"
		o.Status.Phase, o.Status.Addresses = corev1.NodeRunning,
			[]corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "192.0.2.1"}}
	}
	return o
}

// labelsRead lists the labels of full that the controller reads.
var labelsRead = map[string]map[string]string{
	EndpointSlice: {discoveryv1.LabelServiceName: "web"},
	Namespace:     {discoveryv1.LabelServiceName: "web", "app": "web"},
	Pod:           {discoveryv1.LabelServiceName: "web", "app": "web"},
}

func TestTrim(t *testing.T) {
	for _, row := range All {
		t.Run(row.Name, func(t *testing.T) {
			o := full(row)
			row.Trim(o)
			if o.GetManagedFields() != nil || o.GetOwnerReferences() != nil || o.GetFinalizers() != nil {
				t.Errorf("left over: %v", o)
			}
			for _, name := range []string{lastApplied, leader} {
				if _, ok := o.GetAnnotations()[name]; ok {
					t.Errorf("annotation %s is left over", name)
				}
			}
			if o.GetName() != "web" || o.GetResourceVersion() != "7" {
				t.Errorf("too much is gone: %v", o)
			}
			if want := labelsRead[row.Name]; !reflect.DeepEqual(o.GetLabels(), want) {
				t.Errorf("labels %v, want %v", o.GetLabels(), want)
			}
			if n, read := len(o.GetAnnotations()), !row.NoManifest && row.Name != EndpointSlice; read && n != 1 ||
				!read && n != 0 {
				t.Errorf("annotations %v, want the one of the user, where it is read", o.GetAnnotations())
			}
			checkTrimmed(t, o)
		})
	}
}

// checkTrimmed fails the test unless only the fields that the controller reads are left.
func checkTrimmed(t *testing.T, o Object) {
	t.Helper()
	switch o := o.(type) {
	case *corev1.Service:
		if !reflect.DeepEqual(o.Spec, corev1.ServiceSpec{ClusterIP: "10.96.0.1"}) {
			t.Errorf("the spec is %v", o.Spec)
		}
	case *discoveryv1.EndpointSlice:
		want := []discoveryv1.Endpoint{{
			Addresses: []string{"10.0.0.1"},
			Hints:     &discoveryv1.EndpointHints{ForZones: []discoveryv1.ForZone{{Name: "a"}}},
		}}
		if !reflect.DeepEqual(o.Endpoints, want) {
			t.Errorf("endpoints %v, want %v", o.Endpoints, want)
		}
	case *corev1.Pod:
		ready := []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
		if !reflect.DeepEqual(o.Spec, corev1.PodSpec{NodeName: "node-1"}) ||
			!reflect.DeepEqual(o.Status, corev1.PodStatus{Phase: corev1.PodRunning, Conditions: ready}) {
			t.Errorf("left are %v and %v", o.Spec, o.Status)
		}
	case *corev1.Node:
		addresses := []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "192.0.2.1"}}
		if !reflect.DeepEqual(o.Spec, corev1.NodeSpec{}) ||
			!reflect.DeepEqual(o.Status, corev1.NodeStatus{Addresses: addresses}) {
			t.Errorf("left are %v and %v", o.Spec, o.Status)
		}
	}
}

// TestTrimKeepsTheManagerOfPorts checks that Trim keeps the managed fields of PortsManager. They show the controller
// which ports of its Service it has written.
func TestTrimKeepsTheManagerOfPorts(t *testing.T) {
	row, _ := ByName(Service)
	o := full(row)
	own := metav1.ManagedFieldsEntry{Manager: PortsManager}
	o.SetManagedFields(append(o.GetManagedFields(), own))
	for range 2 {
		row.Trim(o)
		if got := o.GetManagedFields(); !reflect.DeepEqual(got, []metav1.ManagedFieldsEntry{own}) ||
			o.GetLabels() != nil {
			t.Errorf("left are %v and the labels %v", got, o.GetLabels())
		}
	}
}

// TestTrimWritesNothingTwice checks with the race detector that Trim does not write to a trimmed object.
func TestTrimWritesNothingTwice(*testing.T) {
	for _, row := range All {
		o := full(row)
		row.Trim(o)
		var group sync.WaitGroup
		for range 4 {
			group.Go(func() { row.Trim(o) })
		}
		group.Wait()
	}
}

func TestTrimTakesAnEmptyObject(t *testing.T) {
	for _, row := range All {
		o := row.New()
		row.Trim(o)
		if !reflect.DeepEqual(o, row.New()) {
			t.Errorf("%s: Trim makes %v of an empty object", row.Name, o)
		}
	}
}

// TestNamesOfAnnotationsAreShared checks that objects with an annotation of the same name share the memory of the name.
func TestNamesOfAnnotationsAreShared(t *testing.T) {
	const name = "example.com/name"
	nameOf := func(value string) *byte {
		o := &networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{strings.Clone(
			name): value}}}
		ShareNames(o)
		for got, is := range o.Annotations {
			if got == name && is == value {
				return unsafe.StringData(got)
			}
		}
		t.Fatalf("the annotations are %v", o.Annotations)
		return nil
	}
	// A garbage collection between the two calls may free the shared name, so try again.
	for range 100 {
		if nameOf("a") == nameOf("b") {
			return
		}
	}
	t.Error("each object has its own copy of the name")
}
