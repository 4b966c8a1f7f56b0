package hosts_test

import (
	"fmt"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/k8singress/k8singress/internal/translate/hosts"
	"github.com/k8singress/k8singress/internal/translate/ownership"
)

// www asks for the redirect between the host with the prefix "www." and the host without it.
func www(c *hosts.Contribution) { c.WWW = 308 }

// TestNames checks which aliases a host asks for.
func TestNames(t *testing.T) {
	mergeCases(t, "s.example", map[string]mergeCase{
		"the oldest": {
			of: []*hosts.Contribution{
				ingress("a/none", 1, rule("s.example", "/ web"), www),
				ingress("a/old", 2, rule("s.example", "/app web"),
					aliased("b.example", "s.example", "*.w.example", "~x+")),
				ingress("a/same", 3, rule("s.example", "/same web"), www,
					aliased("b.example", "s.example", "*.w.example", "~x+")),
				ingress("a/young", 4, rule("s.example", "/next web"), aliased("c.example")),
			},
			serves: []string{
				"prefix /next -> a/web/80",
				"prefix /same -> a/web/80",
				"prefix /app -> a/web/80",
				"prefix / -> a/web/80",
				"name b.example of s.example, status 0, by old",
				"name **.w.example of s.example, status 0, by old",
				"name ~x+ of s.example, status 0, by old",
				"name www.s.example of s.example, status 308, by none",
			},
			problems: []string{
				"warning HostConflict Ingress/a/young " +
					"metadata.annotations[nginx.ingress.kubernetes.io/server-alias]: the setting has no " +
					"effect on the host s.example: the older Ingress/a/old has different aliases, which are " +
					"used instead",
			},
		},
		"of another namespace": {
			of: []*hosts.Contribution{
				ingress("a/old", 1, rule("s.example", "/ web")),
				ingress("b/young", 2, rule("s.example", "/app web"), aliased("b.example"), www),
			},
			serves: []string{
				"prefix /app -> b/web/80",
				"prefix / -> a/web/80",
			},
			problems: append(sharing("Ingress/b/young"),
				"warning HostConflict Ingress/b/young "+
					"metadata.annotations[nginx.ingress.kubernetes.io/from-to-www-redirect]: the setting has "+
					"no effect on the host s.example: the older Ingress/a/old in another namespace owns this "+
					"host",
				"warning HostConflict Ingress/b/young "+
					"metadata.annotations[nginx.ingress.kubernetes.io/server-alias]: the setting has no "+
					"effect on the host s.example: the older Ingress/a/old in another namespace owns this "+
					"host",
			),
		},
		"of another namespace that is not served": {
			around: hosts.HostContext{Policy: ownership.Policy{Exclusive: true}},
			of: []*hosts.Contribution{
				ingress("a/old", 1, rule("s.example", "/ web")),
				ingress("b/young", 2, rule("s.example", "/app web"), aliased("b.example"), www),
			},
			serves: []string{"prefix / -> a/web/80"}, problems: rejecting(),
		},
	})
	mergeCases(t, "www.s.example", map[string]mergeCase{
		"with www": {of: []*hosts.Contribution{ingress("a/old", 1, rule("www.s.example", "/ web"), www)},
			serves: []string{
				"prefix / -> a/web/80",
				"name s.example of www.s.example, status 308, by old",
			},
		},
	})
	mergeCases(t, "*.example", map[string]mergeCase{
		"a wildcard": {
			of: []*hosts.Contribution{
				ingress("a/old", 1, rule("*.example", "/ web"), aliased("s.test"), www),
			},
			serves: []string{
				"prefix / -> a/web/80",
				"name s.test of *.example, status 0, by old",
			},
			problems: []string{
				"warning HostConflict Ingress/a/old " +
					"metadata.annotations[nginx.ingress.kubernetes.io/from-to-www-redirect]: the setting has " +
					"no effect on the host *.example: only a complete host name can have such a redirect",
			},
		},
	})
	mergeCases(t, "", map[string]mergeCase{
		"every host": {of: []*hosts.Contribution{ingress("a/old", 1, rule("", "/ web"), aliased("s.test"), www)},
			serves: []string{"prefix / -> a/web/80"},
			problems: []string{
				"warning HostConflict Ingress/a/old " +
					"metadata.annotations[nginx.ingress.kubernetes.io/from-to-www-redirect]: the setting has " +
					"no effect on every host: only a complete host name can have such a redirect",
				"warning HostConflict Ingress/a/old " +
					"metadata.annotations[nginx.ingress.kubernetes.io/server-alias]: the setting has no " +
					"effect on the rule without a host, which matches every name anyway",
			},
		},
	})
}

// TestResolve checks which of the hosts that ask for an alias gets it, and what the others are told.
func TestResolve(t *testing.T) {
	asks := func(name string, second int64, host string, settings ...setting) *hosts.Contribution {
		return ingress(name, second, append([]setting{rule(host, "/ web")}, settings...)...)
	}
	for name, c := range map[string]struct {
		// name is the alias, and of are all Ingresses. Each of them has one host.
		name             string
		of               []*hosts.Contribution
		naming           hosts.Naming
		serves, problems []string
	}{
		"one": {
			name: "x.test", of: []*hosts.Contribution{
				asks("a/one", 1, "one.example", aliased("x.test"), listed("one.example", "tls")),
			},
			serves: []string{
				"namespace a",
				"x.test is one.example",
				"certificate a/tls for x.test",
			},
		},
		"with a certificate of an issuer": {
			name: "x.test", of: []*hosts.Contribution{
				asks("a/one", 1, "one.example", aliased("x.test"), listed("one.example", "")),
			},
			serves: []string{
				"namespace a",
				"x.test is one.example",
			},
		},
		"two, the older is in another namespace": {
			name: "x.test", of: []*hosts.Contribution{
				asks("b/old", 1, "two.example", aliased("x.test")),
				asks("a/young", 2, "one.example", aliased("x.test")),
			},
			serves: []string{
				"namespace b",
				"x.test is two.example",
			},
			problems: []string{
				"warning HostConflict Ingress/a/young " +
					"metadata.annotations[nginx.ingress.kubernetes.io/server-alias]: x.test is already a " +
					"name of the host two.example, because of Ingress/b/old, so it does not become a name of " +
					"the host one.example",
			},
		},
		"a redirect before an alias of the same Ingress": {
			name: "www.one.example", of: []*hosts.Contribution{
				asks("a/one", 1, "one.example", aliased("www.one.example"), www, ciphers("ONE")),
			},
			serves: []string{
				"namespace a",
				"www.one.example: prefix / -> 308 to one.example, a/web/80",
				"ciphers ONE of Ingress/a/one",
			},
			problems: []string{
				"warning HostConflict Ingress/a/one " +
					"metadata.annotations[nginx.ingress.kubernetes.io/server-alias]: www.one.example is " +
					"already a name of the host one.example, because of Ingress/a/one, so it does not become " +
					"a name of the host one.example",
			},
		},
		"a redirect to a host without paths": {
			name: "www.one.example", of: []*hosts.Contribution{
				ingress("a/one", 1, rule("one.example"), www),
			},
		},
		"an alias after a redirect to a host without paths": {
			name: "www.one.example", of: []*hosts.Contribution{
				ingress("a/one", 1, rule("one.example"), www),
				asks("b/two", 2, "two.example", aliased("www.one.example")),
			},
			serves: []string{
				"namespace b",
				"www.one.example is two.example",
			},
		},
		"the host of a younger rule": {
			name: "x.test", of: []*hosts.Contribution{
				asks("a/one", 1, "one.example", aliased("x.test")), asks("b/rule", 2, "x.test"),
			},
			problems: []string{
				"warning HostConflict Ingress/a/one " +
					"metadata.annotations[nginx.ingress.kubernetes.io/server-alias]: the setting has no " +
					"effect on the host x.test, because a rule of Ingress/b/rule names this host",
			},
		},
		"a wildcard": {
			name: "**.wild.example", of: []*hosts.Contribution{
				asks("a/one", 1, "one.example", aliased("*.wild.example"), listed("one.example", "tls")),
			},
			serves: []string{
				"namespace a",
				"**.wild.example is one.example",
				"certificate a/tls for *.wild.example",
			},
		},
		"a wildcard that a rule names": {
			name: "**.wild.example", of: []*hosts.Contribution{
				asks("a/one", 1, "one.example", aliased("*.wild.example")), asks("a/rule", 2, "*.wild.example"),
			},
			problems: []string{
				"warning HostConflict Ingress/a/one " +
					"metadata.annotations[nginx.ingress.kubernetes.io/server-alias]: the setting has no " +
					"effect on the host *.wild.example, because a rule of Ingress/a/rule names this host",
			},
		},
		"below a wildcard of the namespace": {
			name: "x.wild.example", of: []*hosts.Contribution{
				asks("a/one", 1, "one.example", aliased("x.wild.example")), asks("a/wild", 2, "*.wild.example"),
			},
			serves: []string{
				"namespace a",
				"x.wild.example is one.example",
			},
		},
		"below a wildcard of another namespace": {
			name: "x.wild.example", of: []*hosts.Contribution{
				asks("a/one", 1, "one.example", aliased("x.wild.example")), asks("b/wild", 2, "*.wild.example"),
			},
			problems: []string{
				"error HostConflict Ingress/a/one " +
					"metadata.annotations[nginx.ingress.kubernetes.io/server-alias]: x.wild.example is not " +
					"served, because Ingress/b/wild in another namespace owns the host *.wild.example: use " +
					"another name, or add a rule for it",
			},
		},
		"an expression": {
			name: "~x+", of: []*hosts.Contribution{
				asks("a/one", 1, "one.example", aliased("~x+"), listed("one.example", "tls")), asks("a/rest", 2, ""),
			},
			serves: []string{
				"namespace a",
				"~x+ is one.example",
				"by Ingress/a/one since 1",
			},
		},
		"an expression beside a rule for every host": {
			name: "~x+", of: []*hosts.Contribution{
				asks("a/one", 1, "one.example", aliased("~x+")), asks("b/rest", 2, ""),
			},
			problems: []string{
				"error HostConflict Ingress/a/one " +
					"metadata.annotations[nginx.ingress.kubernetes.io/server-alias]: ~x+ is not served, " +
					"because Ingress/b/rest in another namespace owns every host: use another name, or add a " +
					"rule for it",
			},
		},
		"reserved": {name: "x.test", of: []*hosts.Contribution{asks("a/one", 1, "one.example", aliased("x.test"))},
			naming: hosts.Naming{Policy: ownership.Policy{Reserved: map[string][]string{"*.test": {"b"}}}},
			problems: []string{
				"error HostConflict Ingress/a/one " +
					"metadata.annotations[nginx.ingress.kubernetes.io/server-alias]: x.test is not served, " +
					"because the option host_owner reserves x.test for other namespaces: use another name",
			},
		},
		"a name above a reserved host": {
			name: "x.test", of: []*hosts.Contribution{asks("a/one", 1, "one.example", aliased("x.test"))},
			naming: hosts.Naming{Policy: ownership.Policy{Reserved: map[string][]string{"y.x.test": {"b"}}}},
			serves: []string{"namespace a", "x.test is one.example"},
		},
		"a wildcard above reserved hosts": {
			name: "**.test", of: []*hosts.Contribution{
				asks("a/one", 1, "one.example", aliased("*.test")),
			}, naming: hosts.Naming{Policy: ownership.Policy{Reserved: map[string][]string{
				"x.test": {"b"}, "*.y.test": {"b"}, "mine.test": {"a"}, "z.example": {"b"},
			}}},
			problems: []string{
				"error HostConflict Ingress/a/one " +
					"metadata.annotations[nginx.ingress.kubernetes.io/server-alias]: *.test is not served, " +
					"because the option host_owner reserves *.y.test, x.test for other namespaces: use " +
					"another name",
			},
		},
		"an expression with reserved hosts": {
			name: "~x+", of: []*hosts.Contribution{
				asks("a/one", 1, "one.example", aliased("~x+")),
			}, naming: hosts.Naming{Policy: ownership.Policy{Reserved: map[string][]string{
				"x.test": {"b"}, "mine.test": {"a"},
			}}},
			problems: []string{
				"error HostConflict Ingress/a/one " +
					"metadata.annotations[nginx.ingress.kubernetes.io/server-alias]: ~x+ is not served, " +
					"because the option host_owner reserves x.test for other namespaces: use another name",
			},
		},
		"an expression, disable_catch_all": {
			name: "~x+", of: []*hosts.Contribution{
				asks("a/one", 1, "one.example", aliased("~x+")),
			}, naming: hosts.Naming{NoCatchAll: true},
			problems: []string{
				"error CatchAllRefused Ingress/a/one " +
					"metadata.annotations[nginx.ingress.kubernetes.io/server-alias]: ~x+ is not served, " +
					"because it could match hosts of any owner, which the option disable_catch_all forbids: " +
					"list the names, or use a wildcard below your own domain",
			},
		},
		"a public suffix, exclusive": {
			name: "**.co.uk", of: []*hosts.Contribution{
				asks("a/one", 1, "one.example", aliased("*.co.uk")),
			}, naming: hosts.Naming{Policy: ownership.Policy{Exclusive: true}},
			problems: []string{
				"error CatchAllRefused Ingress/a/one " +
					"metadata.annotations[nginx.ingress.kubernetes.io/server-alias]: *.co.uk is not served, " +
					"because it could match hosts of any owner, which the option host_ownership namespace " +
					"forbids: list the names, or use a wildcard below your own domain",
			},
		},
		"below a public suffix, exclusive": {
			name: "**.shop.co.uk", of: []*hosts.Contribution{
				asks("a/one", 1, "one.example", aliased("*.shop.co.uk")),
			}, naming: hosts.Naming{Policy: ownership.Policy{Exclusive: true}},
			serves: []string{
				"namespace a",
				"**.shop.co.uk is one.example",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			all, wants := map[string]*hosts.Merged{}, []hosts.Name(nil)
			for _, o := range c.of {
				for host := range o.Paths {
					all[host] = merged(host, &hosts.HostContext{}, o)
					for _, n := range all[host].Names {
						if n.Name == c.name {
							wants = append(wants, n)
						}
					}
				}
			}
			c.naming.Merged = func(host string) *hosts.Merged { return all[host] }
			got := c.naming.Resolve(c.name, wants)
			if diff := gocmp.Diff(c.serves, given(got)); diff != "" {
				t.Errorf("is served (-want +got):\n%s", diff)
			}
			if diff := gocmp.Diff(c.problems, problemsOf(got.Problems)); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
		})
	}
}

// given describes what becomes of an alias.
func given(n *hosts.Named) (lines []string) {
	if n.Namespace != "" {
		lines = append(lines, "namespace "+n.Namespace)
	}
	if n.Host != nil {
		if n.Host.AliasOf != "" {
			lines = append(lines, n.Host.Host+" is "+n.Host.AliasOf)
		}
		if n.Host.AliasSince != 0 {
			lines = append(lines, fmt.Sprintf("by %s since %d", n.Host.AliasBy, n.Host.AliasSince))
		}
		for _, r := range n.Host.Routes {
			lines = append(lines,
				fmt.Sprintf("%s: %s %s -> %s", n.Host.Host, r.Match.Type, r.Match.Path, destination(r)))
		}
		lines = append(lines, ofHost(n.Host)...)
	}
	if n.Certificate != nil {
		lines = append(lines, "certificate "+certificate(n.Certificate, false))
	}
	return lines
}

func TestWildcardOf(t *testing.T) {
	for host, want := range map[string]string{
		"www.example.com": "*.example.com", "example.com": "*.com", "com": "", "": "", ".com": "", "*.example.com": "",
	} {
		if got := hosts.WildcardOf(host); got != want {
			t.Errorf("%q is below %q, want %q", host, got, want)
		}
	}
}

func TestCertificateHost(t *testing.T) {
	for name, want := range map[string]string{
		"x.example": "x.example", "*.example": "*.example", "**.example": "*.example", "~x+": "~x+", "": "",
	} {
		if got := hosts.CertificateHost(name); got != want {
			t.Errorf("the certificate of %q is for %q, want %q", name, got, want)
		}
	}
}

func TestOrEvery(t *testing.T) {
	for host, want := range map[string]string{"s.example": "the host s.example", "": "every host"} {
		if got := hosts.OrEvery(host); got != want {
			t.Errorf("%q is %q, want %q", host, got, want)
		}
	}
}
