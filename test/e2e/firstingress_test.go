package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// manifestOfPage matches the name of a manifest in the text before its content.
var manifestOfPage = regexp.MustCompile("`(first/manifests/[a-z-]+\\.yaml)`")

// followFirstIngress follows the section "In a cluster" of docs/first-ingress.md, with the last version of each
// manifest of the page. Another test follows the rest of the page.
func followFirstIngress(c *cluster) {
	c.Helper()
	in := "kubectl --namespace " + c.namespace + " "
	r := c.reader("kubectl create", in+"create", "kubectl expose", in+"expose", "kubectl apply", in+"apply",
		"caddy:2", "registry.example.com/k8singress:v1", "shutdown_delay: 15s", "shutdown_delay: 1s")
	page, err := os.ReadFile("../../docs/first-ingress.md")
	r.must(err)
	r.must(os.MkdirAll(filepath.Join(r.folder, "first/manifests"), 0o755))
	blocks := strings.Split(string(page), "```")
	for i := 1; i < len(blocks); i += 2 {
		if text, isYAML := strings.CutPrefix(blocks[i], "yaml\n"); isYAML {
			names := manifestOfPage.FindAllStringSubmatch(blocks[i-1], -1)
			r.must(os.WriteFile(filepath.Join(r.folder, names[len(names)-1][1]), []byte(text), 0o600))
		}
	}
	r.atEnd("helm uninstall k8singress --ignore-not-found --namespace k8singress\n" + kubectlDelete +
		"namespace k8singress k8singress-storage\n" + in + "delete ingress,deployment,service --all")
	scripts := r.scripts("first-ingress.md", "## In a cluster", 5)
	for _, script := range scripts[1:4] {
		r.run(script)
	}
	status, _, _ := strings.Cut(scripts[4], "\n")
	r.run(status + " --timeout=3m")
	address := r.run("kubectl --namespace k8singress get service k8singress-controller -o jsonpath={.spec.clusterIP}")
	last := r.scripts("first-ingress.md", "## Passwords", 1)[0]
	last = strings.ReplaceAll(last, "curl --insecure",
		"curl --insecure --connect-to shop.localhost:8443:"+address+":443")
	const want = "401\nthe new shop"
	r.awaitFor(installing, "the responses of the page", func() error {
		output, err := r.shell(r.Context(), last).Output()
		if got := strings.TrimSpace(string(output)); err != nil || got != want {
			return fmt.Errorf("%q, %w", got, err)
		}
		return nil
	})
}
