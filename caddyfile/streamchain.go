package caddyfile

import (
	"encoding/json"
	"fmt"

	"github.com/k8singress/k8singress/l4app"
)

// setStreamChain parses the option stream_chain:
//
//	stream_chain <name> {
//		@<matcher> ...
//		route [@<matcher>] {
//			<handlers...>
//		}
//	}
func setStreamChain(d *draft, l *line) error {
	chain := l.args[0]
	if err := chainName(chain); err != nil {
		return err
	}
	if _, ok := d.config.StreamChains[chain]; ok {
		return fmt.Errorf(
			"%s is defined twice: put all of its routes into one block, or rename one of the two chains", chain)
	}
	routes, err := l4app.ParseStreamChain(l.tokens[1:])
	if err != nil {
		return fmt.Errorf("%s: %w", chain, err)
	}
	if d.config.StreamChains == nil {
		d.config.StreamChains = map[string]json.RawMessage{}
	}
	d.config.StreamChains[chain] = routes
	return nil
}
