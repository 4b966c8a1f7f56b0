package caddyfile

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

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
	for block.NextBlock(0) {
		if err := setSelection(&chain, block.Val(), block.RemainingArgs()); err != nil {
			return fmt.Errorf("%s: %w", chain.Chain, err)
		}
	}
	d.config.DefaultChains = append(d.config.DefaultChains, chain)
	return nil
}

// setSelection sets one of the lists that select the Ingresses of a default chain. key is the name of the list in the
// Caddyfile.
func setSelection(chain *settings.DefaultChain, key string, args []string) error {
	list, valid := &chain.Namespaces, namespacePattern
	switch key {
	case "namespaces":
	case "classes":
		list, valid = &chain.Classes, subdomain
	case "except":
		list = &chain.Except
	default:
		return fmt.Errorf("there is no selection %q%s", key,
			suggest.Hint(key, []string{"namespaces", "classes", "except"}))
	}
	switch {
	case len(args) == 0:
		return fmt.Errorf("%s needs an argument: write at least one name, or remove the line", key)
	case *list != nil:
		return fmt.Errorf("%s is set twice: write all names into one line", key)
	}
	if err := many(func(*draft) *[]string { return list }, valid)(nil, &line{args: args}); err != nil {
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
