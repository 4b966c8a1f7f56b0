// Package mtls lets the clients of a host in by their certificates, as nginx does: the handshake asks for one, and
// takes any; what is the matter with it is said by HTTP, and the backend is told who the client is.
package mtls

import (
	"crypto/tls"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/k8singress/k8singress/internal/ir"
	"github.com/k8singress/k8singress/internal/pattern"
	"github.com/k8singress/k8singress/internal/trust"
)

// Policy is which clients one host lets in. It is immutable but for what it remembers of clients, and is for all requests.
type Policy struct {
	verify    ir.ClientVerify
	depth     int
	errorPage string
	pass      bool
	subject   *pattern.Pattern
	closed    bool
	authority *trust.Authority

	// known are the *judged clients by the pointer to their certificate. crypto/tls has one value for one certificate of
	// all connections that are open, so that it is verified once.
	known sync.Map
	count atomic.Int64
}

// mostKnown bounds what is remembered of clients.
const mostKnown = 1024

// New makes the policy of a host. What cannot be understood lets nobody in.
func New(d *ir.ClientAuth, authority *trust.Authority) *Policy {
	p := &Policy{
		verify: d.Verify, depth: d.Depth, errorPage: d.ErrorPage, pass: d.PassCertificate,
		closed: d.Closed || authority == nil, authority: authority,
	}
	switch p.verify {
	case ir.VerifyOn, ir.VerifyOff, ir.VerifyOptional, ir.VerifyOptionalNoCA:
	default:
		p.closed = true
	}
	if d.Subject != "" {
		var err error
		p.subject, err = pattern.Compile(d.Subject)
		p.closed = p.closed || err != nil
	}
	return p
}

// Asks says whether handshakes ask for a certificate.
func (p *Policy) Asks() bool { return !p.closed && p.verify != ir.VerifyOff }

// Closed says that nobody is let in, with or without a certificate.
func (p *Policy) Closed() bool {
	if p.closed {
		return true
	}
	_, err := p.authority.Pool()
	return err != nil
}

// Check returns who sends a request; state is nil without TLS, where nobody can show a certificate. Somebody who is not to
// be let in comes with a Refusal.
func (p *Policy) Check(state *tls.ConnectionState) (*Client, *Refusal) {
	if p.Closed() {
		return anonymous, forbidden
	}
	client := p.clientOf(state)
	switch {
	case client == anonymous && p.verify == ir.VerifyOn:
		return client, p.refusal(noCertificate)
	case client.failed && !(p.verify == ir.VerifyOptionalNoCA && client.stranger):
		return client, p.refusal(badCertificate)
	case p.subject != nil && !p.subject.Find(client.Subject):
		return client, unauthorized
	}
	return client, nil
}

// refusal is one that the page for errors takes the place of.
func (p *Policy) refusal(r *Refusal) *Refusal {
	if p.errorPage == "" {
		return r
	}
	return &Refusal{Status: http.StatusFound, Location: p.errorPage, Leave: r.Leave}
}

func (p *Policy) clientOf(state *tls.ConnectionState) *Client {
	if state == nil || len(state.PeerCertificates) == 0 || p.verify == ir.VerifyOff {
		return anonymous
	}
	leaf, contents, now := state.PeerCertificates[0], p.authority.Contents(), time.Now()
	if value, ok := p.known.Load(leaf); ok {
		if known := value.(*judged); known.holds(state, contents, now) {
			return known.client
		}
	}
	until, err := contents.VerifyClient(state.PeerCertificates, p.depth, now)
	client := newClient(leaf, err, p.pass)
	p.remember(&judged{client: client, chain: state.PeerCertificates, by: contents, until: until})
	return client
}

func (p *Policy) remember(j *judged) {
	if p.count.Add(1) > mostKnown {
		p.known.Clear()
		p.count.Store(1)
	}
	p.known.Store(j.chain[0], j)
}
