package snippets

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/k8singress/k8singress/internal/http/exchange"
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/nginx"
)

// The status codes that error_page may replace. nginx refuses others.
const minError, maxError = 300, 599

// errorPage interprets error_page CODE... [=[CODE]] TARGET.
func (r *reader) errorPage(d *Directive) error {
	codes := d.Args[:len(d.Args)-1]
	page := ir.ErrorPage{Target: d.Args[len(codes)]}
	if status, ok := strings.CutPrefix(codes[len(codes)-1], "="); ok {
		if codes = codes[:len(codes)-1]; len(codes) == 0 {
			return errors.New("the status codes to replace are missing: write them first, such as 403 =200 /page")
		}
		var err error
		if page.AnyStatus = status == ""; !page.AnyStatus {
			if page.Status, err = statusCode(status, minStatus, maxStatus); err != nil {
				return err
			}
		}
	}
	for _, text := range codes {
		status, err := statusCode(text, minError, maxError)
		switch {
		case err != nil:
			return err
		case status == exchange.ClientGone:
			return errors.New("no client receives a page for 499: remove this code")
		case !slices.Contains(page.Statuses, status):
			page.Statuses = append(page.Statuses, status)
		}
	}
	if err := r.checkTarget(&page.Target); err != nil {
		return err
	}
	own := &r.scope.own.Errors
	own.Pages = append(own.Pages, page)
	return r.countHeaders(1)
}

func statusCode(text string, least, most int) (int, error) {
	status, err := strconv.Atoi(text)
	if err != nil || status < least || status > most || strings.HasPrefix(text, "+") {
		return 0, fmt.Errorf("%s is not a status code from %d to %d", nginx.Quote(text), least, most)
	}
	return status, nil
}

var errName = errors.New("the name of a location begins with @, and contains no variables")

// checkTarget checks the path, the URL or the name of a location to which a request is passed.
func (r *reader) checkTarget(target *string) error {
	if ir.IsNamedLocation(*target) {
		return checkLocationName(*target)
	}
	if *target == "" {
		return errors.New("the last argument is empty: write a path, such as /error.html")
	}
	return r.checkOneLine(target)
}

func checkLocationName(name string) error {
	switch {
	case len(name) == 1, strings.Contains(name, "$"):
		return errName
	case strings.ContainsFunc(name, isControl):
		return errControl
	}
	return nil
}

func (r *reader) recursiveErrorPages(d *Directive) error {
	on := isOn(d)
	r.scope.own.Errors.Recursive = &on
	return nil
}

// interceptErrors interprets proxy_intercept_errors and the directives of its kind. They also apply to the annotation
// custom-http-errors, which intercepts errors by default.
func (r *reader) interceptErrors(d *Directive) error {
	on := isOn(d)
	r.scope.own.Errors.Intercept = &on
	if on || r.scope.context != inLocation {
		return nil
	}
	// The caller has already checked that there is no second directive.
	off := conversion{annotation: "disable-proxy-intercept-errors", values: inverted, several: true}
	return r.convert(d, &off)
}

// tryFiles interprets try_files. No file exists, so the last argument decides.
func (r *reader) tryFiles(d *Directive) error {
	if r.scope.context == inServer {
		return noEffect("as in ingress-nginx, it only applies to paths without a location, and the Ingress has " +
			"locations for all paths")
	}
	files := slices.Clone(d.Args)
	for i := range files {
		if err := r.checkTemplate(&files[i]); err != nil {
			return err
		}
	}
	to := &ir.TryFiles{Target: d.Args[len(d.Args)-1]}
	if text, ok := strings.CutPrefix(to.Target, "="); ok {
		status, err := statusCode(text, minStatus, maxStatus)
		if err != nil {
			return err
		}
		to.Status, to.Target = status, ""
	} else if err := r.checkTarget(&to.Target); err != nil {
		return err
	}
	r.out.TryFiles = to
	return nil
}
