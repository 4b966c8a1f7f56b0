package caddyfile

import (
	"encoding/json"

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
	return define(&d.config.StreamChains, l.args[0], "routes", func() (json.RawMessage, error) {
		return l4app.ParseStreamChain(l.tokens[1:])
	})
}
