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

// mostAliases is the maximum number of host names that one Ingress can add.
const mostAliases = 32

// The annotations for additional host names.
var (
	serverAlias = Annotation{
		Name: "server-alias",
		Doc: "More names that the hosts of the Ingress are served by: names, wildcards such as `*.example.com`, for " +
			"names with any number of labels before that, and regular expressions of the kind RE2 after `~`, which " +
			"are searched in the name. Hosts of rules come before them, then names before wildcards before " +
			"expressions, of which the oldest Ingress counts. The name of another host has no effect. It is up to " +
			"the oldest Ingress of the namespace that [has the host](tenants.md). An entry that cannot be read is " +
			"left out.",
		Values: "names with commas between them", Example: "example.org, *.example.net", Default: "none",
		Scope: ScopeIngress, Risk: RiskHigh,
		Parse: nginx.Into(func(s *Settings) *[]string { return &s.Aliases }, readAliases),
	}
	fromToWWW = Annotation{
		Name: "from-to-www-redirect",
		Doc: "Redirects from `www.` and the host to the host, or from the host without `www.` to one with it, " +
			"unless a rule has that other host. The status is that of " +
			"[http-redirect-code](configmap.md#http-redirect-code). For HTTPS, the certificate has to be for " +
			"both names.",
		Values: booleans, Example: "true", Default: "false", Scope: ScopeLocation, Risk: RiskLow,
		Parse: nginx.Into(func(s *Settings) *bool { return &s.FromToWWW }, nginx.Bool),
	}
)

// WWWStatus returns the status code of the redirect between a host with www. and the host without it. It returns zero
// if there is no redirect.
func (s *Settings) WWWStatus() int {
	if !s.FromToWWW {
		return 0
	}
	return cmp.Or(s.Redirect.Status, redirectStatus)
}

// readAliases reads a list of names. It leaves out invalid names.
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
	case len(all) > mostAliases:
		return nil, fmt.Errorf("there are %d names, and %d are the most", len(all), mostAliases)
	case len(all) == 0 && bad == nil:
		return nil, errors.New("there is no name in the list: write one such as www.example.com")
	case len(all) == 0:
		return nil, errors.New(strings.Join(bad, "; "))
	case bad != nil:
		return all, nginx.Partial("left out: " + strings.Join(bad, "; "))
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
			err = errors.New("the regular expression behind ~ is empty")
		}
		return word, err
	}
	name := strings.ToLower(word)
	if len(validation.IsDNS1123Subdomain(strings.TrimPrefix(name, "*."))) > 0 {
		return "", fmt.Errorf("%s is neither a host name, nor one after *., nor a regular expression after ~",
			nginx.Quote(word))
	}
	return name, nil
}
