package storage

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"path"
	"regexp"
	"strings"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
)

const (
	// Label is the label on every Secret and Lease of a storage. Objects without this label are never read or changed.
	Label = "k8singress.io/storage"
	// LabelValue is the value of Label.
	LabelValue = "certmagic"
	selector   = Label + "=" + LabelValue

	// These annotations contain the full key, folder or lock name of an object, because the name of the object contains
	// only a hash of it. On a Secret, keyAnnotation contains the key whose value is stored there, or siteAnnotation
	// contains the folder of the three keys of a site. On a Lease, lockAnnotation contains the name of the lock.
	keyAnnotation  = "k8singress.io/storage-key"
	siteAnnotation = "k8singress.io/storage-site"
	lockAnnotation = "k8singress.io/storage-lock"

	// writtenAnnotation is set on the Lease of a released lock. Its value is the resourceVersion of the last Secret
	// that the holder wrote before the release. releasedAnnotation is the identity of the holder that released the
	// lock.
	writtenAnnotation  = "k8singress.io/storage-written"
	releasedAnnotation = "k8singress.io/storage-released-by"

	// longestKey is the maximum length of a key in bytes. It ensures that annotations with keys do not exceed the size
	// limit of Kubernetes.
	longestKey = 4096
	// readable is the maximum number of bytes of a key that are included in the name of an object, for readability.
	readable = 40

	valueField = "value"
	metaField  = "certmagic.json"
)

// siteFields maps the file extension of a site's key to the field of the site's Secret that contains the value.
var siteFields = map[string]string{".crt": corev1.TLSCertKey, ".key": corev1.TLSPrivateKeyKey, ".json": metaField}

// place says where the value of a storage key is stored: in which field of which Secret.
type place struct {
	// secret is the name of the Secret, and field is the field of the Secret that contains the value.
	secret, field string
	// annotation is the name of the annotation that identifies what the Secret stores, and owner is its value: a key or
	// a folder of the storage.
	annotation, owner string
}

// placeOf returns where the value of a normalized key is stored. The certificate of a site, its private key and its
// metadata share a Secret.
func placeOf(key string) place {
	if folder, ending, ok := siteOf(key); ok {
		return place{nameOf("cert", path.Base(folder), folder), siteFields[ending], siteAnnotation, folder}
	}
	return place{nameOf("value", path.Base(key), key), valueField, keyAnnotation, key}
}

// siteOf splits a key such as certificates/ISSUER/DOMAIN/DOMAIN.crt into its folder and its extension, which is .crt,
// .key or .json. ok is false for keys of another form.
func siteOf(key string) (folder, ending string, ok bool) {
	folder, file := path.Split(key)
	folder = strings.TrimSuffix(folder, "/")
	ending = path.Ext(file)
	if siteFields[ending] == "" || strings.Count(folder, "/") != 2 || !strings.HasPrefix(folder, "certificates/") {
		return "", "", false
	}
	return folder, ending, strings.TrimSuffix(file, ending) == path.Base(folder)
}

// siteKey is the inverse of siteOf: it returns the key of a site with the given extension.
func siteKey(folder, ending string) string { return folder + "/" + path.Base(folder) + ending }

// nameOf returns the name of an object. It consists of the given kind, a readable part of hint, and a hash of the key,
// which makes the name unique.
func nameOf(kind, hint, key string) string {
	sum := sha256.Sum256([]byte(kind + ":" + key))
	name := "k8singress-" + kind + "-"
	if slug := slugOf(hint); slug != "" {
		name += slug + "-"
	}
	return name + hex.EncodeToString(sum[:10])
}

var notInName = regexp.MustCompile(`[^a-zA-Z0-9]`)

func slugOf(hint string) string {
	slug := strings.ToLower(notInName.ReplaceAllString(hint, "-"))
	return strings.Trim(slug[:min(len(slug), readable)], "-")
}

// cleanKey normalizes a key to a path without leading and trailing slashes. The root folder is "".
func cleanKey(key string) (string, error) {
	if len(key) > longestKey {
		return "", fmt.Errorf("the key has %d bytes, but the maximum is %d", len(key), longestKey)
	}
	if !utf8.ValidString(key) {
		return "", fmt.Errorf("the key %q is not UTF-8", key)
	}
	return path.Clean("/" + key)[1:], nil
}

// cleanFile is like cleanKey, but returns an error for the root folder, which cannot have a value.
func cleanFile(key string) (string, error) {
	clean, err := cleanKey(key)
	if err == nil && clean == "" {
		err = errors.New("the key is empty")
	}
	return clean, err
}
