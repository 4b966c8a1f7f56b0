package live

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/k8singress/k8singress/internal/http/exchange"
	"github.com/k8singress/k8singress/internal/http/message"
	"github.com/k8singress/k8singress/internal/model/document"
)

// BenchmarkHostLookup looks up the virtual host of a name. The cost must not depend on the number of hosts.
func BenchmarkHostLookup(b *testing.B) {
	for _, n := range []int{1, 10_000} {
		changed := map[string]*host{"": {}}
		for i := range n {
			changed[fmt.Sprintf("host-%d.example.com", i)] = &host{}
			changed[fmt.Sprintf("*.wild-%d.example.com", i)] = &host{}
		}
		x := new(index).with(changed, nil)
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

// BenchmarkPathLookup looks up the route of a path. Only regular expressions are tried one by one.
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
					if found, err := h.find(asked, r); found == nil || err != nil {
						b.Fatal("no route")
					}
				}
			})
		}
	}
}

// BenchmarkLongPath looks up a path of 16 KiB with as many elements as possible, with prefixes of different lengths.
func BenchmarkLongPath(b *testing.B) {
	long := strings.Repeat("/a", 8<<10)
	for name, paths := range map[string][]string{
		"root": {"/"}, "as long": {"/", long}, "among many": {"/a", "/b", "/a/a/b", long[:9000], long[:16000], long},
	} {
		h := newHost("h", &document.Host{})
		for _, path := range paths {
			if err := add(h, "prefix", path); err != nil {
				b.Fatal(err)
			}
		}
		for _, elements := range []int{4 << 10, 8 << 10} {
			path := long[:2*elements-2] + "/x"
			b.Run(fmt.Sprintf("%s/elements=%d", name, elements), func(b *testing.B) {
				for b.Loop() {
					if found, err := h.find(path, &message.Request{Method: http.MethodGet}); found == nil ||
						err != nil {
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
