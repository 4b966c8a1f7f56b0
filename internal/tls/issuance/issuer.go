package issuance

import (
	"cmp"
	"context"
	"net"
	"net/url"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddytls"
	"github.com/caddyserver/certmagic"
	"go.uber.org/zap"

	"github.com/k8singress/k8singress/internal/process/caddyinternals"
)

// issuer is an issuer of certificates, such as an ACME certificate authority. Issuers are tried in the order in which
// the administrator has configured them.
type issuer struct {
	certmagic.Issuer
	key string
	// module is Caddy's ACME issuer, and inside is the certmagic issuer that it wraps. Both are nil for issuers that do
	// not use ACME. inside is also nil if this version of Caddy does not allow access to it.
	module    *caddytls.ACMEIssuer
	inside    *certmagic.ACMEIssuer
	listening listening
}

// newIssuer wraps a provisioned issuer. Some features need access to certmagic's issuer inside of Caddy's issuer. If
// this version of Caddy does not allow access, newIssuer logs a warning, and the issuer works without these features.
func newIssuer(i certmagic.Issuer, l listening, log *zap.Logger) *issuer {
	n := &issuer{Issuer: i, key: i.IssuerKey(), listening: l}
	if m, ok := i.(interface{ GetACMEIssuer() *caddytls.ACMEIssuer }); ok {
		n.module = m.GetACMEIssuer()
	}
	var err error
	if n.inside, err = caddyinternals.ACMEIssuer(i); err != nil {
		log.Warn(
			"this version of Caddy is not fully supported: the Retry-After header of certificate authorities is "+
				"ignored, renewals count towards their rate limits, and challenges are expected at the ports 80 "+
				"and 443",
			zap.String("issuer", n.key), zap.Error(err))
	}
	return n
}

// wildcards reports whether the issuer can issue certificates for wildcards. For an ACME issuer, this requires that the
// DNS-01 challenge is configured. For all other issuers, it returns true.
func (i *issuer) wildcards() bool {
	return i.module == nil || i.module.Challenges != nil && i.module.Challenges.DNS != nil
}

// name returns the name of the issuer for messages: the host name of the certificate authority if the issuer uses ACME,
// otherwise the issuer's key.
func (i *issuer) name() string {
	if i.module != nil {
		if u, err := url.Parse(cmp.Or(i.module.CA, certmagic.DefaultACME.CA)); err == nil && u.Host != "" {
			return u.Host
		}
	}
	return i.key
}

// once returns a copy of the issuer for a single order. The copy writes its log messages to log, if the issuer uses
// ACME and this version of Caddy allows it.
func (i *issuer) once(log *zap.Logger) certmagic.Issuer {
	switch {
	case i.module == nil:
		return i.Issuer
	case i.inside == nil:
		return withoutPrompt{i.Issuer}
	}
	one := *i.inside
	one.Logger = log
	if one.Email == "" {
		// Set Email to a space: if it were empty, certmagic would prompt for an address at the terminal. certmagic
		// removes the space.
		one.Email = " "
	}
	i.listening.configure(&one)
	return &one
}

// withoutPrompt wraps an issuer so that it never prompts for an e-mail address at the terminal.
type withoutPrompt struct{ certmagic.Issuer }

// PreCheck checks the names as the wrapped issuer does, but without a prompt.
func (u withoutPrompt) PreCheck(ctx context.Context, names []string, _ bool) error {
	if checker, ok := u.Issuer.(certmagic.PreChecker); ok {
		return checker.PreCheck(ctx, names, false)
	}
	return nil
}

// listening is the address on which this process already listens for ACME challenges. If certmagic is configured with
// any other address, it opens its own listener.
type listening struct {
	host        string
	http, https int
}

// listeningAt returns the addresses on which this process listens for ACME challenges: the first TCP address in o.HTTP
// and in o.HTTPS. certmagic supports only one listen host for both ports. If the two addresses have different hosts,
// and neither host stands for all addresses, TLS-ALPN challenges are disabled.
func listeningAt(o Options) listening {
	var l listening
	var other string
	l.host, l.http = firstTCP(o.HTTP)
	other, l.https = firstTCP(o.HTTPS)
	switch {
	case l.http == 0 || l.host == "":
		l.host = other
	case l.https != 0 && other != "" && other != l.host:
		l.https = 0
	}
	return l
}

func firstTCP(addresses []string) (host string, port int) {
	for _, a := range addresses {
		parsed, err := caddy.ParseNetworkAddressWithDefaults(a, "tcp", 0)
		if err != nil || parsed.IsUnixNetwork() || parsed.IsFdNetwork() || parsed.StartPort == 0 {
			continue
		}
		if ip := net.ParseIP(parsed.Host); ip != nil && ip.IsUnspecified() {
			parsed.Host = ""
		}
		return parsed.Host, int(parsed.StartPort)
	}
	return "", 0
}

// configure disables the types of ACME challenges that the existing listeners of this process cannot handle. If the
// administrator has configured listen addresses for the issuer, they are kept.
func (l listening) configure(i *certmagic.ACMEIssuer) {
	if i.ListenHost == "" {
		i.ListenHost = l.host
	}
	if i.AltHTTPPort == 0 {
		i.AltHTTPPort = l.http
		i.DisableHTTPChallenge = i.DisableHTTPChallenge || l.http == 0
	}
	if i.AltTLSALPNPort == 0 {
		i.AltTLSALPNPort = l.https
		i.DisableTLSALPNChallenge = i.DisableTLSALPNChallenge || l.https == 0
	}
}
