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

	"github.com/k8singress/k8singress/internal/caddyinternals"
)

// issuer is one issuer of the options, in their order.
type issuer struct {
	certmagic.Issuer
	key string
	// module is the issuer itself where it speaks ACME, and inside is certmagic's part of it. Both are nil for another one, and
	// inside is nil as well where this version of Caddy keeps it elsewhere.
	module    *caddytls.ACMEIssuer
	inside    *certmagic.ACMEIssuer
	listening listening
}

// newIssuer takes a module that knows its configuration. Where certmagic's part of it is not found, the log says what that
// costs, and the module is used as it is.
func newIssuer(i certmagic.Issuer, l listening, log *zap.Logger) *issuer {
	n := &issuer{Issuer: i, key: i.IssuerKey(), listening: l}
	if m, ok := i.(interface{ GetACMEIssuer() *caddytls.ACMEIssuer }); ok {
		n.module = m.GetACMEIssuer()
	}
	var err error
	if n.inside, err = caddyinternals.ACMEIssuer(i); err != nil {
		log.Warn("this version of Caddy is not fully supported: the Retry-After header of certificate authorities is ignored, renewals "+
			"count towards their rate limits, and challenges are expected at the ports 80 and 443", zap.String("issuer", n.key), zap.Error(err))
	}
	return n
}

// wildcards returns whether the issuer can issue certificates for wildcards: ACME needs the DNS-01 challenge for it.
func (i *issuer) wildcards() bool {
	return i.module == nil || i.module.Challenges != nil && i.module.Challenges.DNS != nil
}

// name is how people know the issuer: the host of the certificate authority.
func (i *issuer) name() string {
	if i.module != nil {
		if u, err := url.Parse(cmp.Or(i.module.CA, certmagic.DefaultACME.CA)); err == nil && u.Host != "" {
			return u.Host
		}
	}
	return i.key
}

// once returns the issuer for one order, which writes to log.
func (i *issuer) once(log *zap.Logger) certmagic.Issuer {
	switch {
	case i.module == nil:
		return i.Issuer
	case i.inside == nil:
		return unprompted{i.Issuer}
	}
	one := *i.inside
	one.Logger = log
	if one.Email == "" {
		// certmagic trims it. Without it, certmagic prompts for an address at the terminal.
		one.Email = " "
	}
	i.listening.configure(&one)
	return &one
}

// unprompted is an issuer that never prompts for an e-mail address at the terminal.
type unprompted struct{ certmagic.Issuer }

// PreCheck checks names as the issuer does.
func (u unprompted) PreCheck(ctx context.Context, names []string, _ bool) error {
	if checker, ok := u.Issuer.(certmagic.PreChecker); ok {
		return checker.PreCheck(ctx, names, false)
	}
	return nil
}

// listening is where this process answers challenges. certmagic opens a listener of its own elsewhere, so it has to know.
type listening struct {
	host        string
	http, https int
}

// listeningAt takes the first TCP address of each list. The hosts of both become one, as certmagic knows only one: where they
// differ, and neither stands for all addresses, nothing is begun over TLS.
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

// configure restricts an issuer to the challenges that are answered by what listens already, unless the administrator has set
// where certmagic listens.
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
