package hosts_test

import (
	"testing"

	"github.com/k8singress/k8singress/internal/model/shrinking"
	"github.com/k8singress/k8singress/internal/translate/hosts"
	"github.com/k8singress/k8singress/internal/translate/ownership"
)

// rules returns the number of rules of each namespace, for hosts.HostContext.
func rules(all map[string]int) *shrinking.Map[string, int] {
	m := new(shrinking.Map[string, int])
	for namespace, n := range all {
		m.Set(namespace, n)
	}
	return m
}

// TestOwnership checks which Ingresses are served on a host with the options host_ownership and host_owner.
func TestOwnership(t *testing.T) {
	exclusive := ownership.Policy{Exclusive: true, Solvers: []string{"solvers"}}
	reserved := ownership.Policy{Reserved: map[string][]string{"s.example": {"b"}}}
	both := []*hosts.Contribution{
		ingress("a/old", 1, rule("s.example", "/ web")), ingress("b/young", 2, rule("s.example", "/app web")),
	}
	older := merged("*.example", &hosts.HostContext{}, ingress("w/wild", 1, rule("*.example", "/ web")))
	younger := merged("*.example", &hosts.HostContext{}, ingress("w/wild", 9, rule("*.example", "/ web")))
	own := ingress("w/own", 2, rule("s.example", "/ web"))
	mergeCases(t, "s.example", map[string]mergeCase{
		"shared": {
			of: both,
			serves: []string{
				"prefix /app -> b/web/80",
				"prefix / -> a/web/80",
			},
			problems: sharing("Ingress/b/young"),
		},
		"exclusive": {of: both, around: hosts.HostContext{Policy: exclusive},
			serves: []string{"prefix / -> a/web/80"},
			problems: []string{
				"error HostConflict Ingress/b/young spec.rules: the older Ingress/a/old in another namespace " +
					"owns the host s.example: this Ingress is not served on the host, because of the option " +
					"\"host_ownership namespace\". Use another host",
				"info HostConflict Ingress/a/old spec.rules: this namespace owns the host s.example, and " +
					"another namespace that names it is rejected: Ingress/b/young",
			},
		},
		"an expression that is refused": {
			around: hosts.HostContext{Policy: exclusive}, of: []*hosts.Contribution{
				ingress("a/old", 1, rule("s.example", "/longer web", "=/a web")),
				ingress("b/young", 2, rule("s.example", "~/(.*) web")),
			},
			serves:   []string{"exact /a -> a/web/80", "prefix /longer -> a/web/80"},
			problems: rejecting(),
		},
		"reserved": {of: both, around: hosts.HostContext{Policy: reserved},
			serves: []string{"prefix /app -> b/web/80"},
			problems: []string{
				"error HostConflict Ingress/a/old spec.rules: this Ingress is not served for the host " +
					"s.example, which the option host_owner reserves for the namespaces b. Use another host",
				"info HostConflict Ingress/b/young spec.rules: this namespace owns the host s.example, and " +
					"another namespace that names it is rejected: Ingress/a/old",
			},
		},
		"reserved for several": {
			of: both, around: hosts.HostContext{Policy: ownership.Policy{
				Reserved: map[string][]string{"s.example": {"a", "b"}},
			}},
			serves: []string{
				"prefix /app -> b/web/80",
				"prefix / -> a/web/80",
			},
			problems: []string{
				"info HostConflict Ingress/a/old spec.rules: this namespace owns the host s.example, and " +
					"another namespace defines paths of it, too: Ingress/b/young. To keep a host in one " +
					"namespace, use the option host_ownership or host_owner",
				"info HostConflict Ingress/b/young spec.rules: the older Ingress/a/old in another namespace " +
					"owns the host s.example: the paths of this Ingress are served on the host, but that " +
					"namespace decides about settings of the whole host",
			},
		},
		"reserved for no namespace that has a rule": {
			of: both, around: hosts.HostContext{Policy: ownership.Policy{
				Reserved: map[string][]string{"s.example": {"c"}},
			}},
			serves: []string{"not served"},
			problems: []string{
				"error HostConflict Ingress/a/old spec.rules: this Ingress is not served for the host " +
					"s.example, which the option host_owner reserves for the namespaces c. Use another host",
				"error HostConflict Ingress/b/young spec.rules: this Ingress is not served for the host " +
					"s.example, which the option host_owner reserves for the namespaces c. Use another host",
			},
		},
		"the challenge of a solver": {
			around: hosts.HostContext{Policy: exclusive}, of: []*hosts.Contribution{
				ingress("solvers/old", 1, rule("s.example", "=/.well-known/acme-challenge/token solver")),
				ingress("a/young", 2, rule("s.example", "/ web")),
				ingress("b/other", 3, rule("s.example", "=/.well-known/acme-challenge/other solver")),
			},
			serves: []string{
				"exact /.well-known/acme-challenge/token -> solvers/solver/80",
				"prefix / -> a/web/80",
			},
			problems: []string{
				"error HostConflict Ingress/b/other spec.rules: the older Ingress/a/young in another " +
					"namespace owns the host s.example: this Ingress is not served on the host, because of " +
					"the option \"host_ownership namespace\". Use another host",
				"info HostConflict Ingress/a/young spec.rules: this namespace owns the host s.example, and " +
					"another namespace that names it is rejected: Ingress/b/other",
			},
		},
		"only the challenge of a solver": {
			around: hosts.HostContext{Policy: exclusive}, of: []*hosts.Contribution{
				ingress("solvers/old", 1, rule("s.example", "=/.well-known/acme-challenge/token solver")),
			},
			serves: []string{"exact /.well-known/acme-challenge/token -> solvers/solver/80"},
		},
		"below a wildcard": {of: both[:1], around: hosts.HostContext{Above: older},
			serves: []string{"prefix / -> a/web/80"},
			problems: []string{
				"info HostConflict Ingress/a/old spec.rules: the namespace w owns the hosts *.example, but " +
					"requests for the host s.example are served by this namespace",
			},
		},
		"below a wildcard of the namespace": {of: []*hosts.Contribution{own}, around: hosts.HostContext{Above: older},
			serves: []string{"prefix / -> w/web/80"},
		},
		"below an older wildcard, exclusive": {
			of:     both[:1],
			around: hosts.HostContext{Above: older, Policy: exclusive},
			serves: []string{"not served"},
			problems: []string{
				"error HostConflict Ingress/a/old spec.rules: Ingress/w/wild (which is treated as older " +
					"because of its name: both were created in the same second) in another namespace owns " +
					"the host s.example: this Ingress is not served on the host, because of the option " +
					"\"host_ownership namespace\". Use another host",
			},
		},
		"below a younger wildcard, exclusive": {
			of:     both[:1],
			around: hosts.HostContext{Above: younger, Policy: exclusive},
			serves: []string{"prefix / -> a/web/80"},
		},
	})
	mergeCases(t, "*.example", map[string]mergeCase{
		"above hosts of others": {
			of:     []*hosts.Contribution{ingress("w/wild", 1, rule("*.example", "/ web"))},
			around: hosts.HostContext{Below: rules(map[string]int{"w": 2, "c": 1, "b": 3})},
			serves: []string{"prefix / -> w/web/80"},
			problems: []string{
				"info HostConflict Ingress/w/wild spec.rules: other namespaces own hosts below *.example, " +
					"and get the requests for these hosts: b, c. To keep all of them in one namespace, use " +
					"the option host_ownership or host_owner",
			},
		},
	})
	mergeCases(t, "", map[string]mergeCase{
		"every host": {
			of: []*hosts.Contribution{
				ingress("a/rule", 1, rule("", "/app web")), ingress("b/rule", 2, rule("", "/b web")),
				ingress("b/rest", 3, fallback("rest")),
			},
			serves: []string{
				"prefix /app -> a/web/80",
				"prefix /b -> b/web/80",
				"prefix / -> b/rest/80",
			},
			problems: []string{
				"info HostConflict Ingress/b/rule spec.rules: the older Ingress/a/rule in another namespace " +
					"owns every host: the paths of this Ingress are served on the host, but that namespace " +
					"decides about settings of the whole host",
				"warning HostConflict Ingress/a/rule spec.rules: this namespace owns every host, and another " +
					"namespace defines paths of it, too: Ingress/b/rule. To keep a host in one namespace, " +
					"use the option host_ownership or host_owner",
			},
		},
		"every host, exclusive": {
			around: hosts.HostContext{Policy: exclusive}, of: []*hosts.Contribution{
				ingress("a/rule", 1, rule("", "/app web")), ingress("b/rule", 2, rule("", "/b web")),
				ingress("b/rest", 3, fallback("rest")),
			},
			serves: []string{"prefix /app -> a/web/80"},
			problems: []string{
				"error HostConflict Ingress/b/rest spec.defaultBackend: the older Ingress/a/rule in another " +
					"namespace owns every host: this Ingress is not served on the host, because of the " +
					"option \"host_ownership namespace\". Use another host",
				"error HostConflict Ingress/b/rule spec.rules: the older Ingress/a/rule in another namespace " +
					"owns every host: this Ingress is not served on the host, because of the option " +
					"\"host_ownership namespace\". Use another host",
				"info HostConflict Ingress/a/rule spec.rules: this namespace owns every host, and another " +
					"namespace that names it is rejected: Ingress/b/rule",
			},
		},
	})
}

// TestOwners checks which namespace owns a host, and whether it configures HTTPS for the host.
func TestOwners(t *testing.T) {
	canary := ingress("a/canary", 1, rule("s.example", "/ web"))
	canary.Canary = percent(10)
	for name, c := range map[string]struct {
		of     []*hosts.Contribution
		policy ownership.Policy
		want   string
		secure bool
	}{
		"the oldest": {want: "b", of: []*hosts.Contribution{
			ingress("a/young", 2, rule("s.example", "/ web"), listed("s.example", "tls")),
			ingress("b/old", 1, rule("s.example", "/b web")),
		}},
		"the oldest, for other reasons": {want: "a", secure: true, of: []*hosts.Contribution{
			ingress("a/young", 2, rule("s.example", "/ web"), listed("s.example", "tls"), absent("s.example")),
			ingress("b/old", 1, rule("t.example", "/ web"), listed("s.example", "tls")),
		}},
		"a rule without paths":  {want: "b", of: []*hosts.Contribution{ingress("b/old", 1, rule("s.example"))}},
		"not a canary":          {want: "", of: []*hosts.Contribution{canary}},
		"not a default backend": {want: "", of: []*hosts.Contribution{ingress("a/rest", 1, fallback("rest"))}},
		"an entry for the wildcard": {want: "a", secure: true, of: []*hosts.Contribution{
			ingress("a/old", 1, rule("s.example", "/ web"), listed("*.example", "tls")),
		}},
		"an entry of an Ingress without a rule": {want: "a", of: []*hosts.Contribution{
			ingress("a/old", 1, rule("t.example", "/ web"), listed("s.example", "tls")),
			ingress("a/young", 2, rule("s.example", "/ web")),
		}},
		"an entry for another host": {want: "a", of: []*hosts.Contribution{
			ingress("a/old", 1, rule("s.example", "/ web"), listed("t.example", "tls")),
		}},
		"an entry for all hosts": {want: "a", secure: true, of: []*hosts.Contribution{
			ingress("a/old", 1, rule("s.example", "/ web"), func(c *hosts.Contribution) { c.AllTLS = true }),
		}},
		"an issuer": {want: "a", secure: true, of: []*hosts.Contribution{
			ingress("a/old", 1, rule("s.example", "/ web"), implied("")),
		}},
		"an issuer that refuses": {want: "a", of: []*hosts.Contribution{
			ingress("a/old", 1, rule("s.example", "/ web"), implied("no")),
		}},
		"not a solver": {want: "a", policy: ownership.Policy{Solvers: []string{"*"}}, of: []*hosts.Contribution{
			ingress("solvers/old", 1, rule("s.example", "=/.well-known/acme-challenge/token solver")),
			ingress("a/young", 2, rule("s.example", "/ web")),
		}},
	} {
		t.Run(name, func(t *testing.T) {
			m := merged("s.example", &hosts.HostContext{Policy: c.policy}, c.of...)
			if m.Owner.Namespace != c.want || m.Secure != c.secure {
				t.Errorf("the owner is %q, secure %t, want %q, %t", m.Owner.Namespace, m.Secure, c.want, c.secure)
			}
		})
	}
}
