package featuretests

import (
	"context"
	"crypto/ecdsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/caddyserver/certmagic"
	"github.com/mholt/acmez/v3"
	"github.com/mholt/acmez/v3/acme"

	"github.com/k8singress/k8singress/internal/model/settings"
)

// stored is a storage on disk that outlives the process.
type stored struct{ root string }

func (s stored) module() any { return map[string]any{"module": "file_system", "root": s.root} }

// find returns the file of a host with the given suffix, such as ".json".
func (s stored) find(t *testing.T, host, ending string) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(s.root, "certificates", "*", host, host+ending))
	if err != nil || len(found) != 1 {
		t.Fatalf("the storage has %v for %s: %v", found, host, err)
	}
	return found[0]
}

// overdue changes the metadata of a certificate so that the controller requests its renewal time from the authority.
func (s stored) overdue(t *testing.T, host string) {
	t.Helper()
	file := s.find(t, host, ".json")
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var meta map[string]any
	if err := json.Unmarshal(data, &meta); err != nil {
		t.Fatal(err)
	}
	info := meta["issuer_data"].(map[string]any)["renewal_info"].(map[string]any)
	info["_retryAfter"] = time.Now().Add(-time.Minute)
	if data, err = json.Marshal(meta); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// revoke revokes a certificate at the authority, signed with the key of the certificate.
func (s stored) revoke(t *testing.T, ca *authority, in *ingress, host string) {
	t.Helper()
	leaf := in.trusted(ca.roots(), host)
	data, err := os.ReadFile(s.find(t, host, ".key"))
	if err != nil {
		t.Fatal(err)
	}
	key, err := certmagic.PEMDecodePrivateKey(data)
	if err != nil {
		t.Fatal(err)
	}
	client := acmez.Client{Client: &acme.Client{Directory: ca.Directory, HTTPClient: ca.client()}}
	err = client.RevokeCertificate(context.Background(), acme.Account{}, leaf, key.(*ecdsa.PrivateKey),
		acme.ReasonKeyCompromise)
	if err != nil {
		t.Fatal(err)
	}
}

// renewal makes the authority suggest that a certificate is renewed in the hour before last. Its own suggestion for a
// revoked certificate is a window of one second, which the client ignores.
func (a *authority) renewal(leaf *x509.Certificate) {
	a.Helper()
	now := time.Now().UTC()
	window := fmt.Sprintf(`{"suggestedWindow":{"start":%q,"end":%q}}`,
		now.Add(-2*time.Hour).Format(time.RFC3339), now.Add(-time.Hour).Format(time.RFC3339))
	a.control(http.MethodPost, "/set-renewal-info/", map[string]string{
		"Certificate": string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: leaf.Raw})),
		"ARIResponse": window,
	})
}

// issuingBoth returns a controller that requests certificates for a.example and b.example from an authority. The
// function begin starts it, and it then uses the storage that it had before it was stopped.
func issuingBoth(t *testing.T) (in *ingress, ca *authority, storage stored, begin func()) {
	t.Helper()
	ip, port := backend(t, "one")
	in, storage = newIngress(t), stored{t.TempDir()}
	ca = newAuthority(in)
	options := settings.Config{Issuers: []json.RawMessage{ca.issuer("")}}
	in.write("manifests.yaml", class+service("web", port, ip)+automatic("a", "a.example")+automatic("b", "b.example"))
	return in, ca, storage, func() { in.issuingFrom(options, storage.module()) }
}

// TestRestartOrdersNothing checks that a process uses the stored certificates from its first handshake on, and orders
// no new ones.
func TestRestartOrdersNothing(t *testing.T) {
	in, ca, _, begin := issuingBoth(t)
	begin()
	roots := ca.roots()
	before := in.trusted(roots, "a.example")
	in.trusted(roots, "b.example")
	in.stop()
	begin()
	after, err := in.verified(roots, "a.example")
	if err != nil || !after.Equal(before) {
		t.Errorf("the first handshake after the start: %v", err)
	}
	in.write("c.yaml", automatic("c", "c.example"))
	in.trusted(roots, "c.example")
	got := ca.taken()
	if got.Orders["a.example"] != 1 || got.Orders["b.example"] != 1 || len(got.Accounts) != 1 {
		t.Errorf("the authority took %+v", got)
	}
}

// TestRevokedCertificateIsReplaced checks that a certificate that the authority has revoked is replaced. The authority
// signals it by the renewal time.
func TestRevokedCertificateIsReplaced(t *testing.T) {
	in, ca, storage, begin := issuingBoth(t)
	begin()
	roots := ca.roots()
	old, kept := in.trusted(roots, "a.example"), in.trusted(roots, "b.example")
	storage.revoke(t, ca, in, "a.example")
	ca.renewal(old)
	in.stop()
	storage.overdue(t, "a.example")
	storage.overdue(t, "b.example")
	begin()
	in.eventually("another certificate", func() error {
		leaf, err := in.verified(roots, "a.example")
		if err == nil && leaf.Equal(old) {
			err = errors.New("it is the old one")
		}
		return err
	})
	if leaf := in.trusted(roots, "b.example"); !leaf.Equal(kept) {
		t.Error("the certificate that is good was replaced too")
	}
	if got := ca.taken(); got.Orders["a.example"] != 2 || got.Orders["b.example"] != 1 ||
		got.Replacing["a.example"] != 1 {
		t.Errorf("the authority took %+v", got)
	}
}
