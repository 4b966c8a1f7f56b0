package filter

import (
	"net/http"
	"net/netip"
	"slices"

	"github.com/k8singress/k8singress/internal/http/exchange"
	"github.com/k8singress/k8singress/internal/model/ir"
)

// accessRules accepts or rejects clients by the first rule that matches their address.
type accessRules struct {
	runs accessRuns
	// limit is nil if runs apply to all requests.
	limit *limitExcept
}

// limitExcept has the rules for requests with other methods than methods.
type limitExcept struct {
	methods []string
	runs    accessRuns
}

// accessRuns holds rules in their order. Successive rules with the same verdict are one run, so that long lists of
// addresses are searched fast.
type accessRuns []accessRun

// accessRun is a sequence of rules that all allow or all deny clients. If all is true, the run matches every client.
type accessRun struct {
	allow, all bool
	networks   *networks
}

func newAccessRules(of ir.AccessRules) (Filter, error) {
	runs, err := newAccessRuns(of.Rules)
	if err != nil {
		return nil, err
	}
	h := &accessRules{runs: runs}
	h.limit, err = newLimitExcept(of.LimitExcept)
	return h, err
}

// newLimitExcept returns nil if of is nil.
func newLimitExcept(of *ir.LimitExcept) (*limitExcept, error) {
	if of == nil {
		return nil, nil
	}
	runs, err := newAccessRuns(of.Rules)
	return &limitExcept{of.Methods, runs}, err
}

func newAccessRuns(rules []ir.AccessRule) (all accessRuns, err error) {
	for len(rules) > 0 {
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
		if run.networks, err = newNetworks(list); err != nil {
			return nil, err
		}
		all = append(all, run)
	}
	return all, nil
}

// Apply rejects clients with status 403 if the first matching rule denies them.
func (h *accessRules) Apply(x *exchange.Exchange) (bool, error) {
	if h.limit.appliesTo(x) {
		return false, h.limit.runs.check(x)
	}
	return false, h.runs.check(x)
}

// appliesTo reports whether the method of a request is not one of the methods. l may be nil.
func (l *limitExcept) appliesTo(x *exchange.Exchange) bool {
	return l != nil && !slices.Contains(l.methods, x.Method)
}

// check returns an error with status 403 if the first matching rule denies the client. A client without an IP address,
// which is connected over a Unix socket, matches only rules for all clients.
func (r accessRuns) check(x *exchange.Exchange) error {
	ip, err := netip.ParseAddr(x.Client().IP)
	for i := range r {
		run := &r[i]
		if run.all || err == nil && run.networks.has(ip) {
			if run.allow {
				return nil
			}
			return exchange.Fail(http.StatusForbidden, errSource)
		}
	}
	return nil
}
