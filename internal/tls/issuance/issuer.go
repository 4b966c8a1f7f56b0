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

// issuer is one configured issuer. Issuers are tried in the order of the option.
type issuer struct {
	certmagic.Issuer
	key string
	// module is the issuer if it uses ACME, and inside is certmagic's part of it. Both are nil for other issuers.
	// inside is also nil if this version of Caddy keeps it in another place.
	module    *caddytls.ACMEIssuer
	inside    *certmagic.ACMEIssuer
	listening listening
}

// newIssuer wraps a provisioned issuer. If certmagic's part of it is not found, newIssuer logs which features are
// missing and uses the module as it is.
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

// wildcards reports whether the issuer can issue certificates for wildcards, for which ACME needs the DNS-01 challenge.
func (i *issuer) wildcards() bool {
	return i.module == nil || i.module.Challenges != nil && i.module.Challenges.DNS != nil
}

// name returns the name of the issuer for messages: the host of the certificate authority if the issuer uses ACME,
// otherwise its key.
func (i *issuer) name() string {
	if i.module != nil {
		if u, err := url.Parse(cmp.Or(i.module.CA, certmagic.DefaultACME.CA)); err == nil && u.Host != "" {
			return u.Host
		}
	}
	return i.key
}

// once returns the issuer for one order, which writes its log lines to log.
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
		// certmagic trims the space. With an empty address it would prompt for one at the terminal.
		one.Email = " "
	}
	i.listening.configure(&one)
	return &one
}

// withoutPrompt wraps an issuer so that it never prompts for an e-mail address at the terminal.
type withoutPrompt struct{ certmagic.Issuer }

// PreCheck checks names as the issuer does, without a prompt.
func (u withoutPrompt) PreCheck(ctx context.Context, names []string, _ bool) error {
	if checker, ok := u.Issuer.(certmagic.PreChecker); ok {
		return checker.PreCheck(ctx, names, false)
	}
	return nil
}

// listening is the address at which this process handles ACME challenges. On any other address, certmagic would open
// its own listener.
type listening struct {
	host        string
	http, https int
}

// listeningAt returns the first TCP address of each list. certmagic supports only one host for both. If the two hosts
// differ and neither means all addresses, challenges over TLS are disabled.
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

// configure limits an issuer to the challenges that the existing listeners can handle, unless the administrator has
// configured where certmagic listens.
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
