// Package mtls implements client certificate authentication for a host, as nginx does. The TLS handshake requests a
// client certificate, but accepts any. The host's Policy then decides whether requests with a missing or invalid
// certificate are rejected. Header fields describe the certificate to the backend.
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

// Policy defines which client certificates a host accepts. It is used for all requests to the host. It is safe for
// concurrent use, and immutable except for its cache.
type Policy struct {
	verify    ir.ClientVerify
	depth     int
	errorPage string
	pass      bool
	subject   *pattern.Pattern
	rejectAll bool
	authority *trust.Authority

	// known caches verification results, so that each certificate is verified only once. The keys are the pointers to
	// client certificates: while connections with a certificate are open, crypto/tls uses the same pointer for equal
	// certificates. The values have the type *cachedClient.
	known sync.Map
	count atomic.Int64
}

// maxKnown is the maximum number of cached verification results.
const maxKnown = 1024

// New returns the client certificate policy of a host. If the configuration d is invalid, the policy rejects all
// clients.
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

// RejectsAll reports whether all clients are rejected, regardless of their certificate, because the configuration or
// the list of trusted certificates is invalid.
func (p *Policy) RejectsAll() bool {
	if p.rejectAll {
		return true
	}
	_, err := p.authority.Pool()
	return err != nil
}

// Check verifies the client certificate of a request, and returns a description of the client. If the request must be
// rejected, the second result is the response to send; otherwise it is nil. state is nil for a connection without TLS,
// on which there can be no client certificate.
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

// refusal returns a redirect to the configured error page, or r if no error page is configured.
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
