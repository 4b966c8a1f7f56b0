package ir_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/k8singress/k8singress/internal/model/ir"
)

// TestGuards checks which requests each filter may keep from the backend.
func TestGuards(t *testing.T) {
	some := []string{"192.0.2.0/24"}
	allow, denyAll := ir.AccessRule{Allow: true, Network: some[0]}, ir.AccessRule{Network: ir.AllClients}
	rules := func(all ...ir.AccessRule) ir.Filter { return ir.AccessRules{Rules: all} }
	type list []ir.AccessRule
	limited := func(own, other list) ir.Filter {
		return ir.AccessRules{Rules: own, LimitExcept: &ir.LimitExcept{Rules: other}}
	}
	for _, c := range []struct {
		filter ir.Filter
		want   ir.Guard
	}{
		{ir.AnyOf{}, ir.SomeRequests}, {ir.AppRoot{}, ir.NoRequests}, {ir.Bandwidth{}, ir.NoRequests},
		{ir.BasicAuth{}, ir.SomeRequests}, {ir.CORS{}, ir.NoRequests}, {ir.Forbidden, ir.AllRequests},
		{ir.ExternalAuth{}, ir.SomeRequests}, {ir.HandlerChain{}, ir.SomeRequests},
		{ir.DefaultChains{}, ir.SomeRequests},
		{ir.HostRedirect{}, ir.SomeRequests}, {ir.HTTPSRedirect{}, ir.NoRequests}, {ir.Maintenance{}, ir.AllRequests},
		{ir.Maintenance{Allow: some}, ir.SomeClients}, {ir.Mirror{}, ir.NoRequests}, {ir.RateLimit{}, ir.SomeRequests},
		{ir.Redirect{}, ir.SomeRequests}, {ir.WithoutAuthorization{}, ir.NoRequests},
		{ir.ResponseHeaders{}, ir.NoRequests},
		{ir.RewriteRedirect{}, ir.SomeRequests}, {ir.SourceRanges{}, ir.SomeClients}, {ir.URLRewrite{}, ir.NoRequests},
		{ir.AccessRules{}, ir.NoRequests}, {rules(allow), ir.NoRequests}, {rules(allow, denyAll), ir.SomeClients},
		{rules(denyAll, allow), ir.AllRequests}, {ir.Substitution{}, ir.NoRequests},
		{limited(nil, nil), ir.NoRequests}, {limited(nil, list{denyAll}), ir.SomeRequests},
		{limited(list{denyAll}, list{allow}), ir.SomeRequests}, {limited(list{denyAll}, list{denyAll}), ir.AllRequests},
		{limited(list{denyAll}, list{allow, denyAll}), ir.SomeClients},
		{limited(list{allow, denyAll}, nil), ir.SomeClients}, {limited(nil, list{allow, denyAll}), ir.SomeClients},
		{ir.Internal{}, ir.AllRequests}, {ir.PathGroups{}, ir.NoRequests}, {ir.TryFiles{Target: "/a"}, ir.SomeRequests},
		{ir.TryFiles{Status: 404}, ir.AllRequests}, {ir.TryFiles{Status: 204}, ir.SomeRequests},
	} {
		if got := c.filter.Guards(); got != c.want {
			t.Errorf("%T guards: %d, want %d", c.filter, got, c.want)
		}
	}
}

// TestGuardsOfPrograms checks that a program is as strict as its steps.
func TestGuardsOfPrograms(t *testing.T) {
	set := ir.Step{Set: &ir.SetVariable{Name: "a", Value: "1"}}
	forbid, text := ir.Step{Return: &ir.Return{Status: 403}}, ir.Step{Return: &ir.Return{Status: 200, HasText: true}}
	leave := ir.Step{Break: true}
	when := func(variable string, steps ...ir.Step) ir.Step {
		return ir.Step{If: &ir.If{Condition: ir.Condition{Variable: variable}, Steps: steps}}
	}
	rewrite := func(flag ir.Flag) ir.Step { return ir.Step{Rewrite: &ir.Rewrite{Flag: flag}} }
	for name, c := range map[string]struct {
		steps []ir.Step
		want  ir.Guard
	}{
		"none":           {nil, ir.NoRequests},
		"only variables": {[]ir.Step{set, when("remote_addr", set)}, ir.NoRequests},
		"another path":   {[]ir.Step{rewrite(ir.BreakFlag)}, ir.NoRequests},
		"another URL": {[]ir.Step{
			{Rewrite: &ir.Rewrite{Target: "https://a.example/", Flag: ir.BreakFlag}},
		}, ir.SomeRequests},
		"another route":              {[]ir.Step{rewrite(ir.Last)}, ir.SomeRequests},
		"a text":                     {[]ir.Step{text}, ir.SomeRequests},
		"all":                        {[]ir.Step{set, forbid}, ir.AllRequests},
		"all that stay":              {[]ir.Step{when("http_a", leave), forbid}, ir.SomeRequests},
		"by a header":                {[]ir.Step{when("http_a", forbid)}, ir.SomeRequests},
		"by the address":             {[]ir.Step{when("remote_addr", forbid)}, ir.SomeClients},
		"all but an address":         {[]ir.Step{when("remote_addr", leave), forbid}, ir.SomeClients},
		"by the address in a step":   {[]ir.Step{when("http_a", when("remote_addr", forbid))}, ir.SomeClients},
		"by the address, indirectly": {[]ir.Step{when("remote_addr", set), when("a", forbid)}, ir.SomeClients},
	} {
		if got := (ir.Program{Steps: c.steps}).Guards(); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

// TestGuardsOfLimitedPrograms checks that a program is as strict as the stricter one of its steps and its limit.
func TestGuardsOfLimitedPrograms(t *testing.T) {
	some, all := ir.AccessRule{Network: "192.0.2.0/24"}, ir.AccessRule{Network: ir.AllClients}
	forbid := []ir.Step{{Return: &ir.Return{Status: 403}}}
	for name, c := range map[string]struct {
		rule  ir.AccessRule
		steps []ir.Step
		want  ir.Guard
	}{
		"other methods":               {all, nil, ir.SomeRequests},
		"some clients":                {some, nil, ir.SomeClients},
		"other methods and all":       {all, forbid, ir.AllRequests},
		"some clients and a redirect": {some, []ir.Step{{Return: &ir.Return{Status: 301}}}, ir.SomeClients},
	} {
		p := ir.Program{Steps: c.steps, LimitExcept: &ir.LimitExcept{Rules: []ir.AccessRule{c.rule}}}
		if got := p.Guards(); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

// TestGuardsOfSeveralFilters checks which guard of a list of filters is the strictest, and which lists reject every
// request before a client is asked for a password.
func TestGuardsOfSeveralFilters(t *testing.T) {
	list, password := ir.SourceRanges{}, ir.BasicAuth{}
	for name, c := range map[string]struct {
		filters   []ir.Filter
		strictest ir.Guard
		rejectAll bool
	}{
		"no filters":              {nil, ir.NoRequests, false},
		"no guards":               {[]ir.Filter{ir.CORS{}, ir.URLRewrite{}}, ir.NoRequests, false},
		"a password":              {[]ir.Filter{ir.CORS{}, password}, ir.SomeRequests, false},
		"a list and a password":   {[]ir.Filter{list, password}, ir.SomeClients, false},
		"a list or a password":    {[]ir.Filter{ir.AnyOf{Filters: []ir.Filter{list, password}}}, ir.SomeClients, false},
		"a rejection":             {[]ir.Filter{ir.CORS{}, ir.Unavailable}, ir.AllRequests, true},
		"a list, a rejection":     {[]ir.Filter{list, ir.Unavailable}, ir.AllRequests, true},
		"a password, a rejection": {[]ir.Filter{password, ir.Unavailable}, ir.AllRequests, false},
		"a rejection, a password": {[]ir.Filter{ir.Unavailable, password}, ir.AllRequests, true},
		"a rejection or a password": {[]ir.Filter{ir.AnyOf{Filters: []ir.Filter{ir.Unavailable, password}}},
			ir.AllRequests, false},
	} {
		if got := ir.Strictest(c.filters); got != c.strictest {
			t.Errorf("%s: the strictest guard is %d, want %d", name, got, c.strictest)
		}
		if got := ir.RejectAll(c.filters); got != c.rejectAll {
			t.Errorf("%s: all requests are rejected: %t", name, got)
		}
	}
}

// TestGuardsByRoute checks which filters may decide differently on two routes with equal filters.
func TestGuardsByRoute(t *testing.T) {
	auth := func(url string, headers ...ir.Header) ir.Filter {
		return ir.ExternalAuth{URL: url, SetHeaders: headers}
	}
	for name, c := range map[string]struct {
		filters []ir.Filter
		want    bool
	}{
		"none":           {nil, false},
		"another filter": {[]ir.Filter{ir.BasicAuth{Realm: "$namespace"}, auth("http://auth/$host")}, false},
		"the URL":        {[]ir.Filter{ir.Forbidden, auth("http://auth/$namespace")}, true},
		"in braces":      {[]ir.Filter{auth("http://auth/${location_path}x")}, true},
		"a longer name":  {[]ir.Filter{auth("http://auth/$namespaces")}, false},
		"a header":       {[]ir.Filter{auth("http://auth", ir.Header{Name: "A", Value: "$ingress_name"})}, true},
		"the name of a header": {
			[]ir.Filter{auth("http://auth", ir.Header{Name: "$service_name", Value: "a"})}, false,
		},
		"a program": {[]ir.Filter{ir.Program{Steps: []ir.Step{
			{If: &ir.If{Condition: ir.Condition{Variable: "location_path"},
				Steps: []ir.Step{{Return: &ir.Return{Status: 403}}}}},
		}}}, true},
		"a program before authentication": {[]ir.Filter{ir.ExternalAuth{URL: "http://auth", Program: &ir.Program{
			Directives: ir.Directives{EndpointHeaders: []ir.Header{{Name: "A", Value: "$namespace"}}},
		}}}, true},
		"a program about the request": {[]ir.Filter{ir.ExternalAuth{URL: "http://auth", Program: &ir.Program{
			Directives: ir.Directives{EndpointHeaders: []ir.Header{{Name: "A", Value: "$http_host"}}},
		}}}, false},
		"one of several": {[]ir.Filter{ir.AnyOf{Filters: []ir.Filter{ir.BasicAuth{}, auth("http://$service_port")}}},
			true},
	} {
		if got := ir.GuardsByRoute(c.filters); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func TestUsersOf(t *testing.T) {
	users := func(name string) ir.BasicAuth {
		return ir.BasicAuth{Users: ir.Users{Secret: ir.Name{Namespace: "a", Name: name}}}
	}
	filters := []ir.Filter{ir.Forbidden, users("one"), ir.AnyOf{Filters: []ir.Filter{ir.SourceRanges{}, users("two")}}}
	want := []ir.Users{users("one").Users, users("two").Users}
	if got := ir.UsersOf(filters); !slices.Equal(got, want) {
		t.Errorf("the users are %v", got)
	}
}

// TestSecrets checks that every Secret to which a configuration refers is yielded, and that the iteration can end
// after each of them.
func TestSecrets(t *testing.T) {
	want := []string{"a/default", "a/tls", "a/second", "a/listener", "a/ca", "a/endpoint", "a/users", "a/more",
		"a/check", "a/port", "a/stream"}
	config := configOfSecrets()
	var got []string
	for name := range config.Secrets() {
		got = append(got, name.String())
	}
	if !slices.Equal(got, want) {
		t.Errorf("the Secrets are %v, want %v", got, want)
	}
	for n := range want {
		var first []string
		for name := range config.Secrets() {
			if first = append(first, name.String()); len(first) == n+1 {
				break
			}
		}
		if !slices.Equal(first, want[:n+1]) {
			t.Errorf("the first Secrets are %v", first)
		}
	}
}

func configOfSecrets() *ir.Config {
	secret := func(name string) ir.Name { return ir.Name{Namespace: "a", Name: name} }
	backend := &ir.Backend{LoadBalancing: ir.LoadBalancing{
		HealthCheck: &ir.HealthCheck{Secured: ir.BackendTLS{Secret: secret("check")}},
	}}
	route := &ir.Route{Filters: []ir.Filter{ir.BasicAuth{Users: ir.Users{Secret: secret("users")}}}}
	route.Proxy.TLS = &ir.BackendTLS{Secret: secret("endpoint")}
	more := &ir.VirtualHost{ClientAuth: &ir.ClientAuth{Secret: secret("more")}}
	return &ir.Config{
		DefaultCertificate: &ir.Certificate{Secret: secret("default")},
		Certificates: []*ir.Certificate{
			{Automated: true}, {Secret: secret("tls"), SecondSecret: secret("second")},
		},
		ListenerGroup: ir.ListenerGroup{VirtualHosts: []*ir.VirtualHost{
			{ClientAuth: &ir.ClientAuth{Secret: secret("ca")}, Routes: []*ir.Route{route, {}}}, {},
		}},
		MoreGroups: []*ir.ListenerGroup{
			{
				Listeners:    []ir.Listener{{Certificates: []ir.Name{secret("listener")}}},
				VirtualHosts: []*ir.VirtualHost{more},
			},
		},
		Backends: []*ir.Backend{backend, {}},
		StreamRoutes: []*ir.StreamRoute{
			{TLS: &ir.StreamTLS{Secret: secret("port")}, BackendTLS: &ir.BackendTLS{Secret: secret("stream")}}, {},
		},
	}
}

func TestAllVirtualHosts(t *testing.T) {
	hosts := func(names ...string) (all []*ir.VirtualHost) {
		for _, name := range names {
			all = append(all, &ir.VirtualHost{Host: name})
		}
		return all
	}
	c := ir.Config{ListenerGroup: ir.ListenerGroup{VirtualHosts: hosts("a", "b")}, MoreGroups: []*ir.ListenerGroup{
		{VirtualHosts: hosts("c")}, {VirtualHosts: hosts("d", "e")},
	}}
	for _, last := range []string{"a", "b", "c", "d", "e", ""} {
		var got []string
		for h := range c.AllVirtualHosts() {
			if got = append(got, h.Host); h.Host == last {
				break
			}
		}
		want := []string{"a", "b", "c", "d", "e"}
		if i := slices.Index(want, last); i >= 0 {
			want = want[:i+1]
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("up to %q: %v", last, got)
		}
	}
}
