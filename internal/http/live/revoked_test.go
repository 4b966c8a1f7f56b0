package live_test

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"net/http"
	"testing"
	"time"

	"github.com/k8singress/k8singress/internal/http/live"
	"github.com/k8singress/k8singress/internal/model/document"
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/tests/fixture"
	"github.com/k8singress/k8singress/internal/tls/trust"
	"github.com/k8singress/k8singress/internal/upstream/endpoints"
)

// client returns a client certificate that ca has issued, and a connection with this certificate.
func client(t *testing.T, ca *fixture.Identity) (*fixture.Identity, *tls.ConnectionState) {
	t.Helper()
	who := fixture.Identify(t, ca, &x509.Certificate{Subject: pkix.Name{CommonName: "client"}})
	return who, &tls.ConnectionState{ServerName: "shop.example", PeerCertificates: []*x509.Certificate{who.Leaf}}
}

// authority returns the data of a Secret with a certificate authority and its list of revoked certificates.
func authority(t *testing.T, ca *fixture.Identity, revoked ...*fixture.Identity) map[string][]byte {
	t.Helper()
	return map[string][]byte{"ca.crt": ca.PEM(), "ca.crl": ca.Revoking(t, time.Now().Add(time.Hour), revoked...)}
}

// verifying returns a table with a host that requires client certificates.
func verifying(t *testing.T, ca *fixture.Identity) (*live.Table, *trust.Store) {
	t.Helper()
	store := trust.NewStore()
	auth := &ir.ClientAuth{Secret: ir.Name{Namespace: "shop", Name: "ca"}}
	store.Update(&document.Delta{Hosts: map[string]*document.Host{"host": {ClientAuth: auth}}})
	store.SetSecret(ir.Name{Namespace: "shop", Name: "ca"}, authority(t, ca), true)
	table := tableOf(t, endpoints.NewTable(), store)
	table.SetGlobal(&ir.Global{Drain: time.Millisecond})
	h := hostOf(endlessRoute("/"), endlessRoute("/.well-known/acme-challenge/x"))
	h.ClientAuth = &ir.ClientAuth{Secret: ir.Name{Namespace: "shop", Name: "ca"}, Verify: "on", Depth: 1}
	update(t, table, h)
	return table, store
}

// TestStreamsOfRevokedClientsEnd checks that a new revocation list ends the streams of the revoked clients and no
// others, and that without the authority all streams end except those that need no certificate.
func TestStreamsOfRevokedClientsEnd(t *testing.T) {
	ca := fixture.Authority(t, nil, "ca")
	table, store := verifying(t, ca)
	socket := http.Header{"Upgrade": {"websocket"}}
	_, good := client(t, ca)
	revoked, bad := client(t, ca)
	const challenge = "/.well-known/acme-challenge/x"
	stays, public := openBy(t, table, "/", socket, good), openBy(t, table, challenge, socket, bad)
	goes := openBy(t, table, "/", socket, bad)
	call := openBy(t, table, "/", http.Header{"Content-Type": {"application/grpc+proto"}}, bad)
	ordinary := openBy(t, table, "/", http.Header{"Content-Type": {"application/json"}}, bad)

	store.SetSecret(ir.Name{Namespace: "shop", Name: "ca"}, authority(t, ca, revoked), true)
	await(t, goes, "the stream of a client that was revoked goes on")
	await(t, call, "the call of a client that was revoked goes on")
	goesOn(t, stays, "the stream of another client was cut")

	store.SetSecret(ir.Name{Namespace: "shop", Name: "ca"}, nil, false)
	await(t, stays, "the stream goes on without an authority")
	goesOn(t, public, "a stream that is for everybody was cut")
	goesOn(t, ordinary, "a request that is no stream was cut")
}

// TestCallsWithoutCertificates checks that gRPC calls are not treated as streams on a host that does not request client
// certificates.
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
