package ir_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/k8singress/k8singress/internal/model/ir"
)

// TestGuards checks for each filter whether a change of it ends the open streams of a route.
func TestGuards(t *testing.T) {
	for _, c := range []struct {
		filter ir.Filter
		want   bool
	}{
		{ir.AnyOf{}, true}, {ir.AppRoot{}, false}, {ir.Bandwidth{}, false}, {ir.BasicAuth{}, true}, {ir.CORS{}, false},
		{ir.Forbidden, true}, {ir.ExternalAuth{}, true}, {ir.HandlerChain{}, true}, {ir.HostRedirect{}, true},
		{ir.HTTPSRedirect{}, false}, {ir.Maintenance{}, true}, {ir.Mirror{}, false}, {ir.RateLimit{}, true},
		{ir.Redirect{}, true}, {ir.RequestHeaders{}, false}, {ir.ResponseHeaders{}, false},
		{ir.RewriteRedirect{}, true}, {ir.SourceRanges{}, true}, {ir.URLRewrite{}, false},
		{ir.AccessRules{}, true},
	} {
		if got := c.filter.Guards(); got != c.want {
			t.Errorf("%T guards: %t", c.filter, got)
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
