package engine

import (
	"fmt"
	"net/netip"

	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/kinds"
	"github.com/k8singress/k8singress/internal/model/report"
	"github.com/k8singress/k8singress/internal/model/settings"
	"github.com/k8singress/k8singress/internal/model/snapshot"
	"github.com/k8singress/k8singress/internal/upstream/reach"
)

// sliceChecks caches the problems found in the EndpointSlices of a folder of manifests, until an EndpointSlice or the
// options change.
type sliceChecks struct {
	of       snapshot.Objects[*discoveryv1.EndpointSlice]
	verdicts []*report.Verdict
	known    bool
}

// check returns the problems of all EndpointSlices. It returns the cached result if neither an EndpointSlice nor the
// options have changed.
func (c *sliceChecks) check(s *snapshot.Snapshot, o settings.Config) []*report.Verdict {
	if of := snapshot.Of[*discoveryv1.EndpointSlice](s); !c.known || c.of != of {
		*c = sliceChecks{of: of, verdicts: checkSlices(s, o), known: true}
	}
	return c.verdicts
}

// checkSlices validates EndpointSlices from a folder of manifests as the API server validates them in a cluster:
// loopback and link-local addresses are not allowed. In addition, it reports addresses that reach_allow and reach_deny
// forbid.
func checkSlices(s *snapshot.Snapshot, o settings.Config) []*report.Verdict {
	policy := reach.NewPolicy(reaching(o))
	var all []*report.Verdict
	for slice := range snapshot.Of[*discoveryv1.EndpointSlice](s).All() {
		var problems []report.Problem
		for i := range slice.Endpoints {
			for j, text := range slice.Endpoints[i].Addresses {
				if p := checkAddress(policy, text); p != nil {
					p.Field = fmt.Sprintf("endpoints[%d].addresses[%d]", i, j)
					problems = append(problems, *p)
				}
			}
		}
		if len(problems) > 0 {
			object := ir.Ref{Kind: kinds.EndpointSlice, Namespace: slice.Namespace, Name: slice.Name}
			all = append(all, &report.Verdict{Object: object, Problems: problems})
		}
	}
	return all
}

// checkAddress returns a problem if connections to an address are not allowed, otherwise nil. It also returns nil if
// text is not an IP address, because such an endpoint is never used.
func checkAddress(policy *reach.Policy, text string) *report.Problem {
	a, err := netip.ParseAddr(text)
	if err != nil {
		return nil
	}
	reason := policy.Endpoint(a)
	if reason == "" {
		return nil
	}
	message := fmt.Sprintf(
		"the address %s is left out (%s): an API server would reject it; the option reach_allow allows it here",
		text, reason)
	if reason == reach.Denied {
		message = fmt.Sprintf("the address %s is left out: the option reach_deny contains it", text)
	}
	return &report.Problem{Severity: report.Error, Reason: report.AddressNotAllowed, Message: message}
}
