package harness

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"
)

// account is the service account in deploy/cluster. accountNamespace is its namespace.
const (
	accountNamespace = "k8singress"
	account          = "system:serviceaccount:" + accountNamespace + ":k8singress"
	// accountLease is the only Lease that the account may change.
	accountLease = "k8singress-k8singress-leader"
)

// ofAccount are the kinds of the objects for the account.
var ofAccount = []string{"Namespace", "ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"}

// AccountKubeconfig returns the path of a kubeconfig with the rights of deploy/cluster, like a user's controller.
// MakeAccount writes the file.
func (c *Cluster) AccountKubeconfig() string { return filepath.Join(c.Folder, "account.kubeconfig") }

// MakeAccount creates the account of deploy/cluster and its rights, unless they exist.
func (c *Cluster) MakeAccount(ctx context.Context) error {
	if err := c.createAccount(ctx); err != nil {
		return fmt.Errorf("creating the account of deploy/cluster: %w", err)
	}
	config, err := clientcmd.LoadFromFile(c.Kubeconfig())
	if err != nil {
		return err
	}
	for _, user := range config.AuthInfos {
		user.Impersonate = account
	}
	for _, at := range config.Contexts {
		at.Namespace = accountNamespace
	}
	return clientcmd.WriteToFile(*config, c.AccountKubeconfig())
}

func (c *Cluster) createAccount(ctx context.Context) error {
	root, err := repository(ctx)
	if err != nil {
		return err
	}
	file, err := os.Open(filepath.Join(root, "deploy", "cluster", "k8singress.yaml"))
	if err != nil {
		return err
	}
	defer file.Close()
	config, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig())
	if err != nil {
		return err
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	for documents := yaml.NewYAMLOrJSONDecoder(file, 4096); ; {
		object := &unstructured.Unstructured{}
		err := documents.Decode(object)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil && slices.Contains(ofAccount, object.GetKind()) {
			err = create(ctx, client, object)
		}
		if err != nil {
			return err
		}
	}
}

func create(ctx context.Context, client dynamic.Interface, object *unstructured.Unstructured) error {
	resource, _ := meta.UnsafeGuessKindToResource(object.GroupVersionKind())
	var err error
	if at := client.Resource(resource); object.GetNamespace() == "" {
		_, err = at.Create(ctx, object, metav1.CreateOptions{})
	} else {
		_, err = at.Namespace(object.GetNamespace()).Create(ctx, object, metav1.CreateOptions{})
	}
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}
