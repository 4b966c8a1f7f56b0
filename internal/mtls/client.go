package mtls

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/k8singress/k8singress/internal/trust"
)

// Client is who sends a request, by its certificate, in the words of nginx. It is immutable.
type Client struct {
	// Verify is SUCCESS, NONE without a certificate, or "FAILED:" and why.
	Verify string
	// Subject and Issuer are the distinguished names. They are empty without a certificate.
	Subject, Issuer string

	leaf *x509.Certificate
	// escaped is what Escaped returns, where every request needs it.
	escaped string
	// failed says that the certificate is no good, and stranger that it is for no other reason than who has issued it.
	failed, stranger bool
}

var anonymous = &Client{Verify: "NONE"}

func newClient(leaf *x509.Certificate, err error, pass bool) *Client {
	c := &Client{Verify: "SUCCESS", Subject: nameOf(leaf.RawSubject), Issuer: nameOf(leaf.RawIssuer), leaf: leaf}
	if err != nil {
		c.Verify, c.failed, c.stranger = "FAILED:"+err.Error(), true, errors.Is(err, trust.ErrIssuer)
	}
	if pass {
		c.escaped = c.Escaped()
	}
	return c
}

// Escaped is the certificate in PEM as nginx escapes it for a header; it is empty without one.
func (c *Client) Escaped() string {
	if c.leaf == nil || c.escaped != "" {
		return c.escaped
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.leaf.Raw})
	return strings.ReplaceAll(url.QueryEscape(string(text)), "+", "%20")
}

// judged is a client, and for how long that is true.
type judged struct {
	client *Client
	chain  []*x509.Certificate
	by     *trust.Contents
	until  time.Time
}

// holds says whether the same would come out for another request by now.
func (j *judged) holds(state *tls.ConnectionState, by *trust.Contents, now time.Time) bool {
	return j.by == by && now.Before(j.until) && slices.Equal(j.chain, state.PeerCertificates)
}

// The headers that a backend gets, as net/http spells them.
const (
	headerPrefix = "ssl-client-"

	verifyHeader  = "Ssl-Client-Verify"
	subjectHeader = "Ssl-Client-Subject-Dn"
	issuerHeader  = "Ssl-Client-Issuer-Dn"
	certHeader    = "Ssl-Client-Cert"
)

// Tell writes who the client is into the headers of a request, in place of whatever the client wrote there itself, in
// whatever spelling. What is empty is left out, as nginx does.
func (p *Policy) Tell(c *Client, header http.Header) {
	for name := range header {
		if claims(name) {
			delete(header, name)
		}
	}
	set := func(name, value string) {
		if value != "" {
			header[name] = []string{value}
		}
	}
	set(verifyHeader, c.Verify)
	set(subjectHeader, c.Subject)
	set(issuerHeader, c.Issuer)
	if p.pass {
		set(certHeader, c.Escaped())
	}
}

// claims says whether a backend might take a header for one of ours.
func claims(name string) bool {
	if len(name) < len(headerPrefix) {
		return false
	}
	for i := range len(headerPrefix) {
		c := name[i]
		switch {
		case c == '_' || c == '.':
			c = '-'
		case 'A' <= c && c <= 'Z':
			c += 'a' - 'A'
		}
		if c != headerPrefix[i] {
			return false
		}
	}
	return true
}
