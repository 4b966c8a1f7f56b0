package mtls

import (
	"crypto/x509"
	"encoding/pem"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func readCertificate(t testing.TB, file string) *x509.Certificate {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(data)
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return cert
}

// TestNames compares nameOf with the output of `openssl x509 -noout -subject -nameopt RFC2253` for the same
// certificates.
func TestNames(t *testing.T) {
	files, err := filepath.Glob("testdata/*.pem")
	if err != nil || len(files) == 0 {
		t.Fatalf("no certificates: %v", err)
	}
	for _, file := range files {
		want, err := os.ReadFile(strings.TrimSuffix(file, ".pem") + ".txt")
		if err != nil {
			t.Fatal(err)
		}
		if got := nameOf(readCertificate(t, file).RawSubject); got != strings.TrimSuffix(string(want), "\n") {
			t.Errorf("%s: %q, want %q", file, got, want)
		}
	}
}

func TestNoNames(t *testing.T) {
	for _, raw := range []string{"", "x", "\x30\x00\x00", "\x30\x05abcde"} {
		if got := nameOf([]byte(raw)); got != "" {
			t.Errorf("%q is called %q", raw, got)
		}
	}
	if got := nameOf([]byte("\x30\x00")); got != "" {
		t.Errorf("an empty name is %q", got)
	}
}

// FuzzName checks that any subject is formatted as one line of printable ASCII, which is safe in a header.
func FuzzName(f *testing.F) {
	files, _ := filepath.Glob("testdata/*.pem")
	for _, file := range files {
		f.Add(readCertificate(f, file).RawSubject)
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		if name := nameOf(raw); strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r > '~' }) {
			t.Errorf("%q", name)
		}
	})
}
