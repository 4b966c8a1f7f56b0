package main

import (
	"context"
	"fmt"
	"io"
	"strings"
)

const (
	// pagePath is the path of an HTML page, and pageSize the size of the page. oldPath is a path that a snippet
	// rewrites.
	pagePath, oldPath = "/page", "/old/page"
	pageSize          = 10 << 10
	// snippetTexts is the number of different snippets that many Ingresses have in turn.
	snippetTexts = 100
)

// userAgent is a header line of all requests, with and without snippets. A condition searches it.
const userAgent = "User-Agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) " +
	"Chrome/131.0.0.0 Safari/537.36"

// page is an HTML page.
var page = func() string {
	const head, row = "<html><head><title>Shop</title></head><body>\n",
		`<li class="item"><a href="/items/17?color=blue">The Blue Item</a> costs 17.</li>` + "\n"
	return (head + strings.Repeat(row, pageSize/len(row)))[:pageSize]
}()

// The text in the page that a snippet replaces.
const headEnd, changedHeadEnd = "</head>", `<link rel="icon" href="/icon.png"></head>`

// snippet is a configuration-snippet whose requests are compared with the same requests without it.
type snippet struct {
	name    string
	minimum float64
	lines   []string
	// path is the path of the requests. body is the expected response body with the snippet, and plain without it.
	path, body, plain string
}

// measuredSnippets lists the snippets that are compared with no snippet.
var measuredSnippets = []snippet{
	{"three directives: a request header, a response header, an if", 0.95, []string{
		"proxy_set_header X-Request-Method $request_method;",
		`more_set_headers "X-Frame-Options: DENY";`,
		`if ($http_user_agent ~* "badbot") { return 403; }`,
	}, "/", answerBody, answerBody},
	{fmt.Sprintf("sub_filter in a page of %d KiB", pageSize>>10), 0.80, []string{
		"sub_filter '" + headEnd + "' '" + changedHeadEnd + "';",
	}, pagePath, strings.Replace(page, headEnd, changedHeadEnd, 1), page},
	{"rewrite with the flag last", 0.93, []string{
		"rewrite ^/old/(.*)$ /new/$1 last;",
	}, oldPath, answerBody, answerBody},
}

// snippetsAllowed is a ConfigMap that allows snippets.
const snippetsAllowed = `---
apiVersion: v1
kind: ConfigMap
metadata: {name: controller, namespace: bench}
data: {annotations-risk-level: Critical, allow-snippet-annotations: "true"}
`

// configurationSnippet returns an annotation with these lines, in the format of annotated.
func configurationSnippet(lines ...string) string {
	return annotated(fmt.Sprintf("configuration-snippet: %q", strings.Join(lines, "\n")+"\n"))
}

// gets returns GETs for a path of a host of the contestant.
func (c *contestant) gets(host int, path, body string) asked {
	return asked{c, func(o options) load {
		l := c.load(o, host)
		l.path, l.body = path, body
		return l
	}}
}

// compareSnippets measures requests with a snippet and without it, prints the figures, and returns the bars.
func compareSnippets(ctx context.Context, o options, s site, out io.Writer) ([]bar, error) {
	p := &prices{}
	defer p.stop()
	if err := p.startSnippets(ctx, s.in("snippets")); err != nil {
		return nil, err
	}
	o = o.inShortRounds()
	if err := p.measure(ctx, o); err != nil {
		return nil, err
	}
	return p.bars(), p.write(o, "What snippets cost", out)
}

// startSnippets starts a contestant with a host for each snippet, and a host without one.
func (p *prices) startSnippets(ctx context.Context, s site) error {
	ours, err := p.add(startOurs(ctx, s, "snippets", s.one(snippetObjects())))
	if err != nil {
		return err
	}
	ours.header = userAgent
	for i, each := range measuredSnippets {
		p.all = append(p.all, &price{work: each.name + ", of no snippet", minimum: each.minimum, sides: [2]asked{
			ours.gets(firstAnnotated+i, each.path, each.body), ours.gets(plainHost, each.path, each.plain),
		}})
	}
	return nil
}

// snippetObjects returns an Ingress for each snippet, and the ConfigMap that allows snippets.
func snippetObjects() string {
	var text strings.Builder
	text.WriteString(snippetsAllowed)
	for i, each := range measuredSnippets {
		host := firstAnnotated + i
		fmt.Fprintf(&text, ingress, host, hostName(host), 1, configurationSnippet(each.lines...))
	}
	return text.String()
}

// manySnippets returns different snippets, with directives that are common in practice. Few of them have a rewrite,
// because the total size of the regular expressions of a namespace is limited.
func manySnippets() (all turns) {
	for i := range snippetTexts {
		lines := []string{
			`more_set_headers "X-Frame-Options: DENY" "X-Content-Type-Options: nosniff";`,
			fmt.Sprintf("proxy_set_header X-Application application-%d;", i),
			"if ($http_user_agent ~* badbot) { return 403; }",
			fmt.Sprintf(`add_header Cache-Control "max-age=%d" always;`, i),
			"proxy_read_timeout 20s;",
		}
		if i%5 == 0 {
			lines = append(lines, fmt.Sprintf("rewrite ^/old-%d/(.*)$ /new/$1 permanent;", i))
		}
		all = append(all, configurationSnippet(lines...))
	}
	return all
}

// compareManySnippets measures the cost of snippets with many Ingresses, prints the figures, and returns the bars.
func compareManySnippets(ctx context.Context, o options, s site, out io.Writer) ([]bar, error) {
	m := &many{options: o, site: s.in("many-snippets"),
		what: fmt.Sprintf("a snippet, of %d texts,", snippetTexts), annotations: manySnippets(), more: snippetsAllowed}
	defer m.stop()
	if err := m.measure(ctx); err != nil {
		return nil, err
	}
	without := bar{
		Work: thousands(float64(m.hosts())) + " Ingresses without snippets: translation, rendering and apply",
		Bar:  fmt.Sprintf("at least %.2f of a commit: set -snippets -against COMMIT", notLess),
		// The sides of m are with snippets and without them.
		Measured: duration(m.full.median(1)),
	}
	return append(m.timeBars(), without), m.write(out)
}
