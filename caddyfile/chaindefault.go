package caddyfile

import (
	"errors"
	"fmt"
	"maps"
	"slices"

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
	if err := parseBlock(l, &chain, selections, "write all names into one line"); err != nil {
		return fmt.Errorf("%s: %w", chain.Chain, err)
	}
	d.config.DefaultChains = append(d.config.DefaultChains, chain)
	return nil
}

// selections are the lines in the block of chain_default, which select the Ingresses of the chain.
var selections = map[string]func(*settings.DefaultChain, []string) error{
	"namespaces": names(func(c *settings.DefaultChain) *[]string { return &c.Namespaces }, namespacePattern),
	"classes":    names(func(c *settings.DefaultChain) *[]string { return &c.Classes }, subdomain),
	"except":     names(func(c *settings.DefaultChain) *[]string { return &c.Except }, namespacePattern),
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
