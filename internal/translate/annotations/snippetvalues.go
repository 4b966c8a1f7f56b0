package annotations

import (
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/nginx"
	"github.com/k8singress/k8singress/internal/model/report"
	"github.com/k8singress/k8singress/internal/translate/snippets"
)

// setValues sets the values of annotations that a snippet contains. It returns findings for values that are not valid.
func (s *Settings) setValues(values []snippets.Value) (invalid []snippets.Finding) {
	// What an unknown file means depends on the other values.
	for _, ofFiles := range []bool{false, true} {
		for i := range values {
			if v := &values[i]; (v.Part != "") == ofFiles {
				if f := s.setValue(v); f != nil {
					invalid = append(invalid, *f)
				}
			}
		}
	}
	return invalid
}

// setValue sets one value. It returns nil if the value is valid.
func (s *Settings) setValue(v *snippets.Value) *snippets.Finding {
	if strings.HasPrefix(v.Annotation, "proxy-ssl-") {
		s.Asked.BackendTLS.WithoutSecret = true
	}
	var err error
	switch {
	case v.Part != "":
		return s.setFile(v)
	case v.Annotation == proxySSLName.Name && strings.Contains(v.Text, "$"):
		// Only snippets may contain variables, and they are checked already.
		s.Asked.BackendTLS.Name = v.Text
	default:
		err = Table.Find(v.Annotation).Parse(s, v.Text)
	}
	switch {
	case err == nil:
		return nil
	case nginx.IsUsable(err):
		return &snippets.Finding{Place: v.Place, Directive: v.Directive, Class: snippets.LeftOut,
			Text: fmt.Sprintf("%q: %v", v.Directive, err)}
	case errors.As(err, new(nginx.Unsupported)):
		return v.Finding(snippets.LeftOut, err)
	}
	return v.Finding(snippets.Unreadable, err)
}

// closes reports whether all requests must get 503 because of a finding for a value.
func closes(f snippets.Finding) bool {
	return f.Class == snippets.Unreadable || f.Class == snippets.Guard
}

// setFile sets the Secret that replaces a file of ingress-nginx. If there is no such Secret and endpoints are verified,
// it returns a finding of class Guard for a file that decides which endpoints are trusted.
func (s *Settings) setFile(v *snippets.Value) *snippets.Finding {
	asked := &s.Asked.BackendTLS
	secret := secretOfFile(v.Text, s.Ingress.Namespace)
	if !secret.IsZero() && (asked.Secret.IsZero() || asked.Secret == secret) {
		asked.Secret = secret
		return nil
	}
	f := &snippets.Finding{Place: v.Place, Class: snippets.LeftOut, Text: fmt.Sprintf("the file %s does not exist "+
		"here: write its content into %s of a Secret, and name the Secret in the annotation proxy-ssl-secret",
		nginx.Quote(v.Text), v.Part)}
	if !secret.IsZero() {
		f.Text = fmt.Sprintf("the file %s stands for the Secret %s, but the Ingress can only use one Secret for its "+
			"endpoints, which is %s: write %s into it", nginx.Quote(v.Text), secret, asked.Secret, v.Part)
	}
	if trusts := v.Part == snippets.AuthorityFile || v.Part == snippets.RevokedFile; trusts && asked.Verify &&
		s.UsesTLS() {
		f.Class = snippets.Guard
		f.Text += report.Meanwhile + "requests get 503, because endpoints cannot be verified"
	}
	return f
}

// secretOfFile returns the name of the Secret from which ingress-nginx would have written a file. It returns the zero
// Name if the file is not from a Secret of the namespace.
func secretOfFile(path, namespace string) ir.Name {
	if namespace == "" {
		return ir.Name{}
	}
	for _, kind := range []string{"", "ca-", "crl-"} {
		name, inFolder := strings.CutPrefix(path, "/etc/ingress-controller/ssl/"+kind+namespace+"-")
		name, isPEM := strings.CutSuffix(name, ".pem")
		if inFolder && isPEM && len(validation.IsDNS1123Subdomain(name)) == 0 {
			return ir.Name{Namespace: namespace, Name: name}
		}
	}
	return ir.Name{}
}
