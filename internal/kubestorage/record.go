package kubestorage

import (
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

const (
	// modifiedPrefix begins the annotation that says when a field was written. A field without it is absent, whatever
	// data there is: kubernetes.io/tls wants both of its fields from the beginning, when only one is known.
	modifiedPrefix = "modified.k8singress.io/"
	// largest is how many bytes a Secret may hold.
	largest = corev1.MaxSecretSize
)

// item is the value of a key. Nobody changes it.
type item struct {
	value    []byte
	modified time.Time
}

// record is a state of a Secret that belongs to the storage.
type record struct {
	secret *corev1.Secret
	items  map[string]item
}

// readRecord takes a Secret that nobody else has. It is an error if the Secret is not one of ours, or has another name
// than ours have.
func readRecord(secret *corev1.Secret) (*record, error) {
	secret.ManagedFields = nil
	p, err := placeIn(secret)
	if err != nil {
		return nil, err
	}
	r := &record{secret: secret, items: map[string]item{}}
	if !p.site() {
		r.add(p.owner, p.field)
		return r, nil
	}
	for ending, field := range siteFields {
		r.add(siteKey(p.owner, ending), field)
	}
	return r, nil
}

// placeIn reads from the metadata what a Secret holds. The field of a site's Secret is left empty.
func placeIn(secret *corev1.Secret) (place, error) {
	if secret.Labels[Label] != LabelValue {
		return place{}, fmt.Errorf("the Secret %s/%s does not belong to this storage, whose Secrets have the label %s: "+
			"give it another name, or delete it", secret.Namespace, secret.Name, selector)
	}
	key, site := secret.Annotations[keyAnnotation], secret.Annotations[siteAnnotation]
	p := placeOf(key)
	if site != "" {
		p = placeOf(siteKey(site, ".crt"))
		p.field = ""
	}
	if p.owner != key+site || p.secret != secret.Name {
		return place{}, fmt.Errorf("the Secret %s/%s has the label %s, and its name does not fit its annotations: delete it",
			secret.Namespace, secret.Name, selector)
	}
	return p, nil
}

func (r *record) add(key, field string) {
	written, ok := r.secret.Annotations[modifiedPrefix+field]
	if !ok {
		return
	}
	modified, err := time.Parse(time.RFC3339Nano, written)
	if err != nil {
		modified = r.secret.CreationTimestamp.Time
	}
	r.items[key] = item{r.secret.Data[field], modified}
}

func (r *record) version() string { return r.secret.ResourceVersion }

// same says that both are states of one Secret, and not of two that had the name after each other.
func (r *record) same(other *record) bool { return r.secret.UID == other.secret.UID }

// newer compares two resource versions. What cannot be compared is not newer.
func newer(a, b string) bool {
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && order > 0
}

// with returns a Secret in which a field has a value: a new one, or a copy of the current one.
func (p place) with(current *corev1.Secret, value []byte) (*corev1.Secret, error) {
	next := p.empty()
	if current != nil {
		next = copyOf(current)
	}
	next.Data[p.field] = value
	next.Annotations[modifiedPrefix+p.field] = time.Now().UTC().Format(time.RFC3339Nano)
	var size int
	for _, data := range next.Data {
		size += len(data)
	}
	if size > largest {
		return nil, fmt.Errorf("a value of %d bytes is too large: a Secret holds %d bytes, with all that belongs together",
			len(value), largest)
	}
	return next, nil
}

func (p place) empty() *corev1.Secret {
	s := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Name: p.secret, Labels: map[string]string{Label: LabelValue}, Annotations: map[string]string{p.annotation: p.owner},
		},
		Type: corev1.SecretTypeOpaque, Data: map[string][]byte{},
	}
	if p.site() {
		s.Type = corev1.SecretTypeTLS
		s.Data[corev1.TLSCertKey], s.Data[corev1.TLSPrivateKeyKey] = []byte{}, []byte{}
	}
	return s
}

// without returns a copy that lacks some fields, or nil if nothing is left.
func without(current *corev1.Secret, fields []string) *corev1.Secret {
	if current == nil {
		return nil
	}
	next := copyOf(current)
	for _, field := range fields {
		delete(next.Annotations, modifiedPrefix+field)
		delete(next.Data, field)
		if next.Type == corev1.SecretTypeTLS && field != metaField {
			next.Data[field] = []byte{}
		}
	}
	for field := range next.Data {
		if _, ok := next.Annotations[modifiedPrefix+field]; ok {
			return next
		}
	}
	return nil
}

// copyOf shares the values with the original, and nothing else that is written here.
func copyOf(s *corev1.Secret) *corev1.Secret {
	next := *s
	next.Annotations, next.Data = maps.Clone(s.Annotations), maps.Clone(s.Data)
	if next.Data == nil {
		next.Data = map[string][]byte{}
	}
	return &next
}
