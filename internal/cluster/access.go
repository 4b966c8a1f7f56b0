package cluster

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
)

// access is how to reach an API server, and as whom.
type access struct {
	config    *rest.Config
	namespace string
}

func findAccess(kubeconfig string) (access, error) {
	find := inCluster
	if kubeconfig != "" {
		find = func() (access, error) { return fromFile(kubeconfig) }
	}
	a, err := find()
	if err != nil {
		return a, err
	}
	a.config.QPS, a.config.Burst = writesPerSecond, burst
	a.config.UserAgent = "k8singress"
	a.config.ContentType = runtime.ContentTypeProtobuf
	a.config.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	return a, nil
}

func inCluster() (access, error) {
	config, err := rest.InClusterConfig()
	if errors.Is(err, rest.ErrNotInCluster) {
		return access{}, errors.New("this process does not run in a Kubernetes cluster: " +
			"set the option kubeconfig to reach one, or manifests to serve a folder")
	}
	if err != nil {
		return access{}, fmt.Errorf("reading the service account of the pod: %w", err)
	}
	return access{config: config, namespace: podNamespace("default")}, nil
}

func fromFile(path string) (access, error) {
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		&clientcmd.ClientConfigLoadingRules{ExplicitPath: path}, &clientcmd.ConfigOverrides{})
	config, err := loader.ClientConfig()
	if err != nil {
		return access{}, fmt.Errorf("reading the kubeconfig %s: %w", path, err)
	}
	namespace, _, err := loader.Namespace()
	if err != nil {
		return access{}, fmt.Errorf("reading the namespace of the kubeconfig %s: %w", path, err)
	}
	return access{config: config, namespace: podNamespace(namespace)}, nil
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
