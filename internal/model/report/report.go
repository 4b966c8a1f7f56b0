// Package report holds the results of translating and applying Kubernetes objects. Each object has one verdict, which
// contains its problems and conditions. The verdicts are used for Events, the log, lint and /k8singress/objects.
package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/k8singress/k8singress/internal/model/ir"
)

// Severity is the severity of a problem.
type Severity string

const (
	// Error means that a part of what the object requests is not served.
	Error Severity = "error"
	// Warning means that the object is served in a way that may surprise its owner. It is also used for an Ingress that
	// is not served because its class does not belong to this controller.
	Warning Severity = "warning"
	// Info means that there is something worth knowing that is not a fault of the object, such as a Service without
	// endpoints.
	Info Severity = "info"
)

// Reason is the machine-readable reason for a problem. It is the reason of the Event, and a field of
// /k8singress/objects.
type Reason string

// The reasons of problems.
const (
	InvalidAnnotation        Reason = "InvalidAnnotation"
	UnknownAnnotation        Reason = "UnknownAnnotation"
	AnnotationNotAllowed     Reason = "AnnotationNotAllowed"
	UnknownKey               Reason = "UnknownKey"
	UnsupportedValue         Reason = "UnsupportedValue"
	UnsupportedAccessControl Reason = "UnsupportedAccessControl"
	InvalidHost              Reason = "InvalidHost"
	InvalidPath              Reason = "InvalidPath"
	InvalidRegex             Reason = "InvalidRegex"
	InvalidBackend           Reason = "InvalidBackend"
	InvalidEntry             Reason = "InvalidEntry"
	InvalidManifest          Reason = "InvalidManifest"
	DeprecatedVersion        Reason = "DeprecatedVersion"
	DuplicateObject          Reason = "DuplicateObject"
	IgnoredKind              Reason = "IgnoredKind"
	PathConflict             Reason = "PathConflict"
	PortConflict             Reason = "PortConflict"
	PortNotAllowed           Reason = "PortNotAllowed"
	HostConflict             Reason = "HostConflict"
	NoMainIngress            Reason = "NoMainIngress"
	ServiceNotFound          Reason = "ServiceNotFound"
	NoEndpoints              Reason = "NoEndpoints"
	AddressNotAllowed        Reason = "AddressNotAllowed"

	PortNotPublished Reason = "PortNotPublished"
	PortUnreachable  Reason = "PortUnreachable"

	WebhookNotReady Reason = "WebhookNotReady"

	EndpointsUnhealthy Reason = "EndpointsUnhealthy"

	SecretNotFound         Reason = "SecretNotFound"
	InvalidTLSSecret       Reason = "InvalidTLSSecret"
	InvalidCA              Reason = "InvalidCA"
	InvalidUsers           Reason = "InvalidUsers"
	IngressClassNotFound   Reason = "IngressClassNotFound"
	OtherClass             Reason = "OtherClass"
	ClassConflict          Reason = "ClassConflict"
	StatusConflict         Reason = "StatusConflict"
	InvalidParameters      Reason = "InvalidParameters"
	NamespaceNotSelected   Reason = "NamespaceNotSelected"
	CatchAllRefused        Reason = "CatchAllRefused"
	BackendConflict        Reason = "BackendConflict"
	MissingClass           Reason = "MissingClass"
	ConfigMapNotFound      Reason = "ConfigMapNotFound"
	NotChecked             Reason = "NotChecked"
	ConfigMapNotReferenced Reason = "ConfigMapNotReferenced"
	Quarantined            Reason = "Quarantined"

	CertificateMismatch    Reason = "CertificateMismatch"
	CertificateExpired     Reason = "CertificateExpired"
	CertificateNotYetValid Reason = "CertificateNotYetValid"
	RevocationListExpired  Reason = "RevocationListExpired"
	HostNotPublic          Reason = "HostNotPublic"
	DNSChallengeRequired   Reason = "DNSChallengeRequired"
	QuotaExceeded          Reason = "QuotaExceeded"

	CertificatePending Reason = "CertificatePending"
	ACMEFailed         Reason = "ACMEFailed"

	// MoreProblems is the reason of an Event that summarizes several problems.
	MoreProblems Reason = "MoreProblems"
)

// Problem is one problem of an object. The message tells the owner of the object how to fix the problem.
type Problem struct {
	Severity Severity `json:"severity"`
	Reason   Reason   `json:"reason"`
	// Field is the path of the field in the object, as kubectl explain prints it, such as
	// "spec.rules[0].http.paths[1]".
	Field   string `json:"field,omitempty"`
	Message string `json:"message"`
	// Summary is true if the problem summarizes problems that change often, such as the hosts without a certificate.
	// An object has at most one summary with the same Severity, Reason and Field. If only the Message of a summary
	// changes, users need not be notified at once.
	Summary bool `json:"-"`
}

// Verdict is the result of translating and applying one object: its problems, and its conditions for each parent.
type Verdict struct {
	Object ir.Ref
	// Parents lists the parents of the object that belong to this controller: the IngressClass of an Ingress, or the
	// Gateways of a route. If the list is empty, the controller does not write the status of the object.
	Parents []Parent
	// Problems are in the order in which they were found. If there are no problems, everything that the object requests
	// is served.
	Problems []Problem
}

// Accepted reports whether everything that the object requests is served.
func (v *Verdict) Accepted() bool {
	return !slices.ContainsFunc(v.Problems, func(p Problem) bool { return p.Severity == Error })
}

// With merges v and more, which must be verdicts on the same object. The result contains the problems and parents of
// both verdicts. With does not change v, which may be nil.
func (v *Verdict) With(more *Verdict) *Verdict {
	if v == nil {
		return more
	}
	return &Verdict{
		Object: v.Object, Parents: joinParents(v.Parents, more.Parents),
		Problems: append(slices.Clip(v.Problems), more.Problems...),
	}
}

// Equal reports whether two verdicts are on the same object and have equal problems and parents.
func (v *Verdict) Equal(other *Verdict) bool {
	return v == other || v.Object == other.Object && slices.Equal(v.Problems, other.Problems) &&
		slices.EqualFunc(v.Parents, other.Parents, Parent.equal)
}

// A Report holds one verdict for each object that a translation processed, sorted by Compare.
type Report struct {
	Verdicts []*Verdict
}

// Compare orders references to objects by kind, namespace and name.
func Compare(a, b ir.Ref) int {
	return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

// Get returns the verdict on an object, or nil if there is no verdict on it.
func (r *Report) Get(object ir.Ref) *Verdict {
	i, ok := slices.BinarySearchFunc(r.Verdicts, object,
		func(v *Verdict, ref ir.Ref) int { return Compare(v.Object, ref) })
	if !ok {
		return nil
	}
	return r.Verdicts[i]
}

// With returns a report with the verdicts of r and the verdicts in the list more. If both contain a verdict on the same
// object, the two verdicts are merged. With does not change r.
func (r *Report) With(more []*Verdict) *Report {
	if len(more) == 0 {
		return r
	}
	merged := &Report{Verdicts: slices.Clone(r.Verdicts)}
	for _, v := range more {
		i, ok := slices.BinarySearchFunc(merged.Verdicts, v.Object,
			func(v *Verdict, ref ir.Ref) int { return Compare(v.Object, ref) })
		if !ok {
			merged.Verdicts = slices.Insert(merged.Verdicts, i, v)
			continue
		}
		merged.Verdicts[i] = merged.Verdicts[i].With(v)
	}
	return merged
}

// Changed compares two reports. It returns the verdicts in the new report (now) for which the old report (before)
// contains no equal verdict.
func Changed(before, now *Report) []*Verdict {
	var changed []*Verdict
	old := before.Verdicts
	for _, v := range now.Verdicts {
		if len(old) > 0 && old[0] == v {
			// This comparison of pointers is fast. It finds nearly all unchanged verdicts, because an unchanged verdict
			// usually is the same pointer in both reports.
			old = old[1:]
			continue
		}
		for len(old) > 0 && old[0] != v && Compare(old[0].Object, v.Object) < 0 {
			old = old[1:]
		}
		if len(old) > 0 && (old[0].Equal(v)) {
			continue
		}
		changed = append(changed, v)
	}
	return changed
}

// Date formats a time for messages. It uses UTC, as logs and certificates do, and leaves out fractions of a second.
func Date(t time.Time) string {
	return strings.Replace(t.UTC().Format(time.DateTime), " ", " at ", 1) + " UTC"
}

// MaxListed is the maximum number of names that are listed in a message. Messages must be short, because the note of an
// Event is limited to 1,024 bytes.
const MaxListed = 4

// List joins words for a message. It lists at most limit words and adds how many more there are. count is the total
// number of words. If count is greater than limit, words only has to contain the first limit words.
func List(words []string, count, limit int) string {
	if count <= limit {
		return strings.Join(words, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(words[:limit], ", "), count-limit)
}

// These are the names of annotations that several packages use in problems.
const (
	ClientAuthSecret       = "nginx.ingress.kubernetes.io/auth-tls-secret"
	BasicAuthSecret        = "nginx.ingress.kubernetes.io/auth-secret"
	BackendTLSSecret       = "nginx.ingress.kubernetes.io/proxy-ssl-secret"
	SSLPassthrough         = "nginx.ingress.kubernetes.io/ssl-passthrough"
	Ciphers                = "nginx.ingress.kubernetes.io/ssl-ciphers"
	AppRoot                = "nginx.ingress.kubernetes.io/app-root"
	ServerSnippet          = "nginx.ingress.kubernetes.io/server-snippet"
	ConfigurationSnippet   = "nginx.ingress.kubernetes.io/configuration-snippet"
	ServerAlias            = "nginx.ingress.kubernetes.io/server-alias"
	FromToWWW              = "nginx.ingress.kubernetes.io/from-to-www-redirect"
	StreamTLSSecret        = "k8singress.io/stream-tls-secret"
	StreamBackendTLSSecret = "k8singress.io/stream-backend-tls-secret"
)

// AnnotationField returns the value of Problem.Field for a problem with an annotation.
func AnnotationField(key string) string { return "metadata.annotations[" + key + "]" }

// Meanwhile is the text between the description of a mistake and the description of what happens until it is corrected.
const Meanwhile = "; meanwhile, "

// ellipsis is the end of a text that was cut.
const ellipsis = "…"

// maxWord is the maximum length of a word that Cut leaves out in order not to cut it.
const maxWord = 64

// Cut shortens a string, which must be valid UTF-8, to at most limit bytes, including an ellipsis at the end. It cuts
// between two words, or, in a long word, between two characters, because an encoder would replace a part of a character
// with a longer one.
func Cut(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	end := limit - len(ellipsis)
	for !utf8.RuneStart(text[end]) {
		end--
	}
	if i := strings.LastIndexByte(text[:end+1], ' '); i > 0 && end-i <= maxWord {
		end = i
	}
	return strings.TrimRight(text[:end], " ,;:") + ellipsis
}
