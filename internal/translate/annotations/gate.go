package annotations

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/k8singress/k8singress/internal/model/nginx"
	"github.com/k8singress/k8singress/internal/model/option"
)

// Gate says which annotations the administrator allows. Only the ConfigMap sets it; no annotation changes it, and it
// does not apply to the keys of the ConfigMap.
type Gate struct {
	// Level is the highest risk that an annotation may have. Empty means RiskHigh.
	Level option.Risk
	// Snippets is true if snippet annotations take effect. Without it, they are ignored if Level is RiskCritical.
	Snippets bool
	// Words lists texts that no value of an annotation may contain.
	Words []string
}

// risks lists the risk levels in ascending order.
var risks = []option.Risk{RiskLow, RiskMedium, RiskHigh, RiskCritical}

// The ConfigMap keys of Gate. They are not in Table, which lists only annotations.
var (
	// RiskLevel is the ConfigMap key annotations-risk-level.
	RiskLevel = Annotation{
		Name: "annotations-risk-level",
		Doc: "The highest [risk](annotations.md#supported) that an annotation of an Ingress may have. If an Ingress " +
			"has an annotation with a higher risk, all requests for the Ingress get 503; a canary gets no requests. " +
			"The annotation itself is treated like an annotation with an invalid value, so with `auth-tls-secret` " +
			"or `auth-tls-match-cn`, all requests for the hosts of the Ingress get 403.\n\n" +
			"Snippets have the risk Critical. They need this key with the value `Critical`, and also " +
			"[allow-snippet-annotations](#allow-snippet-annotations). The key does not apply to keys of the " +
			"ConfigMap, to annotations of Services, and to annotations without a value.\n\n" +
			"The ConfigMap of an IngressClass can set another level for the Ingresses of the class. Let only " +
			"administrators change it.",
		Values: "Critical, High, Medium or Low", Example: "Critical", Default: "High",
		Parse: nginx.Into(func(s *Settings) *option.Risk { return &s.Gate.Level },
			func(value string) (option.Risk, error) {
				level, err := nginx.OneOf("Critical", "High", "Medium", "Low")(value)
				return option.Risk(level), err
			}),
		OnError:   func(s *Settings) { s.Gate.Level = RiskLow },
		Meanwhile: "only annotations with the risk Low are allowed, as in ingress-nginx",
	}
	// AllowSnippets is the ConfigMap key allow-snippet-annotations.
	AllowSnippets = Annotation{
		Name: "allow-snippet-annotations",
		Doc: "Whether snippet annotations (`configuration-snippet`, `server-snippet`, `auth-snippet`, " +
			"`stream-snippet` and `modsecurity-snippet`) take effect if " +
			"[annotations-risk-level](#annotations-risk-level) is `Critical`. With `false`, these annotations are " +
			"ignored with a warning, and the other annotations of the Ingress apply. If annotations-risk-level is " +
			"not `Critical`, this key has no effect: all requests for an Ingress with such an annotation get 503.\n\n" +
			"The [option snippets](caddyfile.md#snippets) takes precedence over both keys.",
		Values: booleans, Example: "true", Default: "false",
		Parse:     nginx.Into(func(s *Settings) *bool { return &s.Gate.Snippets }, nginx.Bool),
		OnError:   func(s *Settings) { s.Gate.Snippets = false },
		Meanwhile: "snippet annotations are not allowed",
		Check: func(s *Settings) string {
			return option.Unless(!s.Gate.Snippets || s.Gate.level() == RiskCritical || s.IgnoreSnippets,
				"the setting has no effect, because annotations-risk-level is "+string(s.Gate.level())+": all "+
					"requests for Ingresses with snippet annotations get 503 unless you set it to Critical")
		},
	}
	// WordBlocklist is the ConfigMap key annotation-value-word-blocklist.
	WordBlocklist = Annotation{
		Name: "annotation-value-word-blocklist",
		Doc: "Texts that no annotation of an Ingress may contain, in upper and lower case as written. If the value " +
			"of an annotation contains one of them, all requests for the Ingress get 503; a canary gets no requests. " +
			"This also applies to annotations that do not exist, but not to annotations with other prefixes, and not " +
			"to snippets that the [option snippets](caddyfile.md#snippets) ignores. The annotation itself is treated " +
			"like an annotation with an invalid value.",
		Values: "comma-separated texts", Example: "load_module,_by_lua,serviceaccount", Default: "none", Lines: true,
		Parse: nginx.Into(func(s *Settings) *[]string { return &s.Gate.Words }, readWords),
	}
)

// readWords reads the comma-separated texts of annotation-value-word-blocklist. It skips empty texts, which every value
// contains.
func readWords(value string) ([]string, error) {
	var words []string
	for word := range strings.SplitSeq(value, ",") {
		if word = strings.TrimSpace(word); word != "" {
			words = append(words, word)
		}
	}
	return words, nil
}

// decision is what the gate does with one annotation.
type decision int

const (
	// admitted means that the annotation is read.
	admitted decision = iota
	// dropped means that the annotation is ignored with a warning, and that the other annotations apply.
	dropped
	// refused means that the Ingress is closed.
	refused
)

// judge decides whether an annotation may be read, and returns the reason if it may not. name is its name in Table, and
// row is nil if the annotation is not in Table.
func (s *Settings) judge(name string, row *Annotation, value string) (decision, string) {
	snippet := strings.HasSuffix(name, "-snippet")
	switch {
	case strings.TrimSpace(value) == "", snippet && requestsNothing(value):
		return admitted, ""
	case snippet && s.IgnoreSnippets:
		return dropped, `the snippet has no effect, because the administrator has set the option "snippets ignore"`
	}
	g := &s.Gate
	if i := slices.IndexFunc(g.Words, func(word string) bool { return strings.Contains(value, word) }); i >= 0 {
		return refused, fmt.Sprintf(
			"the value contains the text %s, which annotation-value-word-blocklist in the ConfigMap forbids: %s. "+
				"Change the value, or ask the administrator to remove the text from this key",
			nginx.Quote(g.Words[i]), meanwhile(row))
	}
	switch {
	case row == nil:
		return admitted, ""
	case slices.Index(risks, row.Risk) > slices.Index(risks, g.level()):
		return refused, g.tooRisky(row, snippet)
	case snippet && !g.Snippets:
		return dropped, "the snippet has no effect, because allow-snippet-annotations in the ConfigMap is not true: " +
			"ask the administrator to set it to true (annotations-risk-level is Critical already)"
	}
	return admitted, ""
}

// meanwhile describes the effect of an annotation that is refused. row is nil if the annotation is not in Table.
func meanwhile(row *Annotation) string {
	if row != nil && (row.Meanwhile == hostClosed || row.Meanwhile == serverClosed) {
		return row.Meanwhile
	}
	return ingressClosed + ", and a canary gets no requests"
}

// level returns the highest risk that an annotation may have.
func (g *Gate) level() option.Risk { return cmp.Or(g.Level, RiskHigh) }

// AllowsSnippets reports whether the snippets of Ingresses take effect.
func (s *Settings) AllowsSnippets() bool {
	return s.Gate.Snippets && s.Gate.level() == RiskCritical && !s.IgnoreSnippets
}

// tooRisky returns the reason why an annotation is refused because of its risk. It names the keys of the ConfigMap that
// the administrator must set to allow the annotation.
func (g *Gate) tooRisky(row *Annotation, snippet bool) string {
	need := ""
	switch {
	case snippet && g.Snippets:
		need = "; allow-snippet-annotations is true already, and has no effect without that"
	case snippet:
		need = " and allow-snippet-annotations to true"
	}
	return fmt.Sprintf(
		"the annotation has the risk %s, and the ConfigMap allows at most %s: %s. Remove the annotation, or ask the "+
			"administrator to set annotations-risk-level to %s%s",
		row.Risk, g.level(), meanwhile(row), row.Risk, need)
}

// refuse closes the Ingress because of an annotation that the gate has refused. The annotation is treated as invalid,
// so a host for which it requires client certificates rejects all requests. The paths remain regular expressions:
// otherwise another path of the host would get their requests. row is nil if the annotation is not in Table.
func (s *Settings) refuse(row *Annotation) {
	s.Closed, s.Asked.Canary.Closed = true, true
	switch {
	case row == nil:
	case row.OnError != nil:
		row.OnError(s)
	case row.Name == rewriteTarget.Name, row.Name == useRegex.Name:
		s.UseRegex = true
	}
}
