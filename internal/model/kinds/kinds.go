// Package kinds lists the kinds of Kubernetes objects that the controller reads, in the variable All. This list
// determines which informers run, which objects are read from manifests and kept in a snapshot, and which RBAC rules
// are generated in charts/k8singress/files.
package kinds

//go:generate go test -run ^TestRBAC$ -update

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"unique"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Object is a typed API object.
type Object interface {
	runtime.Object
	metav1.Object
}

// The names of the kinds.
const (
	Ingress       = "Ingress"
	IngressClass  = "IngressClass"
	Service       = "Service"
	EndpointSlice = "EndpointSlice"
	Secret        = "Secret"
	ConfigMap     = "ConfigMap"
	Namespace     = "Namespace"
	Pod           = "Pod"
	Node          = "Node"
)

// OwnPrefix is the prefix of the annotations that only this controller defines.
const OwnPrefix = "k8singress.io/"

// Kind describes one kind of Kubernetes objects.
type Kind struct {
	// Name is the kind, such as "Ingress".
	Name         string
	GroupVersion schema.GroupVersion
	// Resource is the plural name that URLs and RBAC rules use.
	Resource string
	// ClusterScoped is set if the objects have no namespace.
	ClusterScoped bool
	// Optional is set if objects of this kind are watched only when an option needs them.
	Optional bool
	// OwnNamespace is set if only objects in the namespace of the controller are watched.
	OwnNamespace bool
	// Dispensable is set if the controller also works without permission to read the objects.
	Dispensable bool
	// NoManifest is set if objects of this kind exist only in a cluster, so they are not read from a folder of
	// manifests.
	NoManifest bool
	// FieldSelector is the field selector of the watch. The API server does not send the objects that the selector
	// excludes.
	FieldSelector string
	// WritesStatus is set if the controller only writes the status of these objects and does not read it. An update
	// that changes only the status is then ignored.
	WritesStatus bool
	// Owner returns the name of the object that owns an object of this kind, such as the Service of an EndpointSlice.
	// Both are in the same namespace. A snapshot can list the objects of an owner, and reports a changed object under
	// the name of its owner. Owner is nil for kinds without owners.
	Owner func(Object) string
	// If ListsAnnotated is set, a snapshot maintains an index of the objects of this kind that have an annotation with
	// the prefix OwnPrefix.
	ListsAnnotated bool
	// New returns an empty object of this kind. NewList returns an empty list of such objects.
	New     func() Object
	NewList func() runtime.Object
	// Trim removes the fields that the controller does not read. It does not write to an object that is already
	// trimmed, because such an object may have concurrent readers.
	Trim func(Object)
}

// All lists the kinds that the controller reads, in the order of the documentation.
var All = []Kind{
	{
		Name: Ingress, GroupVersion: networkingv1.SchemeGroupVersion, Resource: "ingresses",
		New:     func() Object { return &networkingv1.Ingress{} },
		NewList: func() runtime.Object { return &networkingv1.IngressList{} },
		Trim:    trimLabels, WritesStatus: true,
	},
	{
		Name: IngressClass, GroupVersion: networkingv1.SchemeGroupVersion, Resource: "ingressclasses",
		ClusterScoped: true,
		New:           func() Object { return &networkingv1.IngressClass{} },
		NewList:       func() runtime.Object { return &networkingv1.IngressClassList{} },
		Trim:          trimLabels,
	},
	{
		Name: Service, GroupVersion: corev1.SchemeGroupVersion, Resource: "services",
		New:     func() Object { return &corev1.Service{} },
		NewList: func() runtime.Object { return &corev1.ServiceList{} },
		Trim:    trimService, ListsAnnotated: true,
	},
	{
		Name: EndpointSlice, GroupVersion: discoveryv1.SchemeGroupVersion, Resource: "endpointslices",
		New:     func() Object { return &discoveryv1.EndpointSlice{} },
		NewList: func() runtime.Object { return &discoveryv1.EndpointSliceList{} },
		Trim:    trimEndpointSlice,
		Owner:   func(o Object) string { return o.GetLabels()[discoveryv1.LabelServiceName] },
	},
	{
		// Secrets of Helm are excluded: Helm stores each release in a Secret of up to 1 MiB, and a cluster can have
		// thousands of them.
		Name: Secret, GroupVersion: corev1.SchemeGroupVersion, Resource: "secrets",
		FieldSelector: "type!=helm.sh/release.v1",
		New:           func() Object { return &corev1.Secret{} },
		NewList:       func() runtime.Object { return &corev1.SecretList{} },
		Trim:          trimLabels,
	},
	{
		// The ConfigMap kube-root-ca.crt is excluded: Kubernetes creates it in every namespace, and the controller does
		// not need it.
		Name: ConfigMap, GroupVersion: corev1.SchemeGroupVersion, Resource: "configmaps",
		FieldSelector: "metadata.name!=kube-root-ca.crt",
		New:           func() Object { return &corev1.ConfigMap{} },
		NewList:       func() runtime.Object { return &corev1.ConfigMapList{} },
		Trim:          trimLabels,
	},
	{
		// Namespaces are watched only for the option namespace_selector, which selects them by their labels.
		Name: Namespace, GroupVersion: corev1.SchemeGroupVersion, Resource: "namespaces", ClusterScoped: true,
		Optional: true,
		New:      func() Object { return &corev1.Namespace{} },
		NewList:  func() runtime.Object { return &corev1.NamespaceList{} },
		Trim:     trimNamespace,
	},
	{
		// Pods are watched only for the option publish_nodes, which needs the nodes of the controller's pods.
		Name: Pod, GroupVersion: corev1.SchemeGroupVersion, Resource: "pods",
		Optional: true, OwnNamespace: true, Dispensable: true, NoManifest: true,
		New: func() Object { return &corev1.Pod{} }, NewList: func() runtime.Object { return &corev1.PodList{} },
		Trim: trimPod,
	},
	{
		// Nodes are watched only for the option publish_nodes, which publishes their addresses.
		Name: Node, GroupVersion: corev1.SchemeGroupVersion, Resource: "nodes", ClusterScoped: true,
		Optional: true, Dispensable: true, NoManifest: true,
		New: func() Object { return &corev1.Node{} }, NewList: func() runtime.Object { return &corev1.NodeList{} },
		Trim: trimNode,
	},
}

// Of returns the element of All for the type of an object. It returns nil if All does not contain the type. The object
// may be a nil pointer.
func Of(o Object) *Kind { return byType[reflect.TypeOf(o)] }

var byType = func() map[reflect.Type]*Kind {
	rows := map[reflect.Type]*Kind{}
	for i := range All {
		rows[reflect.TypeOf(All[i].New())] = &All[i]
	}
	return rows
}()

// SameVersion reports whether two objects with the same name have the same UID and resourceVersion. If so, all their
// fields are equal. It returns false if the resourceVersion is empty.
func SameVersion(a, b Object) bool {
	version := a.GetResourceVersion()
	return version != "" && version == b.GetResourceVersion() && a.GetUID() == b.GetUID()
}

// HasOwnAnnotation reports whether an object has an annotation with the prefix OwnPrefix.
func HasOwnAnnotation(o Object) bool {
	for name := range o.GetAnnotations() {
		if strings.HasPrefix(name, OwnPrefix) {
			return true
		}
	}
	return false
}

// Named returns an object of kind k in which only the namespace and the name are set.
func (k Kind) Named(namespace, name string) Object {
	o := k.New()
	o.SetNamespace(namespace)
	o.SetName(name)
	return o
}

// ByName returns the element of All whose field Name is the given name, such as "Secret". It returns false if there is
// no such element.
func ByName(name string) (Kind, bool) {
	for _, k := range All {
		if k.Name == name {
			return k, true
		}
	}
	return Kind{}, false
}

const (
	// lastApplied is the annotation with kubectl's copy of the object, which is as large as the object itself.
	lastApplied = "kubectl.kubernetes.io/last-applied-configuration"
	// leader is the annotation with the record of an old-style leader election, which changes every two seconds.
	leader = "control-plane.alpha.kubernetes.io/leader"
)

// trimMeta removes the metadata that the controller does not read, except labels. It only writes to fields that are
// set, because other goroutines may be reading an object that is already trimmed.
func trimMeta(o Object) {
	if o.GetManagedFields() != nil {
		// This code does not write to an object that is already trimmed, because such an object has no managed fields.
		o.SetManagedFields(nil)
		ShareNames(o)
	}
	trimOwners(o)
}

// ShareNames replaces the names of an object's annotations with shared strings. This saves memory, because thousands of
// objects have annotations with the same few names. No other goroutine may be reading the object yet.
func ShareNames(o Object) {
	all := o.GetAnnotations()
	if len(all) == 0 {
		return
	}
	shared := make(map[string]string, len(all))
	for name, value := range all {
		shared[unique.Make(name).Value()] = value
	}
	o.SetAnnotations(shared)
}

func trimOwners(o Object) {
	if o.GetOwnerReferences() != nil {
		o.SetOwnerReferences(nil)
	}
	if o.GetFinalizers() != nil {
		o.SetFinalizers(nil)
	}
	maps.DeleteFunc(o.GetAnnotations(), func(name, _ string) bool { return name == lastApplied || name == leader })
}

// trimLabels trims the metadata and removes the labels, for kinds whose labels are not read. Even a map with a single
// label takes half a kilobyte of memory.
func trimLabels(o Object) {
	trimMeta(o)
	dropLabels(o)
}

func dropLabels(o Object) {
	if o.GetLabels() != nil {
		o.SetLabels(nil)
	}
}

// PortsManager is the field manager with which the controller writes the ports of its own Service.
const PortsManager = "k8singress-ports"

// trimService removes the fields that the controller does not read. It keeps the ports, the external addresses, and the
// entry of PortsManager in the managed fields.
func trimService(o Object) {
	others := func(e metav1.ManagedFieldsEntry) bool { return e.Manager != PortsManager }
	switch managed := o.GetManagedFields(); {
	case !slices.ContainsFunc(managed, others):
	case slices.ContainsFunc(managed, func(e metav1.ManagedFieldsEntry) bool { return !others(e) }):
		o.SetManagedFields(slices.DeleteFunc(slices.Clone(managed), others))
	default:
		o.SetManagedFields(nil)
	}
	trimOwners(o)
	dropLabels(o)
	spec := &o.(*corev1.Service).Spec
	if spec.Selector != nil || spec.ClusterIPs != nil || spec.IPFamilies != nil || spec.IPFamilyPolicy != nil ||
		spec.InternalTrafficPolicy != nil {
		spec.Selector, spec.ClusterIPs, spec.IPFamilies, spec.IPFamilyPolicy, spec.InternalTrafficPolicy = nil,
			nil, nil, nil, nil
	}
}

// trimNamespace removes the fields that the controller does not read. It keeps the labels.
func trimNamespace(o Object) {
	trimMeta(o)
	namespace := o.(*corev1.Namespace)
	if namespace.Spec.Finalizers != nil {
		namespace.Spec.Finalizers = nil
	}
	if namespace.Status.Phase != "" || namespace.Status.Conditions != nil {
		namespace.Status = corev1.NamespaceStatus{}
	}
}

// trimPod removes the fields that the controller does not read. It keeps the node, the phase, the Ready condition and
// the labels. The labels identify the replicas of the controller.
func trimPod(o Object) {
	trimMeta(o)
	pod := o.(*corev1.Pod)
	if pod.Annotations != nil {
		pod.Annotations = nil
	}
	if spec := (corev1.PodSpec{NodeName: pod.Spec.NodeName}); !reflect.DeepEqual(pod.Spec, spec) {
		pod.Spec = spec
	}
	status := corev1.PodStatus{Phase: pod.Status.Phase}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			status.Conditions = append(status.Conditions, corev1.PodCondition{Type: c.Type, Status: c.Status})
		}
	}
	if !reflect.DeepEqual(pod.Status, status) {
		pod.Status = status
	}
}

// trimNode removes the fields that the controller does not read. It keeps the addresses.
func trimNode(o Object) {
	trimLabels(o)
	node := o.(*corev1.Node)
	if node.Annotations != nil {
		node.Annotations = nil
	}
	if !reflect.DeepEqual(node.Spec, corev1.NodeSpec{}) {
		node.Spec = corev1.NodeSpec{}
	}
	if status := (corev1.NodeStatus{Addresses: node.Status.Addresses}); !reflect.DeepEqual(node.Status, status) {
		node.Status = status
	}
}

// trimEndpointSlice removes the fields that the controller does not read. It keeps the fields that decide where
// requests are sent. The memory for endpoints matters, because in a large cluster there are more endpoints than objects
// of any other kind.
func trimEndpointSlice(o Object) {
	trimMeta(o)
	slice := o.(*discoveryv1.EndpointSlice)
	if len(slice.Labels) > 1 {
		maps.DeleteFunc(slice.Labels, func(name, _ string) bool { return name != discoveryv1.LabelServiceName })
	}
	if slice.Annotations != nil {
		slice.Annotations = nil
	}
	for i := range slice.Endpoints {
		e := &slice.Endpoints[i]
		if e.TargetRef != nil || e.NodeName != nil || e.Hostname != nil || e.DeprecatedTopology != nil {
			e.TargetRef, e.NodeName, e.Hostname, e.DeprecatedTopology = nil, nil, nil, nil
		}
	}
}
