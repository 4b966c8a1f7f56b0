package caddyfile

import (
	"fmt"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/certmagic"
)

const issuers = "tls.issuance"

// setIssuer parses the option issuer:
//
//	issuer <module> [<arguments...>] {
//		<options...>
//	}
//
// setIssuer adds the JSON configuration of the issuer module to d. The module parses its arguments and its block
// itself, as in Caddy's own directives.
func setIssuer(d *draft, l *line) error {
	id := issuers + "." + l.args[0]
	if _, err := caddy.GetModule(id); err != nil {
		return noIssuer(l.args[0])
	}
	tokens := caddyfile.NewDispenser(l.tokens[1:])
	tokens.Next()
	module, err := caddyfile.UnmarshalModule(tokens, id)
	if err != nil {
		return err
	}
	if _, ok := module.(certmagic.Issuer); !ok {
		return fmt.Errorf("the module %s is not a certificate issuer", id)
	}
	var warnings []caddyconfig.Warning
	raw := caddyconfig.JSONModuleObject(module, "module", l.args[0], &warnings)
	if len(warnings) > 0 {
		return fmt.Errorf("%s: %s", l.args[0], warnings[0].Message)
	}
	d.config.Issuers = append(d.config.Issuers, raw)
	return nil
}

func noIssuer(name string) error {
	var names []string
	for _, module := range caddy.GetModules(issuers) {
		names = append(names, module.ID.Name())
	}
	slices.Sort(names)
	return fmt.Errorf("this Caddy binary does not contain the issuer %q: use one of %s, or a Caddy binary with the "+
		"plugin of the issuer", name, strings.Join(names, ", "))
}
