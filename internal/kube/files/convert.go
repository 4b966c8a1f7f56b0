package files

import (
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	discoveryv1beta1 "k8s.io/api/discovery/v1beta1"
	networkingv1 "k8s.io/api/networking/v1"
	networkingv1beta1 "k8s.io/api/networking/v1beta1"
	"k8s.io/apimachinery/pkg/util/intstr"
	kjson "sigs.k8s.io/json"

	"github.com/k8singress/k8singress/internal/model/kinds"
)

// reader decodes manifests of one apiVersion and kind.
type reader struct {
	clusterScoped bool
	// successor is the apiVersion and kind that replace a deprecated apiVersion and kind. It is empty if they are not
	// deprecated.
	successor string
	// changed describes what the author of a manifest has to change besides the apiVersion. It may be empty.
	changed string
	// read decodes an object and converts it to the current apiVersion. strict contains errors about unknown fields,
	// which may be misspelled.
	read func(raw []byte) (object kinds.Object, strict []error, err error)
}

const ingressChanged = ", write backend.service.name and backend.service.port.number (or .name) instead of " +
	"backend.serviceName and backend.servicePort, write spec.defaultBackend instead of spec.backend, and add a " +
	"pathType to each path"

// oldVersions maps each deprecated apiVersion and kind to a reader that converts its objects. The Ingress of
// extensions/v1beta1 has the same fields as the Ingress of networking.k8s.io/v1beta1.
var oldVersions = map[identity]reader{
	{apiVersion: "extensions/v1beta1", kind: kinds.Ingress}: {
		successor: "networking.k8s.io/v1", changed: ingressChanged, read: converting(ingressFromBeta),
	},
	{apiVersion: "networking.k8s.io/v1beta1", kind: kinds.Ingress}: {
		successor: "networking.k8s.io/v1", changed: ingressChanged, read: converting(ingressFromBeta),
	},
	{apiVersion: "networking.k8s.io/v1beta1", kind: kinds.IngressClass}: {
		clusterScoped: true, successor: "networking.k8s.io/v1", read: converting(same[networkingv1.IngressClass]),
	},
	{apiVersion: "discovery.k8s.io/v1beta1", kind: kinds.EndpointSlice}: {
		successor: "discovery.k8s.io/v1", read: converting(sliceFromBeta),
	},
	{apiVersion: "v1", kind: endpointsKind}: {
		successor: "discovery.k8s.io/v1 EndpointSlice",
		read:      converting(same[corev1.Endpoints]), //nolint:staticcheck // Manifests may still have the old kind.
	},
}

func readerOf(apiVersion, kind string) (reader, bool) {
	row, ok := kinds.ByName(kind)
	if ok && !row.NoManifest && row.GroupVersion.String() == apiVersion {
		return reader{clusterScoped: row.ClusterScoped, read: current(row)}, true
	}
	r, ok := oldVersions[identity{apiVersion: apiVersion, kind: kind}]
	return r, ok
}

func current(row kinds.Kind) func([]byte) (kinds.Object, []error, error) {
	return func(raw []byte) (kinds.Object, []error, error) {
		o := row.New()
		strict, err := kjson.UnmarshalStrict(raw, o)
		return o, strict, err
	}
}

// converting returns a function that decodes an object of a deprecated version and converts it. Decoding is strict, so
// that a field that exists only in the new version is reported.
func converting[Old any, New kinds.Object](convert func(*Old) New) func([]byte) (kinds.Object, []error, error) {
	return func(raw []byte) (kinds.Object, []error, error) {
		old := new(Old)
		strict, err := kjson.UnmarshalStrict(raw, old)
		if err != nil {
			return nil, nil, err
		}
		return convert(old), strict, nil
	}
}

func ingressFromBeta(old *networkingv1beta1.Ingress) *networkingv1.Ingress {
	o := &networkingv1.Ingress{ObjectMeta: old.ObjectMeta}
	o.Spec.IngressClassName = old.Spec.IngressClassName
	if old.Spec.Backend != nil {
		o.Spec.DefaultBackend = backendFromBeta(old.Spec.Backend)
	}
	for _, tls := range old.Spec.TLS {
		o.Spec.TLS = append(o.Spec.TLS, networkingv1.IngressTLS{Hosts: tls.Hosts, SecretName: tls.SecretName})
	}
	for _, rule := range old.Spec.Rules {
		o.Spec.Rules = append(o.Spec.Rules, ruleFromBeta(rule))
	}
	return o
}

func ruleFromBeta(old networkingv1beta1.IngressRule) networkingv1.IngressRule {
	rule := networkingv1.IngressRule{Host: old.Host}
	if old.HTTP == nil {
		return rule
	}
	rule.HTTP = &networkingv1.HTTPIngressRuleValue{}
	for _, p := range old.HTTP.Paths {
		kind := networkingv1.PathTypeImplementationSpecific
		if p.PathType != nil {
			kind = networkingv1.PathType(*p.PathType)
		}
		rule.HTTP.Paths = append(rule.HTTP.Paths, networkingv1.HTTPIngressPath{
			Path: p.Path, PathType: &kind, Backend: *backendFromBeta(&p.Backend),
		})
	}
	return rule
}

func backendFromBeta(old *networkingv1beta1.IngressBackend) *networkingv1.IngressBackend {
	if old.Resource != nil || old.ServiceName == "" {
		return &networkingv1.IngressBackend{Resource: old.Resource}
	}
	service := &networkingv1.IngressServiceBackend{Name: old.ServiceName}
	if old.ServicePort.Type == intstr.String {
		service.Port.Name = old.ServicePort.StrVal
	} else {
		service.Port.Number = old.ServicePort.IntVal
	}
	return &networkingv1.IngressBackend{Service: service}
}

// same returns its argument unchanged. It is used for kinds that need no conversion here: an IngressClass has the same
// fields in both versions, and Endpoints are converted only after all files have been read.
func same[T any](o *T) *T { return o }

func sliceFromBeta(old *discoveryv1beta1.EndpointSlice) *discoveryv1.EndpointSlice {
	o := &discoveryv1.EndpointSlice{ObjectMeta: old.ObjectMeta, AddressType: discoveryv1.AddressType(old.AddressType)}
	for _, p := range old.Ports {
		o.Ports = append(o.Ports, discoveryv1.EndpointPort{
			Name: p.Name, Protocol: p.Protocol, Port: p.Port, AppProtocol: p.AppProtocol,
		})
	}
	for _, e := range old.Endpoints {
		o.Endpoints = append(o.Endpoints, discoveryv1.Endpoint{
			Addresses: e.Addresses, Conditions: discoveryv1.EndpointConditions(e.Conditions),
		})
	}
	return o
}
