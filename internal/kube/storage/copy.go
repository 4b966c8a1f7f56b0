package storage

import (
	"context"
	"fmt"
	"time"

	"go.uber.org/zap"
	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/pager"

	kubeclient "github.com/k8singress/k8singress/internal/kube/client"
)

const (
	// copiedFolder is a folder of the storage. For each namespace from which the storage was copied, it contains a key
	// with the name of this namespace.
	copiedFolder = "k8singress/copied/"
	// copiesPerSecond is the maximum rate of requests while copying. It is high because readers wait for the copy, and
	// a storage may contain thousands of certificates.
	copiesPerSecond = 200
)

// copier copies the storage of another namespace into this one. So a storage that moves to another namespace keeps its
// certificates, and they need not be ordered again.
//
// It copies once, and then stores a key in copiedFolder. Without this key, a certificate that was deleted here would be
// copied again at the next start. The Secrets in the other namespace are not deleted, because a process of an earlier
// version may still use them.
type copier struct {
	*Storage
	from           string
	source, target corev1client.SecretInterface
}

// newCopier returns a copier for the storage in another namespace, which is given by the argument from. It returns nil
// if from is empty or is the namespace of this storage itself.
func (s *Storage) newCopier(from string, config *rest.Config) (*copier, error) {
	if from == "" || from == s.namespace {
		return nil, nil
	}
	config = rest.CopyConfig(config)
	if config.QPS > 0 {
		config.QPS, config.Burst = copiesPerSecond, copiesPerSecond
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("creating a client for the API server: %w", err)
	}
	secrets := client.CoreV1().Secrets
	return &copier{Storage: s, from: from, source: secrets(from), target: secrets(s.namespace)}, nil
}

// run copies the storage. It returns when the copy is complete or the context ends. It retries after every error, even
// if RBAC forbids a request, because without the copy the certificates of all hosts would be ordered again.
func (c *copier) run(ctx context.Context) error {
	logged := rate.Sometimes{Interval: logInterval}
	pause := kubeclient.Backoff()
	for {
		err := c.attempt(ctx)
		if err == nil {
			return nil
		}
		if ctx.Err() == nil {
			logged.Do(func() {
				c.log.Warn(
					"cannot copy the storage of another namespace; retrying. No certificate is read or requested "+
						"before the copy is complete",
					zap.String("from", c.from), zap.String("to", c.namespace), zap.Error(err))
			})
		}
		if err := kubeclient.Pause(ctx, pause.Step()); err != nil {
			return err
		}
	}
}

// attempt copies all Secrets, and then records that the copy is complete. It skips Secrets that already exist in this
// namespace.
func (c *copier) attempt(ctx context.Context) error {
	mark := copiedFolder + c.from
	if secret, err := c.fetch(ctx, placeOf(mark).secret); err != nil || secret != nil {
		return err
	}
	copied := 0
	list := func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return c.source.List(ctx, o) }
	each := func(object runtime.Object) error {
		created, err := c.copySecret(ctx, object.(*corev1.Secret))
		if created {
			copied++
		}
		return err
	}
	if err := pager.New(list).EachListItem(ctx, metav1.ListOptions{LabelSelector: selector}, each); err != nil {
		return err
	}
	if copied > 0 {
		c.log.Info("copied the storage of another namespace",
			zap.String("from", c.from), zap.String("to", c.namespace), zap.Int("secrets", copied))
	}
	return c.Store(ctx, mark, []byte(time.Now().UTC().Format(time.RFC3339)))
}

// copySecret copies a Secret, and reports whether it has created the copy. It skips challenge tokens, which are useless
// once their order has ended.
func (c *copier) copySecret(ctx context.Context, secret *corev1.Secret) (created bool, err error) {
	if !c.secrets.valid(secret) {
		return false, nil
	}
	for key := range fieldsOf(secret) {
		if _, token := challengeHost(key); token {
			return false, nil
		}
	}
	_, err = c.target.Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: secret.Name, Labels: secret.Labels, Annotations: secret.Annotations},
		Type:       secret.Type, Data: secret.Data,
	}, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return false, nil
	}
	return err == nil, err
}

// awaitCopy waits until the copy is complete or not needed, for at most syncTimeout.
func (s *Storage) awaitCopy(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, syncTimeout)
	defer cancel()
	select {
	case <-s.copied:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("the storage of another namespace has not been copied to %s yet; the log has the reason: %w",
			s.namespace, ctx.Err())
	}
}
