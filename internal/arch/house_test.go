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
	{name: "internal/fixture", level: 0, standard: true, tests: true},

	// The words that the others exchange.
	{name: "internal/ir", level: 0, standard: true},
	{name: "internal/suggest", level: 0, standard: true},
	{name: "internal/gctune", level: 0, standard: true},
	{name: "internal/fastcgi", level: 0, standard: true},
	{name: "internal/message", level: 0, standard: true},
	{name: "internal/sni", level: 0, standard: true},
	{name: "internal/pattern", level: 1, never: pure},
	{name: "internal/split", level: 0, standard: true},
	{name: "internal/budget", level: 0, standard: true},
	{name: "internal/pools", level: 0, standard: true},
	{name: "internal/loops", level: 0, standard: true},
	{name: "internal/reach", level: 0, standard: true},
	{name: "internal/kinds", level: 0, never: pure},
	{name: "internal/settings", level: 1, never: pure},
	{name: "internal/nginx", level: 1, never: pure},
	{name: "internal/extauth", level: 2, never: pure},
	{name: "internal/ratelimit", level: 1, never: pure},
	{name: "internal/callout", level: 2, never: pure},
	{name: "internal/compress", level: 2, never: pure},
	{name: "internal/document", level: 1, never: pure},
	{name: "internal/explain", level: 2, never: pure},
	{name: "internal/http1", level: 1, never: pure},
	{name: "internal/snapshot", level: 1, never: pure},
	{name: "internal/report", level: 1, never: pure},
	{name: "internal/balancer", level: 2, never: pure},
	{name: "internal/httpserver", level: 2, never: pure},
	{name: "internal/realip", level: 1, never: pure},
	{name: "internal/netaddr", level: 1, never: []string{kubernetes}},
	{name: "internal/endpoints", level: 3, never: pure},

	// Kubernetes objects to the model, without a side effect.
	{name: "internal/option", level: 2, never: pure},
	{name: "internal/snippets", level: 0, never: pure},
	{name: "internal/mirror", level: 3, never: pure},
	{name: "internal/annotations", level: 3, never: pure},
	{name: "internal/backends", level: 2, never: pure},
	{name: "internal/configmap", level: 4, never: pure},
	{name: "internal/ownership", level: 2, never: pure},
	{name: "internal/hosts", level: 3, never: pure},
	{name: "internal/ingress", level: 4, never: pure},
	{name: "internal/streams", level: 4, never: pure},
	{name: "internal/flags", level: 4, never: pure},
	{name: "internal/translate", level: 5, never: pure},
	{name: "internal/lint", level: 5, never: pure},

	// The model to Caddy's JSON, and what serves it.
	{name: "internal/render", level: 6, never: []string{kubernetes}},
	{name: "internal/structure", level: 6, never: []string{kubernetes}},
	{name: "internal/serviceports", level: 4, never: pure},
	{name: "internal/tlssecret", level: 2, never: pure},
	{name: "internal/certs", level: 3, never: pure},
	{name: "internal/trust", level: 3, never: pure},
	{name: "internal/basicauth", level: 3, never: pure},
	{name: "internal/mtls", level: 4, never: pure},
	{name: "internal/exchange", level: 5, never: pure},
	{name: "internal/accesslog", level: 6, never: pure},
	{name: "internal/tracing", level: 6, never: pure},
	{name: "internal/filter", level: 6, never: pure},
	{name: "internal/proxy", level: 6, never: pure},
	{name: "internal/panics", level: 0, standard: true},
	{name: "internal/delayqueue", level: 0, never: pure},
	{name: "internal/turns", level: 0, standard: true},
	{name: "internal/caddyinternals", level: 0, never: []string{kubernetes}},
	{name: "internal/logs", level: 0, never: []string{kubernetes}},
	{name: "internal/connlimit", level: 1, never: pure},
	{name: "internal/front", level: 2, never: []string{kubernetes}},
	{name: "internal/live", level: 7, never: []string{clientGo}},
	{name: "internal/health", level: 6, never: pure},
	{name: "internal/resolver", level: 6, never: []string{kubernetes, caddy}},
	{name: "internal/udp", level: 3, never: pure},
	{name: "l4app", level: 7, never: []string{clientGo}},

	// What touches the world outside.
	{name: "internal/kubeclient", level: 6, never: []string{caddy}, client: true},
	{name: "internal/cluster", level: 7, never: []string{caddy}, client: true},
	{name: "internal/status", level: 7, never: []string{caddy}, client: true},
	{name: "internal/kubestorage", level: 7, never: []string{caddy}, client: true},
	{name: "internal/files", level: 7, never: []string{clientGo, caddy}},
	{name: "internal/apply", level: 8, never: []string{clientGo}},
	{name: "internal/issuance", level: 8, never: []string{clientGo}},

	// The one loop, and what Caddy sees of it.
	{name: "internal/engine", level: 9},
	{name: "k8singress", level: 10},
	{name: "caddyfile", level: 11},
	{name: ".", level: 12},
	{name: "cmd/caddy", level: 13},

	// Tests, and what only they import.
	{name: "internal/arch", level: 13},
	{name: "internal/daemons", level: 1, never: []string{kubernetes, caddy, caddyL4}, programs: true, tests: true},
	{name: "internal/differential", level: 0, standard: true, tests: true},
	{name: "internal/featuretests", level: 13},
	{name: "internal/golden", level: 13},
	{name: "examples", level: 13},
	{name: "charts", level: 0, standard: true, tests: true},
	{name: "bench", level: 13, programs: true},
}
