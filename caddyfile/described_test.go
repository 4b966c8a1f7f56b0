package caddyfile

import (
	"go/ast"
	"go/parser"
	"go/token"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/k8singress/k8singress/internal/model/settings"
)

// described returns the topics, and their options with the texts of the documentation. If a row has no Default, its
// texts come from the comment of the field with the same name in JSON, and Doc follows the comment.
func described(t *testing.T) []topic {
	t.Helper()
	comments, described := commentsOfFields(t), slices.Clone(topics)
	for i := range described {
		rows := slices.Clone(described[i].Options)
		for j := range rows {
			row := &rows[j]
			if row.Default != "" {
				continue
			}
			doc, standard, _ := strings.Cut(comments[row.Name], " Default: ")
			row.Doc, row.Default = strings.TrimSpace(doc+" "+row.Doc), strings.TrimSuffix(standard, ".")
		}
		described[i].Options = rows
	}
	return described
}

// commentsOfFields returns the first paragraphs of the comments on the fields of package settings, without the name of
// the field, by the names in JSON. "HTTP lists the addresses" becomes "The addresses".
func commentsOfFields(t *testing.T) map[string]string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "../internal/model/settings/settings.go", nil,
		parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	comments := map[string]string{}
	ast.Inspect(file, func(n ast.Node) bool {
		field, ok := n.(*ast.Field)
		if !ok || field.Tag == nil {
			return true
		}
		tag, _ := strconv.Unquote(field.Tag.Value)
		key, _, _ := strings.Cut(reflect.StructTag(tag).Get("json"), ",")
		paragraph, _, _ := strings.Cut(field.Doc.Text(), "\n\n")
		text, ok := strings.CutPrefix(strings.Join(strings.Fields(paragraph), " "), field.Names[0].Name+" ")
		if !ok {
			t.Errorf("the comment of %s does not begin with this name", field.Names[0].Name)
		}
		for _, verb := range []string{"is the ", "is how ", "lists the ", "lists networks "} {
			if strings.HasPrefix(text, verb) {
				_, text, _ = strings.Cut(text, " ")
			}
		}
		comments[key] = strings.ToUpper(text[:1]) + text[1:]
		return true
	})
	return comments
}

// TestDescribed checks that every option has the texts that the documentation prints, and that the texts say the
// defaults that apply.
func TestDescribed(t *testing.T) {
	standard := map[string]string{}
	for _, row := range optionsOf(described(t)) {
		if row.Doc == "" || row.Default == "" || strings.Contains(row.Doc+row.Default, "\n") {
			t.Errorf("%s: Doc is %q, and Default is %q", row.Name, row.Doc, row.Default)
		}
		standard[row.Name] = row.Default
	}
	for name, want := range map[string]string{
		"ingress_class": settings.DefaultIngressClass, "controller_name": settings.DefaultControllerName,
		"http": settings.DefaultHTTP, "https": settings.DefaultHTTPS, "election_id": settings.DefaultElectionID,
		"host_ownership":              settings.HostOwnershipShared,
		"hosts_per_namespace":         strconv.Itoa(settings.DefaultHostsPerNamespace),
		"service_ports_per_namespace": strconv.Itoa(settings.DefaultServicePortsPerNamespace),
		"service_max_connections":     strconv.Itoa(settings.DefaultServiceMaxConnections),
	} {
		if standard[name] != want {
			t.Errorf("%s: the documented default is %q, and the default is %q", name, standard[name], want)
		}
	}
}
