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
	// Label is the label on every Secret and Lease of a storage. Objects without it are never read or changed.
	Label = "k8singress.io/storage"
	// LabelValue is the value of Label.
	LabelValue = "certmagic"
	selector   = Label + "=" + LabelValue

	// keyAnnotation is the key in a Secret, siteAnnotation the folder of the three keys of a site in a Secret, and
	// lockAnnotation the lock of a Lease. They are necessary because the names of the objects are hashes.
	keyAnnotation  = "k8singress.io/storage-key"
	siteAnnotation = "k8singress.io/storage-site"
	lockAnnotation = "k8singress.io/storage-lock"

	// writtenAnnotation is on the Lease of a released lock. Its value is the version of the last Secret that was
	// written before the release. releasedAnnotation is the identity of the holder that released the lock.
	writtenAnnotation  = "k8singress.io/storage-written"
	releasedAnnotation = "k8singress.io/storage-released-by"

	// longestKey is the maximum length of a key in bytes. It keeps annotations below the limit of Kubernetes.
	longestKey = 4096
	// readable is the maximum number of bytes of a key that are part of the object's name.
	readable = 40

	valueField = "value"
	metaField  = "certmagic.json"
)

// siteFields maps the extension of a key to its field in the Secret of a site.
var siteFields = map[string]string{".crt": corev1.TLSCertKey, ".key": corev1.TLSPrivateKeyKey, ".json": metaField}

// place is the location of a key's value.
type place struct {
	// secret is the name of the Secret, and field the field of the value.
	secret, field string
	// annotation is the annotation that identifies the contents of the Secret, and owner its value.
	annotation, owner string
}

// placeOf returns the place of a clean key. The certificate of a site, its private key and its metadata share a Secret.
func placeOf(key string) place {
	if folder, ending, ok := siteOf(key); ok {
		return place{nameOf("cert", path.Base(folder), folder), siteFields[ending], siteAnnotation, folder}
	}
	return place{nameOf("value", path.Base(key), key), valueField, keyAnnotation, key}
}

// siteOf parses certificates/ISSUER/DOMAIN/DOMAIN.crt, and the same with .key and .json. ok is false for other keys.
func siteOf(key string) (folder, ending string, ok bool) {
	folder, file := path.Split(key)
	folder = strings.TrimSuffix(folder, "/")
	ending = path.Ext(file)
	if siteFields[ending] == "" || strings.Count(folder, "/") != 2 || !strings.HasPrefix(folder, "certificates/") {
		return "", "", false
	}
	return folder, ending, strings.TrimSuffix(file, ending) == path.Base(folder)
}

// siteKey returns the key of a field of a site's Secret.
func siteKey(folder, ending string) string { return folder + "/" + path.Base(folder) + ending }

// nameOf returns the name of an object: its kind, a readable part of the key, and a hash that makes it unique.
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

// cleanKey normalizes a key to a path without a slash at either end. The empty key is the root.
func cleanKey(key string) (string, error) {
	if len(key) > longestKey {
		return "", fmt.Errorf("the key has %d bytes, but the maximum is %d", len(key), longestKey)
	}
	if !utf8.ValidString(key) {
		return "", fmt.Errorf("the key %q is not UTF-8", key)
	}
	return path.Clean("/" + key)[1:], nil
}

// cleanFile is like cleanKey, but rejects the root, which has no value.
func cleanFile(key string) (string, error) {
	clean, err := cleanKey(key)
	if err == nil && clean == "" {
		err = errors.New("the key is empty")
	}
	return clean, err
}
