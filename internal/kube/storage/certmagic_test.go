package storage

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caddyserver/certmagic"
	"go.uber.org/zap"

	"github.com/k8singress/k8singress/internal/tests/fixture"
)

// authority is a small certificate authority.
type authority struct {
	key    crypto.Signer
	root   *x509.Certificate
	orders atomic.Int32
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	root := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "root"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	return &authority{key: key, root: root}
}

func (a *authority) IssuerKey() string { return issuer }

func (a *authority) Issue(_ context.Context, csr *x509.CertificateRequest) (*certmagic.IssuedCertificate, error) {
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(int64(a.orders.Add(1)) + 1), DNSNames: csr.DNSNames,
		NotBefore: time.Now().Add(-time.Minute), NotAfter: time.Now().Add(90 * 24 * time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, leaf, a.root, csr.PublicKey, a.key)
	if err != nil {
		return nil, err
	}
	return &certmagic.IssuedCertificate{Certificate: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})},
		nil
}

// configOf returns a certmagic configuration like Caddy's that uses the storage of a process.
func configOf(t *testing.T, p *process, a *authority) *certmagic.Config {
	t.Helper()
	var config *certmagic.Config
	cache := certmagic.NewCache(certmagic.CacheOptions{
		GetConfigForCert: func(certmagic.Certificate) (*certmagic.Config, error) { return config, nil },
		Logger:           zap.NewNop(),
	})
	t.Cleanup(cache.Stop)
	config = certmagic.New(cache, certmagic.Config{
		Storage: p.Storage, Issuers: []certmagic.Issuer{a}, Logger: zap.NewNop(),
		OCSP: certmagic.OCSPConfig{DisableStapling: true},
	})
	return config
}

// TestCertmagic checks that if three processes need the same certificates at the same time, each is requested only
// once, and all processes get it.
func TestCertmagic(t *testing.T) {
	w := newWorld(t)
	a := newAuthority(t)
	names := []string{"a.example", "*.b.example", "c.example"}
	var configs []*certmagic.Config
	var group sync.WaitGroup
	for range 3 {
		config := configOf(t, w.start(t), a)
		configs = append(configs, config)
		for _, name := range names {
			group.Go(func() {
				if err := config.ObtainCertSync(t.Context(), name); err != nil {
					t.Error(err)
				}
			})
		}
	}
	group.Wait()
	if n := a.orders.Load(); int(n) != len(names) {
		t.Errorf("%d orders", n)
	}
	for _, config := range configs {
		for _, name := range names {
			if got, err := config.CacheManagedCertificate(t.Context(), name); err != nil || got.Names[0] != name {
				t.Errorf("%s: %v, %v", name, got.Names, err)
			}
		}
	}
	if secrets := w.secrets(t); len(secrets) != len(names) {
		t.Errorf("%d Secrets", len(secrets))
	}
}

// TestCertmagicRenews checks that a renewed certificate reaches the other processes, and that expired certificates are
// deleted.
func TestCertmagicRenews(t *testing.T) {
	w := newWorld(t)
	a := newAuthority(t)
	first, second := w.start(t), w.start(t)
	config := configOf(t, first, a)
	if err := config.ObtainCertSync(t.Context(), "a.example"); err != nil {
		t.Fatal(err)
	}
	old := has(t, first, crt)
	fixture.Holds(t, "the certificate", func() bool { return has(t, second, crt) == old })
	if err := config.RenewCertSync(t.Context(), "a.example", true); err != nil {
		t.Fatal(err)
	}
	fixture.Holds(t, "the new certificate", func() bool { return has(t, second, crt) == has(t, first, crt) })
	if has(t, second, crt) == old {
		t.Error("it is the old one")
	}
	clean := certmagic.CleanStorageOptions{
		Logger: zap.NewNop(), ExpiredCerts: true, ExpiredCertGracePeriod: -100 * 24 * time.Hour, OCSPStaples: true,
	}
	if err := certmagic.CleanStorage(t.Context(), second, clean); err != nil {
		t.Fatal(err)
	}
	if left, err := second.List(t.Context(), "certificates", true); err == nil && len(left) > 0 {
		t.Errorf("left over: %v", left)
	}
}
