package caddyfile

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/k8singress/k8singress/internal/settings"
	"github.com/k8singress/k8singress/internal/suggest"
)

// check says what is wrong with a value.
type check func(string) error

// one sets a field to the only argument.
func one(field func(*draft) *string, valid check) func(*draft, []string) error {
	return func(d *draft, args []string) error {
		if args[0] == "" {
			return errors.New("the argument is empty")
		}
		if valid != nil {
			if err := valid(args[0]); err != nil {
				return err
			}
		}
		*field(d) = args[0]
		return nil
	}
}

// many sets a field to all arguments.
func many(field func(*draft) *[]string, valid check) func(*draft, []string) error {
	return func(d *draft, args []string) error {
		for i, arg := range args {
			if err := valid(arg); err != nil {
				return err
			}
			if slices.Contains(args[:i], arg) {
				return fmt.Errorf("%s stands there twice", arg)
			}
		}
		*field(d) = args
		return nil
	}
}

// addresses sets a field to addresses to listen on. The word off makes it an empty list, which is not the default.
func addresses(field func(*draft) *[]string) func(*draft, []string) error {
	list := many(field, listenAddress)
	return func(d *draft, args []string) error {
		if len(args) == 1 && args[0] == "off" {
			*field(d) = []string{}
			return nil
		}
		return list(d, args)
	}
}

// duration sets a field to a time of at least some nanoseconds.
func duration(field func(*draft) *settings.Duration, least time.Duration) func(*draft, []string) error {
	return func(d *draft, args []string) error {
		value, err := caddy.ParseDuration(args[0])
		if err != nil {
			return fmt.Errorf("%q is no duration, such as 10s or 4m: %w", args[0], err)
		}
		if value < least {
			return fmt.Errorf("%s is too short: write 1s or more", args[0])
		}
		*field(d) = settings.Duration(value)
		return nil
	}
}

// number sets a field to a number above 0.
func number(field func(*draft) *int) func(*draft, []string) error {
	return func(d *draft, args []string) error {
		value, err := strconv.Atoi(args[0])
		if err != nil || value < 1 {
			return fmt.Errorf("%q is not a number of 1 or more", args[0])
		}
		*field(d) = value
		return nil
	}
}

func setSource(d *draft, args []string) error {
	if args[0] != "none" {
		return fmt.Errorf("%q is no source; write \"source none\", or kubeconfig or manifests", args[0])
	}
	d.none = true
	return nil
}

var (
	labelPattern     = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)
	subdomainPattern = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`)
	zonePattern      = regexp.MustCompile(`^(\{env\.\w+\}|[A-Za-z0-9]([-._A-Za-z0-9]{0,61}[A-Za-z0-9])?)$`)
	pathPattern      = regexp.MustCompile(`^[A-Za-z0-9/\-._~%!$&'()*+,;=:]+$`)
)

const longestName = 253

func label(s string) error {
	if !labelPattern.MatchString(s) {
		return fmt.Errorf("%q is no name of a namespace: those have lower-case letters, digits and hyphens", s)
	}
	return nil
}

// namespacePattern lets a star stand at the end.
func namespacePattern(s string) error {
	begin, some := strings.CutSuffix(s, "*")
	if some && (begin == "" || label(begin+"x") == nil) {
		return nil
	}
	if err := label(s); err != nil {
		return fmt.Errorf("%w; a star may stand at the end, as in team-*", err)
	}
	return nil
}

func portRange(s string) error {
	_, err := settings.ParsePortRange(s)
	return err
}

func chainName(s string) error {
	if !labelPattern.MatchString(s) {
		return fmt.Errorf("%q is no name of a chain: those have lower-case letters, digits and hyphens", s)
	}
	return nil
}

// zone lets Caddy's placeholder for an environment variable through, which is read where the zone is needed.
func zone(s string) error {
	if !zonePattern.MatchString(s) {
		return fmt.Errorf("%q is no name of a zone: those have up to 63 letters, digits, hyphens, underscores and dots; "+
			"an environment variable is written {env.ZONE}", s)
	}
	return nil
}

func subdomain(s string) error {
	if len(s) > longestName || !subdomainPattern.MatchString(s) {
		return fmt.Errorf("%q is no name of an object: those have lower-case letters, digits, hyphens and dots", s)
	}
	return nil
}

func namespacedName(s string) error {
	namespace, object, _ := strings.Cut(s, "/")
	switch slashes := strings.Count(s, "/"); {
	case slashes == 0:
		return fmt.Errorf("%q has no namespace: write namespace/name", s)
	case slashes > 1:
		return fmt.Errorf("%q has %d slashes: write namespace/name, with one", s, slashes)
	}
	if err := label(namespace); err != nil {
		return err
	}
	return subdomain(object)
}

func controllerName(s string) error {
	domain, path, ok := strings.Cut(s, "/")
	if !ok || path == "" || subdomain(domain) != nil || !pathPattern.MatchString(path) {
		return fmt.Errorf("%q is no name of a controller: write a domain, a slash and a path, such as k8s.io/ingress-nginx", s)
	}
	return nil
}

func listenAddress(s string) error {
	address, err := caddy.ParseNetworkAddress(s)
	switch {
	case s == "off":
		return errors.New("off stands alone, without addresses")
	case suggest.Of(strings.ToLower(s), []string{"off"}) != "":
		return fmt.Errorf("%q is no address to listen on; did you mean off", s)
	case !numericPorts(s):
		return fmt.Errorf("%q is no address to listen on: the port is a number from 1 to 65535, as in :8080 or 127.0.0.1:8080", s)
	case err != nil:
		return fmt.Errorf("%q is no address to listen on, such as :8080 or 127.0.0.1:8080: %w", s, err)
	case address.IsUnixNetwork():
		return nil
	case !strings.HasPrefix(address.Network, "tcp"):
		return fmt.Errorf("%q is no address to listen on: network %s carries no HTTP", s, address.Network)
	case address.StartPort == 0:
		return fmt.Errorf("%q is no address to listen on: it has no port; write :8080 or 127.0.0.1:8080", s)
	}
	return nil
}

func probeAddress(s string) error {
	if s == "off" {
		return errors.New("off is no address: without the option there are no probes")
	}
	return listenAddress(s)
}

// numericPorts says whether what an address has for a port, or for the ends of a range of ports, could be one.
func numericPorts(s string) bool {
	_, _, port, err := caddy.SplitNetworkAddress(s)
	if err != nil || port == "" {
		return true
	}
	first, last, isRange := strings.Cut(port, "-")
	if !isRange {
		last = first
	}
	for _, end := range []string{first, last} {
		if _, err := strconv.ParseUint(end, 10, 16); err != nil {
			return false
		}
	}
	return true
}

func secretsMode(s string) error {
	if s != settings.SecretsAll && s != settings.SecretsReferenced {
		return fmt.Errorf("%q is neither %s nor %s", s, settings.SecretsAll, settings.SecretsReferenced)
	}
	return nil
}

func selector(s string) error {
	if _, err := labels.Parse(s); err != nil {
		return fmt.Errorf("%q is no label selector, such as team=shop: %w", s, err)
	}
	return nil
}

func ipAddress(s string) error {
	if _, err := netip.ParseAddr(s); err != nil {
		return fmt.Errorf("%q is no IP address", s)
	}
	return nil
}

func dnsServer(s string) error {
	_, bare := netip.ParseAddr(s)
	with, err := netip.ParseAddrPort(s)
	if bare != nil && (err != nil || with.Port() == 0) {
		return fmt.Errorf("%q is no address of a DNS server: write its IP address, or 192.0.2.53:5353 for another port than 53", s)
	}
	return nil
}

func externalNames(s string) error {
	if s != settings.ExternalNamesAll && s != settings.ExternalNamesOff {
		return fmt.Errorf("%q is neither off nor all; without the option, names lead to other machines only", s)
	}
	return nil
}

func autoHTTPS(s string) error {
	if s != settings.AutoHTTPSAll && s != settings.AutoHTTPSOff {
		return fmt.Errorf("%q is neither off nor all; without the option, hosts of a tls entry without secretName get a certificate", s)
	}
	return nil
}

// keyTypes are Caddy's.
var keyTypes = []string{"p256", "p384", "rsa2048", "rsa4096", "ed25519"}

func keyType(s string) error {
	if !slices.Contains(keyTypes, s) {
		return fmt.Errorf("%q is no type of a key: write one of %s", s, strings.Join(keyTypes, ", "))
	}
	return nil
}

func publicAddress(s string) error {
	if _, err := netip.ParseAddr(s); err != nil && subdomain(s) != nil {
		return fmt.Errorf("%q is neither an IP address nor a host name", s)
	}
	return nil
}

func emailAddress(s string) error {
	if local, domain, ok := strings.Cut(s, "@"); !ok || local == "" || domain == "" {
		return fmt.Errorf("%q is no e-mail address", s)
	}
	return nil
}

func directoryURL(s string) error {
	u, err := url.Parse(s)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" {
		return fmt.Errorf("%q is no URL, such as https://acme-v02.api.letsencrypt.org/directory", s)
	}
	return nil
}
