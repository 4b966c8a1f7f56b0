// Package webhook keeps the certificates of the admission webhook, if the administrator has no other certificates. They
// are in one Secret of the controller's namespace. The leader renews them, and writes the authority into caBundle of
// the ValidatingWebhookConfiguration. All replicas serve the certificate in the Secret.
package webhook

import (
	"context"
	"crypto/tls"
	"errors"
	"slices"
	"sync"
	"sync/atomic"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	kubeclient "github.com/k8singress/k8singress/internal/kube/client"
	"github.com/k8singress/k8singress/internal/model/report"
	"github.com/k8singress/k8singress/internal/process/panics"
	"github.com/k8singress/k8singress/internal/process/wake"
	"github.com/k8singress/k8singress/internal/tls/secret"
)

// secretSuffix is added to the name of the configuration. The result is the name of the Secret. The Job of
// ingress-nginx writes a Secret with the name of the configuration itself, and may still exist after a migration.
const secretSuffix = "-authority"

// SecretName returns the name of the Secret with the certificates for the webhook of a configuration.
func SecretName(configuration string) string { return configuration + secretSuffix }

// Keeper keeps the certificates of one ValidatingWebhookConfiguration. Its methods are safe for concurrent use.
type Keeper struct {
	client    kubernetes.Interface
	namespace string
	log       *zap.Logger
	// wake makes the leader check the certificates. It is sent when the Secret or the configuration changes.
	wake wake.Signal
	// served is the newest valid certificate in the Secret. It is nil until the Secret has a valid certificate.
	served  atomic.Pointer[tls.Certificate]
	changed func()

	mu     sync.Mutex
	target target
	// verdicts holds the problem of the last attempt to keep the certificates, if there was one.
	verdicts []*report.Verdict
}

// target is the configuration to keep. Its name is empty if no certificates are kept. replaced is closed when the
// options name another configuration.
type target struct {
	name     string
	replaced chan struct{}
}

// New returns a Keeper that does nothing until Configure is called. The Secret is in the given namespace, which is the
// namespace of the controller. changed is called when the result of Verdicts has changed; it must not block.
func New(client kubernetes.Interface, namespace string, changed func(), log *zap.Logger) *Keeper {
	return &Keeper{
		client: client, namespace: namespace, changed: changed, log: log, wake: wake.New(),
		target: target{replaced: make(chan struct{})},
	}
}

// Configure sets the name of the ValidatingWebhookConfiguration. If it is empty, no certificates are kept.
func (k *Keeper) Configure(configuration string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.target.name == configuration {
		return
	}
	close(k.target.replaced)
	k.target = target{configuration, make(chan struct{})}
	k.served.Store(nil)
}

func (k *Keeper) current() target {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.target
}

// Verdicts returns the problem that prevents this replica, if it is the leader, from keeping the certificates.
func (k *Keeper) Verdicts() []*report.Verdict {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.verdicts
}

func (k *Keeper) setVerdicts(verdicts []*report.Verdict) {
	k.mu.Lock()
	same := slices.EqualFunc(k.verdicts, verdicts, (*report.Verdict).Equal)
	k.verdicts = verdicts
	k.mu.Unlock()
	if !same {
		k.changed()
	}
}

var errNoCertificate = errors.New("the Secret has no certificate for the webhook yet: the leader creates it")

// GetCertificate returns the certificate for a handshake. It has the type of the field in tls.Config.
func (k *Keeper) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	if c := k.served.Load(); c != nil {
		return c, nil
	}
	return nil, errNoCertificate
}

// Run watches the Secret until ctx ends, and wakes the leader when it changes. Every replica calls it. Afterwards
// GetCertificate still returns the last certificate.
func (k *Keeper) Run(ctx context.Context) {
	k.each(ctx, func(ctx context.Context, name string) {
		watchOne(ctx, k.client.CoreV1().Secrets(k.namespace), &corev1.Secret{}, SecretName(name), func(object any) {
			if s, ok := object.(*corev1.Secret); ok && ctx.Err() == nil {
				k.serve(s)
			}
			k.wake.Send()
		})
	})
}

// serve makes GetCertificate return the certificate in the Secret. If it is not valid, the previous one stays in use.
func (k *Keeper) serve(s *corev1.Secret) {
	if len(s.Data[secret.CertificateKey]) == 0 {
		return
	}
	pair, err := secret.Parse(s.Data[secret.CertificateKey], s.Data[secret.PrivateKey])
	if err != nil {
		k.log.Warn("the certificate of the webhook is not valid; the previous one stays in use until the leader has "+
			"made another", zap.String("secret", s.Namespace+"/"+s.Name), zap.Error(err))
		return
	}
	k.served.Store(pair)
	k.log.Info("loaded the certificate of the webhook", zap.Strings("names", pair.Leaf.DNSNames),
		zap.Time("expires", pair.Leaf.NotAfter))
}

// each calls work with the name of the configuration until ctx ends. When the options name another configuration, the
// context of work ends, and each calls work with the new name.
func (k *Keeper) each(ctx context.Context, work func(ctx context.Context, name string)) {
	for ctx.Err() == nil {
		t := k.current()
		within, cancel := context.WithCancel(ctx)
		var working panics.Group
		if t.name != "" {
			working.Go("webhook/work", func() { work(within, t.name) })
		}
		select {
		case <-ctx.Done():
		case <-t.replaced:
		}
		cancel()
		working.Wait()
	}
}

// objects is the part of a typed client that reads objects of one kind. L is the list of this kind.
type objects[L runtime.Object] interface {
	List(context.Context, metav1.ListOptions) (L, error)
	Watch(context.Context, metav1.ListOptions) (watch.Interface, error)
}

// watchOne calls changed with each state of the object with the given name, until ctx ends. kind is an empty object of
// its kind. RBAC may limit the right to list and watch objects to this name.
func watchOne[L runtime.Object](ctx context.Context, from objects[L], kind runtime.Object, name string,
	changed func(object any)) {
	only := fields.OneTermEqualSelector(metav1.ObjectNameField, name).String()
	source := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			o.FieldSelector = only
			return from.List(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.FieldSelector = only
			return from.Watch(ctx, o)
		},
	}
	_, informer := cache.NewInformerWithOptions(cache.InformerOptions{
		// Errors are not reported here: the leader meets the same errors when it reads the objects.
		ListerWatcher: kubeclient.Patient(source, func(error) {}), ObjectType: kind,
		Handler: cache.ResourceEventHandlerFuncs{
			AddFunc: changed, UpdateFunc: func(_, object any) { changed(object) }, DeleteFunc: changed,
		},
	})
	informer.RunWithContext(ctx)
}
