package webhook

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The limits of a request body. The API server accepts objects of 3 MiB, and etcd stores objects of 1.5 MiB by default.
// maxValues bounds the memory of a body that consists of many small values: an object of 1.5 MiB with its previous
// version has fewer values, whatever it contains that an Ingress may contain. No field of an Ingress is nested deeper
// than maxDepth.
const (
	maxBody   = 9 << 20
	maxValues = 300_000
	maxDepth  = 100
)

// refused is an error with the status of the response. The API server logs its text, or returns it to the author of the
// Ingress, depending on failurePolicy.
type refused struct {
	status int
	text   string
}

func (r *refused) Error() string { return r.text }

func bad(format string, args ...any) error {
	return &refused{http.StatusBadRequest, fmt.Sprintf(format, args...)}
}

// body is the part of an AdmissionReview that a review needs. Other fields, such as managed fields, are skipped, so
// they need no memory.
type body struct {
	APIVersion string   `json:"apiVersion"`
	Kind       string   `json:"kind"`
	Request    *request `json:"request"`
}

type request struct {
	UID         string                  `json:"uid"`
	Kind        metav1.GroupVersionKind `json:"kind"`
	SubResource string                  `json:"subResource"`
	Operation   admissionv1.Operation   `json:"operation"`
	Object      *object                 `json:"object"`
	OldObject   *object                 `json:"oldObject"`
}

type object struct {
	Metadata struct {
		Name              string            `json:"name"`
		Namespace         string            `json:"namespace"`
		CreationTimestamp metav1.Time       `json:"creationTimestamp"`
		DeletionTimestamp *metav1.Time      `json:"deletionTimestamp"`
		Annotations       map[string]string `json:"annotations"`
	} `json:"metadata"`
	Spec networkingv1.IngressSpec `json:"spec"`
}

// ingress returns the Ingress, or nil if o is nil.
func (o *object) ingress() *networkingv1.Ingress {
	if o == nil {
		return nil
	}
	m := &o.Metadata
	return &networkingv1.Ingress{
		ObjectMeta: metav1.ObjectMeta{
			Name: m.Name, Namespace: m.Namespace, Annotations: m.Annotations, CreationTimestamp: m.CreationTimestamp,
			DeletionTimestamp: m.DeletionTimestamp,
		},
		Spec: o.Spec,
	}
}

// scan counts the values of a JSON text, or returns an error if it has too many of them, or is nested too deep. It does
// not check the syntax otherwise. It makes sure that decoding the text needs a bounded amount of memory.
func scan(text []byte) (values int, err error) {
	depth, quoted := 0, false
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{', c == '[':
			values, depth = values+1, depth+1
		case c == '}', c == ']':
			depth--
		case c == ',':
			values++
		}
		if depth > maxDepth {
			return 0, bad("the AdmissionReview is nested deeper than %d levels", maxDepth)
		}
		if values > maxValues {
			return 0, &refused{http.StatusRequestEntityTooLarge, fmt.Sprintf(
				"the AdmissionReview has more than %d values: split the Ingress", maxValues)}
		}
	}
	return values, nil
}

// decode reads an AdmissionReview. It returns an error unless it is a review of version v1 about an Ingress of version
// networking.k8s.io/v1.
func decode(text []byte) (*request, error) {
	b := &body{}
	err := json.Unmarshal(text, b)
	var wrong *json.UnmarshalTypeError
	if err != nil && !errors.As(err, &wrong) {
		return nil, bad("the body is not JSON: %v", err)
	}
	switch r := b.Request; {
	case b.Kind != "AdmissionReview" || b.APIVersion != admissionv1.SchemeGroupVersion.String():
		return nil, bad("the body is a %.64q of %.64q, but this webhook accepts only an AdmissionReview of %s: set "+
			"admissionReviewVersions to [v1] in the ValidatingWebhookConfiguration", b.Kind, b.APIVersion,
			admissionv1.SchemeGroupVersion)
	case r == nil || r.UID == "":
		return nil, bad("the AdmissionReview has no request with a uid")
	case r.Kind != metav1.GroupVersionKind(networkingv1.SchemeGroupVersion.WithKind("Ingress")):
		return nil, bad("the request is about a %.64q of %.64q, but this webhook accepts only an Ingress of %s: "+
			"correct the rules of the ValidatingWebhookConfiguration, and set matchPolicy to Equivalent",
			r.Kind.Kind, r.Kind.Group+"/"+r.Kind.Version, networkingv1.SchemeGroupVersion)
	case err != nil:
		return nil, bad("the Ingress cannot be read: the field %.256s is a %.64s", wrong.Field, wrong.Value)
	case r.reviewable() && r.Object == nil:
		return nil, bad("the request has no object")
	case r.reviewable():
		// The API server never stores such an object, and translating it would take more than maxTime.
		if err := validation.ValidateAnnotationsSize(r.Object.Metadata.Annotations); err != nil {
			return nil, bad("the Ingress cannot be stored: %v", err)
		}
	}
	return b.Request, nil
}

// reviewable reports whether the request creates an Ingress, or changes its spec or its annotations.
func (r *request) reviewable() bool {
	return r.SubResource == "" && (r.Operation == admissionv1.Create || r.Operation == admissionv1.Update)
}
