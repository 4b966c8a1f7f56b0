package secret_test

import (
	"crypto/x509"
	"fmt"
	"strings"
	"testing"

	"github.com/k8singress/k8singress/internal/tests/fixture"
	"github.com/k8singress/k8singress/internal/tls/secret"
)

func TestNamesCover(t *testing.T) {
	named := secret.NamesOf(fixture.Certificate(t, "Web.Example", "*.wild.example", "*.Upper.Example.", "*", "*.",
		"dot.example.").Leaf)
	for host, want := range map[string]bool{
		"web.example": true, "a.wild.example": true, "dot.example": true, "*.wild.example": true,
		"a.upper.example":  true,
		"a.b.wild.example": false, "wild.example": false, ".wild.example": false, "cn": false, "": false, "com": false,
		"x.": false, "xweb.example": false, "a.web.example": false, "*.web.example": false,
	} {
		if got := named.Cover(host); got != want {
			t.Errorf("%v cover %q: %v, want %v", named, host, got, want)
		}
	}
	plain := secret.NamesOf(fixture.Authority(t, nil, "cn.example").Leaf)
	if !plain.Cover("cn.example") || plain.Cover("a.cn.example") {
		t.Error("a common name covers its own name, and no other")
	}
	wild := secret.NamesOf(fixture.Authority(t, nil, "*.cn.example").Leaf)
	if !wild.Cover("a.cn.example") || wild.Cover("cn.example") {
		t.Error("a wildcard in the common name covers the names below")
	}
	nameless := secret.NamesOf(fixture.Authority(t, nil, "").Leaf)
	if nameless.Cover("") || nameless.Cover("a.example") {
		t.Error("a certificate without a name covers nothing")
	}
}

// TestCommonNameIsIgnoredBesideDNSNames checks that the common name is ignored if there are DNS names.
func TestCommonNameIsIgnoredBesideDNSNames(t *testing.T) {
	template := fixture.AuthorityTemplate("cn.example")
	template.DNSNames = []string{"dns.example"}
	names := secret.NamesOf(fixture.Identify(t, nil, template).Leaf)
	if names.Cover("cn.example") || !names.Cover("dns.example") {
		t.Errorf("the names are %v", names)
	}
}

func TestListOfNamesIsReadable(t *testing.T) {
	for want, names := range map[string][]string{
		`"a.example", "*.example"`:              {"*.example", "a.example"},
		`"a1", "a2", "a3", "*.b"`:               {"a1", "*.b", "a2", "a3"},
		`"a1", "a2", "a3", "a4" and 3 more`:     {"a1", "a2", "a3", "a4", "a5", "*.b", "*.c"},
		`"*.a", "*.b", "*.c", "*.d" and 1 more`: {"*.a", "*.b", "*.c", "*.d", "*.e"},
		`"red\x1b[31m\n"`:                       {"red\x1b[31m\n"},
		`"` + strings.Repeat("x", 64) + `"...`:  {strings.Repeat("x", 65)},
	} {
		if got := secret.NamesOf(&x509.Certificate{DNSNames: names}).String(); got != want {
			t.Errorf("%q are listed as %s, want %s", names, got, want)
		}
	}
	if got := secret.NamesOf(&x509.Certificate{}).String(); got != "no name" {
		t.Errorf("a certificate without a name is for %s", got)
	}
}

// BenchmarkCover measures Cover with as many names as fit into a certificate chain.
func BenchmarkCover(b *testing.B) {
	leaf := &x509.Certificate{}
	for i := range 5_000 {
		leaf.DNSNames = append(leaf.DNSNames, fmt.Sprintf("host-%d.example", i), fmt.Sprintf("*.host-%d.example", i))
	}
	names := secret.NamesOf(leaf)
	b.ReportAllocs()
	for b.Loop() {
		if !names.Cover("www.host-4999.example") {
			b.Fatal("a name of the certificate is not covered")
		}
	}
}
