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
	rps.Status, connection.Status = 503, 503
	withStatus := func(of ir.RateLimit, status int) ir.RateLimit {
		of.Status = status
		return of
	}
	for name, c := range map[string]struct {
		of        *ir.ZoneLimits
		own, want []ir.Filter
	}{
		"no limits": {&ofHost, nil, []ir.Filter{ofHost}},
		"limit-rps": {
			&ofHost, []ir.Filter{rps},
			[]ir.Filter{withStatus(rps, 429), ir.ZoneLimits{Connections: connections, Status: 429}},
		},
		"limit-connections": {
			&ofHost, []ir.Filter{connection},
			[]ir.Filter{withStatus(connection, 429), ir.ZoneLimits{Requests: requests("host"), Status: 429}},
		},
		"limit_req": {
			&ofHost, []ir.Filter{ir.ZoneLimits{Requests: requests("path")}},
			[]ir.Filter{ir.ZoneLimits{Requests: requests("path"), Connections: connections, Status: 429}},
		},
		"limit-rps and a status": {
			&ofHost, []ir.Filter{rps, ir.ZoneLimits{Status: 420}},
			[]ir.Filter{withStatus(rps, 420), ir.ZoneLimits{Connections: connections, Status: 420}},
		},
		"only a status": {&ir.ZoneLimits{Status: 429}, []ir.Filter{rps}, []ir.Filter{withStatus(rps, 429)}},
		"a host without limits": {
			nil, []ir.Filter{withStatus(rps, 420), ir.ZoneLimits{Status: 420}}, []ir.Filter{withStatus(rps, 420)},
		},
	} {
		web := ingress("a/web", 1, rule("a.example", "/ web"), each(func(p *hosts.Path) {
			p.Filters, p.Early, p.BeforeLimits = append(append([]ir.Filter{closed}, c.own...), last), 1, 1
		}))
		want := []ir.Filter{closed}
		if c.of != nil {
			web.Server = &hosts.Server{Limits: c.of, Filters: []ir.Filter{ir.Substitution{}}}
			want = append(want, ir.Substitution{})
		}
		got := merged("a.example", &hosts.HostContext{}, web).Host.Routes[0].Filters
		if diff := gocmp.Diff(append(append(want, c.want...), last), got); diff != "" {
			t.Errorf("%s: (-want +got):\n%s", name, diff)
		}
	}
}
