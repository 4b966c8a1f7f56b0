package caddyfile

import (
	"cmp"
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

// name is the common name of the global option, the directive, the app and the HTTP handler.
const name = "k8singress"

func init() {
	httpcaddyfile.RegisterGlobalOption(name, parseGlobal)
}

// draft holds the settings from the block of the global option k8singress while the block is parsed.
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

// parseGlobal parses the global option k8singress:
//
//	k8singress {
//		<option> <arguments...>
//	}
//
// It returns the JSON configuration of the app k8singress. The block may be empty or missing.
func parseGlobal(d *caddyfile.Dispenser, existing any) (any, error) {
	d.Next()
	if existing != nil {
		return nil, d.Errf("%s is set twice: put all of its options into one block", name)
	}
	if d.NextArg() {
		return nil, d.Errf("%s takes no argument, only a block of options; found %q", name, d.Val())
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
			"this version of Caddy is not fully supported: the servers of the option k8singress cannot be "+
				"added to the Caddyfile. After the start, they are added through Caddy's admin API at its "+
				"default address", zap.Error(errAdapter))
	}
	value, err := json.Marshal(block.config.WithoutDefaults())
	return httpcaddyfile.App{Name: name, Value: value}, err
}

// parse parses one option in the block of the global option. An option is a line, possibly followed by a block.
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

// check returns an error if the arguments of an option do not match row.Values, the grammar of its arguments. Arguments
// in brackets may be omitted. check also returns an error if the option is set twice, unless the option takes a block
// or its first argument is a key.
func (b *draft) check(row *option.Row[draft, *line], l *line) error {
	grammar, _, takesBlock := strings.Cut(row.Values, "{")
	grammar, bare := strings.CutSuffix(grammar, "[")
	block, keyed := len(l.tokens) > 1+len(l.args), strings.Count(grammar, "<") > 1
	switch usage := row.Name + " " + row.Values; {
	case b.given[row.Name] && !takesBlock && !keyed:
		return errors.New("is set twice: remove one of the two lines")
	case block && !takesBlock:
		return errors.New("takes no block")
	case grammar == "" && len(l.args) > 0:
		return fmt.Errorf("takes no argument; found %q", l.args[0])
	case len(l.args) == 0 && needsArgument(grammar):
		return fmt.Errorf("needs an argument: write %s", usage)
	case len(l.args) > 1 && !strings.Contains(grammar, "..."):
		return fmt.Errorf("takes one argument, but has %d: write %s", len(l.args), usage)
	case takesBlock && !bare && !block:
		return fmt.Errorf("needs a block: write %s", usage)
	}
	return nil
}

// needsArgument reports whether a grammar requires at least one argument.
func needsArgument(grammar string) bool { return grammar != "" && grammar[0] != '[' }

// conflicts lists pairs of options that cannot be combined, with advice for the error message.
var conflicts = []struct{ one, other, remedy string }{
	{"kubeconfig", "manifests", "objects are read either from a cluster or from a folder; remove one of the options"},
	{"kubeconfig", "source", "a process with \"source none\" reads no objects; remove one of the options"},
	{"manifests", "source", "a process with \"source none\" reads no objects; remove one of the options"},
	{"namespaces", "manifests",
		"the option namespaces applies only to a cluster; remove the option, and remove the files of other " +
			"namespaces from the folder"},
	{"namespaces", "source", "a process with \"source none\" reads no objects; remove one of the options"},
	{"namespace_selector", "namespaces",
		"namespaces are selected either by name or by label; remove one of the options"},
	{"namespace_selector", "manifests",
		"the option namespace_selector applies only to a cluster; remove the option, and remove the files of other " +
			"namespaces from the folder"},
	{"namespace_selector", "source", "a process with \"source none\" reads no objects; remove one of the options"},
	{"issuer", "email", "set the address in the block of the issuer instead: issuer acme { email <address> }"},
	{"issuer", "acme_ca", "set the URL in the block of the issuer instead: issuer acme { dir <url> }"},
	{"secrets", "manifests",
		"the option secrets applies only to a cluster, because all files of a folder are read; remove the option"},
	{"secrets", "source", "a process with \"source none\" reads no objects; remove one of the options"},
	{"election", "election_id", "with \"election off\", no Lease is used; remove one of the options"},
	{"election", "election_fallback", "with \"election off\", no Lease is used; remove one of the options"},
	{"publish_nodes", "publish_address",
		"the status contains the addresses either of nodes or of publish_address; remove one of the options"},
	{"publish_service", "publish_address",
		"the status contains the addresses either of a Service or of publish_address; remove one of the options"},
}

// finish checks combinations of options, and sets config.Source. It is called after all options are parsed.
func (b *draft) finish() error {
	for _, c := range conflicts {
		if b.given[c.one] && b.given[c.other] {
			return fmt.Errorf("%s and %s cannot be combined: %s", c.one, c.other, c.remedy)
		}
	}
	if b.config.ACMEOnMissingSecret && b.config.AutoHTTPS == settings.AutoHTTPSOff {
		return errors.New(
			"acme_on_missing_secret and auto_https off cannot be combined: with auto_https off no certificate is " +
				"requested, even if a Secret is missing; remove one of the options")
	}
	if b.given["service_port_namespaces"] && !b.given["service_tcp_ports"] && !b.given["service_udp_ports"] {
		return errors.New(
			"service_port_namespaces has no effect, because Services may open ports only with service_tcp_ports or " +
				"service_udp_ports: add one of these two, or remove service_port_namespaces")
	}
	if err := cmp.Or(b.checkDefaultChains(), b.checkAddresses()); err != nil {
		return err
	}
	b.config.Source = b.source()
	return nil
}

// checkAddresses returns an error if two of the options http, https and health that the block sets use the same
// address. Caddy's global options can change the defaults of http and https, so the adapter checks them later.
func (b *draft) checkAddresses() error {
	c := b.config
	for _, addresses := range []*[]string{&c.HTTP, &c.HTTPS} {
		if *addresses == nil {
			*addresses = []string{}
		}
	}
	return structure.CheckAddresses(c)
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

// nearestOption returns a suggestion for the error message about an unknown option: the option with a similar name, or
// the option that replaces a flag of ingress-nginx. It returns "" if there is no suggestion.
func nearestOption(word string) string {
	word, _, _ = strings.Cut(strings.ReplaceAll(strings.TrimLeft(word, "-"), "-", "_"), "=")
	if flag := flags.Table.Find(strings.ReplaceAll(word, "_", "-")); flag != nil && flag.Scope != "" {
		return "; did you mean " + string(flag.Scope) + "?"
	}
	return suggest.Hint(word, options.Names())
}
