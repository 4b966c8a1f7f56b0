package annotations

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/nginx"
	"github.com/k8singress/k8singress/internal/model/suggest"
)

// maxChains is the maximum number of chains that one Ingress or Service may select.
const maxChains = 32

// chainNames is the annotation with which an Ingress selects handler chains by their names. The administrator defines
// the chains in the Caddyfile. A chain may restrict access, so all requests for the Ingress get 503 if a name is
// unknown.
var chainNames = Annotation{
	Name: OwnPrefix + "chains",
	Doc: "The names of handler chains, which the option [`chain`](caddyfile.md#chain) defines in the Caddyfile. A " +
		"request passes through the chains in the order of this list; [Order](annotations.md#order) shows when. If " +
		"the Caddyfile does not define one of the chains, all requests for the Ingress get 503.",
	Values: "comma-separated names", Example: "audit,waf", Default: "none", Scope: ScopeIngress,
	Risk:  RiskMedium,
	Parse: parseChains, OnError: (*Settings).close,
	Meanwhile: ingressClosed + ", because a chain may reject requests",
}

// chains returns the filters that run the chains of the annotation, except the chains that are default chains: they
// have already run.
func (s *Settings) chains(string) []ir.Filter {
	var filters []ir.Filter
	for _, name := range s.Chains {
		if !slices.Contains(s.DefaultChains, name) {
			filters = append(filters, ir.HandlerChain{Name: name})
		}
	}
	return filters
}

func (s *Settings) defaultChains(string) []ir.Filter { return s.DefaultChainFilters() }

// DefaultChainFilters returns the filter that runs the default chains, or nil if there are no default chains.
func (s *Settings) DefaultChainFilters() []ir.Filter {
	if len(s.DefaultChains) == 0 {
		return nil
	}
	return []ir.Filter{ir.DefaultChains{Names: s.DefaultChains}}
}

func parseChains(s *Settings, value string) error {
	names, err := ReadChains(value)
	if err == nil {
		err = CheckChains("chain", names, s.AvailableChains)
	}
	if err == nil {
		s.Chains = names
	}
	return err
}

// ReadChains parses a comma-separated list of the names of chains.
func ReadChains(value string) (names []string, err error) {
	for name := range strings.SplitSeq(value, ",") {
		if name = strings.TrimSpace(name); name != "" {
			names = append(names, name)
		}
	}
	if len(names) > maxChains {
		return nil, fmt.Errorf("the list has %d names, and the maximum is %d", len(names), maxChains)
	}
	return names, nil
}

// CheckChains returns an error if one of the names is not in the list of available chains. option is the name of the
// option that defines such chains.
func CheckChains(option string, names, available []string) error {
	for _, name := range names {
		if !slices.Contains(available, name) {
			return noChain(option, name, available)
		}
	}
	return nil
}

// MissingChain returns how the message about a chain that does not exist begins. option is the name of the option that
// would define it.
func MissingChain(option string) string { return "there is no " + option + " " }

func noChain(option, name string, available []string) error {
	hint := ": the administrator can define it with the option " + option + " in the Caddyfile"
	if near := suggest.Of(name, available); near != "" {
		hint = "; did you mean " + near + "?"
	} else if len(available) > 0 {
		hint = ": the configuration defines only other chains"
	}
	return errors.New(MissingChain(option) + nginx.Quote(name) + hint)
}
