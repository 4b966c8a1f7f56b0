package live_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"maps"
	"math/big"
	"net/http"
	"testing"
	"time"

	"github.com/k8singress/k8singress/internal/certs"
	"github.com/k8singress/k8singress/internal/document"
	"github.com/k8singress/k8singress/internal/endpoints"
	"github.com/k8singress/k8singress/internal/ir"
	"github.com/k8singress/k8singress/internal/live"
)

// issuer is an authority for clients.
type issuer struct {
	t    *testing.T
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
}

func newIssuer(t *testing.T) *issuer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	i := &issuer{t: t, key: key}
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: "ca"}, SerialNumber: big.NewInt(1), IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
	}
	i.cert = i.issue(template, template)
	return i
}

func (i *issuer) issue(template, parent *x509.Certificate) *x509.Certificate {
	i.t.Helper()
	template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	der, err := x509.CreateCertificate(rand.Reader, template, parent, i.key.Public(), i.key)
	if err != nil {
		i.t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		i.t.Fatal(err)
	}
	return cert
}

// client is the connection of one.
func (i *issuer) client(serial int64) *tls.ConnectionState {
	i.t.Helper()
	cert := i.issue(&x509.Certificate{Subject: pkix.Name{CommonName: "client"}, SerialNumber: big.NewInt(serial)}, i.cert)
	return &tls.ConnectionState{ServerName: "shop.example", PeerCertificates: []*x509.Certificate{cert}}
}

// secret has a list of those that are revoked.
func (i *issuer) secret(revoked ...int64) map[string][]byte {
	i.t.Helper()
	list := &x509.RevocationList{Number: big.NewInt(1), ThisUpdate: time.Now().Add(-time.Hour), NextUpdate: time.Now().Add(time.Hour)}
	for _, serial := range revoked {
		list.RevokedCertificateEntries = append(list.RevokedCertificateEntries,
			x509.RevocationListEntry{SerialNumber: big.NewInt(serial), RevocationTime: time.Now().Add(-time.Minute)})
	}
	der, err := x509.CreateRevocationList(rand.Reader, list, i.cert, i.key)
	if err != nil {
		i.t.Fatal(err)
	}
	return map[string][]byte{
		"ca.crt": pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: i.cert.Raw}),
		"ca.crl": pem.EncodeToMemory(&pem.Block{Type: "X509 CRL", Bytes: der}),
	}
}

// verifying is a table with a host that asks its clients for certificates of the issuer.
func verifying(t *testing.T, i *issuer) (*live.Table, *certs.Store) {
	t.Helper()
	store := certs.NewStore()
	store.Follow(maps.All(map[string][]*document.Reference{"host": {{Secret: "shop/ca", CA: true}}}))
	store.SetSecret("shop", "ca", i.secret(), true)
	table := tableOf(t, endpoints.NewTable(), store)
	table.SetGlobal(&ir.Global{Drain: time.Millisecond})
	h := hostOf(endlessRoute("/"), endlessRoute("/.well-known/acme-challenge/x"))
	h.ClientAuth = &document.ClientAuth{Secret: "shop/ca", Verify: "on", Depth: 1}
	update(t, table, h)
	return table, store
}

// TestStreamsOfRevokedClientsEnd holds that a new list of revoked certificates ends the streams of those that are in it, and
// of nobody else; and that without the authority nobody stays but those who need no certificate.
func TestStreamsOfRevokedClientsEnd(t *testing.T) {
	i := newIssuer(t)
	table, store := verifying(t, i)
	socket := http.Header{"Upgrade": {"websocket"}}
	good, bad, challenge := i.client(2), i.client(3), "/.well-known/acme-challenge/x"
	stays, public := openBy(t, table, "/", socket, good), openBy(t, table, challenge, socket, bad)
	goes := openBy(t, table, "/", socket, bad)
	call := openBy(t, table, "/", http.Header{"Content-Type": {"application/grpc+proto"}}, bad)
	ordinary := openBy(t, table, "/", http.Header{"Content-Type": {"application/json"}}, bad)

	store.SetSecret("shop", "ca", i.secret(3), true)
	await(t, goes, "the stream of a client that was revoked goes on")
	await(t, call, "the call of a client that was revoked goes on")
	goesOn(t, stays, "the stream of another client was cut")

	store.SetSecret("shop", "ca", nil, false)
	await(t, stays, "the stream goes on without an authority")
	goesOn(t, public, "a stream that is for everybody was cut")
	goesOn(t, ordinary, "a request that is no stream was cut")
}

// TestCallsWithoutCertificates holds that calls are no streams on a host that does not ask who calls.
func TestCallsWithoutCertificates(t *testing.T) {
	table := newTable(t)
	table.SetGlobal(&ir.Global{Drain: time.Millisecond})
	update(t, table, hostOf(endlessRoute("/")))
	call := open(t, table, "/", http.Header{"Content-Type": {"application/grpc"}})
	stream := open(t, table, "/", http.Header{"Upgrade": {"websocket"}})
	update(t, table, nil)
	await(t, stream, "the stream goes on")
	goesOn(t, call, "a call was cut")
}
