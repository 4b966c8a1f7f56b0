package webhook

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"go.uber.org/zap"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	admissionapply "k8s.io/client-go/applyconfigurations/admissionregistration/v1"

	kubeclient "github.com/k8singress/k8singress/internal/kube/client"
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/kinds"
	"github.com/k8singress/k8singress/internal/model/report"
	"github.com/k8singress/k8singress/internal/process/panics"
	"github.com/k8singress/k8singress/internal/process/wake"
	"github.com/k8singress/k8singress/internal/tls/authority"
	"github.com/k8singress/k8singress/internal/tls/secret"
)

// manager is the field manager with which the leader writes caBundle. It owns no other field.
const manager = "k8singress-webhook"

const (
	// recheck is the maximum time between two checks. Changes of the configuration and of the Secret are watched, but
	// RBAC may allow only to get them.
	recheck = 10 * time.Minute
	// firstPause and lastPause are the minimum and maximum time between two writes. The pause doubles while writes
	// fail, or another client reverts them. It is reset after the time calm without a write.
	firstPause = time.Second
	lastPause  = time.Minute
	calm       = 2 * lastPause
)

// Lead keeps the certificates and caBundle up to date until ctx ends. Only the leader calls it. If two replicas lead
// for a moment, the Secret decides: each write depends on the version that was read before, and caBundle is always
// written from the Secret.
func (k *Keeper) Lead(ctx context.Context) {
	defer k.setVerdicts(nil)
	k.each(ctx, func(ctx context.Context, name string) {
		defer k.setVerdicts(nil)
		var watching panics.Group
		defer watching.Wait()
		watching.Go("webhook/configuration", func() {
			watchOne(ctx, k.client.AdmissionregistrationV1().ValidatingWebhookConfigurations(),
				&admissionv1.ValidatingWebhookConfiguration{}, name, func(any) { k.wake.Send() })
		})
		k.keep(ctx, &attempt{Keeper: k, name: name})
	})
}

// keep checks the certificates at once, when they must be renewed, and when k.wake is sent.
func (k *Keeper) keep(ctx context.Context, a *attempt) {
	k.wake.Loop(ctx, func() time.Duration {
		wrote, renewal, err := a.run(ctx, time.Now())
		if ctx.Err() != nil {
			return wake.Never
		}
		k.tell(a.name, err)
		if err != nil || wrote {
			_ = kubeclient.Pause(ctx, a.nextPause(time.Now())) // The loop checks the context.
		}
		if err != nil {
			return 0
		}
		return min(recheck, time.Until(renewal))
	})
}

// tell publishes the error of an attempt as a verdict on the Secret, and logs it if it is a new one.
func (k *Keeper) tell(name string, err error) {
	switch {
	case err == nil:
		k.setVerdicts(nil)
		return
	case kubeclient.Away(err) && !isAdvice(err), apierrors.IsConflict(err), apierrors.IsAlreadyExists(err):
		// The next attempt follows soon.
		k.log.Debug("cannot keep the certificates of the webhook; trying again", zap.Error(err))
		return
	}
	verdict := &report.Verdict{
		Object: ir.Ref{Kind: kinds.Secret, Namespace: k.namespace, Name: SecretName(name)},
		Problems: []report.Problem{{Severity: report.Warning, Reason: report.WebhookNotReady,
			Message: err.Error()}},
	}
	if slices.EqualFunc(k.Verdicts(), []*report.Verdict{verdict}, (*report.Verdict).Equal) {
		return
	}
	k.log.Warn("the admission webhook has no certificate of its own", zap.String("configuration", name), zap.Error(err))
	k.setVerdicts([]*report.Verdict{verdict})
}

// attempt keeps the certificates of one configuration. last is the time of the last write, and pause the time to wait
// after it.
type attempt struct {
	*Keeper
	name  string
	last  time.Time
	pause time.Duration
}

// nextPause returns the time to wait after a write at the given time.
func (a *attempt) nextPause(now time.Time) time.Duration {
	if now.Sub(a.last) < calm {
		a.pause = min(2*a.pause, lastPause)
	} else {
		a.pause = firstPause
	}
	a.last = now
	return a.pause
}

// run brings the Secret and then caBundle up to date. It reports whether it has written one of them, and returns the
// time of the next renewal.
//
// The configuration is read before the Secret, and written only if it is still the same version. So a replica that has
// read an old Secret cannot replace the caBundle that another replica has written from a newer one.
func (a *attempt) run(ctx context.Context, now time.Time) (wrote bool, renewal time.Time, err error) {
	configurations := a.client.AdmissionregistrationV1().ValidatingWebhookConfigurations()
	configuration, err := configurations.Get(ctx, a.name, metav1.GetOptions{})
	if err != nil {
		return false, now, explain(err, "read the ValidatingWebhookConfiguration "+a.name, "get and patch it")
	}
	webhooks, names := a.ours(configuration)
	if len(webhooks) == 0 {
		return false, now, advice(fmt.Sprintf("no webhook of the ValidatingWebhookConfiguration %s has a Service in "+
			"the namespace %s: set clientConfig.service to the Service of this controller", a.name, a.namespace))
	}
	bundle, renewal, wrote, err := a.keepSecret(ctx, names, now)
	if err != nil {
		return false, now, err
	}
	outdated := false
	change := admissionapply.ValidatingWebhookConfiguration(a.name).WithUID(configuration.UID).
		WithResourceVersion(configuration.ResourceVersion)
	for _, w := range webhooks {
		joined := authority.Join(bundle, w.ClientConfig.CABundle, now)
		outdated = outdated || !bytes.Equal(w.ClientConfig.CABundle, joined)
		change.WithWebhooks(admissionapply.ValidatingWebhook().WithName(w.Name).
			WithClientConfig(admissionapply.WebhookClientConfig().WithCABundle(joined...)))
	}
	if !outdated {
		return wrote, renewal, nil
	}
	_, err = configurations.Apply(ctx, change, metav1.ApplyOptions{FieldManager: manager, Force: true})
	if err != nil {
		return false, now, explain(err, "write caBundle of the ValidatingWebhookConfiguration "+a.name, "patch it")
	}
	a.log.Info("wrote caBundle of the ValidatingWebhookConfiguration", zap.String("configuration", a.name))
	return true, renewal, nil
}

// ours returns the webhooks of a configuration whose requests go to a Service in the namespace of the controller, and
// the DNS names under which the API server connects to these Services.
func (a *attempt) ours(c *admissionv1.ValidatingWebhookConfiguration) ([]admissionv1.ValidatingWebhook, []string) {
	var webhooks []admissionv1.ValidatingWebhook
	var names []string
	for _, w := range c.Webhooks {
		if s := w.ClientConfig.Service; s != nil && s.Namespace == a.namespace {
			webhooks = append(webhooks, w)
			names = append(names, s.Name+"."+s.Namespace+".svc")
		}
	}
	return webhooks, names
}

// keepSecret writes the Secret if its certificates are missing, invalid or due for renewal. It returns the bundle of
// authorities in the Secret, and the time of the next renewal, and reports whether it has written the Secret.
func (a *attempt) keepSecret(ctx context.Context, names []string, now time.Time) (
	bundle []byte, renewal time.Time, wrote bool, err error,
) {
	secrets := a.client.CoreV1().Secrets(a.namespace)
	where := fmt.Sprintf("the Secret %s/%s", a.namespace, SecretName(a.name))
	current, err := secrets.Get(ctx, SecretName(a.name), metav1.GetOptions{})
	missing := apierrors.IsNotFound(err)
	if missing {
		current = &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: SecretName(a.name), Namespace: a.namespace}}
	} else if err != nil {
		return nil, now, false, explain(err, "read "+where, "get, list, watch and update it")
	}
	files, renewal, err := authority.Next(current.Data, names, now)
	if err != nil {
		return nil, now, false, err
	}
	if maps.EqualFunc(files, current.Data, bytes.Equal) {
		return files[authority.Bundle], renewal, false, nil
	}
	next := current.DeepCopy()
	next.Data = files
	if missing {
		_, err = secrets.Create(ctx, next, metav1.CreateOptions{FieldManager: manager})
		err = explain(err, "create "+where, "create Secrets, or create an empty one with this name")
	} else {
		_, err = secrets.Update(ctx, next, metav1.UpdateOptions{FieldManager: manager})
		err = explain(err, "write "+where, "get, list, watch and update it")
	}
	if err != nil {
		return nil, now, false, err
	}
	a.log.Info("made certificates for the webhook", zap.String("secret", a.namespace+"/"+next.Name),
		zap.Strings("names", names), zap.Bool("authority",
			!bytes.Equal(current.Data[authority.Bundle], files[authority.Bundle])),
		zap.Bool("certificate", !bytes.Equal(current.Data[secret.CertificateKey], files[secret.CertificateKey])))
	return files[authority.Bundle], renewal, true, nil
}

// advice is an error whose text says how the administrator can fix it.
type advice string

func (a advice) Error() string { return string(a) }

func isAdvice(err error) bool {
	_, ok := err.(advice) //nolint:errorlint // run returns it as it is.
	return ok
}

// explain turns an error of the API server that the administrator can fix into an advice. what is what was tried, and
// rights what the controller must be allowed to do.
func explain(err error, what, rights string) error {
	switch {
	case err == nil:
		return nil
	case apierrors.IsForbidden(err):
		return advice(fmt.Sprintf("admission_webhook: RBAC does not allow to %s: grant the controller permission to "+
			"%s, as the chart does with controller.admissionWebhooks, or use certificate files (the flags "+
			"--validating-webhook-certificate and --validating-webhook-key)", what, rights))
	case apierrors.IsNotFound(err):
		return advice(fmt.Sprintf("admission_webhook: cannot %s: it does not exist: create it, or name another one",
			what))
	}
	return fmt.Errorf("admission_webhook: cannot %s: %w", what, err)
}
