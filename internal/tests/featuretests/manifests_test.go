package featuretests

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/k8singress/k8singress/internal/kube/files"
	"github.com/k8singress/k8singress/internal/model/report"
)

// The functions of this file return objects as YAML documents. Each document starts with a line "---", so texts that
// start with one can be joined with +.

// join returns manifests as the text of one file. It adds the line "---" to manifests that do not start with it.
func join(manifests ...string) string {
	var file strings.Builder
	for _, m := range manifests {
		if !strings.HasPrefix(m, "---\n") {
			file.WriteString("---\n")
		}
		file.WriteString(strings.TrimSuffix(m, "\n") + "\n")
	}
	return file.String()
}

const class = `---
apiVersion: networking.k8s.io/v1
kind: IngressClass
metadata: {name: nginx}
spec: {controller: k8s.io/ingress-nginx}
`

// service returns a Service "default/NAME" with port 80 and one EndpointSlice with these addresses.
func service(name, port string, ips ...string) string {
	var endpoints strings.Builder
	for _, ip := range ips {
		fmt.Fprintf(&endpoints, "\n- addresses: [%s]", ip)
	}
	return fmt.Sprintf(`---
apiVersion: v1
kind: Service
metadata: {name: %[1]s}
spec: {ports: [{name: http, port: 80}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: %[1]s-1, labels: {kubernetes.io/service-name: %[1]s}}
addressType: IPv4
ports: [{name: http, port: %[2]s}]
endpoints:%[3]s
`, name, port, endpoints.String())
}

// rule returns an Ingress "default/NAME" with one host and one path.
func rule(name, host, kind, path, service string) string {
	return fmt.Sprintf(`---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: %s}
spec:
  ingressClassName: nginx
  rules:
  - host: %q
    http: {paths: [{path: %q, pathType: %s, backend: {service: {name: %s, port: {number: 80}}}}]}
`, name, host, path, kind, service)
}

// ruleTo is like rule for all paths of a host, and for a port other than 80.
func ruleTo(port, name, host, service string) string {
	return strings.Replace(rule(name, host, "Prefix", "/", service), "{number: 80}", "{number: "+port+"}", 1)
}

// annotated returns an Ingress "default/NAME" for all paths of a host, with annotations.
func annotated(name, host, service string, annotations ...string) string {
	return annotate(rule(name, host, "Prefix", "/", service), annotations...)
}

// annotate adds annotations to an Ingress; keys and values alternate. A key without a prefix gets the prefix of
// ingress-nginx.
func annotate(rule string, annotations ...string) string {
	var lines strings.Builder
	for i := 0; i < len(annotations); i += 2 {
		key := annotations[i]
		if !strings.Contains(key, "/") {
			key = "nginx.ingress.kubernetes.io/" + key
		}
		fmt.Fprintf(&lines, "%s: %q, ", key, annotations[i+1])
	}
	return strings.Replace(rule, "}\nspec:", ", annotations: {"+strings.TrimSuffix(lines.String(), ", ")+"}}\nspec:", 1)
}

// configMap returns the ConfigMap "default/NAME". Each entry of data is a line of YAML, such as "hsts: 'true'".
func configMap(name string, data ...string) string {
	return fmt.Sprintf("---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s}\ndata:\n  %s\n", name,
		strings.Join(data, "\n  "))
}

// global returns the ConfigMap default/global.
func global(data ...string) string { return configMap("global", data...) }

// losses are the reasons of problems because of which the controller ignores manifests, or parts of them.
var losses = []report.Reason{report.InvalidManifest, report.DuplicateObject, report.IgnoredKind}

// ignoredIn returns the problems of a file because of which the controller ignores manifests, or parts of them.
func ignoredIn(t testing.TB, file string) (problems []string) {
	t.Helper()
	_, verdicts, err := files.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range verdicts {
		for _, p := range v.Problems {
			if slices.Contains(losses, p.Reason) {
				problems = append(problems, fmt.Sprintf("%s: %s: %s %s", v.Object, p.Reason, p.Field, p.Message))
			}
		}
	}
	return problems
}

// numbered returns a text with the numbers of its lines, to which problems refer.
func numbered(text string) string {
	var lines strings.Builder
	n := 0
	for line := range strings.Lines(text) {
		n++
		fmt.Fprintf(&lines, "%4d %s", n, line)
	}
	return lines.String()
}

// mayFail is a test that records its first fatal failure instead of failing.
type mayFail struct {
	testing.TB
	message string
}

func (f *mayFail) Fatalf(format string, args ...any) {
	f.message = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

// failureOf runs a function like a test, and returns the message of its fatal failure, or "".
func failureOf(t *testing.T, test func(t testing.TB)) string {
	t.Helper()
	f, ended := &mayFail{TB: t}, make(chan struct{})
	go func() {
		defer close(ended)
		test(f)
	}()
	await(t, "the end of the test that may fail", ended)
	return f.message
}

// TestIgnoredManifestsFail checks that a test fails at once if the controller ignores its manifests, unless the test
// allows that.
func TestIgnoredManifestsFail(t *testing.T) {
	one := rule("one", "one.example", "Prefix", "/", "web")
	bare := strings.TrimPrefix(rule("two", "two.example", "Prefix", "/", "web"), "---\n")
	for name, c := range map[string]struct{ manifests, want string }{
		"good":             {class + service("web", "80", "192.0.2.1") + one, ""},
		"not separated":    {one + bare, `key "apiVersion" already set`},
		"joined":           {join(one, bare), ""},
		"a name like off":  {rule("off", "a.example", "Prefix", "/", "web"), "metadata.name must be a string"},
		"an unknown field": {strings.Replace(one, "rules:", "roles:", 1), `unknown field "spec.roles"`},
		"an unknown kind":  {strings.Replace(one, "kind: Ingress", "kind: Ingres", 1), "Ingres (1)"},
		"defined twice":    {one + one, "defines the same object"},
		"not YAML":         {"a: [", "is not YAML"},
	} {
		t.Run(name, func(t *testing.T) {
			got := failureOf(t, func(t testing.TB) {
				in := &ingress{TB: t, folder: t.TempDir()}
				in.write("a.yaml", c.manifests)
			})
			if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
				t.Errorf("the failure is %q, want %q", got, c.want)
			}
		})
	}
}
