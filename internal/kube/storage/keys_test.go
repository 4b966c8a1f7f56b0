package storage

import (
	"path"
	"strings"
	"testing"

	"github.com/caddyserver/certmagic"
	"k8s.io/apimachinery/pkg/util/validation"
)

// TestNames checks that the names of the objects for some keys do not change, because existing clusters contain objects
// with these names.
func TestNames(t *testing.T) {
	for key, want := range map[string]string{
		certmagic.StorageKeys.SiteCert(issuer, "Shop.example"): "k8singress-cert-shop-example-aecdb8f0482d48e4796a",
		certmagic.StorageKeys.SiteMeta(issuer,
			"*.example"): "k8singress-cert-wildcard--example-ac3a32da0d9f42a91a8d",
		tokenKey("a.example"): "k8singress-value-a-example-json-3104a52c4fb079632167",
		"日本":                  "k8singress-value-333e9fb43354ee0c23f6",
	} {
		if got := placeOf(key).secret; got != want {
			t.Errorf("%s is in %s, want %s", key, got, want)
		}
	}
}

func FuzzPlace(f *testing.F) {
	seeds := []string{crt, key, info, "", "a//b/../c", "certificates/i/d/x.crt", "certificates/i/d", "\xff", "ÄÖ",
		"/certificates/i/-/-.key"}
	for _, key := range seeds {
		f.Add(key, "certificates/i/d/d.crt")
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		a, errA := cleanFile(a)
		b, errB := cleanFile(b)
		if errA != nil || errB != nil {
			return
		}
		if a != path.Clean(a) || strings.HasPrefix(a, "/") || a == ".." || strings.HasPrefix(a, "../") {
			t.Fatalf("%q is not clean", a)
		}
		p, q := placeOf(a), placeOf(b)
		if a != b && p == q || p.secret == q.secret && p.owner != q.owner {
			t.Fatalf("%q is %v, and %q is %v", a, p, b, q)
		}
		if errs := validation.IsDNS1123Subdomain(p.secret); len(errs) > 0 {
			t.Fatalf("%q: %v", p.secret, errs)
		}
		checkRoundTrip(t, a, p)
	})
}

func checkRoundTrip(t *testing.T, key string, p place) {
	secret, err := p.with(nil, []byte("value"))
	if err != nil {
		t.Fatal(err)
	}
	err = check(secret)
	value, ok := p.value(secret)
	if fields := fieldsOf(secret); err != nil || !ok || string(value) != "value" || len(fields) != 1 ||
		fields[key] != p.field {
		t.Fatalf("%q is read back as %q of %v, %v", key, value, fields, err)
	}
	if left := without(secret, key); left != nil {
		t.Fatalf("after the deletion there is %v", left)
	}
}
