package secret_test

import (
	"bytes"
	"crypto"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/k8singress/k8singress/internal/tests/fixture"
	"github.com/k8singress/k8singress/internal/tls/secret"
)

func file(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// join concatenates PEM data.
func join(parts ...[]byte) []byte { return bytes.Join(parts, nil) }

func TestParseSortsTheChain(t *testing.T) {
	root := fixture.Authority(t, nil, "root")
	upper := fixture.Authority(t, root, "upper")
	lower := fixture.Authority(t, upper, "lower")
	web := fixture.Authority(t, lower, "web")
	stranger := fixture.Certificate(t, "stranger.example")
	want := [][]byte{web.Leaf.Raw, lower.Leaf.Raw, upper.Leaf.Raw, root.Leaf.Raw}
	for name, chain := range map[string][]byte{
		"in order":        join(web.PEM(), lower.PEM(), upper.PEM(), root.PEM()),
		"upside down":     join(root.PEM(), upper.PEM(), lower.PEM(), web.PEM()),
		"mixed":           join(upper.PEM(), web.PEM(), root.PEM(), lower.PEM()),
		"with a stranger": join(stranger.PEM(), root.PEM(), lower.PEM(), upper.PEM(), web.PEM()),
		"twice":           join(web.PEM(), web.PEM(), lower.PEM(), lower.PEM(), upper.PEM(), root.PEM(), root.PEM()),
	} {
		t.Run(name, func(t *testing.T) {
			got, err := secret.Parse(chain, web.KeyPEM())
			if err != nil {
				t.Fatal(err)
			}
			if !slices.EqualFunc(got.Certificate, want, bytes.Equal) {
				t.Errorf("the chain has %d certificates, or another order", len(got.Certificate))
			}
			if !bytes.Equal(got.Leaf.Raw, web.Leaf.Raw) {
				t.Errorf("Leaf is %s", got.Leaf.Subject)
			}
		})
	}
}

func TestParseTakesALongChain(t *testing.T) {
	last := fixture.Authority(t, nil, "0")
	chain := last.PEM()
	for i := range 29 {
		last = fixture.Authority(t, last, fmt.Sprint(i+1))
		chain = join(chain, last.PEM())
	}
	got, err := secret.Parse(chain, last.KeyPEM())
	if err != nil || len(got.Certificate) != 30 {
		t.Errorf("a chain of 30 certificates: %+v, error %v", got, err)
	}
}

// TestParseFindsTheAuthorityByKey checks that two authorities with the same name are distinguished by their
// keys.
func TestParseFindsTheAuthorityByKey(t *testing.T) {
	old, renewed := fixture.Authority(t, nil, "root"), fixture.Authority(t, nil, "root")
	web := fixture.Authority(t, renewed, "web")
	got, err := secret.Parse(join(web.PEM(), old.PEM(), renewed.PEM()), web.KeyPEM())
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Certificate) != 2 || !bytes.Equal(got.Certificate[1], renewed.Leaf.Raw) {
		t.Errorf("the chain has %d certificates, or the authority of before", len(got.Certificate))
	}
}

func TestParseAcceptsCommonForms(t *testing.T) {
	web := fixture.Certificate(t, "web.example")
	authority := fixture.Authority(t, nil, "root")
	past := fixture.Expired(t, "web.example")
	for name, pair := range map[string][2][]byte{
		"plain": {web.PEM(), web.KeyPEM()},
		"text around": {join([]byte("subject=web\n"), web.PEM(), []byte("\nbye")),
			join([]byte("the key:\n"), web.KeyPEM(), []byte("\n\n"))},
		"other blocks": {join(fixture.PEM("DH PARAMETERS", []byte{1}), web.PEM(), web.KeyPEM(), fixture.PEM("X", nil)),
			web.KeyPEM()},
		"junk behind":   {join(web.PEM(), []byte("-----BEGIN CERTIFICATE-----\nnot base64")), web.KeyPEM()},
		"both in both":  {join(web.KeyPEM(), web.PEM()), join(web.PEM(), web.KeyPEM())},
		"CRLF":          {withCRLF(web.PEM()), withCRLF(web.KeyPEM())},
		"authority":     {authority.PEM(), authority.KeyPEM()},
		"expired":       {past.PEM(), past.KeyPEM()},
		"RSA":           {file(t, "rsa2048.crt"), file(t, "rsa2048.key")},
		"RSA of 8192":   {file(t, "rsa8192.crt"), file(t, "rsa8192.key")},
		"Ed25519":       {file(t, "ed25519.crt"), file(t, "ed25519.key")},
		"EC PARAMETERS": {file(t, "parameters.crt"), file(t, "parameters.key")},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := secret.Parse(pair[0], pair[1])
			if err != nil {
				t.Fatal(err)
			}
			if len(got.Certificate) != 1 || !bytes.Equal(got.Certificate[0], got.Leaf.Raw) || got.PrivateKey == nil {
				t.Errorf("parsed %d certificates, or without key", len(got.Certificate))
			}
		})
	}
}

func TestParseErrors(t *testing.T) {
	web, other := fixture.Certificate(t, "web.example"), fixture.Certificate(t, "other.example")
	crowded := fixture.Certificate(t, slices.Repeat([]string{"a-long-name-of-a-host.example"}, 4_000)...)
	long := bytes.Repeat([]byte("x"), 1<<20+1)
	for name, c := range map[string]struct {
		cert, key []byte
		want      string
	}{
		"no certificate":    {nil, web.KeyPEM(), "tls.crt is empty: put the certificate there"},
		"blank certificate": {[]byte(" \n"), web.KeyPEM(), "tls.crt is empty"},
		"no key":            {web.PEM(), nil, "tls.key is empty: put the private key there"},
		"garbage":           {[]byte("garbage"), web.KeyPEM(), "tls.crt has no certificate in PEM"},
		"garbage key":       {web.PEM(), []byte("garbage"), "tls.key has no PEM block"},
		"garbage in PEM": {fixture.PEM("CERTIFICATE", []byte("x")), web.KeyPEM(),
			"a certificate in tls.crt cannot be read"},
		"garbage key in PEM": {web.PEM(), fixture.PEM("PRIVATE KEY", []byte("x")),
			"the key in tls.key cannot be read"},
		"swapped": {web.KeyPEM(), web.PEM(), "tls.key has no private key in PEM"},
		"of another": {web.PEM(), other.KeyPEM(),
			"the key in tls.key belongs to none of the certificates in tls.crt"},
		"of none of two": {join(web.PEM(), web.PEM()), other.KeyPEM(), "belongs to none of the certificates"},
		"encrypted": {web.PEM(), file(t, "encrypted.key"),
			"the key in tls.key is encrypted: store it without a passphrase"},
		"encrypted as of old": {web.PEM(), file(t, "encrypted-legacy.key"), "is encrypted"},
		"long certificate":    {long, web.KeyPEM(), "tls.crt has 1048577 bytes, and at most 1048576 are read"},
		"long key":            {web.PEM(), long, "tls.key has 1048577 bytes, and at most 1048576 are read"},
		"too many names": {crowded.PEM(), crowded.KeyPEM(),
			"and clients accept at most 102400: use a certificate with fewer names or issuers"},
		"RSA of 8320 bits": {file(t, "rsa8320.crt"), file(t, "rsa8320.key"),
			"the RSA key has 8320 bits, and clients accept at most 8192"},
		"RSA without end": {web.PEM(), fixture.PEM("RSA PRIVATE KEY", long[:9000]),
			"tls.key is too long: use an RSA key of at most 8192 bits"},
		"DSA": {web.PEM(), fixture.PEM("DSA PRIVATE KEY", []byte("x")),
			"TLS cannot use the key in tls.key"},
		"OpenSSH": {web.PEM(), fixture.PEM("OPENSSH PRIVATE KEY", []byte("x")),
			"TLS cannot use the key in tls.key"},
		"RSA of 512 bits": {file(t, "rsa512.crt"), file(t, "rsa512.key"),
			"the RSA key has 512 bits, and TLS needs at least 1024"},
		"P-224":  {file(t, "p224.crt"), file(t, "p224.key"), "curve P-224"},
		"X25519": {web.PEM(), file(t, "x25519.key"), "TLS cannot use the key in tls.key"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := secret.Parse(c.cert, c.key)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("parsed %v, error %v, want %q", got != nil, err, c.want)
			}
		})
	}
}

// TestParseOfAFullSecretIsFast checks that a Secret with thousands of certificates, none of which matches the key, is
// parsed quickly.
func TestParseOfAFullSecretIsFast(t *testing.T) {
	authority := fixture.Authority(t, nil, "root")
	looping := fixture.AuthorityTemplate("root")
	one := fixture.Certify(t, authority, looping, authority.Key).PEM()
	full := bytes.Repeat(one, 1<<20/len(one))
	begin := time.Now()
	if _, err := secret.Parse(full, fixture.Certificate(t, "x").KeyPEM()); err == nil {
		t.Error("the key of another is accepted")
	}
	if _, err := secret.Parse(full, authority.KeyPEM()); err != nil {
		t.Error(err)
	}
	if took := time.Since(begin); took > fixture.Patience {
		t.Errorf("parsing took %v", took)
	}
}

func FuzzParse(f *testing.F) {
	root := fixture.Authority(f, nil, "root")
	web := fixture.Authority(f, root, "web")
	f.Add(join(root.PEM(), web.PEM()), web.KeyPEM())
	f.Add(web.PEM(), root.KeyPEM())
	f.Add(file(f, "rsa2048.crt"), file(f, "rsa2048.key"))
	f.Add(file(f, "parameters.crt"), file(f, "parameters.key"))
	f.Add(file(f, "rsa512.crt"), file(f, "encrypted.key"))
	f.Add(file(f, "rsa8320.crt"), file(f, "rsa8320.key"))
	f.Add([]byte("-----BEGIN CERTIFICATE-----\n"), []byte("-----BEGIN PRIVATE KEY-----\n"))
	f.Fuzz(func(t *testing.T, cert, key []byte) {
		got, err := secret.Parse(cert, key)
		if err != nil {
			return
		}
		if got.Leaf == nil || len(got.Certificate) == 0 || !bytes.Equal(got.Certificate[0], got.Leaf.Raw) {
			t.Fatal("the leaf is not first")
		}
		public, ok := got.PrivateKey.(crypto.Signer).Public().(interface{ Equal(crypto.PublicKey) bool })
		if !ok || !public.Equal(got.Leaf.PublicKey) {
			t.Fatal("the key belongs to another certificate")
		}
		if names := secret.NamesOf(got.Leaf); names.String() == "" || names.Cover("") {
			t.Fatalf("the names are %q", names)
		}
	})
}

func withCRLF(text []byte) []byte {
	return bytes.ReplaceAll(text, []byte("\n"), []byte("\r\n"))
}
