package arch_test

// module is the import path that the names of the table are relative to.
const module = "github.com/k8singress/k8singress"

const (
	clientGo   = "k8s.io/client-go"
	kubernetes = "k8s.io"
	caddy      = "github.com/caddyserver/caddy"
	caddyL4    = "github.com/mholt/caddy-l4"
	runProgram = "os/exec"
)

// room lists the imports that one package may have. Tests may import any package.
type room struct {
	name string
	// level is its place in the order: a room imports rooms of lower levels only.
	level int
	// standard says that it imports nothing but the standard library.
	standard bool
	// never are import paths, with all below them, that it does not reach, neither itself nor through another package.
	never []string
	// client allows it to import client-go. The rooms above reach it through this one.
	client bool
	// programs allows it to run other programs.
	programs bool
	// tests says that nothing but tests, and other such rooms, imports it.
	tests bool
}

// pure lists the imports that are forbidden in translation: clients of the API server, Caddy, and running other
// programs. The result of a translation depends only on its input, and the golden tests rely on that.
var pure = []string{clientGo, caddy, caddyL4, runProgram}

// house lists the packages, the lowest first. Packages of one level do not import each other.
var house = []room{
	// What tests of all rooms stand on.
	{name: "internal/tests/fixture", level: 0, standard: true, tests: true},

	// The words that the others exchange.
	{name: "internal/model/ir", level: 0, standard: true},
	{name: "internal/model/suggest", level: 0, standard: true},
	{name: "internal/process/gctune", level: 0, standard: true},
	{name: "internal/http/fastcgi", level: 0, standard: true},
	{name: "internal/http/message", level: 0, standard: true},
	{name: "internal/tls/sni", level: 0, standard: true},
	{name: "internal/model/pattern", level: 1, never: pure},
	{name: "internal/upstream/split", level: 0, standard: true},
	{name: "internal/process/budget", level: 0, standard: true},
	{name: "internal/model/pools", level: 0, standard: true},
	{name: "internal/process/loops", level: 0, standard: true},
	{name: "internal/upstream/reach", level: 0, standard: true},
	{name: "internal/model/kinds", level: 0, never: pure},
	{name: "internal/model/settings", level: 1, never: pure},
	{name: "internal/model/nginx", level: 1, never: pure},
	{name: "internal/http/extauth", level: 2, never: pure},
	{name: "internal/http/ratelimit", level: 1, never: pure},
	{name: "internal/http/callout", level: 2, never: pure},
	{name: "internal/http/compress", level: 2, never: pure},
	{name: "internal/model/document", level: 1, never: pure},
	{name: "internal/control/explain", level: 2, never: pure},
	{name: "internal/http/http1", level: 1, never: pure},
	{name: "internal/model/snapshot", level: 1, never: pure},
	{name: "internal/model/report", level: 1, never: pure},
	{name: "internal/upstream/balancer", level: 2, never: pure},
	{name: "internal/http/httpserver", level: 2, never: pure},
	{name: "internal/http/realip", level: 1, never: pure},
	{name: "internal/process/netaddr", level: 1, never: []string{kubernetes}},
	{name: "internal/upstream/endpoints", level: 3, never: pure},

	// Kubernetes objects to the model, without a side effect.
	{name: "internal/model/option", level: 2, never: pure},
	{name: "internal/translate/snippets", level: 0, never: pure},
	{name: "internal/http/mirror", level: 3, never: pure},
	{name: "internal/translate/annotations", level: 3, never: pure},
	{name: "internal/translate/backends", level: 2, never: pure},
	{name: "internal/translate/configmap", level: 4, never: pure},
	{name: "internal/translate/ownership", level: 2, never: pure},
	{name: "internal/translate/hosts", level: 3, never: pure},
	{name: "internal/translate/ingress", level: 4, never: pure},
	{name: "internal/translate/streams", level: 4, never: pure},
	{name: "internal/control/flags", level: 4, never: pure},
	{name: "internal/translate", level: 5, never: pure},
	{name: "internal/translate/lint", level: 5, never: pure},

	// The model to Caddy's JSON, and what serves it.
	{name: "internal/control/render", level: 6, never: []string{kubernetes}},
	{name: "internal/control/structure", level: 6, never: []string{kubernetes}},
	{name: "internal/kube/serviceports", level: 4, never: pure},
	{name: "internal/tls/secret", level: 2, never: pure},
	{name: "internal/tls/certs", level: 3, never: pure},
	{name: "internal/tls/trust", level: 3, never: pure},
	{name: "internal/http/basicauth", level: 3, never: pure},
	{name: "internal/http/mtls", level: 4, never: pure},
	{name: "internal/http/exchange", level: 5, never: pure},
	{name: "internal/http/accesslog", level: 6, never: pure},
	{name: "internal/http/tracing", level: 6, never: pure},
	{name: "internal/http/filter", level: 6, never: pure},
	{name: "internal/http/proxy", level: 6, never: pure},
	{name: "internal/process/panics", level: 0, standard: true},
	{name: "internal/process/delayqueue", level: 0, never: pure},
	{name: "internal/process/turns", level: 0, standard: true},
	{name: "internal/process/caddyinternals", level: 0, never: []string{kubernetes}},
	{name: "internal/process/logs", level: 0, never: []string{kubernetes}},
	{name: "internal/process/connlimit", level: 1, never: pure},
	{name: "internal/http/front", level: 2, never: []string{kubernetes}},
	{name: "internal/http/live", level: 7, never: []string{clientGo}},
	{name: "internal/upstream/health", level: 6, never: pure},
	{name: "internal/upstream/resolver", level: 6, never: []string{kubernetes, caddy}},
	{name: "internal/upstream/udp", level: 3, never: pure},
	{name: "l4app", level: 7, never: []string{clientGo}},

	// What touches the world outside.
	{name: "internal/kube/client", level: 6, never: []string{caddy}, client: true},
	{name: "internal/kube/cluster", level: 7, never: []string{caddy}, client: true},
	{name: "internal/kube/status", level: 7, never: []string{caddy}, client: true},
	{name: "internal/kube/storage", level: 7, never: []string{caddy}, client: true},
	{name: "internal/kube/files", level: 7, never: []string{clientGo, caddy}},
	{name: "internal/control/apply", level: 8, never: []string{clientGo}},
	{name: "internal/tls/issuance", level: 8, never: []string{clientGo}},

	// The one loop, and what Caddy sees of it.
	{name: "internal/control/engine", level: 9},
	{name: "k8singress", level: 10},
	{name: "caddyfile", level: 11},
	{name: ".", level: 12},
	{name: "cmd/caddy", level: 13},

	// Tests, and what only they import.
	{name: "internal/tests/arch", level: 13},
	{name: "internal/tests/daemons", level: 1, never: []string{kubernetes, caddy, caddyL4}, programs: true, tests: true},
	{name: "internal/tests/differential", level: 0, standard: true, tests: true},
	{name: "internal/tests/featuretests", level: 13},
	{name: "internal/tests/golden", level: 13},
	{name: "examples", level: 13},
	{name: "charts", level: 0, standard: true, tests: true},
	{name: "bench", level: 13, programs: true},
}
