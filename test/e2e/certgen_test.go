package e2e

import (
	"errors"
	"flag"
	"io"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// playJob does what a Job of ingress-nginx's webhook does, which runs kube-webhook-certgen: the first one creates a
// Secret with a certificate, and the second one writes its authority into the webhook configuration.
func (c *cluster) playJob(object *unstructured.Unstructured) {
	c.Helper()
	var job batchv1.Job
	c.must(runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &job))
	container := job.Spec.Template.Spec.Containers[0]
	args := slices.Clone(container.Args)
	for i := range args {
		for _, variable := range container.Env { // Each of them is the namespace.
			args[i] = strings.ReplaceAll(args[i], "$("+variable.Name+")", c.namespace)
		}
	}
	flags := flag.NewFlagSet(args[0], flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	hosts, secret := flags.String("host", "", ""), flags.String("secret-name", "", "")
	webhook, policy := flags.String("webhook-name", "", ""), flags.String("patch-failure-policy", "", "")
	flags.Bool("patch-mutating", true, "")
	flags.String("namespace", "", "")
	c.must(flags.Parse(args[1:]))
	switch args[0] {
	case "create":
		c.createCertificate(*secret, strings.Split(*hosts, ","))
	case "patch":
		c.patchWebhook(*webhook, *secret, admissionv1.FailurePolicyType(*policy))
	default:
		c.Fatalf("the Job %s has the arguments %q", job.Name, args)
	}
}

func (c *cluster) createCertificate(name string, hosts []string) {
	c.Helper()
	pair := c.newPair(hosts...)
	_, err := c.CoreV1().Secrets(c.namespace).Create(c.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Data:       map[string][]byte{"ca": pair.certificate, "cert": pair.certificate, "key": pair.key},
	}, metav1.CreateOptions{})
	c.must(err)
}

func (c *cluster) patchWebhook(name, secret string, policy admissionv1.FailurePolicyType) {
	c.Helper()
	made, err := c.CoreV1().Secrets(c.namespace).Get(c.Context(), secret, metav1.GetOptions{})
	c.must(err)
	configurations := c.AdmissionregistrationV1().ValidatingWebhookConfigurations()
	configuration, err := configurations.Get(c.Context(), name, metav1.GetOptions{})
	c.must(err)
	for i := range configuration.Webhooks {
		configuration.Webhooks[i].ClientConfig.CABundle = made.Data["ca"]
		configuration.Webhooks[i].FailurePolicy = &policy
	}
	_, err = configurations.Update(c.Context(), configuration, metav1.UpdateOptions{})
	c.must(err)
}

// awaitWebhook waits until the controller has written its authority into the webhook configuration.
func (c *cluster) awaitWebhook(configuration string) {
	c.Helper()
	c.await("the authority of "+configuration, func() error {
		made, err := c.AdmissionregistrationV1().ValidatingWebhookConfigurations().Get(c.Context(), configuration,
			metav1.GetOptions{})
		if err != nil {
			return err
		}
		for _, entry := range made.ManagedFields {
			if entry.Manager == "k8singress-webhook" {
				return nil
			}
		}
		return errors.New("it has not been written")
	})
}
