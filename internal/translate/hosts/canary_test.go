package hosts_test

import (
	"testing"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/translate/hosts"
	"github.com/k8singress/k8singress/internal/translate/ownership"
)

// canary makes the Ingress a canary.
func canary(settings *ir.Canary) setting { return func(c *hosts.Contribution) { c.Canary = settings } }

func percent(weight int) *ir.Canary { return &ir.Canary{Weight: weight, Total: 100} }

// TestCanaries checks which main Ingress shares its requests with a canary, and what the canary is told if there is no
// such Ingress.
func TestCanaries(t *testing.T) {
	main := ingress("a/main", 2, rule("s.example", "/ web", "=/exact web", "default rest"))
	next := func(name string, second int64, paths ...string) *hosts.Contribution {
		return ingress(name, second, rule("s.example", paths...), canary(percent(10)))
	}
	mergeCases(t, "s.example", map[string]mergeCase{
		"beside its main": {of: []*hosts.Contribution{main, next("a/canary", 1, "/ next")},
			serves: []string{
				"exact /exact -> a/web/80",
				"prefix / if session -> a/web/80",
				"prefix / if session -> a/next/80 weight 1, a/web/80 weight 0 and fallback",
				"prefix / -> a/web/80 weight 90 and fallback, a/next/80 weight 10",
				"canary Ingress/a/canary of [Ingress/a/main] -> a/next/80",
			},
		},
		"beside a default backend": {
			of: []*hosts.Contribution{
				ingress("a/main", 2, rule("s.example", "default rest")), next("a/canary", 1, "default next"),
			},
			serves: []string{
				"prefix / if session -> a/rest/80",
				"prefix / if session -> a/next/80 weight 1, a/rest/80 weight 0 and fallback",
				"prefix / -> a/rest/80 weight 90 and fallback, a/next/80 weight 10",
				"canary Ingress/a/canary of [Ingress/a/main] -> a/next/80",
			},
		},
		"a path beside a default backend": {
			of: []*hosts.Contribution{
				ingress("a/main", 2, rule("s.example", "default rest")), next("a/canary", 1, "/ next"),
			},
			serves: []string{"prefix / -> a/rest/80"},
			problems: []string{
				"warning NoMainIngress Ingress/a/canary spec.rules[0].http.paths[0]: no main Ingress defines " +
					"the path / of the host s.example: a canary gets requests only beside a main Ingress " +
					"with the same host, path and pathType",
			},
		},
		"an exact path beside a default backend": {
			of: []*hosts.Contribution{
				ingress("a/main", 2, rule("s.example", "default rest")), next("a/canary", 1, "=/ next"),
			},
			serves: []string{"prefix / -> a/rest/80"},
			problems: []string{
				"warning NoMainIngress Ingress/a/canary spec.rules[0].http.paths[0]: no main Ingress defines " +
					"the path / of the host s.example: a canary gets requests only beside a main Ingress " +
					"with the same host, path and pathType",
			},
		},
		"without a main": {of: []*hosts.Contribution{next("a/canary", 1, "/ next", "default rest")},
			serves: []string{"not served"},
			problems: []string{
				"warning NoMainIngress Ingress/a/canary spec.defaultBackend: no main Ingress defines a " +
					"default backend for the host s.example: a canary gets requests only beside a main " +
					"Ingress with the same host, path and pathType",
				"warning NoMainIngress Ingress/a/canary spec.rules[0].http.paths[0]: no main Ingress defines " +
					"the path / of the host s.example: a canary gets requests only beside a main Ingress " +
					"with the same host, path and pathType",
			},
		},
		"without a main for the path": {of: []*hosts.Contribution{main, next("a/canary", 1, "/app next")},
			serves: []string{
				"exact /exact -> a/web/80",
				"prefix / -> a/web/80",
			},
			problems: []string{
				"warning NoMainIngress Ingress/a/canary spec.rules[0].http.paths[0]: no main Ingress defines " +
					"the path /app of the host s.example: a canary gets requests only beside a main Ingress " +
					"with the same host, path and pathType",
			},
		},
		"with the other path type": {of: []*hosts.Contribution{main, next("a/canary", 1, "=/ next", "/exact next")},
			serves: []string{
				"exact /exact -> a/web/80",
				"prefix / -> a/web/80",
			},
			problems: []string{
				"warning NoMainIngress Ingress/a/canary spec.rules[0].http.paths[0]: Ingress/a/main defines " +
					"the path / of the host s.example with the pathType Prefix, and the canary has the " +
					"pathType Exact: a canary gets requests only beside a main Ingress with the same host, " +
					"path and pathType",
				"warning NoMainIngress Ingress/a/canary spec.rules[0].http.paths[1]: Ingress/a/main defines " +
					"the path /exact of the host s.example with the pathType Exact, and the canary has the " +
					"pathType Prefix: a canary gets requests only beside a main Ingress with the same host, " +
					"path and pathType",
			},
		},
		"of another namespace": {of: []*hosts.Contribution{main, next("b/canary", 1, "/ next")},
			serves: []string{
				"exact /exact -> a/web/80",
				"prefix / -> a/web/80",
			},
			problems: []string{
				"error NoMainIngress Ingress/b/canary spec.rules[0].http.paths[0]: Ingress/a/main defines " +
					"the path / of the host s.example, and is in another namespace: a canary gets requests " +
					"of its own namespace only",
			},
		},
		"two for one path": {
			of: []*hosts.Contribution{
				main, next("a/old", 1, "/ next"), next("a/young", 3, "/ third"),
			},
			serves: []string{
				"exact /exact -> a/web/80",
				"prefix / if session -> a/web/80",
				"prefix / if session -> a/next/80 weight 1, a/web/80 weight 0 and fallback",
				"prefix / -> a/web/80 weight 90 and fallback, a/next/80 weight 10",
				"canary Ingress/a/old of [Ingress/a/main] -> a/next/80",
			},
			problems: []string{
				"warning PathConflict Ingress/a/young spec.rules[0].http.paths[0]: the older Ingress/a/old " +
					"is also a canary for the path / of the host s.example, and a path can have only one " +
					"canary: this Ingress gets no requests",
			},
		},
		"with the backend of its main": {of: []*hosts.Contribution{main, next("a/canary", 1, "/ web")},
			serves: []string{
				"exact /exact -> a/web/80",
				"prefix / -> a/web/80",
			},
			problems: []string{
				"warning InvalidBackend Ingress/a/canary spec.rules[0].http.paths[0]: the canary has no " +
					"effect, because its backend a/web/80 is also the backend of Ingress/a/main",
			},
		},
		"that gets no requests": {
			of: []*hosts.Contribution{
				main, ingress("a/canary", 1, rule("s.example", "/ next"), canary(&ir.Canary{Closed: true})),
			},
			serves: []string{
				"exact /exact -> a/web/80",
				"prefix / -> a/web/80",
			},
		},
		"of a main that is not served": {
			around: hosts.HostContext{Policy: ownership.Policy{Exclusive: true}},
			of: []*hosts.Contribution{
				ingress("b/owner", 1, rule("s.example", "/b web")), main, next("a/canary", 1, "/ next"),
			},
			serves: []string{"prefix /b -> b/web/80"},
			problems: []string{
				"error HostConflict Ingress/a/main spec.rules: the older Ingress/b/owner in another " +
					"namespace owns the host s.example: this Ingress is not served on the host, because of " +
					"the option \"host_ownership namespace\". Use another host",
				"info HostConflict Ingress/b/owner spec.rules: this namespace owns the host s.example, and " +
					"another namespace that names it is rejected: Ingress/a/main",
				"warning NoMainIngress Ingress/a/canary spec.rules[0].http.paths[0]: no main Ingress defines " +
					"the path / of the host s.example: a canary gets requests only beside a main Ingress " +
					"with the same host, path and pathType",
			},
		},
		"without rules": {
			of: []*hosts.Contribution{
				ingress("a/main", 1, rule("s.example", "/app web")), ingress("a/rest", 2, fallback("rest")),
				ingress("a/canary", 3, fallback("next"), canary(percent(10))),
			},
			serves: []string{
				"prefix /app -> a/web/80",
				"prefix / if session -> a/rest/80",
				"prefix / if session -> a/next/80 weight 1, a/rest/80 weight 0 and fallback",
				"prefix / -> a/rest/80 weight 90 and fallback, a/next/80 weight 10",
				"canary Ingress/a/canary of [Ingress/a/rest] -> a/next/80",
			},
		},
		"without rules, beside a path": {
			of: []*hosts.Contribution{
				main, ingress("a/rest", 2, fallback("rest")),
				ingress("a/canary", 3, fallback("next"), canary(percent(10))),
			},
			serves: []string{
				"exact /exact -> a/web/80",
				"prefix / -> a/web/80",
			},
		},
	})
	mergeCases(t, "", map[string]mergeCase{
		"without rules, for every host": {
			of: []*hosts.Contribution{
				ingress("a/rest", 1, fallback("rest")), ingress("a/canary", 2, fallback("next"), canary(percent(10))),
			},
			serves: []string{
				"prefix / if session -> a/rest/80",
				"prefix / if session -> a/next/80 weight 1, a/rest/80 weight 0 and fallback",
				"prefix / -> a/rest/80 weight 90 and fallback, a/next/80 weight 10",
				"canary Ingress/a/canary of [Ingress/a/rest] -> a/next/80",
			},
		},
		"without rules and without a main": {
			of: []*hosts.Contribution{
				ingress("a/canary", 2, fallback("next"), canary(percent(10))),
			},
			serves: []string{"not served"},
			problems: []string{
				"warning NoMainIngress Ingress/a/canary spec.defaultBackend: no main Ingress defines a " +
					"default backend for every host: a canary gets requests only beside a main Ingress with " +
					"the same host, path and pathType",
			},
		},
	})
}

// TestShares checks how the settings of a canary divide the requests of its main: sessions first, then the header, the
// cookie and the weight.
func TestShares(t *testing.T) {
	of := func(settings *ir.Canary) []*hosts.Contribution {
		if settings.Total == 0 {
			settings.Total = 100
		}
		return []*hosts.Contribution{
			ingress("a/main", 1, rule("s.example", "/ web")),
			ingress("a/canary", 2, rule("s.example", "/ next"), canary(settings)),
		}
	}
	mergeCases(t, "s.example", map[string]mergeCase{
		"no weight": {
			of: of(&ir.Canary{}),
			serves: []string{
				"prefix / if session -> a/web/80",
				"prefix / if session -> a/next/80 weight 1, a/web/80 weight 0 and fallback",
				"prefix / -> a/web/80",
				"canary Ingress/a/canary of [Ingress/a/main] -> a/next/80",
			},
		},
		"some weight": {
			of: of(&ir.Canary{Weight: 10}),
			serves: []string{
				"prefix / if session -> a/web/80",
				"prefix / if session -> a/next/80 weight 1, a/web/80 weight 0 and fallback",
				"prefix / -> a/web/80 weight 90 and fallback, a/next/80 weight 10",
				"canary Ingress/a/canary of [Ingress/a/main] -> a/next/80",
			},
		},
		"all weight": {
			of: of(&ir.Canary{Weight: 100}),
			serves: []string{
				"prefix / if session -> a/web/80",
				"prefix / if session -> a/next/80 weight 1, a/web/80 weight 0 and fallback",
				"prefix / -> a/next/80 weight 1, a/web/80 weight 0 and fallback",
				"canary Ingress/a/canary of [Ingress/a/main] -> a/next/80",
			},
		},
		"more than all": {
			of: of(&ir.Canary{Weight: 300, Total: 200}),
			serves: []string{
				"prefix / if session -> a/web/80",
				"prefix / if session -> a/next/80 weight 1, a/web/80 weight 0 and fallback",
				"prefix / -> a/next/80 weight 1, a/web/80 weight 0 and fallback",
				"canary Ingress/a/canary of [Ingress/a/main] -> a/next/80",
			},
		},
		"a header": {
			of: of(&ir.Canary{Header: "X", Weight: 10}),
			serves: []string{
				"prefix / if session -> a/web/80",
				"prefix / if session -> a/next/80 weight 1, a/web/80 weight 0 and fallback",
				"prefix / if header X=always (regex false) -> a/next/80 weight 1, a/web/80 weight 0 and " +
					"fallback",
				"prefix / if header X=never (regex false) -> a/web/80",
				"prefix / -> a/web/80 weight 90 and fallback, a/next/80 weight 10",
				"canary Ingress/a/canary of [Ingress/a/main] -> a/next/80",
			},
		},
		"a value": {
			of: of(&ir.Canary{Header: "X", HeaderValue: "beta"}),
			serves: []string{
				"prefix / if session -> a/web/80",
				"prefix / if session -> a/next/80 weight 1, a/web/80 weight 0 and fallback",
				"prefix / if header X=beta (regex false) -> a/next/80 weight 1, a/web/80 weight 0 and fallback",
				"prefix / -> a/web/80",
				"canary Ingress/a/canary of [Ingress/a/main] -> a/next/80",
			},
		},
		"a pattern": {
			of: of(&ir.Canary{Header: "X", HeaderPattern: "be(ta|st)"}),
			serves: []string{
				"prefix / if session -> a/web/80",
				"prefix / if session -> a/next/80 weight 1, a/web/80 weight 0 and fallback",
				"prefix / if header X=be(ta|st) (regex true) -> a/next/80 weight 1, a/web/80 weight 0 and " +
					"fallback",
				"prefix / -> a/web/80",
				"canary Ingress/a/canary of [Ingress/a/main] -> a/next/80",
			},
		},
		"a value before a pattern": {
			of: of(&ir.Canary{Header: "X", HeaderValue: "beta", HeaderPattern: "be"}),
			serves: []string{
				"prefix / if session -> a/web/80",
				"prefix / if session -> a/next/80 weight 1, a/web/80 weight 0 and fallback",
				"prefix / if header X=beta (regex false) -> a/next/80 weight 1, a/web/80 weight 0 and fallback",
				"prefix / -> a/web/80",
				"canary Ingress/a/canary of [Ingress/a/main] -> a/next/80",
			},
		},
		"an invalid pattern": {
			of: of(&ir.Canary{Header: "X", BadHeaderPattern: true, Weight: 100}),
			serves: []string{
				"prefix / if session -> a/web/80",
				"prefix / if session -> a/next/80 weight 1, a/web/80 weight 0 and fallback",
				"prefix / if header X= (regex true) -> a/web/80",
				"prefix / -> a/next/80 weight 1, a/web/80 weight 0 and fallback",
				"canary Ingress/a/canary of [Ingress/a/main] -> a/next/80",
			},
		},
		"a header before a cookie": {
			of: of(&ir.Canary{Header: "X", Cookie: "who"}),
			serves: []string{
				"prefix / if session -> a/web/80",
				"prefix / if session -> a/next/80 weight 1, a/web/80 weight 0 and fallback",
				"prefix / if header X=always (regex false) -> a/next/80 weight 1, a/web/80 weight 0 and " +
					"fallback",
				"prefix / if header X=never (regex false) -> a/web/80",
				"prefix / if cookie who=always -> a/next/80 weight 1, a/web/80 weight 0 and fallback",
				"prefix / if cookie who=never -> a/web/80",
				"prefix / -> a/web/80",
				"canary Ingress/a/canary of [Ingress/a/main] -> a/next/80",
			},
		},
	})
}
