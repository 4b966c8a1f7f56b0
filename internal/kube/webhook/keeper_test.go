package webhook_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/k8singress/k8singress/internal/kube/webhook"
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/report"
	"github.com/k8singress/k8singress/internal/tests/fixture"
	"github.com/k8singress/k8singress/internal/tls/authority"
)

const (
	own           = "ingress"
	configuration = "edge-admission"
	serverName    = "edge-controller-admission.ingress.svc"
)

func TestMain(m *testing.M) {
	// The fake API server cannot stream lists.
	if err := os.Setenv("KUBE_FEATURE_WatchListClient", "false"); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m)
}

// TestKeep checks that the leader makes the certificates and writes caBundle, that all replicas serve the certificate,
// and that the leader owns only caBundle.
func TestKeep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, configured())
		leader, replica := c.start(t, true), c.start(t, false)
		c.awaitTrust(t, leader)
		c.awaitTrust(t, replica)
		now := c.configuration(t)
		if now.Webhooks[1].ClientConfig.CABundle != nil {
			t.Error("the webhook of another Service has got a caBundle")
		}
		if policy := now.Webhooks[0].FailurePolicy; policy == nil || *policy != admissionv1.Ignore {
			t.Errorf("the failurePolicy has become %v", policy)
		}
		for _, entry := range now.ManagedFields {
			want := `{"f:webhooks":{"k:{\"name\":\"validate.nginx.ingress.kubernetes.io\"}":` +
				`{".":{},"f:clientConfig":{"f:caBundle":{}},"f:name":{}}}}`
			if entry.Manager == "k8singress-webhook" && entry.FieldsV1.GetRawString() != want {
				t.Errorf("the controller owns %s", entry.FieldsV1.GetRawString())
			}
		}
		if v := leader.Verdicts(); len(v) > 0 {
			t.Errorf("the verdicts are %v", v[0])
		}
	})
}

// TestReverted checks that the leader writes caBundle again after another client has replaced it, for example the Job
// of ingress-nginx or a reinstallation.
func TestReverted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, configured())
		leader := c.start(t, true)
		c.awaitTrust(t, leader)
		now := c.configuration(t)
		now.Webhooks[0].ClientConfig.CABundle = []byte("another")
		if _, err := c.AdmissionregistrationV1().ValidatingWebhookConfigurations().Update(t.Context(), now,
			metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		c.awaitTrust(t, leader)
	})
}

// TestTwoLeaders lets several replicas lead at the same time. caBundle must end with the authority of the Secret, and
// stay so.
func TestTwoLeaders(t *testing.T) {
	c := newCluster(t, configured())
	var leaders []*replica
	for range 4 {
		leaders = append(leaders, c.start(t, true))
	}
	for _, l := range leaders {
		c.awaitTrust(t, l)
	}
	if n := c.created.Load(); n != 1 {
		t.Errorf("%d Secrets were created", n)
	}
	// An authority that is lost is replaced by one of them, too.
	s := c.secret(t)
	s.Data = nil
	if _, err := c.CoreV1().Secrets(own).Update(t.Context(), s, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, l := range leaders {
		c.awaitTrust(t, l)
	}
}

// TestDeletedSecret checks that the watch of the Secret wakes the leader when the Secret was deleted.
func TestDeletedSecret(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, configured())
		c.start(t, true)
		// After its first writes, the leader pauses for a second and checks everything once more.
		time.Sleep(5 * time.Second) //nolint:forbidigo // It is the clock of synctest.
		name := c.secret(t).Name
		if err := c.CoreV1().Secrets(own).Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		// No timer fires before Wait returns.
		synctest.Wait()
		c.secret(t)
	})
}

// TestRevertedSecret lets another client remove the certificate from the Secret after each write, as a GitOps tool
// does. The leader must pause between its writes.
func TestRevertedSecret(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, configured())
		secrets := c.CoreV1().Secrets(own)
		changes, err := secrets.Watch(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		defer changes.Stop()
		writes := 0
		c.start(t, true)
		for end := time.After(10 * time.Minute); ; {
			select {
			case <-end:
				// The pauses are 1, 2, 4, 8, 16, 32 and then 60 seconds.
				if writes < 10 || writes > 20 {
					t.Errorf("the leader has written %d times in 10 minutes", writes)
				}
				return
			case change := <-changes.ResultChan():
				s := change.Object.(*corev1.Secret).DeepCopy()
				if len(s.Data["tls.crt"]) == 0 {
					continue
				}
				if writes++; writes > 100 {
					t.Fatal("the leader does not pause between its writes")
				}
				delete(s.Data, "tls.crt")
				if _, err := secrets.Update(t.Context(), s, metav1.UpdateOptions{}); err != nil {
					t.Fatal(err)
				}
			}
		}
	})
}

// TestRefused checks that the administrator gets one verdict, and one line in the log, that say what to do.
func TestRefused(t *testing.T) {
	for _, test := range []refusal{
		{"the rights of ingress-nginx", func(c *cluster) { c.forbid("get", "validatingwebhookconfigurations") },
			[]runtime.Object{configured()}, "use certificate files (the flags --validating-webhook-certificate"},
		{"no right to patch", func(c *cluster) { c.forbid("patch", "validatingwebhookconfigurations") },
			[]runtime.Object{configured()}, "RBAC does not allow to write caBundle"},
		{"no right to create", func(c *cluster) { c.forbid("create", "secrets") },
			[]runtime.Object{configured()}, "create an empty one with this name"},
		{"no right to read the Secret", func(c *cluster) { c.forbid("get", "secrets") },
			[]runtime.Object{configured()}, "RBAC does not allow to read the Secret ingress/edge-admission-authority"},
		{"no configuration", func(*cluster) {}, nil, "it does not exist: create it"},
		{"no webhook", func(*cluster) {}, []runtime.Object{&admissionv1.ValidatingWebhookConfiguration{
			ObjectMeta: metav1.ObjectMeta{Name: configuration}}}, "no webhook of the ValidatingWebhookConfiguration"},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, test.check)
		})
	}
}

// refusal is a case of TestRefused: what the API server refuses, and what the verdict says.
type refusal struct {
	name           string
	change         func(*cluster)
	configurations []runtime.Object
	says           string
}

func (r *refusal) check(t *testing.T) {
	c := newCluster(t, r.configurations...)
	r.change(c)
	replica := c.start(t, true)
	fixture.Eventually(t, "the verdict", func() error {
		v := replica.Verdicts()
		if len(v) != 1 || !strings.Contains(v[0].Problems[0].Message, r.says) {
			return errors.New("there is no such verdict")
		}
		return nil
	})
	v := replica.Verdicts()[0]
	if want := (ir.Ref{Kind: "Secret", Namespace: own, Name: "edge-admission-authority"}); v.Object != want ||
		v.Problems[0].Reason != report.WebhookNotReady {
		t.Errorf("the verdict is %v on %v", v.Problems, v.Object)
	}
	// The next attempt has the same result, and logs nothing.
	before := len(c.Actions())
	fixture.Eventually(t, "another attempt", func() error {
		if len(c.Actions()) < before+2 {
			return errors.New("there was no further attempt")
		}
		return nil
	})
	if n := replica.logs.FilterLevelExact(zapcore.WarnLevel).Len(); n != 1 {
		t.Errorf("%d warnings were logged", n)
	}
	replica.stop()
	if len(replica.Verdicts()) > 0 {
		t.Error("the verdict stays after the replica has stopped leading")
	}
}

// TestInvalidSecret checks that a replica keeps its certificate while the Secret holds no valid one.
func TestInvalidSecret(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, configured())
		leader, replica := c.start(t, true), c.start(t, false)
		c.awaitTrust(t, replica)
		leader.stop()
		s := c.secret(t)
		for _, certificate := range []string{"", "half a cert"} {
			s.Data["tls.crt"] = []byte(certificate)
			if _, err := c.CoreV1().Secrets(own).Update(t.Context(), s, metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
			s = c.secret(t)
		}
		fixture.Eventually(t, "the invalid Secret in the log", func() error {
			if replica.logs.FilterMessageSnippet("is not valid").Len() == 0 {
				return errors.New("the replica has not noticed")
			}
			return nil
		})
		c.awaitTrust(t, replica)
	})
}

// TestConfigure checks that another name takes effect while replicas run, and that an empty one ends the work.
func TestConfigure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		other := configured()
		other.Name = "other"
		c := newCluster(t, configured(), other)
		leader := c.start(t, true)
		c.awaitTrust(t, leader)
		leader.Configure("other")
		fixture.Eventually(t, "the certificate for the other configuration", func() error {
			_, err := c.CoreV1().Secrets(own).Get(t.Context(), webhook.SecretName("other"), metav1.GetOptions{})
			if err != nil {
				return err
			}
			_, err = leader.GetCertificate(nil)
			return err
		})
		leader.Configure("")
		if _, err := leader.GetCertificate(nil); err == nil {
			t.Error("the certificate is served although there is no webhook")
		}
	})
}

// configured returns the configuration of the chart, with a webhook of another program.
func configured() *admissionv1.ValidatingWebhookConfiguration {
	hook := func(name, namespace, service string) admissionv1.ValidatingWebhook {
		return admissionv1.ValidatingWebhook{
			Name: name, AdmissionReviewVersions: []string{"v1"}, FailurePolicy: new(admissionv1.Ignore),
			SideEffects: new(admissionv1.SideEffectClassNone),
			ClientConfig: admissionv1.WebhookClientConfig{
				Service: &admissionv1.ServiceReference{Namespace: namespace, Name: service},
			},
		}
	}
	return &admissionv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: configuration, UID: "1"},
		Webhooks: []admissionv1.ValidatingWebhook{
			hook("validate.nginx.ingress.kubernetes.io", own, "edge-controller-admission"),
			hook("other.example.com", "elsewhere", "other"),
		},
	}
}

// cluster is a fake API server that rejects writes with an old resourceVersion, as a real one does.
type cluster struct {
	*fake.Clientset
	created atomic.Int32

	mu      sync.Mutex
	version int
}

func newCluster(t *testing.T, objects ...runtime.Object) *cluster {
	t.Helper()
	c := &cluster{Clientset: fake.NewClientset(), version: 1}
	for _, verb := range []string{"create", "update", "patch"} {
		c.PrependReactor(verb, "*", c.write)
	}
	for _, o := range objects {
		if _, err := c.AdmissionregistrationV1().ValidatingWebhookConfigurations().Create(t.Context(),
			o.(*admissionv1.ValidatingWebhookConfiguration), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

// write is a reactor that checks the resourceVersion of a write, and sets the next one.
func (c *cluster) write(action clienttesting.Action) (bool, runtime.Object, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	resource := action.GetResource()
	var object metav1.Object
	var err error
	switch a := action.(type) {
	case clienttesting.PatchAction:
		patch := &metav1.PartialObjectMetadata{}
		if err := json.Unmarshal(a.GetPatch(), patch); err != nil {
			return true, nil, err
		}
		patch.Name = a.GetName()
		object = patch
	case clienttesting.CreateAction: // An update has the same method.
		object, err = meta.Accessor(a.GetObject())
		if err != nil {
			return true, nil, err
		}
	}
	if err := c.conflict(resource, action.GetNamespace(), object); err != nil {
		return true, nil, err
	}
	c.version++
	handled, stored, err := c.store(action, object)
	if err == nil && action.Matches("create", "secrets") {
		c.created.Add(1)
	}
	return handled, stored, err
}

func (c *cluster) conflict(resource schema.GroupVersionResource, namespace string, object metav1.Object) error {
	stored, err := c.Tracker().Get(resource, namespace, object.GetName())
	if apierrors.IsNotFound(err) {
		return nil
	} else if err != nil {
		return err
	}
	known, err := meta.Accessor(stored)
	if v := object.GetResourceVersion(); err == nil && v != "" && v != known.GetResourceVersion() {
		return apierrors.NewConflict(resource.GroupResource(), object.GetName(), errors.New("it has changed"))
	}
	return err
}

// store executes a write with the next resourceVersion.
func (c *cluster) store(action clienttesting.Action, object metav1.Object) (bool, runtime.Object, error) {
	next := strconv.Itoa(c.version)
	if a, ok := action.(clienttesting.PatchActionImpl); ok {
		a.Patch = bytes.Replace(a.Patch, []byte(`"resourceVersion":"`+object.GetResourceVersion()+`"`),
			[]byte(`"resourceVersion":"`+next+`"`), 1)
		action = a
	} else {
		object.SetResourceVersion(next)
	}
	return clienttesting.ObjectReaction(c.Tracker())(action)
}

// forbid rejects requests as RBAC does.
func (c *cluster) forbid(verb, resource string) {
	c.PrependReactor(verb, resource, func(action clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(action.GetResource().GroupResource(), "", errors.New("no such right"))
	})
}

func (c *cluster) configuration(t *testing.T) *admissionv1.ValidatingWebhookConfiguration {
	t.Helper()
	now, err := c.AdmissionregistrationV1().ValidatingWebhookConfigurations().Get(t.Context(), configuration,
		metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return now.DeepCopy()
}

func (c *cluster) secret(t *testing.T) *corev1.Secret {
	t.Helper()
	s, err := c.CoreV1().Secrets(own).Get(t.Context(), webhook.SecretName(configuration), metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return s.DeepCopy()
}

// awaitTrust waits until caBundle is the bundle of the Secret, and verifies the certificate that a replica serves.
func (c *cluster) awaitTrust(t *testing.T, r *replica) {
	t.Helper()
	fixture.Eventually(t, "a trusted certificate", func() error {
		s, err := c.CoreV1().Secrets(own).Get(t.Context(), webhook.SecretName(configuration), metav1.GetOptions{})
		if err != nil {
			return err
		}
		bundle := c.configuration(t).Webhooks[0].ClientConfig.CABundle
		if len(bundle) == 0 || !bytes.Equal(bundle, s.Data[authority.Bundle]) {
			return errors.New("caBundle differs from the bundle of authorities in the Secret")
		}
		served, err := r.GetCertificate(&tls.ClientHelloInfo{ServerName: serverName})
		if err != nil {
			return err
		}
		roots := x509.NewCertPool()
		roots.AppendCertsFromPEM(bundle)
		_, err = served.Leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: serverName})
		return err
	})
}

// replica is a running Keeper.
type replica struct {
	*webhook.Keeper
	logs *observer.ObservedLogs
	stop func()
}

func (c *cluster) start(t *testing.T, leads bool) *replica {
	t.Helper()
	core, logs := observer.New(zap.InfoLevel)
	k := webhook.New(c, own, func() {}, zap.New(core))
	k.Configure(configuration)
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { k.Run(ctx) })
	if leads {
		running.Go(func() { k.Lead(ctx) })
	}
	stop := func() {
		cancel()
		running.Wait()
	}
	t.Cleanup(stop)
	return &replica{k, logs, stop}
}
