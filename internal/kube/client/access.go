// Package client finds the address and the credentials of a Kubernetes API server, and retries requests while the
// server is unavailable.
package client

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

const (
	// writesPerSecond and burst are the rate limit for writes, which protects the API server when the controller has to
	// write the status of, say, 10,000 objects.
	writesPerSecond = 50
	burst           = 100

	namespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"
	namespaceEnv  = "POD_NAMESPACE"
	podEnv        = "POD_NAME"
)

// ErrNotInCluster means that this process does not run in a pod, so a kubeconfig is necessary to find the API server.
var ErrNotInCluster = errors.New("this process does not run in a Kubernetes cluster")

// Access holds the address and the credentials of an API server.
type Access struct {
	// Config is the configuration for clients of the API server. Its rate limit is suitable for writing the status of
	// objects. To send requests at another rate, copy Config and change the limit in the copy.
	Config *rest.Config
	// Namespace is the namespace of this process's pod. Outside a pod, it is the namespace in the kubeconfig.
	Namespace string
	// Pod is the name of this process's pod in Namespace. It is empty if the name is unknown.
	Pod string
}

// Find reads the address and the credentials from the given kubeconfig file. If kubeconfig is empty, it uses the
// service account of the pod. It sends no requests to the API server.
func Find(kubeconfig string) (Access, error) {
	find := inCluster
	if kubeconfig != "" {
		find = func() (Access, error) { return fromFile(kubeconfig) }
	}
	a, err := find()
	if err != nil {
		return a, err
	}
	a.Config.QPS, a.Config.Burst = writesPerSecond, burst
	a.Config.UserAgent = "k8singress"
	a.Config.ContentType = runtime.ContentTypeProtobuf
	a.Config.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	return a, nil
}

func inCluster() (Access, error) {
	config, err := rest.InClusterConfig()
	if errors.Is(err, rest.ErrNotInCluster) {
		return Access{}, ErrNotInCluster
	}
	if err != nil {
		return Access{}, fmt.Errorf("reading the service account of the pod: %w", err)
	}
	return Access{Config: config, Namespace: podNamespace("default"), Pod: podName()}, nil
}

func fromFile(path string) (Access, error) {
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		&clientcmd.ClientConfigLoadingRules{ExplicitPath: path}, &clientcmd.ConfigOverrides{})
	config, err := loader.ClientConfig()
	if err != nil {
		return Access{}, fmt.Errorf("reading the kubeconfig %s: %w", path, err)
	}
	namespace, _, err := loader.Namespace()
	if err != nil {
		return Access{}, fmt.Errorf("reading the namespace of the kubeconfig %s: %w", path, err)
	}
	return Access{Config: config, Namespace: podNamespace(namespace), Pod: os.Getenv(podEnv)}, nil
}

// Pod returns the namespace and the name of this process's pod, as metrics name it. Outside a pod, the namespace is
// default, and the name is the host name.
func Pod() (namespace, name string) { return podNamespace("default"), podName() }

// podNamespace returns the namespace of the pod. Outside a pod it returns fallback, the namespace in the kubeconfig.
// The pod takes precedence, because a kubeconfig can also be mounted into a pod.
func podNamespace(fallback string) string {
	if name := os.Getenv(namespaceEnv); name != "" {
		return name
	}
	if data, err := os.ReadFile(namespaceFile); err == nil && len(data) > 0 {
		return strings.TrimSpace(string(data))
	}
	return fallback
}

// podName returns the name of the pod. The environment variable takes precedence over the host name, because a pod with
// host networking has the host name of its node.
func podName() string {
	if name := os.Getenv(podEnv); name != "" {
		return name
	}
	// If the host name cannot be read, podName returns "", which means that the name is unknown.
	name, _ := os.Hostname()
	return name
}
