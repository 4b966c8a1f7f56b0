package hosts_test

import (
	"testing"

	"github.com/k8singress/k8singress/internal/translate/hosts"
	"github.com/k8singress/k8singress/internal/translate/ownership"
)

// TestCertificates checks which entry of spec.tls provides the certificate of a host.
func TestCertificates(t *testing.T) {
	web := rule("s.example", "/ web")
	elsewhere := rule("t.example", "/ web")
	rest := ingress("a/rest", 3, rule("", "/ web"), listed("s.example", "tls"))
	wild := merged("*.example", &hosts.HostContext{Below: rules(map[string]int{"a": 1, "b": 1})},
		ingress("w/wild", 1, rule("*.example", "/ web"), listed("*.example", "tls")),
		ingress("a/below", 2, rule("s.example", "/ web"), listed("*.example", "own")))
	mergeCases(t, "s.example", map[string]mergeCase{
		"two objects": {
			of: []*hosts.Contribution{
				ingress("a/old", 1, web, listed("s.example", "tls")),
				ingress("a/same", 2, rule("s.example", "/same web"), listed("s.example", "tls")),
				ingress("a/young", 3, rule("s.example", "/app web"), listed("s.example", "other")),
				ingress("a/issuer", 4, rule("s.example", "/issuer web"), listed("s.example", "")),
			},
			serves: []string{
				"prefix /issuer -> a/web/80",
				"prefix /same -> a/web/80",
				"prefix /app -> a/web/80",
				"prefix / -> a/web/80",
				"certificate a/tls for s.example",
			},
			problems: []string{
				"warning HostConflict Ingress/a/young spec.tls: the older Ingress/a/old configures another " +
					"certificate for s.example, which is used",
			},
		},
		"an issuer first": {
			of: []*hosts.Contribution{
				ingress("a/old", 1, web, listed("s.example", "")),
				ingress("a/young", 2, rule("s.example", "/app web"), listed("s.example", "tls")),
			},
			serves: []string{
				"prefix /app -> a/web/80",
				"prefix / -> a/web/80",
				"certificate from an issuer, for s.example",
			},
			problems: []string{
				"warning HostConflict Ingress/a/young spec.tls: the older Ingress/a/old configures the " +
					"certificate of an issuer for s.example, which is used",
			},
		},
		"the Secret does not exist": {
			of: []*hosts.Contribution{
				ingress("a/old", 1, web, listed("s.example", "gone"), absent("s.example")),
				ingress("a/young", 2, rule("s.example", "/app web"), listed("s.example", "tls")),
			},
			serves: []string{
				"prefix /app -> a/web/80",
				"prefix / -> a/web/80",
				"certificate a/gone is missing",
			},
			problems: []string{
				"warning HostConflict Ingress/a/young spec.tls: the older Ingress/a/old configures another " +
					"certificate for s.example, which is used",
			},
		},
		"of another namespace": {
			of: []*hosts.Contribution{
				ingress("a/old", 1, web),
				ingress("b/young", 2, rule("s.example", "/b web"), listed("s.example", "tls")),
				ingress("b/issuer", 3, elsewhere, listed("s.example", "")),
			},
			serves: []string{
				"prefix /b -> b/web/80",
				"prefix / -> a/web/80",
			},
			problems: append(sharing("Ingress/b/young"),
				"warning HostConflict Ingress/b/issuer spec.tls: the older Ingress/a/old in another "+
					"namespace owns the host s.example: the certificate of the owner is used, and this entry "+
					"has no effect for the host",
				"warning HostConflict Ingress/b/young spec.tls: the older Ingress/a/old in another namespace "+
					"owns the host s.example: the certificate of the owner is used, and this entry has no "+
					"effect for the host",
			),
		},
		"of another namespace, beside a certificate": {
			of: []*hosts.Contribution{
				ingress("a/old", 2, web, listed("s.example", "tls")),
				ingress("b/older", 1, elsewhere, listed("s.example", "tls")),
				ingress("b/issuer", 3, elsewhere, listed("s.example", "")),
			},
			serves: []string{
				"prefix / -> a/web/80",
				"certificate a/tls for s.example",
			},
			problems: []string{
				"warning HostConflict Ingress/b/older spec.tls: Ingress/a/old in another namespace owns the " +
					"host s.example: the certificate of the owner is used, and this entry has no effect for " +
					"the host",
			},
		},
		"without a rule": {
			of: []*hosts.Contribution{
				ingress("a/old", 1, elsewhere, listed("s.example", "tls")),
				ingress("a/issuer", 2, elsewhere, listed("s.example", "")),
			},
			serves: []string{"not served"},
			problems: []string{
				"warning InvalidHost Ingress/a/issuer spec.tls: no certificate is requested for the host " +
					"s.example, because no rule names it: add a rule, or remove the host from tls",
				"warning InvalidHost Ingress/a/old spec.tls: the certificate of the Secret a/tls is not used " +
					"for the host s.example, because no rule of the namespace a names this host: add a rule, " +
					"or remove the host from tls",
			},
		},
		"without a rule, of a rule for every host": {of: []*hosts.Contribution{rest},
			serves: []string{
				"not served",
				"certificate a/tls for s.example",
			},
		},
		"without a rule, of an alias": {
			around: hosts.HostContext{NamedBy: "a"}, of: []*hosts.Contribution{
				ingress("a/old", 1, elsewhere, listed("s.example", "tls")),
				ingress("b/old", 1, elsewhere, listed("s.example", "tls")),
			},
			serves: []string{
				"not served",
				"certificate a/tls for s.example",
			},
			problems: []string{
				"warning InvalidHost Ingress/b/old spec.tls: the certificate of the Secret b/tls is not used " +
					"for the host s.example, because no rule of the namespace b names this host: add a rule, " +
					"or remove the host from tls",
			},
		},
		"without a rule, below a wildcard": {
			around: hosts.HostContext{Above: wild}, of: []*hosts.Contribution{
				ingress("w/old", 1, elsewhere, listed("s.example", "tls")),
				ingress("b/old", 1, elsewhere, listed("s.example", "tls")),
			},
			serves: []string{
				"not served",
				"certificate w/tls for s.example",
			},
			problems: []string{
				"warning InvalidHost Ingress/b/old spec.tls: the certificate of the Secret b/tls is not used " +
					"for the host s.example, because no rule of the namespace b names this host: add a rule, " +
					"or remove the host from tls",
			},
		},
		"reserved": {
			around: hosts.HostContext{Policy: ownership.Policy{Reserved: map[string][]string{"s.example": {"b"}}}},
			of:     []*hosts.Contribution{ingress("a/old", 1, rule("", "/ web"), listed("s.example", "tls"))},
			serves: []string{"not served"},
			problems: []string{
				"warning HostConflict Ingress/a/old spec.tls: the entry has no effect on the host s.example, " +
					"which the option host_owner reserves for the namespaces b",
			},
		},
		"implied": {
			of: []*hosts.Contribution{
				ingress("a/old", 1, web),
				ingress("a/young", 3, rule("s.example", "/app web"), implied("")),
				ingress("b/other", 2, rule("s.example", "/b web"), implied("no")),
			},
			serves: []string{
				"prefix /app -> a/web/80",
				"prefix /b -> b/web/80",
				"prefix / -> a/web/80",
				"implied certificate from an issuer, for s.example",
			},
			problems: sharing("Ingress/b/other"),
		},
		"implied, beside a Secret": {
			of: []*hosts.Contribution{
				ingress("a/old", 1, web, implied("")),
				ingress("a/young", 2, rule("s.example", "/app web"), listed("s.example", "tls")),
			},
			serves: []string{
				"prefix /app -> a/web/80",
				"prefix / -> a/web/80",
				"certificate a/tls for s.example",
			},
		},
		"below a wildcard with a certificate of the namespace": {
			around: hosts.HostContext{Above: wild}, of: []*hosts.Contribution{ingress("a/old", 2, web)},
			serves: []string{
				"prefix / -> a/web/80",
				"certificate a/own for s.example",
			},
			problems: []string{
				"info HostConflict Ingress/a/old spec.rules: the namespace w owns the hosts *.example, but " +
					"requests for the host s.example are served by this namespace",
			},
		},
		"below a wildcard, implied": {
			around: hosts.HostContext{Above: wild}, of: []*hosts.Contribution{
				ingress("a/old", 2, web, implied("")),
			},
			serves: []string{
				"prefix / -> a/web/80",
				"implied certificate from an issuer, for s.example",
			},
			problems: []string{
				"info HostConflict Ingress/a/old spec.rules: the namespace w owns the hosts *.example, but " +
					"requests for the host s.example are served by this namespace",
			},
		},
		"below a wildcard, refused": {
			around: hosts.HostContext{Above: wild}, of: []*hosts.Contribution{
				ingress("a/old", 2, web, implied("no")),
			},
			serves: []string{
				"prefix / -> a/web/80",
				"certificate a/own for s.example",
			},
			problems: []string{
				"info HostConflict Ingress/a/old spec.rules: the namespace w owns the hosts *.example, but " +
					"requests for the host s.example are served by this namespace",
			},
		},
	})
}

// TestCertificatesOfWildcards checks which namespaces may use their own certificate for a wildcard.
func TestCertificatesOfWildcards(t *testing.T) {
	below := rules(map[string]int{"a": 1, "b": 1})
	mergeCases(t, "*.example", map[string]mergeCase{
		"without a rule": {
			around: hosts.HostContext{Below: below}, of: []*hosts.Contribution{
				ingress("a/old", 1, rule("s.example", "/ web"), listed("*.example", "tls")),
				ingress("b/young", 2, rule("t.example", "/ web"), listed("*.example", "tls")),
				ingress("c/other", 3, rule("other.test", "/ web"), listed("*.example", "tls")),
			},
			serves: []string{
				"not served",
				"certificate a/tls for *.example",
				"certificate of hosts of b: b/tls for *.example",
			},
			problems: []string{
				"warning InvalidHost Ingress/c/other spec.tls: the certificate of the Secret c/tls is not " +
					"used for the host *.example, because no rule of the namespace c names this host: add a " +
					"rule, or remove the host from tls",
			},
		},
		"of the owner and of others": {
			around: hosts.HostContext{Below: below}, of: []*hosts.Contribution{
				ingress("a/old", 1, rule("*.example", "/ web")),
				ingress("b/young", 2, rule("t.example", "/ web"), listed("*.example", "tls")),
				ingress("c/other", 3, rule("other.test", "/ web"), listed("*.example", "tls")),
			},
			serves: []string{
				"prefix / -> a/web/80",
				"certificate of hosts of b: b/tls for *.example",
			},
			problems: []string{
				"info HostConflict Ingress/a/old spec.rules: other namespaces own hosts below *.example, and " +
					"get the requests for these hosts: b. To keep all of them in one namespace, use the " +
					"option host_ownership or host_owner",
				"warning HostConflict Ingress/c/other spec.tls: the older Ingress/a/old in another namespace " +
					"owns the host *.example: the certificate of the owner is used, and this entry has no " +
					"effect for the host",
			},
		},
		"the Secret of another namespace does not exist": {
			around: hosts.HostContext{Below: below}, of: []*hosts.Contribution{
				ingress("a/old", 1, rule("*.example", "/ web"), listed("*.example", "tls")),
				ingress("b/young", 2, rule("t.example", "/ web"), listed("*.example", "gone"), absent("*.example")),
			},
			serves: []string{
				"prefix / -> a/web/80",
				"certificate a/tls for *.example",
			},
			problems: []string{
				"info HostConflict Ingress/a/old spec.rules: other namespaces own hosts below *.example, and " +
					"get the requests for these hosts: b. To keep all of them in one namespace, use the " +
					"option host_ownership or host_owner",
			},
		},
	})
}
