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

// issuer is one configured issuer. Issuers are tried in the order in which the administrator has configured them.
type issuer struct {
	certmagic.Issuer
	key string
	// module is Caddy's ACME issuer, and inside is certmagic's ACME issuer that module wraps. Both are nil for issuers
	// that do not use ACME. inside is also nil if it cannot be found in this version of Caddy.
	module    *caddytls.ACMEIssuer
	inside    *certmagic.ACMEIssuer
	listening listening
}

// newIssuer wraps a provisioned issuer. If the certmagic issuer inside of it cannot be found, newIssuer logs which
// features are missing and uses the Caddy module as it is.
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

// wildcards reports whether the issuer can issue certificates for wildcards. An ACME issuer can if the DNS-01 challenge
// is configured; all other issuers can.
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

// once returns the issuer to use for a single order. An ACME issuer then writes its log messages to log, if this
// version of Caddy allows it.
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
		// certmagic prompts for an address at the terminal if Email is empty. It trims the space.
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

// listening is the address at which this process handles ACME challenges. If certmagic is configured with any other
// address, it opens its own listener.
type listening struct {
	host        string
	http, https int
}

// listeningAt returns the first TCP address in each of o.HTTP and o.HTTPS. certmagic supports only a single listen host
// for both ports. If the two hosts differ and both are specific addresses, TLS-ALPN challenges are disabled.
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

// configure limits an issuer to the types of challenges that the existing listeners can handle. Listen addresses that
// the administrator has configured for the issuer are kept.
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
