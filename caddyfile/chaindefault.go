package caddyfile

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/k8singress/k8singress/internal/model/option"
	"github.com/k8singress/k8singress/internal/model/settings"
	"github.com/k8singress/k8singress/internal/model/suggest"
)

// setDefaultChain parses the option chain_default:
//
//	chain_default <chain> {
//		namespaces <namespace>...
//		classes    <class>...
//		except     <namespace>...
//	}
//
// The block may be missing, and each of its lines, too.
func setDefaultChain(d *draft, l *line) error {
	chain := settings.DefaultChain{Chain: l.args[0]}
	if err := chainName(chain.Chain); err != nil {
		return err
	}
	same := func(other settings.DefaultChain) bool { return other.Chain == chain.Chain }
	if slices.ContainsFunc(d.config.DefaultChains, same) {
		return fmt.Errorf("%s is set twice: put the whole selection into one block", chain.Chain)
	}
	block := caddyfile.NewDispenser(l.tokens)
	block.Next()
	block.RemainingArgs()
	given := option.Given{}
	for block.NextBlock(0) {
		list, err := option.Select(given, selections, "the block", block.Val(), "write all names into one line")
		if err == nil {
			err = list.set(&chain, block.Val(), block.RemainingArgs())
		}
		if err != nil {
			return fmt.Errorf("%s: %w", chain.Chain, err)
		}
	}
	d.config.DefaultChains = append(d.config.DefaultChains, chain)
	return nil
}

// selection is a list of names that selects the Ingresses of a default chain.
type selection struct {
	of    func(*settings.DefaultChain) *[]string
	valid check
}

// selections maps the names in the block of chain_default to the lists.
var selections = map[string]selection{
	"namespaces": {func(c *settings.DefaultChain) *[]string { return &c.Namespaces }, namespacePattern},
	"classes":    {func(c *settings.DefaultChain) *[]string { return &c.Classes }, subdomain},
	"except":     {func(c *settings.DefaultChain) *[]string { return &c.Except }, namespacePattern},
}

// set sets the list of a default chain. key is the name of the list.
func (s selection) set(chain *settings.DefaultChain, key string, args []string) error {
	if len(args) == 0 {
		return fmt.Errorf("%s needs an argument: write at least one name, or remove the line", key)
	}
	if err := many(func(*draft) *[]string { return s.of(chain) }, s.valid)(nil, &line{args: args}); err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	return nil
}

// checkDefaultChains returns an error if a default chain does not exist.
func (b *draft) checkDefaultChains() error {
	chains := slices.Sorted(maps.Keys(b.config.Chains))
	for _, d := range b.config.DefaultChains {
		if _, ok := b.config.Chains[d.Chain]; ok {
			continue
		}
		hint := suggest.Hint(d.Chain, chains)
		if hint == "" {
			hint = ": define it with the option chain"
		}
		return errors.New("chain_default: there is no chain " + d.Chain + hint)
	}
	return nil
}
