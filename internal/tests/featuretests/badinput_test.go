package featuretests

import (
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
)

// TestBadObjectsDoNotAffectOthers checks that one bad object of each kind does not affect a good object beside it.
func TestBadObjectsDoNotAffectOthers(t *testing.T) {
	ip, port := backend(t, "one")
	bad, err := os.ReadFile("testdata/bad.yaml")
	if err != nil {
		t.Fatal(err)
	}
	in := newIngress(t)
	in.write("good.yaml", class+service("web", port, ip)+rule("web", "shop.example", "Prefix", "/", "web"))
	in.write("bad.yaml", string(bad))
	in.writeAnything("no.yaml", "this: [is no\n\tyaml")
	in.load("manifests " + in.folder)
	in.awaitReady()
	in.byEachVersion(t, func(_ *testing.T, in *ingress) {
		in.expect("shop.example", "/", http.StatusOK, "one /")
		in.expect("partly.example", "/good", http.StatusOK, "one /good")
		in.expect("partly.example", "/missing-service", http.StatusServiceUnavailable, "")
		in.expect("partly.example", "/missing-port", http.StatusServiceUnavailable, "")
		in.expect("partly.example", "/no-backend", http.StatusNotFound, "")
		in.expect("foreign.example", "/", http.StatusNotFound, "")
	})
	for object, want := range map[string]string{
		"Ingress/default/partly": "ServiceNotFound", "Ingress/default/no-secret": "SecretNotFound",
		"File/no.yaml":            "InvalidManifest",
		"Ingress/default/garbage": "InvalidTLSSecret",
	} {
		if got := in.reasons(object); !slices.Contains(got, want) {
			t.Errorf("%s: reasons are %v, want %s", object, got, want)
		}
	}
}

// TestPlaceholdersStayLiteral checks that an object cannot read the environment or the files of the controller.
func TestPlaceholdersStayLiteral(t *testing.T) {
	const canary = "canary-in-the-environment"
	t.Setenv("K8SINGRESS_CANARY", canary)
	ip, port := backend(t, "one")
	placeholders := []string{"{env.K8SINGRESS_CANARY}", "{file./etc/hostname}", "{http.request.host}",
		"{$K8SINGRESS_CANARY}"}
	manifests := class + service("web", port, ip)
	for i, p := range placeholders {
		name := string(rune('a' + i))
		manifests += rule(name, name+".example", "Prefix", "/"+p, "web")
		plain := rule(name+"-rewrite", name+"-rewrite.example", "ImplementationSpecific", "/x", "web")
		manifests += strings.Replace(plain, "{name: "+name+"-rewrite}",
			`{name: `+name+`-rewrite, annotations: {nginx.ingress.kubernetes.io/rewrite-target: "/`+p+`"}}`, 1)
	}
	in := start(t, manifests)
	for i, p := range placeholders {
		name := string(rune('a' + i))
		in.expect(name+".example", "/"+p, http.StatusOK, "one "+(&url.URL{Path: "/" + p}).EscapedPath())
		got := in.get(name+"-rewrite.example", "/x")
		if got.status != http.StatusOK || strings.Contains(got.body, canary) || !strings.ContainsAny(got.body, "{%") {
			t.Errorf("rewrite to %s: %d %s", p, got.status, got.body)
		}
	}
	if strings.Contains(string(in.document()), canary) {
		t.Error("the document holds the variable's value")
	}
}
