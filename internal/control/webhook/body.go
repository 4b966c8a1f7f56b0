package webhook

import (
	"encoding/json"
	"fmt"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

// body is the part of an AdmissionReview that a review needs. reviewShape leaves out all other fields, such as managed
// fields.
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

// review returns the request of a decoded AdmissionReview. It returns an error unless it is a review of version v1
// about an Ingress of version networking.k8s.io/v1. wrong is the first field of the Ingress with a wrong type, or nil.
func (b *body) review(wrong *json.UnmarshalTypeError) (*request, error) {
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
			r.Kind.Kind, metav1.GroupVersion{Group: r.Kind.Group, Version: r.Kind.Version}.String(),
			networkingv1.SchemeGroupVersion)
	case wrong != nil:
		return nil, bad("the Ingress cannot be read: the field %.256s has a value of a wrong type, %.64s",
			wrong.Field, wrong.Value)
	case r.reviewable() && r.Object == nil:
		return nil, bad("the request has no object")
	}
	return b.Request, nil
}

// reviewable reports whether the request creates an Ingress, or changes its spec or its annotations.
func (r *request) reviewable() bool {
	return r.SubResource == "" && (r.Operation == admissionv1.Create || r.Operation == admissionv1.Update)
}
