package snippets

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/nginx"
)

// step adds a step to the current level.
func (r *reader) step(s ir.Step) error {
	if r.steps++; r.steps > maxSteps {
		return fmt.Errorf("the snippet has more than %d steps: use fewer conditions", maxSteps)
	}
	r.scope.steps = append(r.scope.steps, s)
	return nil
}

func (r *reader) set(d *Directive) error {
	name, err := variableName(d.Args[0])
	if err != nil {
		return err
	}
	if err := r.checkAuthVariables(name); err != nil {
		return err
	}
	if err := r.checkTemplate(&d.Args[1]); err != nil {
		return err
	}
	return r.step(ir.Step{Set: &ir.SetVariable{Name: name, Value: d.Args[1]}})
}

func (r *reader) breakSteps(*Directive) error { return r.step(ir.Step{Break: true}) }

// The flags of rewrite by their names.
var flags = map[string]ir.Flag{
	"last": ir.Last, "break": ir.BreakFlag, "redirect": ir.RedirectFlag, "permanent": ir.Permanent,
}

func (r *reader) rewrite(d *Directive) error {
	to := &ir.Rewrite{Pattern: d.Args[0], Target: d.Args[1]}
	if len(d.Args) == 3 {
		flag, ok := flags[d.Args[2]]
		if !ok {
			return fmt.Errorf("%s is not one of last, break, redirect and permanent", nginx.Quote(d.Args[2]))
		}
		to.Flag = flag
	}
	if r.location == nil && r.server != nil && to.Flag == ir.BreakFlag {
		// At the level of a server, both flags end the steps, and then a location for the new path is searched.
		to.Flag = ir.Last
	}
	if to.Target == "" {
		return errors.New("the new path is empty: write /")
	}
	if err := r.checkPattern(to.Pattern, false); err != nil {
		return err
	}
	if err := r.checkOneLine(&to.Target); err != nil {
		return err
	}
	return r.step(ir.Step{Rewrite: to})
}

// The status codes of return. nginx allows lower codes, too, but clients do not understand them.
const (
	minStatus, maxStatus = 200, 999
	found                = 302
)

// returnResponse interprets return with a status, with a status and a text or URL, or with a URL.
func (r *reader) returnResponse(d *Directive) error {
	to, text := &ir.Return{}, d.Args[0]
	status, err := strconv.Atoi(text)
	switch {
	case err != nil && len(d.Args) == 1 && isURL(text):
		to.Status, to.Text, to.HasText = found, text, true
	case err != nil || status < minStatus || status > maxStatus || strings.HasPrefix(text, "+"):
		return fmt.Errorf("%s is not a status code from %d to %d", nginx.Quote(text), minStatus, maxStatus)
	case len(d.Args) == 2:
		to.Status, to.Text, to.HasText = status, d.Args[1], true
	default:
		to.Status = status
	}
	check := r.checkTemplate
	if redirects(to.Status) {
		check = r.checkOneLine
	}
	if err := check(&to.Text); err != nil {
		return err
	}
	return r.step(ir.Step{Return: to})
}

// sameURL matches the URL of the request with the scheme https.
var sameURL = regexp.MustCompile(
	`^https://\$\{?(host|http_host|server_name|best_http_host)\}?\$\{?(request_uri|uri|document_uri)\}?/?$`)

// findLoop adds a finding for a redirect that also sends clients with HTTPS to the URL that they requested.
func (r *reader) findLoop(d *Directive) {
	unconditional := (r.scope.context == inServer || r.scope.context == inLocation) &&
		!slices.ContainsFunc(r.scope.steps, func(s ir.Step) bool { return s.If != nil })
	switch {
	case d.Name != "return" || !unconditional || !sameURL.MatchString(strings.ToLower(d.Args[len(d.Args)-1])):
	case r.server != nil && r.server.listens != nil, r.location != nil && r.location.Match.Type == ir.LocationNamed:
		// Clients of HTTPS may use another port, and error pages are not for all requests.
	default:
		r.out.Findings = append(r.out.Findings, Finding{Place: r.place(d), Directive: d.Name, Class: LeftOut,
			InLocation: r.location != nil,
			Text: quote(d.Name) + " also redirects clients that use HTTPS already, to the same URL in an endless " +
				"loop: use force-ssl-redirect in its place, or write if ($scheme = http) around it"})
	}
}

// isURL reports whether nginx interprets the only argument of return as the URL of a redirect.
func isURL(text string) bool {
	return strings.HasPrefix(text, "http://") || strings.HasPrefix(text, "https://") ||
		strings.HasPrefix(text, "$scheme")
}

func redirects(status int) bool {
	return status == 301 || status == found || status == 303 || status == 307 || status == 308
}
