package e2e

import networkingv1 "k8s.io/api/networking/v1"

// defaultBackends run one after the other, because some of their Ingresses match every host.
var defaultBackends = []sentence{
	{"if neither a host nor a path matches, it is up to the controller: 404", nothingMatches},
	{"if rules are not specified, all traffic is sent to the default backend", onlyDefaultBackend},
	{"the default backend handles requests that don't match any rule", defaultBackendWithRules},
	{"if the host is unspecified, the rule applies to all traffic", ruleWithoutHost},
}

func nothingMatches(f *conformance) {
	host := f.host("nothing")
	f.rules("nothing", []route{{host, prefix, "/path", "one"}})
	f.answers(answer{host, "/path", "one"}, answer{host, "/", nobody}, answer{f.host("nobody"), "/path", nobody})
}

func onlyDefaultBackend(f *conformance) {
	host := f.host("beside")
	f.rules("beside", []route{{host, prefix, "/path", "one"}})
	f.answers(answer{host, "/path", "one"}, answer{host, "/", nobody})
	f.rules("catch-all", nil, withDefaultBackend("two"))
	f.answers(
		answer{f.host("any"), "/", "two"},
		answer{f.host("any"), "/some/path", "two"},
		answer{"127.0.0.1", "/", "two"},
		answer{host, "/path", "one"},
		answer{host, "/", "two"},
	)
	f.deleteIngress("catch-all")
	f.answers(answer{f.host("any"), "/", nobody}, answer{host, "/path", "one"})
}

func defaultBackendWithRules(f *conformance) {
	host := f.host("withrules")
	f.rules("withrules", []route{{host, prefix, "/path", "one"}, {host, exact, "/exact", "three"}},
		withDefaultBackend("two"))
	f.answers(
		answer{host, "/path", "one"},
		answer{host, "/", "two"},
		answer{host, "/other", "two"},
		answer{host, "/pathother", "two"},
		answer{host, "/exact", "three"},
		answer{host, "/exact/", "two"},
	)
}

func ruleWithoutHost(f *conformance) {
	host := f.host("hostful")
	f.rules("hostless", []route{{"", prefix, "/path", "two"}, {host, prefix, "/own", "one"}})
	f.answers(
		answer{f.host("any"), "/path", "two"},
		answer{"127.0.0.1", "/path/sub", "two"},
		answer{f.host("any"), "/", nobody},
		answer{host, "/own", "one"},
	)
	f.deleteIngress("hostless")
	f.answers(answer{f.host("any"), "/path", nobody}, answer{host, "/own", nobody})
}

func withDefaultBackend(service string) func(*networkingv1.Ingress) {
	return func(i *networkingv1.Ingress) { i.Spec.DefaultBackend = to(service) }
}
