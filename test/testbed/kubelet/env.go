package kubelet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/kubernetes/pkg/api/v1/resource"
	"k8s.io/kubernetes/pkg/fieldpath"
	"k8s.io/kubernetes/third_party/forked/golang/expansion"
)

// environment computes the variables of a container. The status of the pod must already contain its addresses.
type environment struct {
	client kubernetes.Interface
	pod    *v1.Pod
	// below has the variables with lower precedence than values, as NAME=value: those of the image, which cannot be
	// referenced in the pod.
	below  []string
	values map[string]string
}

// newEnvironment returns an environment with the variables of the image. The last variable of a name takes precedence.
func newEnvironment(client kubernetes.Interface, pod *v1.Pod, ofImage []string) *environment {
	below := []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOSTNAME=" + hostname(pod)}
	return &environment{client: client, pod: pod, below: append(below, ofImage...), values: map[string]string{
		// The real kubelet sets such variables for every Service. Kubernetes clients in a pod need these.
		"KUBERNETES_SERVICE_HOST":       "10.96.0.1",
		"KUBERNETES_SERVICE_PORT":       "443",
		"KUBERNETES_SERVICE_PORT_HTTPS": "443",
	}}
}

// hostname returns the host name of a pod. A pod in the network of its node has the host name of the node.
func hostname(pod *v1.Pod) string {
	if pod.Spec.HostNetwork {
		return pod.Spec.NodeName
	}
	return cmp.Or(pod.Spec.Hostname, pod.Name)
}

// add sets the variables of a container. As with the real kubelet, env takes precedence over envFrom.
func (e *environment) add(ctx context.Context, c *v1.Container) error {
	for _, from := range c.EnvFrom {
		if err := e.addFrom(ctx, from); err != nil {
			return err
		}
	}
	for i := range c.Env {
		value, set, err := e.value(ctx, c, &c.Env[i])
		if err != nil {
			return fmt.Errorf("variable %s: %w", c.Env[i].Name, err)
		}
		if set {
			e.values[c.Env[i].Name] = value
		}
	}
	return nil
}

func (e *environment) addFrom(ctx context.Context, from v1.EnvFromSource) error {
	if ref := from.ConfigMapRef; ref != nil {
		data, err := e.configMap(ctx, ref.Name, ref.Optional)
		for key, value := range data {
			e.values[from.Prefix+key] = value
		}
		return err
	}
	if ref := from.SecretRef; ref != nil {
		data, err := e.secret(ctx, ref.Name, ref.Optional)
		for key, value := range data {
			e.values[from.Prefix+key] = string(value)
		}
		return err
	}
	return nil
}

func (e *environment) value(ctx context.Context, c *v1.Container, v *v1.EnvVar) (value string, set bool, err error) {
	from := v.ValueFrom
	switch {
	case from == nil:
		return e.expand(v.Value), true, nil
	case from.FieldRef != nil:
		value, err = e.field(from.FieldRef.FieldPath)
		return value, true, err
	case from.ResourceFieldRef != nil:
		value, err = resource.ExtractContainerResourceValue(from.ResourceFieldRef, c)
		return value, true, err
	case from.ConfigMapKeyRef != nil:
		ref := from.ConfigMapKeyRef
		data, err := e.configMap(ctx, ref.Name, ref.Optional)
		value, set = data[ref.Key]
		return value, set, missing(err, set, ref.Key, ref.Optional)
	case from.SecretKeyRef != nil:
		ref := from.SecretKeyRef
		data, err := e.secret(ctx, ref.Name, ref.Optional)
		bytes, set := data[ref.Key]
		return string(bytes), set, missing(err, set, ref.Key, ref.Optional)
	}
	return "", false, errors.New("the testbed has no source of this kind")
}

func (e *environment) field(path string) (string, error) {
	switch path {
	case "spec.nodeName":
		return e.pod.Spec.NodeName, nil
	case "spec.serviceAccountName":
		return e.pod.Spec.ServiceAccountName, nil
	case "status.hostIP", "status.hostIPs":
		return e.pod.Status.HostIP, nil
	case "status.podIP", "status.podIPs":
		return e.pod.Status.PodIP, nil
	}
	return fieldpath.ExtractFieldPathAsString(e.pod, path)
}

func (e *environment) configMap(ctx context.Context, name string, optional *bool) (map[string]string, error) {
	object, err := e.client.CoreV1().ConfigMaps(e.pod.Namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, ignoreOptional(err, optional)
	}
	return object.Data, nil
}

func (e *environment) secret(ctx context.Context, name string, optional *bool) (map[string][]byte, error) {
	object, err := e.client.CoreV1().Secrets(e.pod.Namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, ignoreOptional(err, optional)
	}
	return object.Data, nil
}

// expand replaces $(NAME) by the value of a variable that is already set.
func (e *environment) expand(text string) string {
	return expansion.Expand(text, expansion.MappingFuncFor(e.values))
}

func (e *environment) expandAll(texts []string) []string {
	expanded := make([]string, 0, len(texts))
	for _, text := range texts {
		expanded = append(expanded, e.expand(text))
	}
	return expanded
}

func (e *environment) list() []string {
	all := map[string]string{}
	for _, pair := range e.below {
		name, value, _ := strings.Cut(pair, "=")
		all[name] = value
	}
	maps.Copy(all, e.values)
	list := make([]string, 0, len(all))
	for name, value := range all {
		list = append(list, name+"="+value)
	}
	slices.Sort(list)
	return list
}

func ignoreOptional(err error, optional *bool) error {
	if apierrors.IsNotFound(err) && optional != nil && *optional {
		return nil
	}
	return err
}

func missing(err error, set bool, key string, optional *bool) error {
	if err != nil || set || (optional != nil && *optional) {
		return err
	}
	return fmt.Errorf("there is no key %q", key)
}
