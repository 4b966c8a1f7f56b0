package arch_test

// module is the import path of this module. The names in the tables are relative to it.
const module = "github.com/k8singress/k8singress"

// The modules and packages that only some folders may use.
const (
	kubernetes = "k8s.io"
	clientGo   = "k8s.io/client-go"
	caddy      = "github.com/caddyserver/caddy"
	caddyL4    = "github.com/mholt/caddy-l4"
	runProgram = "os/exec"
)

// restricted lists them with the reason, which the linter prints.
var restricted = []struct{ path, reason string }{
	{clientGo, "only internal/kube talks to the API server"},
	{caddy, "only the packages that configure or serve Caddy know it"},
	{caddyL4, "only l4app knows caddy-l4"},
	{runProgram, "the controller runs no programs"},
}

// folder is one row of the import order. A package imports packages of its own folder and of the folders in the rows
// before it.
type folder struct {
	name string
	// pure means that no package of the folder reaches a restricted path, neither directly nor through another package.
	pure bool
	// imports lists the restricted paths that packages of the folder may import.
	imports []string
	// tests means that only tests, and the packages of other such folders, import the folder.
	tests bool
}

// order lists the folders of the module, the lowest first.
var order = []folder{
	{name: "internal/model", pure: true},
	{name: "internal/process"},
	{name: "internal/tls"},
	{name: "internal/upstream", pure: true},
	{name: "internal/http"},
	{name: "internal/translate", pure: true},
	{name: "l4app", imports: []string{caddy, caddyL4}},
	{name: "internal/kube", imports: []string{clientGo}},
	{name: "internal/control", imports: []string{caddy}},
	{name: "k8singress", imports: []string{caddy}},
	{name: "caddyfile", imports: []string{caddy}},
	{name: ".", imports: []string{caddyL4}},
	{name: "ingressnginx"},
	{name: "cmd", imports: []string{caddy}},
	{name: "internal/tests", imports: []string{runProgram}, tests: true},
	{name: "examples", imports: []string{caddy}, tests: true},
	{name: "charts", tests: true},
	{name: "bench", imports: []string{runProgram}, tests: true},
}

// exceptions lists the packages that may import restricted paths although their folder may not, with the reason.
var exceptions = []struct {
	name, path, reason string
}{
	{"internal/process/caddyinternals", caddy, "it has every use of the private parts of Caddy"},
	{"internal/process/events", caddy, "it emits events of Caddy's events app"},
	{"internal/process/logs", caddy, "it hands log lines over to the loggers of the running configuration"},
	{"internal/process/netaddr", caddy, "it parses addresses as Caddy does"},
	{"internal/process/ownapp", caddy, "it finds the app in Caddy's configuration"},
	{"internal/tls/issuance", caddy, "it uses Caddy's issuers"},
	{"internal/http/caddylog", caddy, "it writes the fields of Caddy's access log"},
	{"internal/http/front", caddy, "it runs Caddy's HTTP servers"},
	{"internal/http/live", caddy, "it runs Caddy's handlers in chains"},
}

// narrower lists packages that reach even less than their folder may: none of these paths, not even through other
// packages.
var narrower = []struct{ name, path, reason string }{
	{"internal/control/render", kubernetes, "it knows the model and Caddy, not Kubernetes"},
	{"internal/control/structure", kubernetes, "it knows the model and Caddy, not Kubernetes"},
	{"internal/process", kubernetes, "the process exists without Kubernetes"},
	{"internal/http/front", kubernetes, "it serves connections without knowing Kubernetes"},
}

// standardOnly lists the packages that import nothing but the standard library, so that they can be read alone.
var standardOnly = []string{
	"internal/model/ir", "internal/model/suggest", "internal/model/pools", "internal/model/shrinking",
	"internal/model/ascii", "internal/model/jsonfilter",
	"internal/process/budget", "internal/process/gctune", "internal/process/loops", "internal/process/panics",
	"internal/process/wake", "internal/tls/sni", "internal/upstream/reach", "internal/upstream/split",
	"internal/http/message", "internal/http/fastcgi",
}
