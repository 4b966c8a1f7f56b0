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

	"github.com/k8singress/k8singress/internal/message"
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

// The fields that a backend gets, in nginx's spelling.
const (
	verifyField  = "ssl-client-verify"
	subjectField = "ssl-client-subject-dn"
	issuerField  = "ssl-client-issuer-dn"
	certField    = "ssl-client-cert"
)

// SetFields writes who the client is into the fields of a request, in place of whatever the client wrote there itself, in
// whatever spelling. What is empty is left out, as nginx does.
func (p *Policy) SetFields(c *Client, fields *message.Fields) {
	*fields = slices.DeleteFunc(*fields, func(f message.Field) bool { return f.Kind == message.SSLClient || f.Kind == message.Invalid })
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
