package annotations

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"

	"github.com/k8singress/k8singress/internal/model/suggest"
)

// knownNames lists the annotations of ingress-nginx v1.15.1, one per line.
//
//go:embed known.txt
var knownNames string

var known = strings.Fields(knownNames)

// requestsNothing reports whether the value of an annotation is empty or "false". An unsupported annotation with such a
// value causes no warning, because it enables no feature.
func requestsNothing(value string) bool {
	value = strings.TrimSpace(value)
	return value == "" || value == "false"
}

// snippetKeys are the snippets of the ConfigMap that are not annotations, too.
var snippetKeys = []string{HTTPSnippet.Name, LocationsSnippet.Name, MainSnippet.Name, GlobalAuthSnippet.Name}

// The function unknown returns the warning for an annotation that starts with Prefix or OwnPrefix but is not in Table.
func unknown(key string) string {
	name, isNginx := strings.CutPrefix(key, Prefix)
	if slices.Contains(known, name) {
		return fmt.Sprintf("the annotation %s of ingress-nginx is not supported yet, and has no effect", name)
	}
	own := strings.TrimPrefix(name, OwnPrefix)
	switch other := Table.Find(OwnPrefix + own); {
	case isNginx && other != nil:
		return fmt.Sprintf("the annotation %q does not exist, and has no effect; did you mean %s?", key, other.Name)
	case isNginx && slices.Contains(snippetKeys, name):
		return fmt.Sprintf("the annotation %q does not exist, and has no effect: it is a key of the ConfigMap; the "+
			"snippets of an Ingress are configuration-snippet, server-snippet and auth-snippet", key)
	case isNginx:
		return fmt.Sprintf("the annotation %q does not exist, and has no effect%s", key, suggest.Hint(name, known))
	case Table.Find(own) != nil:
		return fmt.Sprintf("the annotation %q does not exist, and has no effect; did you mean %s?", key, Key(own))
	case own == "tcp-ports", own == "udp-ports", strings.HasPrefix(own, "stream-"):
		return fmt.Sprintf(
			"%s is an annotation of Services, for TCP and UDP ports, and has no effect on an Ingress: move it to "+
				"the Service", key)
	}
	return fmt.Sprintf("the annotation %q does not exist, and has no effect%s", key, suggest.Hint(own, ownNames()))
}

// ownNames returns the names of the annotations that start with OwnPrefix, without that prefix.
func ownNames() []string {
	var names []string
	for _, name := range Table.Names() {
		if own, ok := strings.CutPrefix(name, OwnPrefix); ok {
			names = append(names, own)
		}
	}
	return names
}
