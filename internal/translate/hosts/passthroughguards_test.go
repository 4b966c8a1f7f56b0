package hosts_test

import (
	"testing"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/translate/hosts"
)

// withGuard gives an object a guard that rejects some clients or all requests.
func withGuard(step string, rejects ir.Guard, temporary bool) setting {
	return func(c *hosts.Contribution) { c.Guard = hosts.Guard{Step: step, Rejects: rejects, Temporary: temporary} }
}

// TestPassthroughOfGuarded checks that TLS connections are not passed through if they would bypass a guard of the
// Ingress with the path "/" or of the Ingress that requests passthrough.
func TestPassthroughOfGuarded(t *testing.T) {
	const problem = " InvalidAnnotation Ingress/a/young " +
		"metadata.annotations[nginx.ingress.kubernetes.io/ssl-passthrough]: the TLS connections of the host " +
		"s.example are not passed through, because "
	list, closed := withGuard("access", ir.SomeClients, false), func(c *hosts.Contribution) { c.Closed = true }
	maintained, open := withGuard("maintenance", ir.AllRequests, true), func(*hosts.Contribution) {}
	for name, c := range map[string]struct {
		root, passes setting
		problem      string
	}{
		"a list of the path /": {list, open, "error" + problem + "Ingress/a/old accepts only some client addresses " +
			"(access), which are not checked for passed-through connections: the controller terminates TLS. Remove " +
			"ssl-passthrough or this restriction"},
		"a list beside ssl-passthrough": {open, list, "error" + problem + "this Ingress accepts only some client " +
			"addresses (access), which are not checked for passed-through connections: the controller terminates " +
			"TLS. Remove ssl-passthrough or this restriction"},
		"a temporary list": {withGuard("maintenance", ir.SomeClients, true), open, "warning" + problem +
			"Ingress/a/old accepts only some client addresses (maintenance), which are not checked for " +
			"passed-through connections: the controller terminates TLS"},
		"no client is allowed": {maintained, open, "warning" + problem + "Ingress/a/old rejects all requests " +
			"(maintenance): the controller terminates TLS"},
		"no client is ever allowed": {open, withGuard("closed", ir.AllRequests, false), "error" + problem +
			"this Ingress rejects all requests (closed): the controller terminates TLS. Remove ssl-passthrough or " +
			"this restriction"},
		"a fault comes first": {func(c *hosts.Contribution) { closed(c); maintained(c) }, list, "error" + problem +
			"Ingress/a/old rejects all requests for the path /: the controller terminates TLS, and requests get " +
			"503. See the verdict on that object"},
	} {
		mergeCases(t, "s.example", map[string]mergeCase{name: {
			of: []*hosts.Contribution{
				ingress("a/old", 1, rule("s.example", "/ web"), c.root),
				ingress("a/young", 2, rule("s.example", "/app web"), passing, c.passes),
			},
			serves:   []string{"prefix /app -> a/web/80", "prefix / -> a/web/80"},
			problems: []string{c.problem},
		}})
	}
}

// TestPassthroughOfGuardedBySnippet checks the same for the server-snippet of another Ingress.
func TestPassthroughOfGuardedBySnippet(t *testing.T) {
	const problem = "error InvalidAnnotation Ingress/a/young " +
		"metadata.annotations[nginx.ingress.kubernetes.io/ssl-passthrough]: the TLS connections of the host " +
		"s.example are not passed through, because Ingress/a/old "
	const refused = ": all requests for the paths on the host s.example get 503, because the annotation " +
		"nginx.ingress.kubernetes.io/server-snippet of Ingress/a/old is refused: correct it there"
	for name, c := range map[string]struct {
		server   hosts.Server
		problems []string
	}{
		"a guard": {hosts.Server{Text: "x", Guard: hosts.Guard{Step: "location /b", Rejects: ir.AllRequests}}, []string{
			problem + "rejects all requests (location /b): the controller terminates TLS. Remove ssl-passthrough or " +
				"this restriction"}},
		"refused": {hosts.Server{Closed: true}, []string{
			"error HostConflict Ingress/a/young -" + refused,
			problem + "rejects all requests for the path /: the controller terminates TLS, and requests get 503. See " +
				"the verdict on that object"}},
	} {
		snippet := func(o *hosts.Contribution) { o.Server = &c.server }
		serves := []string{"prefix /app -> a/web/80", "prefix / -> a/web/80"}
		if c.server.Closed {
			serves = []string{"prefix /app -> 503", "prefix / -> 503"}
		}
		mergeCases(t, "s.example", map[string]mergeCase{name: {
			of: []*hosts.Contribution{
				ingress("a/old", 1, rule("s.example", "/app web"), snippet),
				ingress("a/young", 2, rule("s.example", "/ web"), passing),
			},
			serves: serves, problems: c.problems,
		}})
	}
}
