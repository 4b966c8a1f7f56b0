package annotations

import (
	"fmt"
	"slices"
	"strings"

	"github.com/k8singress/k8singress/internal/ir"
	"github.com/k8singress/k8singress/internal/nginx"
	"github.com/k8singress/k8singress/internal/suggest"
)

// mostChains bounds what an Ingress can put into the way of each of its requests.
const mostChains = 32

// chains are the plugin point: what the administrator has put into the Caddyfile, an Ingress asks for by name. A chain may keep
// requests out, so that one which is not there closes the Ingress.
var chains = Annotation{
	Name: "chains", Own: true,
	Doc: "The names of handler chains of the Caddyfile, which a request meets in this order before all else. A name that the " +
		"Caddyfile does not have closes the Ingress: all of its requests get 503.",
	Values: "names with commas between them", Example: "audit,waf", Default: "none", Scope: ScopeIngress, Risk: RiskMedium,
	parse: parseChains, closes: true,
	filters: func(s *Settings, _ string) []ir.Filter {
		var filters []ir.Filter
		for _, name := range s.Chains {
			filters = append(filters, ir.HandlerChain{Name: name})
		}
		return filters
	},
}

const chainClosed = "all requests for this Ingress get 503, because the chain may keep requests out"

func parseChains(s *Settings, value string) error {
	var names []string
	for name := range strings.SplitSeq(value, ",") {
		name = strings.TrimSpace(name)
		if name == "" {
			continue
		}
		if !slices.Contains(s.AvailableChains, name) {
			return noChain(name, s.AvailableChains)
		}
		names = append(names, name)
	}
	if len(names) > mostChains {
		return fmt.Errorf("there are %d names of chains, and %d are the most; %s", len(names), mostChains, chainClosed)
	}
	s.Chains = names
	return nil
}

func noChain(name string, available []string) error {
	hint := "none is configured; lint knows those of the Caddyfile that --config names"
	if near := suggest.Of(name, available); near != "" {
		hint = "did you mean " + near + "?"
	} else if len(available) > 0 {
		hint = "the Caddyfile has others"
	}
	return fmt.Errorf("there is no chain %s, and %s: %s", nginx.Quote(name), chainClosed, hint)
}
