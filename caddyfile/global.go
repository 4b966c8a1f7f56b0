package caddyfile

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
	"go.uber.org/zap"

	"github.com/k8singress/k8singress/internal/control/flags"
	"github.com/k8singress/k8singress/internal/control/structure"
	"github.com/k8singress/k8singress/internal/model/option"
	"github.com/k8singress/k8singress/internal/model/settings"
	"github.com/k8singress/k8singress/internal/model/suggest"
	"github.com/k8singress/k8singress/internal/process/logs"
)

// name is the name of the global option, the directive, the app and the handler.
const name = "k8singress"

func init() {
	httpcaddyfile.RegisterGlobalOption(name, parseGlobal)
}

// draft holds the global option while its block is parsed.
type draft struct {
	config     settings.Config
	kubeconfig string
	manifests  string
	none       bool
	namespaces []string
	selector   string
	secrets    string
	given      map[string]bool
}

// parseGlobal parses
//
//	k8singress {
//		<option> <arguments...>
//	}
//
// into the app k8singress. The block may be empty or missing.
func parseGlobal(d *caddyfile.Dispenser, existing any) (any, error) {
	d.Next()
	if existing != nil {
		return nil, d.Errf("%s is given twice: put all of its options into one block", name)
	}
	if d.NextArg() {
		return nil, d.Errf("%s takes a block of options and no argument, found %q", name, d.Val())
	}
	block := &draft{given: map[string]bool{}}
	for d.NextBlock(0) {
		if err := block.parse(d.NextSegment()); err != nil {
			return nil, err
		}
	}
	if err := block.finish(); err != nil {
		return nil, d.WrapErr(err)
	}
	if errAdapter != nil {
		logs.Logger(name).Warn(
			"this version of Caddy is not fully supported: the servers of the Caddyfile's option are "+
				"added through Caddy's admin API after the start, at its default address", zap.Error(errAdapter))
	}
	value, err := json.Marshal(block.config.WithoutDefaults())
	return httpcaddyfile.App{Name: name, Value: value}, err
}

// parse parses one option: a line, and its block if there is one.
func (b *draft) parse(segment caddyfile.Segment) error {
	d := caddyfile.NewDispenser(segment)
	d.Next()
	row := options.Find(d.Val())
	if row == nil {
		return d.WrapErr(fmt.Errorf("%s has no option %q%s", name, d.Val(), nearestOption(d.Val())))
	}
	l := &line{args: d.RemainingArgs(), tokens: segment}
	if err := b.check(row, l); err != nil {
		return d.WrapErr(fmt.Errorf("%s %w", row.Name, err))
	}
	b.given[row.Name] = true
	if err := row.Parse(b, l); err != nil {
		return d.WrapErr(fmt.Errorf("%s: %w", row.Name, err))
	}
	return nil
}

// check validates an option against the grammar in its Values. An option with a block may be given more than once, and
// so may an option whose first argument is a key.
func (b *draft) check(row *option.Row[draft, *line], l *line) error {
	grammar, _, takesBlock := strings.Cut(row.Values, "{")
	grammar, bare := strings.CutSuffix(grammar, "[")
	block, keyed := len(l.tokens) > 1+len(l.args), strings.Count(grammar, "<") > 1
	switch usage := row.Name + " " + row.Values; {
	case b.given[row.Name] && !takesBlock && !keyed:
		return errors.New("is given twice")
	case block && !takesBlock:
		return errors.New("takes no block")
	case grammar == "" && len(l.args) > 0:
		return fmt.Errorf("takes no argument, found %q", l.args[0])
	case grammar != "" && len(l.args) == 0:
		return fmt.Errorf("needs an argument: %s", usage)
	case len(l.args) > 1 && !strings.Contains(grammar, "..."):
		return fmt.Errorf("takes one argument, found %d: %s", len(l.args), usage)
	case takesBlock && !bare && !block:
		return fmt.Errorf("needs a block: %s", usage)
	}
	return nil
}

// conflicts are options that exclude each other, with a remedy for the message.
var conflicts = []struct{ one, other, remedy string }{
	{"kubeconfig", "manifests", "objects come from a cluster or from a folder; remove one of them"},
	{"kubeconfig", "source", "with source none nothing is followed; remove one of them"},
	{"manifests", "source", "with source none nothing is followed; remove one of them"},
	{"namespaces", "manifests",
		"namespaces limits what is followed in a cluster; take the other files out of the folder"},
	{"namespaces", "source", "with source none nothing is followed; remove one of them"},
	{"namespace_selector", "namespaces", "namespaces are named or selected by their labels; remove one of them"},
	{"namespace_selector", "manifests",
		"namespace_selector limits what is followed in a cluster; take the other files out of the folder"},
	{"namespace_selector", "source", "with source none nothing is followed; remove one of them"},
	{"issuer", "email", "write the address into the block of the issuer: issuer acme { email <address> }"},
	{"issuer", "acme_ca", "write the URL into the block of the issuer: issuer acme { dir <url> }"},
	{"secrets", "manifests", "secrets says what is read in a cluster; all of a folder is read"},
	{"secrets", "source", "with source none nothing is followed; remove one of them"},
	{"election", "election_id", "without an election there is no Lease; remove one of them"},
	{"election", "election_fallback", "without an election there is no Lease; remove one of them"},
	{"publish_nodes", "publish_address", "the status has the addresses of nodes or the given ones; remove one of them"},
	{"publish_service", "publish_address",
		"the status has the address of a Service or the given ones; remove one of them"},
}

// finish checks combinations of options and sets the source.
func (b *draft) finish() error {
	for _, c := range conflicts {
		if b.given[c.one] && b.given[c.other] {
			return fmt.Errorf("%s and %s cannot stand together: %s", c.one, c.other, c.remedy)
		}
	}
	if b.config.ACMEOnMissingSecret && b.config.AutoHTTPS == settings.AutoHTTPSOff {
		return errors.New(
			"acme_on_missing_secret and auto_https off cannot stand together: with auto_https off no issuer is " +
				"asked for any host, and a missing Secret changes nothing; remove one of them")
	}
	if b.given["service_port_namespaces"] && !b.given["service_tcp_ports"] && !b.given["service_udp_ports"] {
		return errors.New(
			"service_port_namespaces says whose Services may open ports, and none may open any without " +
				"service_tcp_ports or service_udp_ports; add one of them")
	}
	if err := structure.CheckAddresses(b.config); err != nil {
		return err
	}
	b.config.Source = b.source()
	return nil
}

func (b *draft) source() *settings.Source {
	switch {
	case b.none:
		return nil
	case b.manifests != "":
		return &settings.Source{Manifests: &settings.Manifests{Dir: b.manifests}}
	}
	return &settings.Source{Kubernetes: &settings.Kubernetes{
		Kubeconfig: b.kubeconfig, Namespaces: b.namespaces, NamespaceSelector: b.selector, Secrets: b.secrets,
	}}
}

// nearestOption returns the end of the message about an unknown option. It suggests a similar option, or the option for
// a flag of ingress-nginx. It returns "" if there is no suggestion.
func nearestOption(word string) string {
	word, _, _ = strings.Cut(strings.ReplaceAll(strings.TrimLeft(word, "-"), "-", "_"), "=")
	if flag := flags.Table.Find(strings.ReplaceAll(word, "_", "-")); flag != nil && flag.Scope != "" {
		return "; did you mean " + string(flag.Scope) + "?"
	}
	return suggest.Hint(word, options.Names())
}
