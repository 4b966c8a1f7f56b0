package harness

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"
)

// account is the service account in deploy/rbac.yaml, and accountNamespace where it is.
const (
	accountNamespace = "k8singress"
	account          = "system:serviceaccount:" + accountNamespace + ":k8singress"
)

// AccountKubeconfig is the path of a kubeconfig with the rights of deploy/rbac.yaml, which a user's controller has.
// MakeAccount writes it.
func (c *Cluster) AccountKubeconfig() string { return filepath.Join(c.Folder, "account.kubeconfig") }

// MakeAccount applies deploy/rbac.yaml.
func (c *Cluster) MakeAccount(ctx context.Context) error {
	if err := c.Deploy(ctx, "rbac.yaml", nil); err != nil {
		return fmt.Errorf("applying deploy/rbac.yaml: %w", err)
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

// Deploy creates the objects of a file in deploy/, as change makes them, which may be nil. Objects that are there already stay.
func (c *Cluster) Deploy(ctx context.Context, file string, change func(text string) string) error {
	root, err := repository(ctx)
	if err != nil {
		return err
	}
	content, err := os.ReadFile(filepath.Join(root, "deploy", file))
	if err != nil {
		return err
	}
	text := string(content)
	if change != nil {
		text = change(text)
	}
	config, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig())
	if err != nil {
		return err
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	documents := yaml.NewYAMLOrJSONDecoder(strings.NewReader(text), len(text))
	for {
		object := &unstructured.Unstructured{}
		err := documents.Decode(object)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := create(ctx, client, object); err != nil {
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
