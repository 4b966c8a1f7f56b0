package kubestorage

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
	// Label is on every Secret and every Lease of a storage. Objects without it are never read or changed.
	Label = "k8singress.io/storage"
	// LabelValue is the value of Label.
	LabelValue = "certmagic"
	selector   = Label + "=" + LabelValue

	// keyAnnotation says which key a Secret holds, siteAnnotation which folder of three keys, and lockAnnotation which lock
	// a Lease is: the names of the objects are hashes of them.
	keyAnnotation  = "k8singress.io/storage-key"
	siteAnnotation = "k8singress.io/storage-site"
	lockAnnotation = "k8singress.io/storage-lock"

	// writtenAnnotation is on the Lease of a lock that was released: the version of the last Secret that was written before.
	// releasedAnnotation says by whom it was released.
	writtenAnnotation  = "k8singress.io/storage-written"
	releasedAnnotation = "k8singress.io/storage-released-by"

	// longestKey keeps the annotations of an object below what Kubernetes allows.
	longestKey = 4096
	// readable is how much of a key is in the name of its object.
	readable = 40

	valueField = "value"
	metaField  = "certmagic.json"
)

// siteFields are the fields of a site's Secret, by the last part of the key.
var siteFields = map[string]string{".crt": corev1.TLSCertKey, ".key": corev1.TLSPrivateKeyKey, ".json": metaField}

// place is where a key is kept.
type place struct {
	// secret is the name of the Secret, and field that of the value in it.
	secret, field string
	// annotation is the one that says what the Secret holds, and owner what it says.
	annotation, owner string
}

// placeOf takes a clean key. The certificate of a site, its private key and its metadata share a Secret.
func placeOf(key string) place {
	if folder, ending, ok := siteOf(key); ok {
		return place{nameOf("cert", path.Base(folder), folder), siteFields[ending], siteAnnotation, folder}
	}
	return place{nameOf("value", path.Base(key), key), valueField, keyAnnotation, key}
}

// siteOf recognizes certificates/ISSUER/DOMAIN/DOMAIN.crt, and the same with .key and .json.
func siteOf(key string) (folder, ending string, ok bool) {
	folder, file := path.Split(key)
	folder = strings.TrimSuffix(folder, "/")
	ending = path.Ext(file)
	if siteFields[ending] == "" || strings.Count(folder, "/") != 2 || !strings.HasPrefix(folder, "certificates/") {
		return "", "", false
	}
	return folder, ending, strings.TrimSuffix(file, ending) == path.Base(folder)
}

// siteKey is the key of a field of a site's Secret.
func siteKey(folder, ending string) string { return folder + "/" + path.Base(folder) + ending }

// nameOf makes the name of an object: what it is, a part that people recognize, and a hash that tells it from all others.
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

// cleanKey brings a key into the form of a path without a slash at either end, as a file system does. The empty key is
// the root.
func cleanKey(key string) (string, error) {
	if len(key) > longestKey {
		return "", fmt.Errorf("a key of %d bytes is too long: at most %d are possible", len(key), longestKey)
	}
	if !utf8.ValidString(key) {
		return "", fmt.Errorf("the key %q is not UTF-8", key)
	}
	return path.Clean("/" + key)[1:], nil
}

// cleanFile is cleanKey for a key that has a value, which the root has not.
func cleanFile(key string) (string, error) {
	clean, err := cleanKey(key)
	if err == nil && clean == "" {
		err = errors.New("the key is empty")
	}
	return clean, err
}
