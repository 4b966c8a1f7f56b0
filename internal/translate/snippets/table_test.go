package snippets

import (
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	crossplane "github.com/nginxinc/nginx-go-crossplane"

	"github.com/k8singress/k8singress/internal/tests/fixture"
)

var update = flag.Bool("update", false, "rewrite docs/snippets.md and the list in the chart")

// TestDoc checks that docs/snippets.md lists all directives.
func TestDoc(t *testing.T) {
	type section struct {
		Class  Class
		Title  string
		Rows   []Row
		Joined string
	}
	var sections []*section
	for _, row := range Table() {
		title := row.Phase + row.Doc
		if row.Class == Works {
			title = row.Phase
		}
		if n := len(sections); n == 0 || sections[n-1].Title != title {
			sections = append(sections, &section{Class: row.Class, Title: title})
		}
		last := sections[len(sections)-1]
		last.Rows = append(last.Rows, row)
	}
	byClass := map[string][]*section{}
	for _, s := range sections {
		names := make([]string, len(s.Rows))
		for i := range s.Rows {
			names[i] = "`" + s.Rows[i].Name + "`"
		}
		s.Joined = strings.Join(names, ", ")
		key := strings.ReplaceAll(string(s.Class), " ", "")
		byClass[key] = append(byClass[key], s)
	}
	for _, s := range authSections {
		names := "`" + strings.ReplaceAll(s.names, " ", "`, `") + "`"
		byClass["auth"] = append(byClass["auth"], &section{Class: s.Class, Title: s.Reason, Joined: names})
	}
	fixture.Printed(t, "../../../docs/snippets.md", byClass, *update)
}

// TestDirectivesOfChart checks that the chart, whose NOTES name the directives that close hosts, has the classes of all
// directives.
func TestDirectivesOfChart(t *testing.T) {
	word := strings.NewReplacer(" ", "-")
	lines := []string{"# The directives of nginx with their classes in snippets and in global-auth-snippet, printed " +
		"from internal/translate/snippets by `make generate`."}
	for _, row := range Table() {
		auth, _ := row.inAuth()
		lines = append(lines, row.Name+" "+word.Replace(string(row.Class))+" "+word.Replace(string(auth)))
	}
	fixture.Generated(t, "../../../charts/k8singress/files/directives.txt", strings.Join(lines, "\n")+"\n", *update)
}

// TestTable checks that each row is complete, and that the directives of class Works are exactly the directives that
// have an interpreter.
func TestTable(t *testing.T) {
	seen := map[string]bool{}
	for _, row := range Table() {
		if seen[row.Name] {
			t.Errorf("%s is there twice", row.Name)
		}
		seen[row.Name] = true
		if !slices.Contains([]Class{Works, NoEffect, LeftOut, Guard, Unreadable}, row.Class) {
			t.Errorf("%s: there is no class %q", row.Name, row.Class)
		}
		if row.Doc == "" || len(row.Contexts) == 0 || (row.Phase == "") != (row.Class != Works) {
			t.Errorf("the row is incomplete: %+v", row)
		}
		_, converted := conversions[row.Name]
		_, read := interpreters[row.Name]
		hasBlock := slices.Contains([]string{"if", "location", "limit_except"}, row.Name)
		if works := converted != read || hasBlock; works != (row.Class == Works) {
			t.Errorf("%s has the class %s, and an interpreter: %t", row.Name, row.Class, works)
		}
	}
	for name := range interpreters {
		if !seen[name] {
			t.Errorf("the table does not contain %s", name)
		}
	}
	for name, c := range conversions {
		if !seen[name] || c.values == nil {
			t.Errorf("the table does not contain %s, or it has no function", name)
		}
	}
}

// TestAuthSections checks that each directive is in one section only, that the table contains it, and that the section
// is never weaker than the table: requests to authentication services have no directive that works there only.
func TestAuthSections(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range authSections {
		for name := range strings.FieldsSeq(s.names) {
			row := byName()[name]
			switch {
			case row == nil || seen[name] || s.Reason == "":
				t.Errorf("%s is not in the table, is in two sections, or has no reason", name)
			case s.Class == Works && row.Class != Works, s.Class != Guard && row.Class == Guard:
				t.Errorf("%s has the class %s, and %s in locations", name, s.Class, row.Class)
			case s.Class != Works && s.Class == row.Class && s.Reason == row.Doc:
				t.Errorf("%s is the same in locations", name)
			}
			seen[name] = true
		}
	}
}

// TestTableIsComplete checks that the table contains every directive that the parser crossplane knows, which includes
// the modules of ingress-nginx. crossplane does not export the names, so they are read from its source.
func TestTableIsComplete(t *testing.T) {
	names := namesOfCrossplane(t)
	if len(names) < 850 {
		t.Fatalf("crossplane knows %d directives only", len(names))
	}
	for _, name := range names {
		if byName()[name] == nil {
			t.Errorf("the table does not contain %s", name)
		}
	}
}

// namesOfCrossplane returns the keys of all tables of directives in crossplane's source.
func namesOfCrossplane(t *testing.T) (names []string) {
	t.Helper()
	const module = "github.com/nginxinc/nginx-go-crossplane"
	folder, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", module).Output()
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(folder)), "analyze_*_directives*.go"))
	if err != nil || len(files) == 0 {
		t.Fatal("there are no tables of directives: ", err)
	}
	for _, file := range files {
		tree, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(tree, func(n ast.Node) bool {
			pair, ok := n.(*ast.KeyValueExpr)
			if !ok {
				return true
			}
			if key, ok := pair.Key.(*ast.BasicLit); ok {
				name, err := strconv.Unquote(key.Value)
				if err != nil {
					t.Fatal(err)
				}
				names = append(names, name)
			}
			return false
		})
	}
	return names
}

// TestContexts checks where nginx allows each directive, and whether it has a block, against crossplane. crossplane
// does not export the bits of its masks. Only nginx before 1.25 has the directive ssl in these contexts.
func TestContexts(t *testing.T) {
	const block = 0x100
	bits := map[string]uint{
		inMain: 0x40000, "http": 0x2000000, "server": 0x4000000, inLocation: 0x8000000, "if in server": 0x20000000,
		inIf: 0x40000000, "limit_except": 0x80000000,
	}
	compared := 0
	for _, row := range Table() {
		masks, found := crossplane.DefaultDirectivesMatchFunc(row.Name)
		if !found {
			masks, found = crossplane.MatchHeadersMoreLatest(row.Name)
		}
		if !found {
			continue
		}
		compared++
		for context, bit := range bits {
			allowed := slices.ContainsFunc(masks, func(mask uint) bool { return mask&bit != 0 })
			if row.allowedIn(context) != allowed && row.Name != "ssl" {
				t.Errorf("%s in %s: %t, and crossplane says %t", row.Name, context, !allowed, allowed)
			}
		}
		if blocks := slices.ContainsFunc(masks, func(mask uint) bool { return mask&block != 0 }); blocks != row.Block {
			t.Errorf("%s has a block: %t, and crossplane says %t", row.Name, row.Block, blocks)
		}
	}
	if compared < 600 {
		t.Errorf("only %d directives were compared", compared)
	}
}
