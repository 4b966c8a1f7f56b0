// Package authority makes a certificate authority and the serving certificates that it issues, for a server whose
// clients trust only this authority. The admission webhook is such a server. The package neither stores nor sends
// anything: its functions take the files of a Secret and the time, and return the new files.
package authority

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/k8singress/k8singress/internal/tls/secret"
)

// The keys of the files in the Secret. Bundle holds the certificates of all authorities that clients must trust, the
// newest first, and AuthorityKey the private key of the newest. The serving certificate and its key are in
// secret.CertificateKey and secret.PrivateKey.
const (
	Bundle       = "ca.crt"
	AuthorityKey = "ca.key"
)

const (
	// authorityLife and servingLife are the validity of an authority and of a serving certificate. Both are renewed
	// after two thirds of their life.
	authorityLife = 10 * 365 * 24 * time.Hour
	servingLife   = 90 * 24 * time.Hour
	// backdate is how long before its creation a certificate becomes valid, for clients whose clocks are behind.
	backdate = time.Hour
	// spread is the minimum age of a new authority before it replaces the old one as the issuer of serving
	// certificates. Until then the new bundle reaches all clients.
	spread = time.Hour
	// commonName is the start of the common name of each authority.
	commonName = "k8singress webhook authority "
	// maxForeign is the maximum number of authorities of other programs that Join keeps.
	maxForeign = 2
	// maxAuthorities limits the bundle: after the newest authorities, older ones are dropped.
	maxAuthorities = 3
)

// Next returns the files that the Secret must contain at a given time so that clients which trust the bundle can
// connect to a server with the given DNS names. It returns the time at which it must be called again. If the files need
// no change, it returns the same files. Next makes a new authority, or a new serving certificate, if the files lack a
// valid one, or if two thirds of its life have passed. A new authority is added to the bundle an hour before it issues
// certificates, so that clients trust the certificates in use at any time.
//
// Next does not change the given files. Files with other keys are kept.
func Next(files map[string][]byte, names []string, now time.Time) (map[string][]byte, time.Time, error) {
	next := maps.Clone(files)
	if next == nil {
		next = map[string][]byte{}
	}
	names = slices.Compact(slices.Sorted(slices.Values(names)))
	bundle, key := authorities(files, now)
	if key == nil || !now.Before(renewal(bundle[0])) {
		made, err := newAuthority(now)
		if err != nil {
			return nil, time.Time{}, err
		}
		bundle, key = append([]*x509.Certificate{made.certificate}, bundle...), made.key
		next[AuthorityKey] = made.keyPEM
	}
	bundle = bundle[:min(len(bundle), maxAuthorities)]
	next[Bundle] = encode(bundle)
	leaf := serving(files, bundle, names, now)
	if leaf == nil || !now.Before(dueAt(leaf, bundle)) {
		made, err := issue(bundle[0], key, names, now)
		if err != nil {
			return nil, time.Time{}, err
		}
		leaf = made.certificate
		next[secret.CertificateKey], next[secret.PrivateKey] = encode([]*x509.Certificate{leaf}), made.keyPEM
	}
	return next, earlier(renewal(bundle[0]), dueAt(leaf, bundle)), nil
}

// Join returns the bundle that clients get: the authorities in the Secret, and after them the valid authorities of
// other programs in the bundle that the clients have now. So the servers of another program, which this one replaces or
// which may replace it again, stay trusted. At most maxForeign of them are kept. Old authorities of this package are
// dropped, so that an authority whose key has leaked can be replaced by deleting the Secret.
func Join(bundle, current []byte, now time.Time) []byte {
	known, err := secret.ParseCertificates(Bundle, bundle)
	if err != nil {
		return bundle
	}
	// Text that cannot be parsed would make the API server reject the webhook, so it is not kept.
	others, _ := secret.ParseCertificates(Bundle, current)
	joined, foreign := slices.Clone(known), 0
	for _, c := range others {
		if foreign < maxForeign && c.IsCA && now.Before(c.NotAfter) &&
			!strings.HasPrefix(c.Subject.CommonName, commonName) && !slices.ContainsFunc(joined, c.Equal) {
			joined, foreign = append(joined, c), foreign+1
		}
	}
	return encode(joined)
}

// authorities returns the valid authorities in the files, the newest first, and the private key of the newest. The key
// is nil if it is missing, or belongs to none of the authorities. Authorities that were made after the key's are
// dropped: none of them can issue certificates.
func authorities(files map[string][]byte, now time.Time) ([]*x509.Certificate, *ecdsa.PrivateKey) {
	all, err := secret.ParseCertificates(Bundle, files[Bundle])
	if err != nil {
		return nil, nil
	}
	all = slices.DeleteFunc(all, func(c *x509.Certificate) bool { return !c.IsCA || !now.Before(c.NotAfter) })
	key := parseKey(files[AuthorityKey])
	if key == nil {
		return all, nil
	}
	i := slices.IndexFunc(all, func(c *x509.Certificate) bool { return key.PublicKey.Equal(c.PublicKey) })
	if i < 0 {
		return all, nil
	}
	return all[i:], key
}

// serving returns the serving certificate in the files, or nil if clients that trust the bundle would not accept it, or
// if its names differ from the given names.
func serving(files map[string][]byte, bundle []*x509.Certificate, names []string, now time.Time) *x509.Certificate {
	pair, err := secret.Parse(files[secret.CertificateKey], files[secret.PrivateKey])
	if err != nil || !slices.Equal(pair.Leaf.DNSNames, names) {
		return nil
	}
	roots := x509.NewCertPool()
	for _, c := range bundle {
		roots.AddCert(c)
	}
	// A certificate that is not valid yet was made by a replica whose clock is ahead. Replacing it would not help.
	at := later(now, pair.Leaf.NotBefore)
	if _, err := pair.Leaf.Verify(x509.VerifyOptions{Roots: roots, CurrentTime: at}); err != nil {
		return nil
	}
	return pair.Leaf
}

// dueAt returns the time at which the serving certificate must be renewed. It is after two thirds of its life, but not
// before the newest authority is known to the clients.
func dueAt(leaf *x509.Certificate, bundle []*x509.Certificate) time.Time {
	due, known := renewal(leaf), bundle[0].NotBefore.Add(backdate+spread)
	if len(bundle) > 1 && due.Before(known) && known.Before(leaf.NotAfter) {
		return known
	}
	return due
}

// renewal returns the time at which two thirds of the life of a certificate have passed.
func renewal(c *x509.Certificate) time.Time {
	return c.NotBefore.Add(c.NotAfter.Sub(c.NotBefore) / 3 * 2)
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// made is a new certificate with its private key.
type made struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	keyPEM      []byte
}

func newAuthority(now time.Time) (made, error) {
	template := &x509.Certificate{
		// The time distinguishes the authorities of a bundle for a reader. Clients compare keys.
		Subject:   pkix.Name{CommonName: commonName + now.UTC().Format(time.RFC3339)},
		NotBefore: now.Add(-backdate), NotAfter: now.Add(authorityLife),
		IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true, KeyUsage: x509.KeyUsageCertSign,
	}
	return sign(template, nil, nil)
}

// issue makes a serving certificate. It ends with the authority at the latest.
func issue(authority *x509.Certificate, key *ecdsa.PrivateKey, names []string, now time.Time) (made, error) {
	template := &x509.Certificate{
		Subject:   pkix.Name{CommonName: "k8singress webhook"},
		NotBefore: later(now.Add(-backdate), authority.NotBefore),
		NotAfter:  earlier(now.Add(servingLife), authority.NotAfter),
		DNSNames:  names,
		KeyUsage:  x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	return sign(template, authority, key)
}

// sign makes a key and a certificate for it. If the issuer is nil, the certificate is self-signed.
func sign(template, issuer *x509.Certificate, issuerKey *ecdsa.PrivateKey) (made, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return made{}, fmt.Errorf("making a private key: %w", err)
	}
	if issuer == nil {
		issuer, issuerKey = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, issuer, key.Public(), issuerKey)
	if err != nil {
		return made{}, fmt.Errorf("making the certificate %s: %w", template.Subject, err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		return made{}, fmt.Errorf("reading the new certificate %s: %w", template.Subject, err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return made{}, fmt.Errorf("encoding a private key: %w", err)
	}
	return made{certificate, key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8})}, nil
}

// parseKey returns the ECDSA key in PEM data, or nil if the data has no such key.
func parseKey(data []byte) *ecdsa.PrivateKey {
	block, _ := pem.Decode(data)
	if block == nil {
		return nil
	}
	// An unreadable key counts as missing: a new authority then replaces the old one.
	parsed, _ := x509.ParsePKCS8PrivateKey(block.Bytes)
	key, _ := parsed.(*ecdsa.PrivateKey)
	return key
}

func encode(certificates []*x509.Certificate) []byte {
	var text bytes.Buffer
	for _, c := range certificates {
		text.Write(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw}))
	}
	return text.Bytes()
}
