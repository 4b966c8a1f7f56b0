package filter

import (
	"net/http"
	"net/netip"

	"github.com/k8singress/k8singress/internal/http/exchange"
	"github.com/k8singress/k8singress/internal/model/ir"
)

// accessRules accepts or rejects clients by the first rule that matches their address.
type accessRules struct {
	// runs holds the rules in their order. Successive rules with the same verdict are one run, so that long lists of
	// addresses are searched fast.
	runs []accessRun
}

// accessRun is a sequence of rules that all allow or all deny clients. If all is true, the run matches every client.
type accessRun struct {
	allow, all bool
	networks   *networks
}

func newAccessRules(of ir.AccessRules) (Filter, error) {
	h := &accessRules{}
	for rules := of.Rules; len(rules) > 0; {
		run := accessRun{allow: rules[0].Allow}
		var list []string
		for len(rules) > 0 && rules[0].Allow == run.allow {
			if rules[0].Network == ir.AllClients {
				run.all = true
			} else {
				list = append(list, rules[0].Network)
			}
			rules = rules[1:]
		}
		var err error
		if run.networks, err = newNetworks(list); err != nil {
			return nil, err
		}
		h.runs = append(h.runs, run)
	}
	return h, nil
}

// Apply rejects clients with status 403 if the first matching rule denies them. A client without an IP address, which
// is connected over a Unix socket, matches only rules for all clients.
func (h *accessRules) Apply(x *exchange.Exchange) (bool, error) {
	ip, err := netip.ParseAddr(x.Client().IP)
	for i := range h.runs {
		run := &h.runs[i]
		if run.all || err == nil && run.networks.has(ip) {
			if run.allow {
				return false, nil
			}
			return false, exchange.Fail(http.StatusForbidden, errSource)
		}
	}
	return false, nil
}
