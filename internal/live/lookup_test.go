package live

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/k8singress/k8singress/internal/document"
	"github.com/k8singress/k8singress/internal/exchange"
	"github.com/k8singress/k8singress/internal/message"
)

// BenchmarkHostLookup finds the virtual host of a name. It must cost the same with any number of them.
func BenchmarkHostLookup(b *testing.B) {
	for _, n := range []int{1, 10_000} {
		changed := map[string]*host{"": {}}
		for i := range n {
			changed[fmt.Sprintf("host-%d.example.com", i)] = &host{}
			changed[fmt.Sprintf("*.wild-%d.example.com", i)] = &host{}
		}
		x := new(index).with(changed)
		for kind, name := range map[string]string{
			"exact":    fmt.Sprintf("host-%d.example.com", n-1),
			"wildcard": fmt.Sprintf("some.wild-%d.example.com", n-1),
			"fallback": "nobody.example.com",
		} {
			b.Run(fmt.Sprintf("%s/hosts=%d", kind, n), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if x.find(name) == nil {
						b.Fatal("no host")
					}
				}
			})
		}
	}
}

// BenchmarkPathLookup finds the route of a path. Regular expressions are the one kind that is tried one by one.
func BenchmarkPathLookup(b *testing.B) {
	for kind, path := range map[string]string{
		"exact":  "/path-%d",
		"prefix": "/path-%d/more/of/a/path/below.html",
		"regex":  "/path-%d/more",
	} {
		for _, n := range []int{1, 100} {
			h := newHost("h", &document.Host{})
			for i := range n {
				if err := add(h, kind, fmt.Sprintf("/path-%d", i)); err != nil {
					b.Fatal(err)
				}
			}
			asked, r := fmt.Sprintf(path, n-1), &message.Request{Method: http.MethodGet}
			b.Run(fmt.Sprintf("%s/routes=%d", kind, n), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if h.find(asked, r) == nil {
						b.Fatal("no route")
					}
				}
			})
		}
	}
}

func add(h *host, kind, path string) error {
	return h.add(&Route{Route: exchange.Route{Type: kind, Path: path}})
}
