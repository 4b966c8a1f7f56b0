package featuretests

import (
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// pageExample is an example of docs/snippets.md, as a file of testdata/snippets would have it.
type pageExample struct {
	snippetFile
	title string
}

var (
	codeBlock = regexp.MustCompile("(?s)```(.*?)\n(.*?)```\n")
	inCode    = regexp.MustCompile("`([^`]*)`")
	// aRequest matches an item in the second column of a table that starts a request.
	aRequest = regexp.MustCompile(`^[A-Z]+ /`)
	// removed matches the name of a header that a snippet removes.
	removed = regexp.MustCompile(`proxy_set_header (\S+) "";|proxy_hide_header (\S+);`)
)

// snippetExamples returns the examples of docs/snippets.md. Each consists of a YAML block and a table of exchanges. All
// have the name "shop", so that the page can name the host shop.example.
func snippetExamples(t *testing.T) (all []*pageExample) {
	t.Helper()
	page, err := os.ReadFile("../../../docs/snippets.md")
	if err != nil {
		t.Fatal(err)
	}
	title, blocks := "", codeBlock.FindAllStringSubmatchIndex(string(page), -1)
	for i, at := range blocks {
		end := len(page)
		if i+1 < len(blocks) {
			end = blocks[i+1][0]
		}
		before, after := string(page[:at[0]]), string(page[at[1]:end])
		title = before[strings.LastIndex(before, "\n#")+1:]
		title, _, _ = strings.Cut(strings.TrimLeft(title, "# "), "\n")
		if language := string(page[at[2]:at[3]]); language != "yaml" {
			t.Errorf("%s: the block is written in %q", title, language)
		}
		e := &pageExample{title: title}
		e.read(t, page[at[4]:at[5]])
		e.readExchanges(t, after)
		e.complete(t)
		all = append(all, e)
	}
	return all
}

// read reads the YAML block of an example: the annotations of the Ingress, or the data of the ConfigMap.
func (e *pageExample) read(t *testing.T, text []byte) {
	t.Helper()
	var object struct {
		Kind     string            `json:"kind"`
		Data     map[string]string `json:"data"`
		Metadata struct {
			Annotations map[string]string `json:"annotations"`
		} `json:"metadata"`
	}
	if err := yaml.UnmarshalStrict(text, &object); err != nil {
		t.Fatalf("%s: %v", e.title, err)
	}
	take := func(from map[string]string, name string) string {
		defer delete(from, name)
		// The page names Services of its own, which are the second endpoint in tests, and a network of proxies, from
		// which the requests of tests come.
		return strings.NewReplacer("10.0.0.0/8", "127.0.0.0/8", "auth.example.svc.cluster.local", "OTHER",
			"//api:8080", "//shop-other").Replace(from[name])
	}
	e.name, e.About, e.ConfigMap, e.Annotations = "shop", e.title, object.Data, map[string]string{}
	e.HTTP = take(e.ConfigMap, "http-snippet")
	for name := range object.Metadata.Annotations {
		value := take(object.Metadata.Annotations, name)
		switch name = strings.TrimPrefix(name, "nginx.ingress.kubernetes.io/"); name {
		case "configuration-snippet":
			e.Snippet = value
		case "server-snippet":
			e.Server = value
		default:
			e.Annotations[name] = value
		}
	}
	if strings.Contains(e.Server, "shop-other") {
		e.OtherPath = "/other"
	}
	for _, found := range removed.FindAllStringSubmatch(e.Snippet, -1) {
		e.Fields = append(e.Fields, found[1]+found[2])
	}
	e.Responses = map[string]string{
		"/":     "200\nX-Powered-By: engine\n\nhello",
		"/page": "200\nContent-Type: text/html\n\n<head></head>",
	}
	e.OtherResponses = map[string]string{"/verify": "200\nX-User: alice\n\n"}
	if strings.Contains(e.Snippet, "error_page 401") {
		e.OtherResponses["/verify"] = "401\n\n"
	}
}

// readExchanges reads the table behind the YAML block. Its columns are a request, what services get, and what the
// client gets. In each, items stand in backquotes: the first line of a message, then header fields. A body stands in
// quotes.
func (e *pageExample) readExchanges(t *testing.T, text string) {
	t.Helper()
	rows := e.rows(t, text)
	for _, row := range rows {
		for _, item := range slices.Concat(row[1], row[2][1:]) {
			name, _, isField := strings.Cut(item, ": ")
			if isField && name != "Location" && !strings.HasPrefix(name, `"`) && !slices.Contains(e.Fields, name) {
				e.Fields = append(e.Fields, name)
			}
		}
	}
	for _, row := range rows {
		x := snippetExchange{Request: strings.Join(row[0], "\n")}
		x.Response = e.message(row[2])
		for items := row[1]; len(items) > 0; {
			end := slices.IndexFunc(items[1:], aRequest.MatchString) + 1
			if end == 0 {
				end = len(items)
			}
			x.Forwarded += e.message(items[:end])
			items = items[end:]
		}
		e.Exchanges = append(e.Exchanges, x)
	}
}

// rows returns the items in the three columns of the table in text.
func (e *pageExample) rows(t *testing.T, text string) (all [][3][]string) {
	t.Helper()
	_, rows, _ := strings.Cut(text, "| request | a service gets | the client gets |\n| --- | --- | --- |\n")
	for row := range strings.Lines(rows) {
		columns := strings.Split(strings.Trim(row, "| \n"), " | ")
		if len(columns) != 3 {
			break
		}
		var items [3][]string
		for i, column := range columns {
			for _, found := range inCode.FindAllStringSubmatch(column, -1) {
				items[i] = append(items[i], found[1])
			}
		}
		if (columns[1] == "nothing") != (items[1] == nil) || items[0] == nil || items[2] == nil {
			t.Fatalf("%s: the row is %q", e.title, row)
		}
		all = append(all, items)
	}
	return all
}

// message returns a message in the form of a snippetEffect. Its fields have the order of e.Fields.
func (e *pageExample) message(items []string) string {
	const second = "at the second endpoint"
	first := strings.NewReplacer("at api", second, "at auth", second).Replace(items[0])
	fields, body := http.Header{}, ""
	for _, item := range items[1:] {
		if text, isBody := strings.CutPrefix(item, `"`); isBody {
			body = "\n" + strings.ReplaceAll(strings.TrimSuffix(text, `"`), `\n`, "\n")
			continue
		}
		name, value, _ := strings.Cut(item, ": ")
		// The page shows requests without TLS.
		fields.Add(name, strings.Replace(value, "http://shop.example", "SCHEME://shop.example", 1))
	}
	return first + "\n" + fieldsOf(fields, slices.Concat(e.Fields, []string{"Location"})) + body
}

// TestExamplesOfSnippets checks that the requests in the tables of docs/snippets.md have the effect that they show, and
// that the controller reports no problem of the snippets.
func TestExamplesOfSnippets(t *testing.T) {
	for _, example := range snippetExamples(t) {
		t.Run(example.title, func(t *testing.T) {
			in := checkSnippets(t, example.startEndpoints(t))
			for _, object := range []string{"Ingress/default/shop", "ConfigMap/default/global"} {
				if got := in.reasons(object); len(got) > 0 {
					t.Errorf("the problems of %s are %v", object, got)
				}
			}
		})
	}
}
