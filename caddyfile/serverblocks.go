package caddyfile

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2/caddyconfig"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/k8singress/k8singress/internal/model/settings"
)

// listening holds the addresses of one of our servers, and the option that sets them.
type listening struct {
	option    string
	addresses []string
}

// listeningOf returns the addresses of our servers for HTTP and HTTPS, without servers that are turned off.
func listeningOf(c settings.Config) []listening {
	c = c.WithDefaults()
	return slices.DeleteFunc([]listening{{"http", c.HTTP}, {"https", c.HTTPS}}, func(l listening) bool {
		return len(l.addresses) == 0
	})
}

// contradictingServers returns a warning for each block of the global option servers whose options have no effect on
// one of our servers, because another block applies, and for each block whose options have an effect on more addresses
// than it names. It returns an error if two blocks for addresses of one server set an option to different values, or
// have the same address, as in Caddy.
func contradictingServers(c settings.Config, global []caddyfile.Segment) (all []caddyconfig.Warning, err error) {
	for _, of := range listeningOf(c) {
		applies := serversFor(of.addresses, global)
		if applies == nil {
			continue
		}
		// The option name needs a block with an address.
		if address := addressOf(applies); address != "" && len(of.addresses) > 1 && !hasOption(applies, "name") {
			all = append(all, serversWarning(applies, fmt.Sprintf(
				"the global option servers %s takes effect on all addresses of the option %s, because they are "+
					"addresses of one server: write servers without an address", address, of.option)))
		}
		for _, other := range global {
			address := addressOf(other)
			isOfServer := address == "" || slices.ContainsFunc(of.addresses, sameAs(address))
			if other.Directive() != "servers" || !isOfServer || &other[0] == &applies[0] {
				continue
			}
			if address != "" {
				if err := contradiction(other, applies, of.option); err != nil {
					return nil, err
				}
			}
			if lost := optionsWithout(other, applies); lost != "" {
				all = append(all, serversWarning(other, fmt.Sprintf(
					"%s of the global option servers has no effect on the servers of the option %s, because the block "+
						"of servers %s applies to them: repeat it there", lost, of.option, addressOf(applies))))
			}
		}
	}
	return all, nil
}

// contradiction returns an error if two blocks with addresses of the same server have the same address, or set an
// option to different values. option is the option with the addresses.
func contradiction(block, applies caddyfile.Segment, option string) error {
	one, other := addressOf(applies), addressOf(block)
	if sameAs(other)(one) {
		return fmt.Errorf("%s:%d: the global options servers %s and servers %s have the same address: "+
			"put their options into one block", block[0].File, block[0].Line, one, other)
	}
	for _, o := range optionsIn(block) {
		if row := findCaddyOption("servers " + o.Directive()); row == nil || row.Fate != works {
			continue
		}
		if hasOption(applies, o.Directive()) && !slices.ContainsFunc(optionsIn(applies), sameText(o)) {
			return fmt.Errorf("%s:%d: the global options servers %s and servers %s set %s to different values, but "+
				"the addresses of the option %s are addresses of one server: put their options into one block",
				block[0].File, block[0].Line, one, other, o.Directive(), option)
		}
	}
	return nil
}

// sameText returns a function that reports whether an option has the same words as a given one.
func sameText(one caddyfile.Segment) func(caddyfile.Segment) bool {
	return func(other caddyfile.Segment) bool {
		return slices.EqualFunc(one, other, func(a, b caddyfile.Token) bool { return a.Text == b.Text })
	}
}

// optionsWithout returns the names of the options in a block that another block does not set, separated by commas.
// Options without effect on our servers are not included.
func optionsWithout(block, other caddyfile.Segment) string {
	var names []string
	for _, option := range optionsIn(block) {
		name := option.Directive()
		if o := findCaddyOption("servers " + name); o != nil && o.Fate == works && !hasOption(other, name) {
			names = append(names, name)
		}
	}
	return strings.Join(names, ", ")
}

func hasOption(block caddyfile.Segment, name string) bool {
	return slices.ContainsFunc(optionsIn(block), func(o caddyfile.Segment) bool { return o.Directive() == name })
}

// withServerNames returns the options of the controller with the option name of the global option servers.
func withServerNames(c settings.Config, global []caddyfile.Segment) settings.Config {
	for _, of := range listeningOf(c) {
		for _, option := range optionsIn(serversFor(of.addresses, global)) {
			if option.Directive() == "name" && len(option) > 1 {
				c.ServerNames = maps.Clone(c.ServerNames)
				if c.ServerNames == nil {
					c.ServerNames = map[string]string{}
				}
				c.ServerNames[of.option] = option[1].Text
			}
		}
	}
	return c
}

// withLogCredentials returns the options of the controller with the option log_credentials of the global option
// servers. The servers share an access log, so credentials are only logged if the option is set for all of them.
func withLogCredentials(c settings.Config, global []caddyfile.Segment) (settings.Config, []caddyconfig.Warning) {
	var with, without caddyfile.Segment
	for _, of := range listeningOf(c) {
		if block := serversFor(of.addresses, global); block != nil && hasOption(block, "log_credentials") {
			with = block
		} else {
			without = caddyfile.Segment{{Text: of.option}}
		}
	}
	const noEffect = "log_credentials of the global option servers has no effect for hosts of Ingresses: "
	switch {
	case with == nil:
		return c, nil
	case without != nil:
		return c, []caddyconfig.Warning{serversWarning(with, noEffect+"set it for the servers of the option "+
			without.Directive()+", too, because all servers share one access log")}
	case c.AccessLog != settings.AccessLogCaddy:
		return c, []caddyconfig.Warning{serversWarning(with, noEffect+"set the option access_log caddy of k8singress, "+
			"or remove log_credentials")}
	}
	c.LogCredentials = true
	return c, nil
}
