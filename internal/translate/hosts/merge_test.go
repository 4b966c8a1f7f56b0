package hosts_test

import (
	"testing"

	"github.com/k8singress/k8singress/internal/translate/hosts"
)

// TestPaths checks which Ingress serves a path that several Ingresses define, and what the others are told.
func TestPaths(t *testing.T) {
	mergeCases(t, "s.example", map[string]mergeCase{
		"exact paths first, then the longer prefixes": {
			of: []*hosts.Contribution{
				ingress("a/old", 1, rule("s.example", "/ web", "/app web", "=/app exact", "/app/admin admin")),
			},
			serves: []string{
				"exact /app -> a/exact/80",
				"prefix /app/admin -> a/admin/80",
				"prefix /app -> a/web/80",
				"prefix / -> a/web/80",
			},
		},
		"a rule without paths": {of: []*hosts.Contribution{ingress("a/old", 1, rule("s.example"))}},
		"only another host": {of: []*hosts.Contribution{ingress("a/old", 1, rule("t.example", "/ web"))},
			serves: []string{"not served"},
		},
		"the same path": {
			of: []*hosts.Contribution{
				ingress("a/old", 1, rule("s.example", "/app web")),
				ingress("a/young", 2, rule("s.example", "/app next")),
			},
			serves: []string{"prefix /app -> a/web/80"},
			problems: []string{
				"warning PathConflict Ingress/a/young spec.rules[0].http.paths[0]: the older Ingress/a/old " +
					"defines the same path /app of the host s.example, and gets the requests",
			},
		},
		"the same path, in the same second": {
			of: []*hosts.Contribution{
				ingress("a/first", 1, rule("s.example", "/app web")),
				ingress("a/last", 1, rule("s.example", "/app next")),
			},
			serves: []string{"prefix /app -> a/next/80"},
			problems: []string{
				"warning PathConflict Ingress/a/first spec.rules[0].http.paths[0]: Ingress/a/last (which is " +
					"treated as older because of its name: both were created in the same second) defines the " +
					"same path /app of the host s.example, and gets the requests",
			},
		},
		"the same path, without a time": {
			of: []*hosts.Contribution{
				ingress("a/first", 0, rule("s.example", "/app web")),
				ingress("a/last", 0, rule("s.example", "/app next")),
				ingress("a/dated", 1, rule("s.example", "/app third")),
			},
			serves: []string{"prefix /app -> a/next/80"},
			problems: []string{
				"warning PathConflict Ingress/a/dated spec.rules[0].http.paths[0]: Ingress/a/last (which has " +
					"no creationTimestamp, and is treated as older) defines the same path /app of the host " +
					"s.example, and gets the requests",
				"warning PathConflict Ingress/a/first spec.rules[0].http.paths[0]: Ingress/a/last (which is " +
					"treated as older because of its name: neither has a creationTimestamp) defines the same " +
					"path /app of the host s.example, and gets the requests",
			},
		},
		"the same path twice in one Ingress": {
			of: []*hosts.Contribution{
				ingress("a/old", 1, rule("s.example", "/app web", "/app next")),
			},
			serves: []string{"prefix /app -> a/web/80"},
			problems: []string{
				"warning PathConflict Ingress/a/old spec.rules[0].http.paths[1]: the Ingress defines the " +
					"path /app of the host s.example twice, and the first definition is used",
			},
		},
		"the same prefix with a slash": {
			of: []*hosts.Contribution{
				ingress("a/old", 1, rule("s.example", "/app web")),
				ingress("a/young", 2, rule("s.example", "/app/ next")),
			},
			serves: []string{"prefix /app -> a/web/80"},
			problems: []string{
				"warning PathConflict Ingress/a/young spec.rules[0].http.paths[0]: the older Ingress/a/old " +
					"defines the same path /app (as a prefix equal to /app/) of the host s.example, and gets " +
					"the requests",
			},
		},
		"the same text, exact and prefix": {
			of: []*hosts.Contribution{
				ingress("a/old", 1, rule("s.example", "/app web")),
				ingress("a/young", 2, rule("s.example", "=/app next", "=/app/ third")),
			},
			serves: []string{
				"exact /app -> a/next/80",
				"exact /app/ -> a/third/80",
				"prefix /app -> a/web/80",
			},
		},
		"the same path in another namespace": {
			of: []*hosts.Contribution{
				ingress("a/old", 1, rule("s.example", "/app web")),
				ingress("b/young", 2, rule("s.example", "/app web")),
			},
			serves: []string{"prefix /app -> a/web/80"},
			problems: append(sharing("Ingress/b/young"),
				"warning PathConflict Ingress/b/young spec.rules[0].http.paths[0]: the older Ingress/a/old "+
					"defines the same path /app of the host s.example, and gets the requests",
			),
		},
		"other paths in another namespace": {
			of: []*hosts.Contribution{
				ingress("a/old", 1, rule("s.example", "/ web")), ingress("b/young", 2, rule("s.example", "/app web")),
			},
			serves: []string{
				"prefix /app -> b/web/80",
				"prefix / -> a/web/80",
			},
			problems: sharing("Ingress/b/young"),
		},
	})
}

// TestDefaultBackends checks which default backend serves the requests of a host that no path matches.
func TestDefaultBackends(t *testing.T) {
	mergeCases(t, "s.example", map[string]mergeCase{
		"with rules": {
			of: []*hosts.Contribution{
				ingress("a/old", 1, rule("s.example", "default rest", "/app web")),
			},
			serves: []string{
				"prefix /app -> a/web/80",
				"prefix / -> a/rest/80",
			},
		},
		"beside the path /": {
			of: []*hosts.Contribution{
				ingress("a/old", 1, rule("s.example", "default rest")),
				ingress("a/young", 2, rule("s.example", "/ web")),
			},
			serves: []string{"prefix / -> a/web/80"},
		},
		"two with rules": {
			of: []*hosts.Contribution{
				ingress("a/old", 1, rule("s.example", "default rest")),
				ingress("a/same", 2, rule("s.example", "default rest")),
				ingress("a/young", 3, rule("s.example", "default other")),
			},
			serves: []string{"prefix / -> a/rest/80"},
			problems: []string{
				"warning PathConflict Ingress/a/young spec.defaultBackend: the older Ingress/a/old has " +
					"another default backend for the host s.example, which is used instead",
			},
		},
		"without rules, of the same namespace": {
			of: []*hosts.Contribution{
				ingress("a/old", 1, rule("s.example", "/app web")), ingress("a/rest", 2, fallback("rest")),
				ingress("a/more", 3, fallback("more")),
			},
			serves: []string{
				"prefix /app -> a/web/80",
				"prefix / -> a/rest/80",
			},
		},
		"without rules, of another namespace": {
			of: []*hosts.Contribution{
				ingress("a/old", 2, rule("s.example", "/app web")), ingress("b/rest", 1, fallback("rest")),
			},
			serves: []string{"prefix /app -> a/web/80"},
		},
	})
	mergeCases(t, "", map[string]mergeCase{
		"without rules, for every host": {
			of: []*hosts.Contribution{
				ingress("a/old", 1, fallback("rest")), ingress("b/same", 2, fallback("rest")),
				ingress("a/same", 3, fallback("rest")), ingress("a/young", 4, fallback("more")),
			},
			serves: []string{"prefix / -> a/rest/80"},
			problems: []string{
				"warning PathConflict Ingress/a/young spec.defaultBackend: the older Ingress/a/old has " +
					"another default backend for every host, which is used instead",
				"warning PathConflict Ingress/b/same spec.defaultBackend: the older Ingress/a/old has " +
					"another default backend for every host, which is used instead",
			},
		},
		"without rules, beside a rule for every host": {
			of: []*hosts.Contribution{
				ingress("a/old", 1, fallback("rest")), ingress("a/rule", 2, rule("", "/ web")),
			},
			serves: []string{"prefix / -> a/web/80"},
			problems: []string{
				"warning PathConflict Ingress/a/old spec.defaultBackend: Ingress/a/rule defines the same " +
					"path / of every host, and gets the requests",
			},
		},
	})
}

// TestRedirectsOfPaths checks which requests are redirected to HTTPS. For a path, its own Ingress decides. For paths
// that no Ingress defines, the oldest Ingress in the namespace that owns the host decides.
func TestRedirectsOfPaths(t *testing.T) {
	above := merged("*.example", &hosts.HostContext{},
		ingress("a/wild", 1, rule("*.example", "/ web"), listed("*.example", "tls")))
	mergeCases(t, "s.example", map[string]mergeCase{
		"without TLS": {
			of: []*hosts.Contribution{
				ingress("a/old", 1, rule("s.example", "/app web"), redirecting(308)),
			},
			serves: []string{"prefix /app -> a/web/80"},
		},
		"with TLS": {
			of: []*hosts.Contribution{
				ingress("a/old", 1, rule("s.example", "/app web"), redirecting(308), listed("s.example", "tls")),
				ingress("a/young", 2, rule("s.example", "/plain web")),
			},
			serves: []string{
				"prefix /plain -> a/web/80",
				"prefix /app -> 308 to HTTPS, a/web/80",
				"other paths -> 308 to HTTPS",
				"certificate a/tls for s.example",
			},
		},
		"the oldest does not redirect": {
			of: []*hosts.Contribution{
				ingress("a/old", 1, rule("s.example", "/plain web"), listed("s.example", "tls")),
				ingress("a/young", 2, rule("s.example", "/app web"), redirecting(308)),
			},
			serves: []string{
				"prefix /plain -> a/web/80",
				"prefix /app -> 308 to HTTPS, a/web/80",
				"certificate a/tls for s.example",
			},
		},
		"the other redirects by another status": {
			of: []*hosts.Contribution{
				ingress("a/old", 1, rule("s.example", "/app web"), redirecting(301), listed("s.example", "tls")),
				ingress("a/young", 2, rule("s.example", "/next web"), redirecting(308)),
			},
			serves: []string{
				"prefix /next -> 308 to HTTPS, a/web/80",
				"prefix /app -> 301 to HTTPS, a/web/80",
				"other paths -> 301 to HTTPS",
				"certificate a/tls for s.example",
			},
		},
		"always": {
			of: []*hosts.Contribution{
				ingress("a/old", 1, rule("s.example", "/app web"), redirecting(308), always),
				ingress("a/young", 2, rule("s.example", "/next web"), redirecting(308)),
			},
			serves: []string{
				"prefix /next -> a/web/80",
				"prefix /app -> 308 to HTTPS, a/web/80",
				"other paths -> 308 to HTTPS",
			},
		},
		"the path /": {
			of: []*hosts.Contribution{
				ingress("a/old", 1, rule("s.example", "/app web"), redirecting(308), listed("s.example", "tls")),
				ingress("a/young", 2, rule("s.example", "/ web")),
			},
			serves: []string{
				"prefix /app -> 308 to HTTPS, a/web/80",
				"prefix / -> a/web/80",
				"certificate a/tls for s.example",
			},
		},
		"TLS of another namespace": {
			of: []*hosts.Contribution{
				ingress("a/old", 1, rule("s.example", "/app web"), redirecting(308)),
				ingress("b/young", 2, rule("s.example", "/b web"), redirecting(308), listed("s.example", "tls")),
			},
			serves: []string{
				"prefix /app -> a/web/80",
				"prefix /b -> b/web/80",
			},
			problems: append(sharing("Ingress/b/young"),
				"warning HostConflict Ingress/b/young spec.tls: the older Ingress/a/old in another namespace "+
					"owns the host s.example: the certificate of the owner is used, and this entry has no "+
					"effect for the host",
			),
		},
		"always, in another namespace": {
			of: []*hosts.Contribution{
				ingress("a/old", 1, rule("s.example", "/app web"), redirecting(308)),
				ingress("b/young", 2, rule("s.example", "/b web"), redirecting(308), always),
			},
			serves: []string{
				"prefix /app -> a/web/80",
				"prefix /b -> 308 to HTTPS, b/web/80",
			},
			problems: sharing("Ingress/b/young"),
		},
		"TLS of the wildcard": {
			around: hosts.HostContext{Above: above}, of: []*hosts.Contribution{
				ingress("a/old", 1, rule("s.example", "/app web"), redirecting(308)),
			},
			serves: []string{
				"prefix /app -> 308 to HTTPS, a/web/80",
				"other paths -> 308 to HTTPS",
			},
		},
		"TLS of the wildcard of another namespace": {
			around: hosts.HostContext{Above: above}, of: []*hosts.Contribution{
				ingress("b/old", 2, rule("s.example", "/app web"), redirecting(308)),
			},
			serves: []string{"prefix /app -> b/web/80"},
			problems: []string{
				"info HostConflict Ingress/b/old spec.rules: the namespace a owns the hosts *.example, but " +
					"requests for the host s.example are served by this namespace",
			},
		},
	})
	mergeCases(t, "", map[string]mergeCase{
		"the rule without a host, with TLS for all hosts": {
			of: []*hosts.Contribution{
				ingress("a/old", 1, rule("", "/app web"), redirecting(308),
					func(c *hosts.Contribution) { c.AllTLS = true }),
			},
			serves: []string{"prefix /app -> a/web/80"},
		},
		"the rule without a host": {
			of: []*hosts.Contribution{
				ingress("a/old", 1, rule("", "/app web"), redirecting(308), always),
			},
			serves: []string{"prefix /app -> 308 to HTTPS, a/web/80"},
		},
	})
}

// TestRefusedExpressions checks what becomes of paths that are regular expressions and cannot be used.
func TestRefusedExpressions(t *testing.T) {
	refused := ingress("a/old", 1, rule("s.example", "~/api/(.*) web"), guarded)
	mergeCases(t, "s.example", map[string]mergeCase{
		"invalid": {
			of: []*hosts.Contribution{
				ingress("a/old", 1, rule("s.example", "~/api(.* web", "/app web")),
			},
			serves: []string{"regex /app -> a/web/80"},
			problems: []string{
				"error InvalidRegex Ingress/a/old spec.rules[0].http.paths[0]: \"/api(.*\" is not an RE2 " +
					"regular expression: error parsing regexp: missing closing ): `(?i)^/api(.*`; the path " +
					"is ignored",
			},
		},
		"invalid, with a guard": {
			of: []*hosts.Contribution{
				ingress("a/old", 1, rule("s.example", "~/api(.* web", "/app web"), guarded),
			},
			serves: []string{
				"regex / -> 503",
				"regex /app -> SourceRanges, a/web/80",
			},
			problems: []string{
				"error InvalidRegex Ingress/a/old spec.rules[0].http.paths[0]: \"/api(.*\" is not an RE2 " +
					"regular expression: error parsing regexp: missing closing ): `(?i)^/api(.*`; all paths " +
					"that start with / get 503, because the path may restrict access",
			},
		},
		"invalid, with client certificates of another namespace": {
			of: []*hosts.Contribution{
				ingress("a/old", 1, rule("s.example", "/app web"), mutual("one")),
				ingress("b/young", 2, rule("s.example", "~/api(.* web"), mutual("two")),
			},
			serves: []string{"prefix /app -> a/web/80", "regex / -> 503", "client certificates ca/one"},
			problems: append(sharing("Ingress/b/young"),
				"error HostConflict Ingress/b/young "+
					"metadata.annotations[nginx.ingress.kubernetes.io/auth-tls-secret]: the older Ingress/a/old "+
					"has different auth-tls-* annotations for the host s.example, and only these apply to the "+
					"host: requests for the paths of this Ingress get 403 on this host. Use the same "+
					"annotations, or another host",
				"error InvalidRegex Ingress/b/young spec.rules[0].http.paths[0]: \"/api(.*\" is not an RE2 regular "+
					"expression: error parsing regexp: missing closing ): `(?i)^/api(.*`; all paths that start "+
					"with / get 503, because the path may restrict access",
			),
		},
		"of another namespace": {
			of: []*hosts.Contribution{
				ingress("a/old", 1, rule("s.example", "/app web")),
				ingress("b/young", 2, rule("s.example", "~/(.*) web", "/b web")),
			},
			serves: []string{
				"prefix /app -> a/web/80",
				"regex /(.*) -> b/web/80",
				"regex /b -> b/web/80",
			},
			problems: sharing("Ingress/b/young"),
		},
		"too many in the namespace": {
			of: []*hosts.Contribution{
				refused.WithoutPatterns(), ingress("a/young", 2, rule("s.example", "/app web")),
			},
			serves: []string{
				"regex /api/ -> 503",
				"regex /app -> a/web/80",
			},
		},
	})
}
