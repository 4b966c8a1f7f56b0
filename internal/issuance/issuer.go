package issuance

import (
	"net"
	"net/url"
	"reflect"
	"unsafe"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddytls"
	"github.com/caddyserver/certmagic"
	"go.uber.org/zap"
)

// issuer is one of those that are asked, in the order of the options.
type issuer struct {
	certmagic.Issuer
	key string
	// acme is what asks the authority; nil for an issuer that is none of ACME.
	acme      *certmagic.ACMEIssuer
	listening listening
}

func newIssuer(i certmagic.Issuer, l listening) *issuer {
	return &issuer{Issuer: i, key: i.IssuerKey(), acme: insideOf(i), listening: l}
}

// insideOf returns the issuer of certmagic that is in a module of Caddy, which does not show it. It is what has a log of its
// own, where the answers of the authority are seen, and what certmagic names the certificate to that an order replaces. A
// version of Caddy that keeps it elsewhere costs just that: the module is asked as it is then.
func insideOf(i certmagic.Issuer) *certmagic.ACMEIssuer {
	module, ok := i.(interface{ GetACMEIssuer() *caddytls.ACMEIssuer })
	if !ok {
		return nil
	}
	field := reflect.ValueOf(module.GetACMEIssuer()).Elem().FieldByName("issuer")
	if !field.IsValid() || field.Type() != reflect.TypeFor[*certmagic.ACMEIssuer]() {
		return nil
	}
	return (*certmagic.ACMEIssuer)(unsafe.Pointer(field.Pointer())) //nolint:gosec // the type was compared
}

// wildcards says whether the issuer can issue for them: ACME needs the DNS-01 challenge for it.
func (i *issuer) wildcards() bool { return i.acme == nil || i.acme.DNS01Solver != nil }

// name is how people know the issuer.
func (i *issuer) name() string {
	if i.acme != nil {
		if u, err := url.Parse(i.acme.CA); err == nil && u.Host != "" {
			return u.Host
		}
	}
	return i.key
}

// once returns the issuer for one attempt, which is told to log.
func (i *issuer) once(log *zap.Logger) certmagic.Issuer {
	if i.acme == nil {
		return i.Issuer
	}
	one := *i.acme
	one.Logger = log
	if one.Email == "" {
		// certmagic trims it. Without it, somebody is asked for an address, if there is a terminal.
		one.Email = " "
	}
	i.listening.tell(&one)
	return &one
}

// listening is where this process answers challenges. certmagic listens where nobody does, so it has to know.
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

// tell makes an issuer begin only such challenges as are answered by what listens already, if the administrator has not
// said where.
func (l listening) tell(i *certmagic.ACMEIssuer) {
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
