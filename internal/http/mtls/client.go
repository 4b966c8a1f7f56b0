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

// Client describes the sender of a request by its client certificate, with the values of nginx's variables. It is
// immutable.
type Client struct {
	// Verify is SUCCESS, NONE if there is no certificate, or "FAILED:" followed by the reason.
	Verify string
	// Subject and Issuer are the distinguished names. They are empty without a certificate.
	Subject, Issuer string

	leaf *x509.Certificate
	// escaped caches the result of Escaped, if every request needs it.
	escaped string
	// failed is true if the certificate is not valid. unknownIssuer is true if the only reason is an unknown issuer.
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

// Escaped returns the certificate in PEM, escaped for a header field as in nginx. It is empty without a certificate.
func (c *Client) Escaped() string {
	if c.leaf == nil || c.escaped != "" {
		return c.escaped
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.leaf.Raw})
	return strings.ReplaceAll(url.QueryEscape(string(text)), "+", "%20")
}

// cachedClient is a cached verification result. It is valid until the time in until.
type cachedClient struct {
	client *Client
	chain  []*x509.Certificate
	by     *trust.Contents
	until  time.Time
}

// holds reports whether the cached result is still valid for a connection.
func (j *cachedClient) holds(state *tls.ConnectionState, by *trust.Contents, now time.Time) bool {
	return j.by == by && now.Before(j.until) && slices.Equal(j.chain, state.PeerCertificates)
}

// The fields that are sent to a backend, in nginx's spelling.
const (
	verifyField  = "ssl-client-verify"
	subjectField = "ssl-client-subject-dn"
	issuerField  = "ssl-client-issuer-dn"
	certField    = "ssl-client-cert"
)

// SetFields sets the request fields that describe the client. It first removes all fields with these names that the
// client sent, in any spelling. As in nginx, empty values are left out.
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
