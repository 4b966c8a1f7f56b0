package files

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/k8singress/k8singress/internal/model/kinds"
	"github.com/k8singress/k8singress/internal/model/report"
)

// complete sets the default namespace of an object from a manifest, and checks the name of the object as an API server
// does. Other packages rely on valid names, because they use them in keys, URLs and paths.
func (f *found) complete(clusterScoped bool) error {
	switch {
	case clusterScoped:
		f.ref.Namespace = ""
	case f.ref.Namespace == "":
		f.ref.Namespace = "default"
	}
	switch {
	case f.ref.Name == "":
		return errors.New(f.ref.Kind + " has no metadata.name")
	case len(validation.IsDNS1123Subdomain(f.ref.Name)) > 0:
		return badName(f.ref.Kind, "name", f.ref.Name)
	case !clusterScoped && len(validation.IsDNS1123Label(f.ref.Namespace)) > 0:
		return badName(f.ref.Kind, "namespace", f.ref.Namespace)
	}
	return nil
}

func badName(kind, field, name string) error {
	return fmt.Errorf("%s: metadata.%s %q is not allowed: use lower-case letters and digits, and hyphens between them",
		kind, field, name)
}

// finish sets the defaults that an API server would set, and removes fields that the controller does not need. It sets
// the resourceVersion to a hash of the object's manifest, so that it changes only if the manifest changes.
func (f *found) finish(raw []byte) {
	sum := sha256.Sum256(raw)
	f.object.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	f.object.SetNamespace(f.ref.Namespace)
	kinds.ShareNames(f.object)
	f.object.SetResourceVersion(hex.EncodeToString(sum[:12]))
	switch o := f.object.(type) {
	case *corev1.Service:
		defaultService(o)
	case *corev1.Secret:
		defaultSecret(o)
	case *discoveryv1.EndpointSlice:
		if o.Labels[discoveryv1.LabelServiceName] == "" {
			f.add(report.Warning, report.InvalidManifest, "metadata.labels",
				"the EndpointSlice needs the label "+discoveryv1.LabelServiceName+" with the name of its Service")
		}
	}
	if row, ok := kinds.ByName(f.ref.Kind); ok {
		row.Trim(f.object)
	}
}

func defaultService(o *corev1.Service) {
	if o.Spec.Type == "" {
		o.Spec.Type = corev1.ServiceTypeClusterIP
	}
	for i := range o.Spec.Ports {
		p := &o.Spec.Ports[i]
		if p.Protocol == "" {
			p.Protocol = corev1.ProtocolTCP
		}
		if p.TargetPort == (intstr.IntOrString{}) {
			p.TargetPort = intstr.FromInt32(p.Port)
		}
	}
}

func defaultSecret(o *corev1.Secret) {
	if o.Type == "" {
		o.Type = corev1.SecretTypeOpaque
	}
	for name, value := range o.StringData {
		if o.Data == nil {
			o.Data = map[string][]byte{}
		}
		o.Data[name] = []byte(value)
	}
	o.StringData = nil
}
