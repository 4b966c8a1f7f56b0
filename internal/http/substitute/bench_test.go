package substitute_test

import (
	"strings"
	"testing"

	"github.com/k8singress/k8singress/internal/http/message"
	"github.com/k8singress/k8singress/internal/http/substitute"
)

// discard is a message.Writer that discards the body.
type discard struct{ message.Writer }

func (discard) Write(part []byte) (int, error) { return len(part), nil }

// page returns a page of 10 KiB of HTML.
func page() string {
	const head = "<!DOCTYPE html>\n<html><head><title>Shop</title>\n<meta charset=\"utf-8\"></head>\n<body>\n"
	const row = `<li class="item"><a href="http://shop.example/items/17?color=blue">The Blue Item</a> costs 17.</li>
`
	return (head + strings.Repeat(row, 200))[:10<<10]
}

// BenchmarkWrite writes bodies of 10 KiB at once, the last of them the slowest that are known.
func BenchmarkWrite(b *testing.B) {
	for _, c := range []struct {
		name   string
		pairs  pairs
		body   string
		repeat bool
	}{
		{"once", pairs{"</head>", "<link></head>"}, page(), false},
		{"absent", pairs{"</main>", ""}, page(), true},
		{"links", pairs{"http://shop.example/", "https://www.example/", "</head>", "<link></head>"}, page(), true},
		{"words", pairs{"item", "1", "blue", "2", "costs", "3", "shop", "4", "href", "5"}, page(), true},
		{"prefix", pairs{strings.Repeat("a", 4000) + "b", "x", "a", "y"}, strings.Repeat("a", 10<<10), true},
		{"suffix", pairs{"b" + strings.Repeat("a", 4000), "x", "aa", "y"}, strings.Repeat("a", 10<<10), true},
	} {
		b.Run(c.name, func(b *testing.B) {
			list, replacements := c.pairs.split()
			texts, body := substitute.NewTexts(list), []byte(c.body)
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				w := substitute.NewWriter(discard{})
				w.Begin(texts, replacements, c.repeat, int64(len(body)))
				if _, err := w.Write(body); err != nil {
					b.Fatal(err)
				}
				if err := w.End(false); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
