// Package kubeclient finds out how to reach an API server, and as whom; and it keeps asking one that is away.
package kubeclient

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
	// writesPerSecond and burst keep a controller that has 10,000 statuses to write from burdening the API server.
	writesPerSecond = 50
	burst           = 100

	namespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"
	namespaceEnv  = "POD_NAMESPACE"
	podEnv        = "POD_NAME"
)

// ErrNotInCluster says that this process is not in a pod, so that only a kubeconfig could tell where the API server is.
var ErrNotInCluster = errors.New("this process does not run in a Kubernetes cluster")

// Access is how to reach an API server, and as whom.
type Access struct {
	// Config has a limit of requests per second that suits a writer. Who needs another one takes a copy.
	Config *rest.Config
	// Namespace is this process' own one: that of the pod, else that of the kubeconfig.
	Namespace string
	// Pod is the name of the pod in that namespace that this process runs in; it is empty where that is not known.
	Pod string
}

// Find reads a kubeconfig, or what a pod is given if there is none. It asks nothing of the API server.
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

// podNamespace prefers what the pod is told, since a kubeconfig may be mounted into one.
func podNamespace(fallback string) string {
	if name := os.Getenv(namespaceEnv); name != "" {
		return name
	}
	if data, err := os.ReadFile(namespaceFile); err == nil && len(data) > 0 {
		return strings.TrimSpace(string(data))
	}
	return fallback
}

// podName prefers what the pod is told: on the network of its node it has the host name of that.
func podName() string {
	if name := os.Getenv(podEnv); name != "" {
		return name
	}
	// Without a name, nothing is known.
	name, _ := os.Hostname()
	return name
}
