package caddyfile

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"net/mail"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/dustin/go-humanize"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/settings"
	"github.com/k8singress/k8singress/internal/model/suggest"
	"github.com/k8singress/k8singress/internal/upstream/reach"
)

// check is a function that returns an error if a value is invalid.
type check func(string) error

// value returns a parser for an option with one argument. The parser converts the argument with read, and stores the
// result in the given field.
func value[T any](field func(*draft) *T, read func(string) (T, error)) func(*draft, *line) error {
	return func(d *draft, l *line) error {
		v, err := read(l.args[0])
		if err == nil {
			*field(d) = v
		}
		return err
	}
}

var errEmpty = errors.New("the argument is empty: write a value, or remove the option")

// one returns a parser for an option with one argument. If the argument is valid, the parser stores it in the given
// field.
func one(field func(*draft) *string, valid check) func(*draft, *line) error {
	return value(field, func(s string) (string, error) {
		if s == "" {
			return "", errEmpty
		}
		return s, valid(s)
	})
}

// enable returns a parser for an option without arguments. The parser sets the given field to true.
func enable(field func(*draft) *bool) func(*draft, *line) error {
	return func(d *draft, _ *line) error {
		*field(d) = true
		return nil
	}
}

// many returns a parser for an option with any number of arguments. If all arguments are valid, the parser stores them
// in the given field.
func many(field func(*draft) *[]string, valid check) func(*draft, *line) error {
	return func(d *draft, l *line) error {
		for i, arg := range l.args {
			if err := valid(arg); err != nil {
				return err
			}
			if slices.Contains(l.args[:i], arg) {
				return fmt.Errorf("%s is listed twice: remove one of the two", arg)
			}
		}
		*field(d) = l.args
		return nil
	}
}

// setVia parses the option via, which adds a Via header to responses ("answers"), to requests ("endpoints"), or to
// both. Without an argument, only responses get the header.
func setVia(d *draft, l *line) error {
	var to []string
	err := many(func(*draft) *[]string { return &to }, words("", "answers", "endpoints"))(d, l)
	d.config.Via = len(to) == 0 || slices.Contains(to, "answers")
	d.config.ViaEndpoints = slices.Contains(to, "endpoints")
	return err
}

// addresses returns a parser for an option whose arguments are listen addresses. If the argument is "off", the parser
// sets the given field to an empty list, so that there are no listeners. A nil list stands for the default addresses.
func addresses(field func(*draft) *[]string) func(*draft, *line) error {
	list := many(field, listenAddress)
	return func(d *draft, l *line) error {
		if len(l.args) == 1 && l.args[0] == "off" {
			*field(d) = []string{}
			return nil
		}
		return list(d, l)
	}
}

// duration returns a parser for an option whose argument is a duration. Values below minimum are rejected.
func duration(field func(*draft) *settings.Duration, minimum time.Duration) func(*draft, *line) error {
	return value(field, func(s string) (settings.Duration, error) {
		d, err := caddy.ParseDuration(s)
		if err != nil {
			return 0, fmt.Errorf("%q is not a duration, such as 10s or 4m: %w", s, err)
		}
		if d < minimum {
			return 0, fmt.Errorf("%s is too short: write at least %s", s, max(minimum, time.Second))
		}
		return settings.Duration(d), nil
	})
}

// number returns a parser for an option whose argument is a positive integer.
func number(field func(*draft) *int) func(*draft, *line) error {
	return value(field, func(s string) (int, error) {
		n, err := strconv.Atoi(s)
		if err != nil || n < 1 {
			return 0, fmt.Errorf("%q is not a whole number of at least 1", s)
		}
		return n, nil
	})
}

// size returns a parser for an option whose argument is a positive size, such as 512MiB. The parser sets the given
// field to the number of bytes.
func size(field func(*draft) *int64) func(*draft, *line) error {
	return value(field, func(s string) (int64, error) {
		n, err := humanize.ParseBytes(s)
		if err != nil || n < 1 || n > math.MaxInt64 {
			return 0, fmt.Errorf("%q is not a size, such as 512MiB or 2GiB", s)
		}
		return int64(n), nil
	})
}

func anything(string) error { return nil }

// words returns a check that accepts only the values in list. hint is appended to the error message.
func words(hint string, list ...string) check {
	return func(s string) error {
		switch {
		case slices.Contains(list, s):
			return nil
		case len(list) == 1:
			return fmt.Errorf("%q is not allowed: write %s, or remove the option%s", s, list[0], hint)
		}
		return fmt.Errorf("%q is not one of %s%s", s, strings.Join(list, ", "), hint)
	}
}

func setSource(d *draft, l *line) error {
	if l.args[0] != "none" {
		return fmt.Errorf("%q is not a valid source: write \"source none\", or use the option kubeconfig or manifests "+
			"instead", l.args[0])
	}
	d.none = true
	return nil
}

func label(s string) error {
	if len(validation.IsDNS1123Label(s)) > 0 {
		return fmt.Errorf("%q is not the name of a namespace: write lower-case letters, digits and hyphens", s)
	}
	return nil
}

// namespacePattern returns an error unless s is the name of a namespace, or the start of a name followed by a star.
func namespacePattern(s string) error {
	begin, some := strings.CutSuffix(s, "*")
	if some && (begin == "" || label(begin+"x") == nil) {
		return nil
	}
	if err := label(s); err != nil {
		return fmt.Errorf("%w; a star is allowed at the end, as in team-*", err)
	}
	return nil
}

// setHostOwner parses the option host_owner: a host and the namespaces that may own it. The option may be given several
// times.
func setHostOwner(d *draft, l *line) error {
	host, namespaces := l.args[0], l.args[1:]
	name := strings.TrimPrefix(host, "*.")
	switch {
	case host != "*" && len(validation.IsDNS1123Subdomain(name)) > 0:
		return fmt.Errorf(
			"%q is not a host: write a name in lower case, a wildcard such as *.shop.example, or * for every "+
				"other host",
			host)
	case len(namespaces) == 0:
		return fmt.Errorf("the host %s has no namespaces: after the host, write the names of the namespaces that may "+
			"own it", host)
	case d.config.HostOwners[host] != nil:
		return fmt.Errorf("the host %s is set twice: write all of its namespaces into one line", host)
	}
	if d.config.HostOwners == nil {
		d.config.HostOwners = map[string][]string{}
	}
	var list []string
	err := many(func(*draft) *[]string { return &list }, namespacePattern)(d, &line{args: namespaces})
	d.config.HostOwners[host] = list
	return err
}

func portRange(s string) error {
	_, err := settings.ParsePortRange(s)
	return err
}

func chainName(s string) error {
	if len(validation.IsDNS1123Label(s)) > 0 {
		return fmt.Errorf("%q is not the name of a chain: write lower-case letters, digits and hyphens", s)
	}
	return nil
}

var environmentVariable = regexp.MustCompile(`^\{env\.\w+\}$`)

// zone returns an error unless s is a valid name of a topology zone, or Caddy's placeholder for an environment variable
// that contains the name. The name of a zone is the value of a node label.
func zone(s string) error {
	if len(validation.IsValidLabelValue(s)) > 0 && !environmentVariable.MatchString(s) {
		return fmt.Errorf(
			"%q is not the name of a zone: write up to 63 letters, digits, hyphens, underscores and dots, or "+
				"{env.ZONE} for an environment variable", s)
	}
	return nil
}

func subdomain(s string) error {
	if len(validation.IsDNS1123Subdomain(s)) > 0 {
		return fmt.Errorf("%q is not the name of an object: write lower-case letters, digits, hyphens and dots", s)
	}
	return nil
}

func namespacedName(s string) (ir.Name, error) {
	namespace, object, _ := strings.Cut(s, "/")
	switch slashes := strings.Count(s, "/"); {
	case s == "":
		return ir.Name{}, errEmpty
	case slashes == 0:
		return ir.Name{}, fmt.Errorf("%q has no namespace: write namespace/name", s)
	case slashes > 1:
		return ir.Name{}, fmt.Errorf("%q has %d slashes: write namespace/name, with a single slash", s, slashes)
	}
	return ir.Name{Namespace: namespace, Name: object}, cmp.Or(label(namespace), subdomain(object))
}

func servicePort(s string) (ir.ServicePort, error) {
	text, port, has := strings.Cut(s, ":")
	name, err := namespacedName(text)
	if err == nil && has && len(validation.IsValidPortName(port)) > 0 {
		if number, failed := strconv.ParseUint(port, 10, 16); failed != nil || number == 0 {
			err = fmt.Errorf("%q has no valid port after the colon: write a number or the name of a port", s)
		}
	}
	return ir.ServicePort{Service: name, Port: port}, err
}

func controllerName(s string) error {
	if len(validation.IsDomainPrefixedPath(nil, s)) > 0 {
		return fmt.Errorf(
			"%q is not the name of a controller: write a domain, a slash and a path, such as k8s.io/ingress-nginx", s)
	}
	return nil
}

func listenAddress(s string) error {
	address, err := caddy.ParseNetworkAddress(s)
	switch hint := suggest.Hint(s, []string{"off"}); {
	case s == "off":
		return errors.New("\"off\" cannot be combined with addresses: remove one of them")
	case hint != "":
		return fmt.Errorf("%q is not an address to listen on%s", s, hint)
	case !numericPorts(s):
		return fmt.Errorf(
			"%q is not an address to listen on: the port is a number from 1 to 65535, as in :8080 or 127.0.0.1:8080", s)
	case err != nil:
		return fmt.Errorf("%q is not an address to listen on, such as :8080 or 127.0.0.1:8080: %w", s, err)
	case address.IsUnixNetwork():
		return nil
	case !strings.HasPrefix(address.Network, "tcp"):
		return fmt.Errorf("%q is not an address to listen on: HTTP is not supported on the network %s", s,
			address.Network)
	case address.StartPort == 0:
		return fmt.Errorf("%q is not an address to listen on: it has no port; write :8080 or 127.0.0.1:8080", s)
	}
	return nil
}

func urlPath(s string) error {
	if !strings.HasPrefix(s, "/") || strings.ContainsAny(s, "?#*{} ") {
		return fmt.Errorf("%q is not a path: it must start with / and must not contain a space or any of ?#*{}", s)
	}
	return nil
}

func probeAddress(s string) error {
	if s == "off" {
		return errors.New("\"off\" is not an address: remove the option to disable probes")
	}
	return listenAddress(s)
}

// numericPorts reports whether the port of an address, or both ends of its port range, are numbers. It returns true for
// an address without a port.
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

func selector(s string) error {
	if _, err := labels.Parse(s); err != nil {
		return fmt.Errorf("%q is not a label selector, such as team=shop: %w", s, err)
	}
	return nil
}

func network(s string) error {
	_, err := reach.ParseNetwork(s)
	return err
}

func ipAddress(s string) error {
	if _, err := netip.ParseAddr(s); err != nil {
		return fmt.Errorf("%q is not an IP address", s)
	}
	return nil
}

func dnsServer(s string) error {
	_, bare := netip.ParseAddr(s)
	with, err := netip.ParseAddrPort(s)
	if bare != nil && (err != nil || with.Port() == 0) {
		return fmt.Errorf(
			"%q is not the address of a DNS server: write an IP address, followed by a colon and the port if it "+
				"is not 53",
			s)
	}
	return nil
}

func publicAddress(s string) error {
	if _, err := netip.ParseAddr(s); err != nil && subdomain(s) != nil {
		return fmt.Errorf("%q is neither an IP address nor a host name", s)
	}
	return nil
}

// emailAddress returns an error unless s is a plain e-mail address, without a display name and angle brackets.
func emailAddress(s string) error {
	if a, err := mail.ParseAddress(s); err != nil || a.Address != s {
		return fmt.Errorf("%q is not an e-mail address, such as ops@example.com", s)
	}
	return nil
}

func directoryURL(s string) error {
	u, err := url.Parse(s)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" {
		return fmt.Errorf("%q is not a URL such as https://acme-v02.api.letsencrypt.org/directory", s)
	}
	return nil
}
