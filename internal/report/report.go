// Package report says what became of each object: the outcome of a translation and of an apply, for Events, the log,
// lint and /k8singress/objects.
package report

import (
	"cmp"
	"slices"

	"github.com/k8singress/k8singress/internal/ir"
)

// Severity of a problem.
type Severity string

const (
	// Error means that something the object asks for is not served.
	Error Severity = "error"
	// Warning means that this controller serves all that is its own to serve, in a way that may surprise: of an Ingress that
	// names no class of its own, it may be nothing.
	Warning Severity = "warning"
	// Info is for what the user may want to know, such as a Service without endpoints.
	Info Severity = "info"
)

// Reason is a word that programs may rely on: the reason of the Event, and a field of /k8singress/objects.
type Reason string

// The reasons there are.
const (
	InvalidAnnotation Reason = "InvalidAnnotation"
	UnknownAnnotation Reason = "UnknownAnnotation"
	UnknownKey        Reason = "UnknownKey"
	UnsupportedValue  Reason = "UnsupportedValue"
	UnsupportedGuard  Reason = "UnsupportedGuard"
	InvalidHost       Reason = "InvalidHost"
	InvalidPath       Reason = "InvalidPath"
	InvalidRegex      Reason = "InvalidRegex"
	InvalidBackend    Reason = "InvalidBackend"
	InvalidEntry      Reason = "InvalidEntry"
	InvalidManifest   Reason = "InvalidManifest"
	OldVersion        Reason = "OldVersion"
	DuplicateObject   Reason = "DuplicateObject"
	IgnoredKind       Reason = "IgnoredKind"
	PathConflict      Reason = "PathConflict"
	PortConflict      Reason = "PortConflict"
	PortNotAllowed    Reason = "PortNotAllowed"
	HostConflict      Reason = "HostConflict"
	NoMainIngress     Reason = "NoMainIngress"
	NoService         Reason = "NoService"
	NoEndpoints       Reason = "NoEndpoints"
	RefusedAddress    Reason = "RefusedAddress"

	PortNotPublished Reason = "PortNotPublished"
	PortUnreachable  Reason = "PortUnreachable"

	EndpointsUnhealthy Reason = "EndpointsUnhealthy"

	NoSecret          Reason = "NoSecret"
	InvalidTLSSecret  Reason = "InvalidTLSSecret"
	InvalidAuthority  Reason = "InvalidAuthority"
	UnknownClass      Reason = "UnknownClass"
	OtherClass        Reason = "OtherClass"
	ClassConflict     Reason = "ClassConflict"
	InvalidParameters Reason = "InvalidParameters"
	OtherNamespace    Reason = "OtherNamespace"
	CatchAllRefused   Reason = "CatchAllRefused"
	BackendConflict   Reason = "BackendConflict"
	NoClass           Reason = "NoClass"
	NoConfigMap       Reason = "NoConfigMap"
	NotChecked        Reason = "NotChecked"
	NotNamed          Reason = "NotNamed"
	Quarantined       Reason = "Quarantined"

	CertificateMismatch    Reason = "CertificateMismatch"
	CertificateExpired     Reason = "CertificateExpired"
	CertificateNotYetValid Reason = "CertificateNotYetValid"
	RevocationListExpired  Reason = "RevocationListExpired"
	NotPublic              Reason = "NotPublic"
	NoDNSChallenge         Reason = "NoDNSChallenge"
	QuotaExceeded          Reason = "QuotaExceeded"

	CertificatePending Reason = "CertificatePending"
	ACMEFailed         Reason = "ACMEFailed"
)

// Problem is one finding on an object, worded so that its owner can mend it.
type Problem struct {
	Severity Severity `json:"severity"`
	Reason   Reason   `json:"reason"`
	// Field is where in the object, in the words of kubectl explain, such as "spec.rules[0].http.paths[1]".
	Field   string `json:"field,omitempty"`
	Message string `json:"message"`
}

// Verdict is what the controller says of one object.
type Verdict struct {
	Object ir.Ref
	// Foreign says that the object is another controller's, or nobody's: its status is not ours to write.
	Foreign bool
	// Problems are in the order in which they were found. None means that the object is accepted as it is.
	Problems []Problem
}

// Accepted says that nothing was left out of what the object asks this controller for.
func (v *Verdict) Accepted() bool {
	return !slices.ContainsFunc(v.Problems, func(p Problem) bool { return p.Severity == Error })
}

// Report holds one verdict for each object that a translation looked at, sorted by Compare.
type Report struct {
	Verdicts []*Verdict
}

// Compare orders objects by kind, namespace and name.
func Compare(a, b ir.Ref) int {
	return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

// Get returns the verdict on an object, or nil.
func (r *Report) Get(object ir.Ref) *Verdict {
	i, ok := slices.BinarySearchFunc(r.Verdicts, object, func(v *Verdict, ref ir.Ref) int { return Compare(v.Object, ref) })
	if !ok {
		return nil
	}
	return r.Verdicts[i]
}

// With returns a report in which more problems are added to the verdicts on their objects. r stays as it is.
func (r *Report) With(more []*Verdict) *Report {
	if len(more) == 0 {
		return r
	}
	merged := &Report{Verdicts: slices.Clone(r.Verdicts)}
	for _, v := range more {
		i, ok := slices.BinarySearchFunc(merged.Verdicts, v.Object, func(v *Verdict, ref ir.Ref) int { return Compare(v.Object, ref) })
		if !ok {
			merged.Verdicts = slices.Insert(merged.Verdicts, i, v)
			continue
		}
		old := merged.Verdicts[i]
		merged.Verdicts[i] = &Verdict{Object: v.Object, Foreign: old.Foreign, Problems: append(slices.Clip(old.Problems), v.Problems...)}
	}
	return merged
}

// Changed returns the verdicts of now that before does not have, or has in other words.
func Changed(before, now *Report) []*Verdict {
	var changed []*Verdict
	old := before.Verdicts
	for _, v := range now.Verdicts {
		if len(old) > 0 && old[0] == v {
			// So it is with nearly all: they are compared by nothing else.
			old = old[1:]
			continue
		}
		for len(old) > 0 && old[0] != v && Compare(old[0].Object, v.Object) < 0 {
			old = old[1:]
		}
		if len(old) > 0 && (old[0] == v || old[0].Object == v.Object && slices.Equal(old[0].Problems, v.Problems)) {
			continue
		}
		changed = append(changed, v)
	}
	return changed
}
