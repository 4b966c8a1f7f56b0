package translate_test

import (
	"testing"

	networkingv1 "k8s.io/api/networking/v1"

	"github.com/k8singress/k8singress/internal/translate"
	"github.com/k8singress/k8singress/internal/translate/annotations"
)

// TestHeadsOfSnippets checks that the largest request headers for which a host has a snippet count, up to 64 KiB, and
// only as long as the snippet applies to the host.
func TestHeadsOfSnippets(t *testing.T) {
	o := options
	o.Ingress.Defaults.Gate = annotations.Gate{Level: annotations.RiskCritical, Snippets: true}
	store, translator := fill(3), translate.New()
	set := func(object *networkingv1.Ingress, text string) {
		object.Annotations = map[string]string{annotations.Prefix + "server-snippet": text}
		store.Set(object)
	}
	check := func(name string, want int) {
		t.Helper()
		s := store.Take()
		got, _ := translator.Translate(s, o)
		full, _ := translate.Translate(s, o)
		for config, got := range map[string]int{
			"incremental": got.Global.Connections.SnippetHead, "full": full.Global.Connections.SnippetHead,
		} {
			if got != want {
				t.Errorf("%s: %s: the size is %d, want %d", name, config, got, want)
			}
		}
	}
	check("no snippet", 0)
	set(numbered(0, "/"), "large_client_header_buffers 4 10k;")
	set(numbered(1, "/"), "large_client_header_buffers 4 12k;")
	check("two sizes", 48<<10)
	set(numbered(2, "/"), "client_header_buffer_size 64k; large_client_header_buffers 4 64k;")
	check("more than the maximum", 64<<10)
	set(numbered(2, "/"), "large_client_header_buffers 4 64k; auth_request /a;")
	check("a snippet that closes its host", 48<<10)
	younger := numbered(2, "/other")
	younger.Name = "younger"
	younger.Spec.Rules[0].Host = "h0.example"
	younger.CreationTimestamp.Time = stamps[1]
	set(younger, "large_client_header_buffers 4 15k;")
	check("the snippet of a younger Ingress", 48<<10)
	store.Delete(numbered(1, "/"))
	check("a deleted Ingress", 40<<10)
	set(numbered(0, "/"), "server_tokens off;")
	check("a changed Ingress", 0)
	store.Delete(numbered(0, "/"))
	check("the younger Ingress alone", 60<<10)
}
