package mtls

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/k8singress/k8singress/internal/http/message"
	"github.com/k8singress/k8singress/internal/tls/trust"
)

// Client describes the client certificate of a request. The strings are the values of nginx's $ssl_client_* variables.
// It is immutable.
type Client struct {
	// Verify is "SUCCESS", "FAILED:" followed by the reason, or "NONE" if there is no certificate.
	Verify string
	// Subject and Issuer are the distinguished names in the certificate. They are empty if there is no certificate.
	Subject, Issuer string

	leaf *x509.Certificate
	// escaped caches the result of Escaped. It is only set if the certificate is sent to the backend with every
	// request.
	escaped string
	// failed is true if verification of the certificate failed. unknownIssuer is true if it failed only because the
	// issuer is not trusted.
	failed, unknownIssuer bool
}

var anonymous = &Client{Verify: "NONE"}

func newClient(leaf *x509.Certificate, err error, pass bool) *Client {
	c := &Client{Verify: "SUCCESS", Subject: nameOf(leaf.RawSubject), Issuer: nameOf(leaf.RawIssuer), leaf: leaf}
	if err != nil {
		c.Verify, c.failed, c.unknownIssuer = "FAILED:"+err.Error(), true, errors.Is(err, trust.ErrIssuer)
	}
	if pass {
		c.escaped = c.Escaped()
	}
	return c
}

// Escaped returns the certificate in PEM format, percent-encoded for a header field as in nginx. It returns an empty
// string if there is no certificate.
func (c *Client) Escaped() string {
	if c.leaf == nil || c.escaped != "" {
		return c.escaped
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.leaf.Raw})
	return strings.ReplaceAll(url.QueryEscape(string(text)), "+", "%20")
}

// cachedClient is the cached result of verifying a client certificate. The result expires at the time until.
type cachedClient struct {
	client *Client
	chain  []*x509.Certificate
	by     *trust.Contents
	until  time.Time
}

// holds reports whether the cached result can be used for a connection. It cannot be used if it has expired, if the
// trusted certificates have changed since the verification, or if the client has sent a different certificate chain.
func (j *cachedClient) holds(state *tls.ConnectionState, by *trust.Contents, now time.Time) bool {
	return j.by == by && now.Before(j.until) && slices.Equal(j.chain, state.PeerCertificates)
}

// The header fields that describe the client certificate to the backend, spelled as in nginx.
const (
	verifyField  = "ssl-client-verify"
	subjectField = "ssl-client-subject-dn"
	issuerField  = "ssl-client-issuer-dn"
	certField    = "ssl-client-cert"
)

// SetFields sets the request header fields that describe the client certificate to the backend. It first removes all
// such fields that the client sent, in any spelling. As in nginx, fields with empty values are not sent.
func (p *Policy) SetFields(c *Client, fields *message.Fields) {
	*fields = slices.DeleteFunc(*fields,
		func(f message.Field) bool { return f.Kind == message.SSLClient || f.Kind == message.Invalid })
	add := func(name, value string) {
		if value != "" {
			fields.Add(message.Field{Name: name, Value: value, Kind: message.SSLClient})
		}
	}
	add(verifyField, c.Verify)
	add(subjectField, c.Subject)
	add(issuerField, c.Issuer)
	if p.pass {
		add(certField, c.Escaped())
	}
}
