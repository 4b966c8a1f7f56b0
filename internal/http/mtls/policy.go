// Package mtls implements client certificate authentication for a host, as nginx does. The handshake requests a
// certificate and accepts any. Problems with the certificate are reported in the HTTP response, and the backend gets
// fields that describe the client.
package mtls

import (
	"crypto/tls"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/pattern"
	"github.com/k8singress/k8singress/internal/tls/trust"
)

// Policy defines which clients a host accepts. All requests of the host share it. It is immutable, except its cache of
// verified clients.
type Policy struct {
	verify    ir.ClientVerify
	depth     int
	errorPage string
	pass      bool
	subject   *pattern.Pattern
	rejectAll bool
	authority *trust.Authority

	// known maps the pointer of a leaf certificate to its *cachedClient. crypto/tls shares one value for equal
	// certificates of all open connections, so each certificate is verified once.
	known sync.Map
	count atomic.Int64
}

// maxKnown is the maximum number of cached clients.
const maxKnown = 1024

// New returns the policy of a host. If the configuration is invalid, the policy rejects all clients.
func New(d *ir.ClientAuth, authority *trust.Authority) *Policy {
	p := &Policy{
		verify: d.Verify, depth: d.Depth, errorPage: d.ErrorPage, pass: d.PassCertificate,
		rejectAll: d.Closed || authority == nil, authority: authority,
	}
	switch p.verify {
	case ir.VerifyOn, ir.VerifyOff, ir.VerifyOptional, ir.VerifyOptionalNoCA:
	default:
		p.rejectAll = true
	}
	if d.Subject != "" {
		var err error
		p.subject, err = pattern.Compile(d.Subject)
		p.rejectAll = p.rejectAll || err != nil
	}
	return p
}

// RequestsCert reports whether the TLS handshake requests a client certificate.
func (p *Policy) RequestsCert() bool { return !p.rejectAll && p.verify != ir.VerifyOff }

// RejectsAll reports whether all clients are rejected, with or without a certificate.
func (p *Policy) RejectsAll() bool {
	if p.rejectAll {
		return true
	}
	_, err := p.authority.Pool()
	return err != nil
}

// Check returns the client of a request, and a Refusal if the client is not accepted. state is nil without TLS; there
// is then no client certificate.
func (p *Policy) Check(state *tls.ConnectionState) (*Client, *Refusal) {
	if p.RejectsAll() {
		return anonymous, forbidden
	}
	client := p.clientOf(state)
	switch {
	case client == anonymous && p.verify == ir.VerifyOn:
		return client, p.refusal(noCertificate)
	case client.failed && !(p.verify == ir.VerifyOptionalNoCA && client.unknownIssuer):
		return client, p.refusal(badCertificate)
	case p.subject != nil && !p.subject.Find(client.Subject):
		return client, unauthorized
	}
	return client, nil
}

// refusal returns a redirect to the error page if there is one, otherwise r.
func (p *Policy) refusal(r *Refusal) *Refusal {
	if p.errorPage == "" {
		return r
	}
	return &Refusal{Status: http.StatusFound, Location: p.errorPage, CloseConn: r.CloseConn}
}

func (p *Policy) clientOf(state *tls.ConnectionState) *Client {
	if state == nil || len(state.PeerCertificates) == 0 || p.verify == ir.VerifyOff {
		return anonymous
	}
	leaf, contents, now := state.PeerCertificates[0], p.authority.Contents(), time.Now()
	if value, ok := p.known.Load(leaf); ok {
		if known := value.(*cachedClient); known.holds(state, contents, now) {
			return known.client
		}
	}
	until, err := contents.VerifyClient(state.PeerCertificates, p.depth, now)
	client := newClient(leaf, err, p.pass)
	p.remember(&cachedClient{client: client, chain: state.PeerCertificates, by: contents, until: until})
	return client
}

func (p *Policy) remember(j *cachedClient) {
	if p.count.Add(1) > maxKnown {
		p.known.Clear()
		p.count.Store(1)
	}
	p.known.Store(j.chain[0], j)
}
