package ingress

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/k8singress/k8singress/internal/http/proxy"
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/kinds"
	"github.com/k8singress/k8singress/internal/model/report"
	"github.com/k8singress/k8singress/internal/model/snapshot"
	"github.com/k8singress/k8singress/internal/translate/annotations"
)

const (
	ingressClosed = "all requests for this Ingress get 503"
	// maxDataBytes is the maximum size of the data in a ConfigMap, in bytes. It is limited, because the data is copied
	// into each route, and sent with each request or response.
	maxDataBytes = 64 << 10
	// maxVariables is the maximum total number of nginx variables in the values of a ConfigMap. It limits how much
	// longer the values can become when the variables are replaced.
	maxVariables = 256
)

// readConfigMaps reads the ConfigMaps to which annotations of the Ingress refer.
func (r *reading) readConfigMaps() {
	a := r.annotations
	if a.Forwarding.Protocol == ir.FastCGI {
		r.params = r.configMap("fastcgi-params-configmap", a.ParamsConfigMap, r.checkParam)
	}
	auth := &a.Asked.Auth
	auth.Set = r.configMap("auth-proxy-set-headers", auth.SetHeaders, a.CheckAuthHeader)
	a.CustomHeaders.Data = r.configMap("custom-headers", a.CustomHeaders.ConfigMap, a.CustomHeaders.Check)
}

func (r *reading) checkParam(_, value string) error {
	if _, err := proxy.ParseParam(value); err != nil {
		return err
	}
	return r.annotations.HTTP.CheckVariables(value, proxy.ParamVariables()...)
}

// configMap returns the data of the ConfigMap to which an annotation refers, or nil if name is empty. check must return
// an error for an invalid key or value. If the data cannot be used, all requests for the Ingress get 503, because the
// ConfigMap may contain settings that restrict access.
func (r *reading) configMap(annotation, name string, check func(key, value string) error) map[string]string {
	if name == "" {
		return nil
	}
	object := r.findConfigMap(annotation, name)
	if object == nil {
		return nil
	}
	size, variables := 0, 0
	for _, key := range slices.Sorted(maps.Keys(object.Data)) {
		size += len(key) + len(object.Data[key])
		variables += strings.Count(object.Data[key], "$")
		if err := check(key, object.Data[key]); err != nil {
			r.closeFor(annotation, report.InvalidAnnotation, "the key %s of the ConfigMap %s/%s: %v; "+ingressClosed,
				key, object.Namespace, object.Name, err)
		}
	}
	if size > maxDataBytes {
		r.closeFor(annotation, report.InvalidAnnotation,
			"the ConfigMap %s/%s has %d bytes of data, and the maximum is %d: "+ingressClosed,
			object.Namespace, object.Name, size, maxDataBytes)
	}
	if variables > maxVariables {
		r.closeFor(annotation, report.InvalidAnnotation,
			"the values of the ConfigMap %s/%s contain %d variables, and the maximum is %d: "+ingressClosed,
			object.Namespace, object.Name, variables, maxVariables)
	}
	if r.annotations.Closed {
		return nil
	}
	return object.Data
}

// findConfigMap returns the ConfigMap to which an annotation refers. If the ConfigMap does not exist or is in another
// namespace, findConfigMap returns nil, and all requests for the Ingress get 503.
func (r *reading) findConfigMap(annotation, name string) *corev1.ConfigMap {
	ref := ir.Ref{Kind: kinds.ConfigMap, Namespace: r.Object.Namespace, Name: name}
	if namespace, rest, has := strings.Cut(name, "/"); has {
		if namespace != ref.Namespace {
			r.closeFor(annotation, report.InvalidAnnotation,
				"the ConfigMap %s is not in the namespace of the Ingress: "+ingressClosed+
					". Copy it to the namespace %s", name, ref.Namespace)
			return nil
		}
		ref.Name = rest
	}
	r.depend(ref)
	object, ok := snapshot.Of[*corev1.ConfigMap](r.snapshot).Get(ref.Namespace, ref.Name)
	if !ok {
		r.closeFor(annotation, report.ConfigMapNotFound,
			"the ConfigMap %s/%s does not exist: "+ingressClosed+" until it exists",
			ref.Namespace, ref.Name)
		return nil
	}
	return object
}

func (r *reading) closeFor(annotation string, reason report.Reason, message string, args ...any) {
	r.annotations.Closed = true
	r.problem(report.Error, reason, report.AnnotationField(annotations.Key(annotation)), message, args...)
}
