package featuretests

import (
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// TestAnnotationGate checks which Ingresses are closed with which keys of the ConfigMap, that other Ingresses of their
// hosts are served, and that annotations which are not allowed have no effect on their hosts.
func TestAnnotationGate(t *testing.T) {
	ip, port := backend(t, "one")
	next, nextPort := backend(t, "next")
	const snippet, text = "configuration-snippet", "add_header X-A b;"
	in := start(t, class+service("one", port, ip)+service("next", nextPort, next)+
		annotated("plain", "plain.example", "one", "proxy-read-timeout", "5")+
		annotated("snippet", "snippet.example", "one", snippet, text)+
		annotated("auth", "auth.example", "one", "auth-url", "http://"+net.JoinHostPort(ip, port)+"/")+
		annotate(rule("alias", "alias.example", "Prefix", "/a", "one"), "server-alias", "other.example")+
		annotate(rule("rewrite", "alias.example", "Prefix", "/r/(.*)", "one"), "rewrite-target", "/serviceaccount/$1")+
		rule("beside", "alias.example", "Prefix", "/", "one")+
		annotated("main", "main.example", "one")+
		annotated("canary", "main.example", "next", "canary", "true", "canary-weight", "100", snippet, text),
		"configmap default/global")
	open := map[string]string{
		"plain.example/": "one /", "snippet.example/": "one /", "auth.example/": "one /", "alias.example/": "one /",
		"alias.example/a": "one /a", "alias.example/r/b": "one /serviceaccount/b", "other.example/": "one /",
	}
	for _, c := range []struct {
		name string
		keys []string
		// closed are the requests that get 503. The others get the response in open, except for the host other.example
		// if noAlias is set. mixed is the response of the host with the canary, and snippet the reason of the problem
		// with the snippet, or empty if it has none.
		closed         []string
		noAlias        bool
		mixed, snippet string
	}{
		{"defaults", nil, []string{"snippet.example/"}, false, "one", "AnnotationNotAllowed"},
		{"snippets without the level", []string{"allow-snippet-annotations=true"}, []string{"snippet.example/"}, false,
			"one", "AnnotationNotAllowed"},
		{"the level without snippets", []string{"annotations-risk-level=Critical"}, nil, false, "next",
			"AnnotationNotAllowed"},
		{"both", []string{"annotations-risk-level=critical", "allow-snippet-annotations=true"}, nil, false, "next",
			""},
		{"Medium", []string{"annotations-risk-level=Medium", "allow-snippet-annotations=true"},
			[]string{"snippet.example/", "auth.example/", "alias.example/a"}, true, "one", "AnnotationNotAllowed"},
		{"Low", []string{"annotations-risk-level=Low"},
			[]string{"snippet.example/", "auth.example/", "alias.example/a", "alias.example/r/b"}, true, "one",
			"AnnotationNotAllowed"},
		{"a word", []string{"annotation-value-word-blocklist=lua,serviceaccount", "annotations-risk-level=Critical"},
			[]string{"alias.example/r/b"}, false, "next", "AnnotationNotAllowed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			in.globalKeys(c.keys...)
			for url, body := range open {
				host, path, _ := strings.Cut(url, "/")
				status := http.StatusOK
				switch {
				case slices.Contains(c.closed, url):
					status, body = http.StatusServiceUnavailable, ""
				case host == "other.example" && c.noAlias:
					status, body = http.StatusNotFound, ""
				}
				in.expect(host, "/"+path, status, body)
			}
			in.expect("main.example", "/", http.StatusOK, c.mixed+" /")
			if got := strings.Join(in.reasons("Ingress/default/snippet"), " "); got != c.snippet {
				t.Errorf("the reasons for the snippet are %q, want %q", got, c.snippet)
			}
		})
	}
}
