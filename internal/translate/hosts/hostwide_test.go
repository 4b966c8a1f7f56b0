package hosts_test

import (
	"slices"
	"testing"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/translate/hosts"
	"github.com/k8singress/k8singress/internal/translate/ownership"
)

// TestAppRoots checks which Ingress decides where "/" is redirected.
func TestAppRoots(t *testing.T) {
	mergeCases(t, "s.example", map[string]mergeCase{
		"the oldest": {
			of: []*hosts.Contribution{
				ingress("a/none", 1, rule("s.example", "/ web")),
				ingress("a/old", 2, rule("s.example", "/app app"), rooted("/app")),
				ingress("a/same", 3, rule("s.example", "/same app"), rooted("/app"), func(c *hosts.Contribution) {
					c.Root.Filters = slices.Insert(c.Root.Filters, 0, ir.Filter(ir.Maintenance{}))
				}),
				ingress("a/young", 4, rule("s.example", "/next app"), rooted("/next")),
			},
			serves: []string{
				"exact / -> 302 to /app, a/app/80",
				"prefix /next -> a/app/80",
				"prefix /same -> a/app/80",
				"prefix /app -> a/app/80",
				"prefix / -> a/web/80",
			},
			problems: []string{
				"warning HostConflict Ingress/a/young " +
					"metadata.annotations[nginx.ingress.kubernetes.io/app-root]: the setting has no effect " +
					"on the host s.example: the older Ingress/a/old has a different app-root, which is used " +
					"instead",
			},
		},
		"without paths": {of: []*hosts.Contribution{ingress("a/old", 1, rule("s.example"), rooted("/app"))}},
		"of another namespace": {
			of: []*hosts.Contribution{
				ingress("a/old", 1, rule("s.example", "/ web")),
				ingress("b/young", 2, rule("s.example", "/app app"), rooted("/app")),
			},
			serves: []string{
				"prefix /app -> b/app/80",
				"prefix / -> a/web/80",
			},
			problems: append(sharing("Ingress/b/young"),
				"warning HostConflict Ingress/b/young "+
					"metadata.annotations[nginx.ingress.kubernetes.io/app-root]: the setting has no effect "+
					"on the host s.example: the older Ingress/a/old in another namespace owns this host",
			),
		},
		"in another namespace that is not served": {
			around: hosts.HostContext{Policy: ownership.Policy{Exclusive: true}},
			of: []*hosts.Contribution{
				ingress("a/old", 1, rule("s.example", "/ web")),
				ingress("b/young", 2, rule("s.example", "/app web"), rooted("/app")),
			},
			serves: []string{"prefix / -> a/web/80"}, problems: rejecting(),
		},
		"after the redirect to HTTPS": {
			of: []*hosts.Contribution{
				ingress("a/old", 1, rule("s.example", "/app web"), redirecting(308), rooted("/app"),
					listed("s.example", "tls"), func(c *hosts.Contribution) { c.Root.Redirect = c.Redirect }),
			},
			serves: []string{
				"exact / -> 308 to HTTPS, 302 to /app, a/web/80",
				"prefix /app -> 308 to HTTPS, a/web/80",
				"other paths -> 308 to HTTPS",
				"certificate a/tls for s.example",
			},
		},
	})
}

// TestCiphersOfHosts checks which Ingress decides about the cipher suites of a host.
func TestCiphersOfHosts(t *testing.T) {
	mergeCases(t, "s.example", map[string]mergeCase{
		"the oldest that sets them": {
			of: []*hosts.Contribution{
				ingress("a/none", 1, rule("s.example", "/ web")),
				ingress("a/old", 2, rule("s.example", "/app web"), ciphers("ONE")),
				ingress("a/same", 3, rule("s.example", "/same web"), ciphers("ONE")),
				ingress("a/young", 4, rule("s.example", "/next web"), ciphers("TWO")),
			},
			serves: []string{
				"prefix /next -> a/web/80",
				"prefix /same -> a/web/80",
				"prefix /app -> a/web/80",
				"prefix / -> a/web/80",
				"ciphers ONE of Ingress/a/old",
			},
			problems: []string{
				"warning HostConflict Ingress/a/young " +
					"metadata.annotations[nginx.ingress.kubernetes.io/ssl-ciphers]: the setting has no " +
					"effect on the host s.example: the older Ingress/a/old has different ssl-ciphers, which " +
					"are used instead",
			},
		},
		"of another namespace": {
			of: []*hosts.Contribution{
				ingress("a/old", 1, rule("s.example", "/ web")),
				ingress("b/young", 2, rule("s.example", "/app web"), ciphers("ONE")),
			},
			serves: []string{
				"prefix /app -> b/web/80",
				"prefix / -> a/web/80",
			},
			problems: append(sharing("Ingress/b/young"),
				"warning HostConflict Ingress/b/young "+
					"metadata.annotations[nginx.ingress.kubernetes.io/ssl-ciphers]: the older Ingress/a/old "+
					"in another namespace owns the host s.example: its ssl-ciphers are used",
			),
		},
		"of an Ingress without a rule": {
			of: []*hosts.Contribution{
				ingress("a/old", 1, rule("t.example", "/ web"), listed("s.example", "tls"), ciphers("ONE")),
				ingress("a/young", 2, rule("s.example", "/ web"), ciphers("TWO")),
			},
			serves: []string{
				"prefix / -> a/web/80", "ciphers TWO of Ingress/a/young", "certificate a/tls for s.example",
			},
		},
		"of another namespace that is not served": {
			around: hosts.HostContext{Policy: ownership.Policy{Exclusive: true}},
			of: []*hosts.Contribution{
				ingress("a/old", 1, rule("s.example", "/ web")),
				ingress("b/young", 2, rule("s.example", "/app web"), ciphers("ONE")),
			},
			serves:   []string{"prefix / -> a/web/80"},
			problems: rejecting(),
		},
		"the same in another namespace": {
			of: []*hosts.Contribution{
				ingress("a/old", 1, rule("s.example", "/ web"), ciphers("ONE")),
				ingress("b/young", 2, rule("s.example", "/app web"), ciphers("ONE")),
			},
			serves: []string{
				"prefix /app -> b/web/80",
				"prefix / -> a/web/80",
				"ciphers ONE of Ingress/a/old",
			},
			problems: sharing("Ingress/b/young"),
		},
	})
}

// TestClientCertificates checks which Ingress decides about the client certificates of a host, and which paths are
// closed because their Ingress wants others.
func TestClientCertificates(t *testing.T) {
	const challenge = "/.well-known/acme-challenge"
	mergeCases(t, "s.example", map[string]mergeCase{
		"two Ingresses of one namespace": {
			of: []*hosts.Contribution{
				ingress("a/none", 1, rule("s.example", "/ web")),
				ingress("a/old", 2, rule("s.example", "/app web"), mutual("one")),
				ingress("a/same", 3, rule("s.example", "/same web"), mutual("one")),
				ingress("a/young", 4, rule("s.example", "/next web"), mutual("two")),
			},
			serves: []string{
				"prefix /next -> a/web/80",
				"prefix /same -> a/web/80",
				"prefix /app -> a/web/80",
				"prefix / -> a/web/80",
				"client certificates ca/one",
			},
			problems: []string{
				"warning HostConflict Ingress/a/young " +
					"metadata.annotations[nginx.ingress.kubernetes.io/auth-tls-secret]: the older " +
					"Ingress/a/old has different auth-tls-* annotations for the host s.example, and only " +
					"these apply to the host",
			},
		},
		"another namespace alone": {
			of: []*hosts.Contribution{
				ingress("a/old", 1, rule("s.example", "/ web")),
				ingress("b/young", 2, rule("s.example", "/app web"), mutual("one")),
			},
			serves: []string{
				"prefix /app -> 403",
				"prefix / -> a/web/80",
			},
			problems: append(sharing("Ingress/b/young"),
				"error HostConflict Ingress/b/young "+
					"metadata.annotations[nginx.ingress.kubernetes.io/auth-tls-secret]: the older "+
					"Ingress/a/old owns the host s.example, and requires no client certificates on this "+
					"host: requests for the paths of this Ingress get 403 on this host. Use the same "+
					"annotations, or another host",
			),
		},
		"another namespace with others": {
			of: []*hosts.Contribution{
				ingress("a/old", 1, rule("s.example", "/ web"), mutual("one")),
				ingress("b/young", 2, rule("s.example", "/app web"), mutual("two")),
			},
			serves: []string{
				"prefix /app -> 403",
				"prefix / -> a/web/80",
				"client certificates ca/one",
			},
			problems: append(sharing("Ingress/b/young"),
				"error HostConflict Ingress/b/young "+
					"metadata.annotations[nginx.ingress.kubernetes.io/auth-tls-secret]: the older "+
					"Ingress/a/old has different auth-tls-* annotations for the host s.example, and only "+
					"these apply to the host: requests for the paths of this Ingress get 403 on this host. "+
					"Use the same annotations, or another host",
			),
		},
		"another namespace with the same": {
			of: []*hosts.Contribution{
				ingress("a/old", 1, rule("s.example", "/ web"), mutual("one")),
				ingress("b/young", 2, rule("s.example", "/app web"), mutual("one")),
			},
			serves: []string{
				"prefix /app -> b/web/80",
				"prefix / -> a/web/80",
				"client certificates ca/one",
			},
			problems: sharing("Ingress/b/young"),
		},
		"another namespace that is not served": {
			around: hosts.HostContext{Policy: ownership.Policy{Exclusive: true}},
			of: []*hosts.Contribution{
				ingress("a/old", 1, rule("s.example", "/ web")),
				ingress("b/young", 2, rule("s.example", "/app web"), mutual("two")),
			},
			serves:   []string{"prefix / -> a/web/80"},
			problems: rejecting(),
		},
		"challenges": {
			of: []*hosts.Contribution{
				ingress("a/old", 1, rule("s.example", "/ web", challenge+"/a solver"), mutual("one")),
				ingress("b/young", 2, rule("s.example", "="+challenge+"/b solver")),
			},
			serves: []string{
				"exact /.well-known/acme-challenge/b -> 403",
				"prefix /.well-known/acme-challenge/a -> a/solver/80",
				"prefix / -> a/web/80",
				"client certificates ca/one",
			},
			problems: append(sharing("Ingress/b/young"),
				"error HostConflict Ingress/b/young spec.rules[0].http.paths[0]: requests for the path "+
					"/.well-known/acme-challenge/b of the host s.example get 403: the older Ingress/a/old "+
					"requires client certificates, and on such a host only the namespace that owns the host "+
					"may serve the challenges of certificate authorities",
			),
		},
		"a default backend with others": {
			of: []*hosts.Contribution{
				ingress("a/old", 1, rule("s.example", "/app web")),
				ingress("a/rest", 2, fallback("rest"), mutual("one")),
			},
			serves: []string{
				"prefix /app -> a/web/80",
				"prefix / -> 403",
			},
		},
		"a default backend with the same": {
			of: []*hosts.Contribution{
				ingress("a/old", 1, rule("s.example", "/app web"), mutual("one")),
				ingress("a/rest", 2, fallback("rest"), mutual("one")),
			},
			serves: []string{
				"prefix /app -> a/web/80",
				"prefix / -> a/rest/80",
				"client certificates ca/one",
			},
		},
	})
	mergeCases(t, "", map[string]mergeCase{
		"default backends": {
			of: []*hosts.Contribution{
				ingress("a/old", 1, fallback("rest"), mutual("one")),
				ingress("b/young", 2, rule("", "/b web"), mutual("two")),
			},
			serves: []string{
				"prefix /b -> 403",
				"prefix / -> a/rest/80",
				"client certificates ca/one",
			},
			problems: []string{
				"error HostConflict Ingress/b/young " +
					"metadata.annotations[nginx.ingress.kubernetes.io/auth-tls-secret]: the older " +
					"Ingress/a/old has different auth-tls-* annotations for every host, and only these apply " +
					"to the host: requests for the paths of this Ingress get 403 on this host. Use the same " +
					"annotations, or another host",
				"info HostConflict Ingress/b/young spec.rules: the older Ingress/a/old in another namespace " +
					"owns every host: the paths of this Ingress are served on the host, but that namespace " +
					"decides about settings of the whole host",
				"warning HostConflict Ingress/a/old spec.rules: this namespace owns every host, and another " +
					"namespace defines paths of it, too: Ingress/b/young. To keep a host in one namespace, " +
					"use the option host_ownership or host_owner",
			},
		},
	})
}

// TestUnsecuredEndpoints checks that an Ingress whose endpoints use TLS is told if only another Ingress of the host has
// a proxy-ssl-secret.
func TestUnsecuredEndpoints(t *testing.T) {
	secured := each(func(p *hosts.Path) { p.Proxy.TLS = &ir.BackendTLS{Secret: ir.Name{Namespace: "a", Name: "ca"}} })
	unsecured := func(c *hosts.Contribution) { c.Unsecured = true }
	mergeCases(t, "s.example", map[string]mergeCase{
		"beside a Secret": {
			of: []*hosts.Contribution{
				ingress("a/old", 1, rule("s.example", "/ web"), secured),
				ingress("a/young", 2, rule("s.example", "/app web"), unsecured),
				ingress("a/plain", 3, rule("s.example", "/plain web")),
				ingress("a/other", 4, rule("t.example", "/ web"), unsecured, listed("s.example", "tls")),
			},
			serves: []string{
				"prefix /plain -> a/web/80",
				"prefix /app -> a/web/80",
				"prefix / -> a/web/80",
				"certificate a/tls for s.example",
			},
			problems: []string{
				"warning HostConflict Ingress/a/young metadata.annotations: Ingress/a/old sets " +
					"nginx.ingress.kubernetes.io/proxy-ssl-secret for the same host, which applies only to " +
					"its own paths: the endpoints of this Ingress are not verified, and get no client " +
					"certificate. To change this, set the annotation here, too. To disable this Event, set " +
					"proxy-ssl-location-only in the ConfigMap to true",
			},
		},
		"without a Secret": {
			of: []*hosts.Contribution{
				ingress("a/young", 2, rule("s.example", "/app web"), unsecured),
			},
			serves: []string{"prefix /app -> a/web/80"},
		},
	})
}

// TestPassthroughs checks for which hosts TLS connections are passed through, and to which backend.
func TestPassthroughs(t *testing.T) {
	closed := func(c *hosts.Contribution) { c.Closed = true }
	mergeCases(t, "s.example", map[string]mergeCase{
		"to the path /": {
			of: []*hosts.Contribution{
				ingress("a/old", 1, rule("s.example", "/app web", "=/ exact")),
				ingress("a/young", 2, rule("s.example", "/ tls", "/api tls"), passing, implied("")),
			},
			serves: []string{
				"exact / -> a/exact/80",
				"prefix /api -> a/tls/80",
				"prefix /app -> a/web/80",
				"prefix / -> a/tls/80",
				"TLS -> a/tls/80",
			},
			problems: []string{
				"warning PathConflict Ingress/a/old spec.rules[0].http.paths[0]: the path /app of the host " +
					"s.example gets only requests without TLS, because ssl-passthrough of Ingress/a/young " +
					"forwards all TLS connections of the host to the backend of its path /",
				"warning PathConflict Ingress/a/young spec.rules[0].http.paths[1]: the path /api of the host " +
					"s.example gets only requests without TLS, because ssl-passthrough of Ingress/a/young " +
					"forwards all TLS connections of the host to the backend of its path /",
			},
		},
		"to the exact path /": {
			of: []*hosts.Contribution{
				ingress("a/old", 1, rule("s.example", "=/ exact"), passing, listed("s.example", "tls")),
			},
			serves: []string{
				"exact / -> a/exact/80",
				"TLS -> a/exact/80",
				"certificate a/tls for s.example",
			},
		},
		"with a certificate of an issuer": {
			of: []*hosts.Contribution{
				ingress("a/old", 1, rule("s.example", "/ web"), passing, listed("s.example", "")),
			},
			serves: []string{
				"prefix / -> a/web/80",
				"TLS -> a/web/80",
			},
		},
		"without the path /": {
			of: []*hosts.Contribution{
				ingress("a/old", 1, rule("s.example", "/app web"), passing),
			},
			serves: []string{"prefix /app -> a/web/80"},
			problems: []string{
				"warning InvalidPath Ingress/a/old " +
					"metadata.annotations[nginx.ingress.kubernetes.io/ssl-passthrough]: ssl-passthrough has " +
					"no effect on the host s.example, because the backend of the path / would get the " +
					"connections, and there is no such path: add it",
			},
		},
		"to the path / of another namespace": {
			of: []*hosts.Contribution{
				ingress("a/old", 1, rule("s.example", "/app web"), passing),
				ingress("b/young", 2, rule("s.example", "/ web")),
			},
			serves: []string{
				"prefix /app -> a/web/80",
				"prefix / -> b/web/80",
			},
			problems: append(sharing("Ingress/b/young"),
				"warning InvalidPath Ingress/a/old "+
					"metadata.annotations[nginx.ingress.kubernetes.io/ssl-passthrough]: ssl-passthrough has "+
					"no effect on the host s.example, because the backend of the path / would get the "+
					"connections, and there is no such path: add it",
			),
		},
		"in another namespace": {
			of: []*hosts.Contribution{
				ingress("a/old", 1, rule("s.example", "/ web")),
				ingress("b/young", 2, rule("s.example", "/app web"), passing),
			},
			serves: []string{
				"prefix /app -> b/web/80",
				"prefix / -> a/web/80",
			},
			problems: append(sharing("Ingress/b/young"),
				"error HostConflict Ingress/b/young "+
					"metadata.annotations[nginx.ingress.kubernetes.io/ssl-passthrough]: ssl-passthrough has "+
					"no effect on the host s.example, because the older Ingress/a/old in another namespace "+
					"owns this host: set ssl-passthrough there, or use another host",
			),
		},
		"in another namespace that is not served": {
			around: hosts.HostContext{Policy: ownership.Policy{Exclusive: true}},
			of: []*hosts.Contribution{
				ingress("a/old", 1, rule("s.example", "/ web")),
				ingress("b/young", 2, rule("s.example", "/app web"), passing),
			},
			serves: []string{"prefix / -> a/web/80"}, problems: rejecting(),
		},
		"closed": {
			of: []*hosts.Contribution{
				ingress("a/old", 1, rule("s.example", "/ web"), passing, closed),
			},
			serves: []string{"prefix / -> a/web/80"},
			problems: []string{
				"error InvalidAnnotation Ingress/a/old " +
					"metadata.annotations[nginx.ingress.kubernetes.io/ssl-passthrough]: the TLS connections " +
					"of the host s.example are not passed through, because this Ingress rejects all requests " +
					"for the path /: the controller terminates TLS, and requests get 503. See its other " +
					"problems",
			},
		},
		"the path / of a closed Ingress": {
			of: []*hosts.Contribution{
				ingress("a/old", 1, rule("s.example", "/ web"), closed),
				ingress("a/young", 2, rule("s.example", "/app web"), passing),
			},
			serves: []string{
				"prefix /app -> a/web/80",
				"prefix / -> a/web/80",
			},
			problems: []string{
				"error InvalidAnnotation Ingress/a/young " +
					"metadata.annotations[nginx.ingress.kubernetes.io/ssl-passthrough]: the TLS connections " +
					"of the host s.example are not passed through, because Ingress/a/old rejects all " +
					"requests for the path /: the controller terminates TLS, and requests get 503. See the " +
					"verdict on that object",
			},
		},
		"with closed client certificates": {
			of: []*hosts.Contribution{
				ingress("a/old", 1, rule("s.example", "/app web"), func(c *hosts.Contribution) {
					c.ClientAuth = &ir.ClientAuth{Closed: true, Origin: c.Ref()}
				}),
				ingress("a/young", 2, rule("s.example", "/ web"), passing),
			},
			serves: []string{
				"prefix /app -> a/web/80",
				"prefix / -> a/web/80",
				"client certificates , closed",
			},
			problems: []string{
				"error InvalidAnnotation Ingress/a/young " +
					"metadata.annotations[nginx.ingress.kubernetes.io/ssl-passthrough]: the TLS connections " +
					"of the host s.example are not passed through, because Ingress/a/old rejects all " +
					"requests for the path /: the controller terminates TLS, and requests get 403. See the " +
					"verdict on that object",
			},
		},
	})
	mergeCases(t, "", map[string]mergeCase{
		"without a host": {of: []*hosts.Contribution{ingress("a/old", 1, rule("", "/ web"), passing)},
			serves: []string{"prefix / -> a/web/80"},
			problems: []string{
				"warning InvalidHost Ingress/a/old " +
					"metadata.annotations[nginx.ingress.kubernetes.io/ssl-passthrough]: ssl-passthrough has " +
					"no effect on the rule without a host, because connections are passed through by their " +
					"server name: add a host to the rule",
			},
		},
	})
}
