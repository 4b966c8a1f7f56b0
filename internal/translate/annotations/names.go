package annotations

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/k8singress/k8singress/internal/model/nginx"
	"github.com/k8singress/k8singress/internal/model/pattern"
)

// maxAliases is the maximum number of host names that one Ingress can add.
const maxAliases = 32

// The annotations that add host names to the hosts of an Ingress.
var (
	serverAlias = Annotation{
		Name: "server-alias",
		Doc: "Additional names (aliases) for the hosts of the Ingress. An entry is one of:\n\n" +
			"- a name\n" +
			"- a wildcard such as `*.example.com`, which matches any number of labels\n" +
			"- `~` and a regular expression (RE2), which may match any part of a name\n\n" +
			"Invalid entries are ignored. If a rule of an Ingress has the same host as an alias, the alias has no " +
			"effect. Among aliases, names take precedence over wildcards, and wildcards over regular expressions. If " +
			"several regular expressions match, the oldest Ingress is used.\n\n" +
			"Only Ingresses in the namespace that [owns the host](tenants.md) can add aliases. If several of these " +
			"Ingresses have the annotation, the annotation of the oldest Ingress applies.",
		Values:  "comma-separated names, wildcards and regular expressions",
		Example: "example.org, *.example.net", Default: "none",
		Scope: ScopeIngress, Risk: RiskHigh,
		Parse: nginx.Into(func(s *Settings) *[]string { return &s.Aliases }, readAliases),
	}
	fromToWWW = Annotation{
		Name: "from-to-www-redirect",
		Doc: "For the host example.com, redirects www.example.com to example.com. For the host www.example.com, " +
			"redirects example.com to www.example.com. There is no redirect if a rule has the name to be redirected " +
			"as its host.\n\n" +
			"One slash at the end of the URL is removed: `/dir/` becomes `/dir`. The status code of the redirect " +
			"comes from [http-redirect-code](configmap.md#http-redirect-code). For HTTPS, the certificate must be " +
			"valid for the name with `www.` and for the name without it.",
		Values: booleans, Example: "true", Default: "false", Scope: ScopeLocation, Risk: RiskLow,
		Parse: nginx.Into(func(s *Settings) *bool { return &s.FromToWWW }, nginx.Bool),
	}
)

// WWWStatus returns the status code of the redirect between a host with the prefix www. and the host without it. It
// returns zero if from-to-www-redirect is not set.
func (s *Settings) WWWStatus() int {
	if !s.FromToWWW {
		return 0
	}
	return cmp.Or(s.Redirect.Status, redirectStatus)
}

// readAliases reads a comma-separated list of aliases. Invalid entries are skipped, and the error lists them.
func readAliases(value string) ([]string, error) {
	var all, bad []string
	for word := range strings.SplitSeq(value, ",") {
		word = strings.TrimSpace(word)
		switch name, err := readAlias(word); {
		case word == "" || err == nil && slices.Contains(all, name):
		case err != nil:
			bad = append(bad, err.Error())
		default:
			all = append(all, name)
		}
	}
	switch {
	case len(all) > maxAliases:
		return nil, fmt.Errorf("the list has %d names, and the maximum is %d", len(all), maxAliases)
	case len(all) == 0 && bad == nil:
		return nil, errors.New("the list is empty: write a name such as www.example.com")
	case len(all) == 0:
		return nil, errors.New(strings.Join(bad, "; "))
	case bad != nil:
		return all, nginx.Partial("ignored: " + strings.Join(bad, "; "))
	}
	return all, nil
}

func readAlias(word string) (string, error) {
	if expression, ok := strings.CutPrefix(word, "~"); ok {
		_, err := pattern.Size(expression)
		if err == nil {
			_, err = pattern.FoldSize(expression)
		}
		if err == nil && expression == "" {
			err = errors.New("the regular expression after ~ is empty")
		}
		return word, err
	}
	name := strings.ToLower(word)
	if len(validation.IsDNS1123Subdomain(strings.TrimPrefix(name, "*."))) > 0 {
		return "",
			fmt.Errorf("%s is not a host name, a wildcard such as *.example.com, or a regular expression after ~",
				nginx.Quote(word))
	}
	return name, nil
}
