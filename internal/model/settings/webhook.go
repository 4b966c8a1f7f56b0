package settings

import (
	"cmp"
	"errors"
)

// Address returns the address on which the webhook listens, or "" if there is no webhook.
func (w *AdmissionWebhook) Address() string {
	if w == nil {
		return ""
	}
	return cmp.Or(w.Listen, DefaultAdmissionWebhook)
}

// checkReviewed returns an error if the webhook cannot work with the source of objects.
func (c Config) checkReviewed() error {
	switch w := c.AdmissionWebhook; {
	case w == nil || c.Source != nil && c.Source.Kubernetes != nil:
		return nil
	case c.Source == nil:
		return errors.New("admission_webhook needs the objects of a cluster or a folder, with which it compares " +
			"Ingresses: remove admission_webhook, or set another source than none")
	case w.Configuration != "":
		return errors.New("own in admission_webhook needs a cluster, in which the controller keeps the certificate: " +
			"with manifests, write certificate <file> <key file> in place of own")
	}
	return nil
}

// Check returns an error unless the webhook has exactly one source of its certificate.
func (w *AdmissionWebhook) Check() error {
	switch {
	case w == nil:
		return nil
	case (w.Certificate == "") != (w.Key == ""):
		return errors.New("the admission webhook needs two files, one with the certificate and one with the key: " +
			"name both of them")
	case w.Certificate != "" && w.Configuration != "":
		return errors.New("the admission webhook has two certificates: remove either the files (certificate), or own")
	case w.Certificate == "" && w.Configuration == "":
		return errors.New("the admission webhook has no certificate: add \"certificate <file> <key file>\" (the " +
			"flags --validating-webhook-certificate and --validating-webhook-key), or \"own <configuration>\"")
	}
	return nil
}
