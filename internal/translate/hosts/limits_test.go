package hosts_test

import (
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/translate/hosts"
)

// TestLimitsOfHosts checks where the limits of a host stand in the filters of a path, and which of them a path with
// limits of its own inherits.
func TestLimitsOfHosts(t *testing.T) {
	requests := func(zone string) []ir.RequestLimit {
		return []ir.RequestLimit{{Zone: ir.RequestZone{Zone: ir.Zone{Name: zone}}}}
	}
	connections := []ir.ConnectionLimit{{Zone: ir.Zone{Name: "c"}, Max: 1}}
	closed, last := ir.Maintenance{}, ir.URLRewrite{Target: "/x"}
	ofHost := ir.ZoneLimits{Requests: requests("host"), Connections: connections, Status: 429}
	rps, connection := ir.RateLimit{Zone: "a/web", RequestsPerSecond: 1}, ir.RateLimit{Zone: "a/web", Connections: 1}
	for name, c := range map[string]struct{ own, want []ir.Filter }{
		"no limits": {nil, []ir.Filter{ofHost}},
		"limit-rps": {[]ir.Filter{rps}, []ir.Filter{rps, ir.ZoneLimits{Connections: connections, Status: 429}}},
		"limit-connections": {
			[]ir.Filter{connection}, []ir.Filter{connection, ir.ZoneLimits{Requests: requests("host"), Status: 429}},
		},
		"limit_req": {
			[]ir.Filter{ir.ZoneLimits{Requests: requests("path")}},
			[]ir.Filter{ir.ZoneLimits{Requests: requests("path"), Connections: connections, Status: 429}},
		},
		"limit-rps and a status": {
			[]ir.Filter{rps, ir.ZoneLimits{Status: 420}},
			[]ir.Filter{rps, ir.ZoneLimits{Connections: connections, Status: 420}},
		},
	} {
		web := ingress("a/web", 1, rule("a.example", "/ web"), each(func(p *hosts.Path) {
			p.Filters, p.Early, p.BeforeLimits = append(append([]ir.Filter{closed}, c.own...), last), 1, 1
		}))
		web.Server = &hosts.Server{Limits: &ofHost, Filters: []ir.Filter{ir.Substitution{}}}
		got := merged("a.example", &hosts.HostContext{}, web).Host.Routes[0].Filters
		want := append(append([]ir.Filter{closed, ir.Substitution{}}, c.want...), last)
		if diff := gocmp.Diff(want, got); diff != "" {
			t.Errorf("%s: (-want +got):\n%s", name, diff)
		}
	}
}
