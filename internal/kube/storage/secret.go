package storage

import (
	"bytes"
	"fmt"
	"maps"
	"path"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

const (
	// modifiedPrefix is the prefix of the annotations that contain the time when a field of the Secret was written. A
	// field without this annotation has no value even if it contains data: a Secret of type kubernetes.io/tls must
	// always contain both tls.crt and tls.key, even if only one of them was stored.
	modifiedPrefix = "modified.k8singress.io/"
	// largest is the maximum size of a Secret in bytes.
	largest = corev1.MaxSecretSize
)

// check returns an error if a Secret does not belong to the storage, or if its name does not match its annotations.
func check(secret *corev1.Secret) error {
	if secret.Labels[Label] != LabelValue {
		return fmt.Errorf("the Secret %s/%s does not belong to this storage, whose Secrets have the label %s: "+
			"rename or delete it", secret.Namespace, secret.Name, selector)
	}
	key, site := secret.Annotations[keyAnnotation], secret.Annotations[siteAnnotation]
	p := placeOf(key)
	if site != "" {
		p = placeOf(siteKey(site, ".crt"))
	}
	if p.owner != key+site || p.secret != secret.Name {
		return fmt.Errorf("the Secret %s/%s has the label %s, but its name does not match its annotations: delete it",
			secret.Namespace, secret.Name, selector)
	}
	return nil
}

// trim is a cache.TransformFunc that removes the managed fields of an object, which are large and never read.
func trim(object any) (any, error) {
	if o, err := meta.Accessor(object); err == nil {
		o.SetManagedFields(nil)
	}
	return object, nil
}

// fieldsOf returns a map from each key whose value is in the Secret to the field with the value. It returns an empty
// map if the Secret is nil.
func fieldsOf(secret *corev1.Secret) map[string]string {
	fields := map[string]string{}
	if secret == nil {
		return fields
	}
	if site := secret.Annotations[siteAnnotation]; site != "" {
		for ending, field := range siteFields {
			fields[siteKey(site, ending)] = field
		}
	} else {
		fields[secret.Annotations[keyAnnotation]] = valueField
	}
	maps.DeleteFunc(fields, func(_, field string) bool { return !written(secret, field) })
	return fields
}

func written(secret *corev1.Secret, field string) bool {
	_, ok := secret.Annotations[modifiedPrefix+field]
	return ok
}

// foldersOf is a cache.IndexFunc. It returns the folder that contains the keys of a Secret, and all parents of the
// folder up to the root, which is "". All keys of a Secret are in the same folder.
func foldersOf(object any) ([]string, error) {
	for key := range fieldsOf(object.(*corev1.Secret)) {
		var folders []string
		for key != "" {
			key = parent(key)
			folders = append(folders, key)
		}
		return folders, nil
	}
	return nil, nil
}

// parent returns the folder that contains a key.
func parent(key string) string { return path.Dir("/" + key)[1:] }

// changedKeys returns the keys whose values differ between two states of a Secret, including keys that were added or
// removed.
func changedKeys(before, after *corev1.Secret) []string {
	if before == after {
		return nil
	}
	old, now := fieldsOf(before), fieldsOf(after)
	for key, field := range now {
		if _, had := old[key]; had && bytes.Equal(before.Data[field], after.Data[field]) {
			delete(old, key)
		} else {
			old[key] = field
		}
	}
	return slices.Collect(maps.Keys(old))
}

// value returns the value in the field p.field of a Secret, and whether the field contains a stored value. The Secret
// may be nil.
func (p place) value(secret *corev1.Secret) ([]byte, bool) {
	if secret == nil || !written(secret, p.field) {
		return nil, false
	}
	return secret.Data[p.field], true
}

// modified returns the time when the value in the field p.field of the Secret was written, according to the clock of
// the process that wrote it.
func (p place) modified(secret *corev1.Secret) time.Time {
	modified, err := time.Parse(time.RFC3339Nano, secret.Annotations[modifiedPrefix+p.field])
	if err != nil {
		return secret.CreationTimestamp.Time
	}
	return modified
}

// newer reports whether resourceVersion a is newer than b. It returns false if they cannot be compared.
func newer(a, b string) bool {
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && order > 0
}

// exactly returns options that delete an object only if it still has the same UID and resourceVersion.
func exactly(o metav1.Object) metav1.DeleteOptions {
	uid, version := o.GetUID(), o.GetResourceVersion()
	return metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid, ResourceVersion: &version}}
}

// p.with(current, value) returns a copy of the Secret current in which the field p.field contains the given value. If
// current is nil, it returns a new Secret with this value.
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
		return nil,
			fmt.Errorf(
				"a value of %d bytes is too large: a Secret can hold %d bytes, and all files of a site are in "+
					"one Secret",
				len(value), largest)
	}
	return next, nil
}

func (p place) empty() *corev1.Secret {
	s := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Name: p.secret, Labels: map[string]string{Label: LabelValue},
			Annotations: map[string]string{p.annotation: p.owner},
		},
		Type: corev1.SecretTypeOpaque, Data: map[string][]byte{},
	}
	if p.annotation == siteAnnotation {
		s.Type = corev1.SecretTypeTLS
		s.Data[corev1.TLSCertKey], s.Data[corev1.TLSPrivateKeyKey] = []byte{}, []byte{}
	}
	return s
}

// without returns a copy of a Secret from which the values of a key, and of all keys below it, are removed. It returns
// nil if no value is left, and current itself if it contains no value of these keys.
func without(current *corev1.Secret, key string) *corev1.Secret {
	fields := fieldsOf(current)
	kept := maps.Clone(fields)
	maps.DeleteFunc(kept, func(other, _ string) bool { return other == key || below(other, key) })
	switch len(kept) {
	case 0:
		return nil
	case len(fields):
		return current
	}
	next := copyOf(current)
	for other, field := range fields {
		if _, keep := kept[other]; keep {
			continue
		}
		delete(next.Annotations, modifiedPrefix+field)
		delete(next.Data, field)
		if next.Type == corev1.SecretTypeTLS && field != metaField {
			next.Data[field] = []byte{}
		}
	}
	return next
}

// copyOf returns a copy of a Secret that can be modified. The byte slices of the values are shared with the original
// and must not be modified.
func copyOf(s *corev1.Secret) *corev1.Secret {
	next := *s
	next.Annotations, next.Data = maps.Clone(s.Annotations), maps.Clone(s.Data)
	if next.Data == nil {
		next.Data = map[string][]byte{}
	}
	return &next
}
