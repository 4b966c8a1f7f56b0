package filter

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/k8singress/k8singress/internal/http/exchange"
	"github.com/k8singress/k8singress/internal/http/message"
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/nginx"
	"github.com/k8singress/k8singress/internal/model/pattern"
)

// programRewrite is a compiled ir.Rewrite.
type programRewrite struct {
	search *matcher
	// path and query are the target before and after its first question mark. hasQuery is true if the target has a
	// query, and dropQuery if the query of the request is dropped.
	path, query         *nginx.Template
	hasQuery, dropQuery bool
	// redirect is the redirect with which the rewrite ends the request, or nil. behindHost is the variable that
	// directly follows the host of the redirect, or "".
	redirect   *programResponse
	behindHost string
	flag       ir.Flag
}

func newProgramRewrite(of *ir.Rewrite) (w *programRewrite, err error) {
	w = &programRewrite{flag: of.Flag, dropQuery: strings.HasSuffix(of.Target, "?")}
	if w.search, err = newMatcher(of.Pattern, pattern.Compile); err != nil {
		return nil, err
	}
	switch of.Flag {
	case ir.NoFlag, ir.Last, ir.BreakFlag:
		if of.Redirects() {
			w.redirect = &programResponse{status: http.StatusFound}
		}
	case ir.RedirectFlag:
		w.redirect = &programResponse{status: http.StatusFound}
	case ir.Permanent:
		w.redirect = &programResponse{status: http.StatusMovedPermanently}
	default:
		return nil, fmt.Errorf("rewrite: unknown flag %q", of.Flag)
	}
	path, query, found := strings.Cut(strings.TrimSuffix(of.Target, "?"), "?")
	w.hasQuery, w.behindHost = found, variableAfterHost(path)
	if w.path, err = nginx.ParseTemplate(path, nil); err != nil {
		return nil, err
	}
	w.query, err = nginx.ParseTemplate(query, nil)
	return w, err
}

// apply rewrites the path if it matches. ended is true if the steps that follow must not run.
func (w *programRewrite) apply(r *programRun) (ended bool, err error) {
	x := r.x
	matches, err := w.search.matches(r, message.CleanPath(x.Path))
	if !matches || err != nil {
		return false, err
	}
	if w.redirect != nil {
		r.response = w.redirect
		r.text, err = w.location(r)
		return true, err
	}
	path, err := r.expand(w.path, x.Variable)
	if err != nil {
		return false, err
	}
	query, err := r.expand(w.query, escaping(x, nginx.EscapeArgument))
	if err != nil {
		return false, err
	}
	x.SetPath(rooted(path))
	x.Query, x.ForceQuery = joinQueries(x.Query, nginx.EscapeGraphic(query), w.dropQuery), false
	if message.HasDotSegment(x.Path) {
		return false, exchange.Fail(http.StatusBadRequest, exchange.ErrDotSegments)
	}
	r.rerouted = true
	if w.flag == ir.BreakFlag {
		r.endRewrite()
	}
	return w.flag != ir.NoFlag, nil
}

// location returns the URL of the redirect. The groups of the regular expression are parts of the decoded path, so they
// are escaped.
func (w *programRewrite) location(r *programRun) (string, error) {
	x := r.x
	if groupNumber(x.Route, w.behindHost) > 0 || slices.Contains(w.search.names, w.behindHost) && w.behindHost != "" {
		if rest := x.Variable(w.behindHost); rest != "" && rest[0] != '/' {
			return "", exchange.Fail(http.StatusBadRequest, errOtherHost)
		}
	}
	location, err := r.expand(w.path, escaping(x, escapePath))
	if err != nil {
		return "", err
	}
	separator := "?"
	if w.hasQuery {
		query, err := r.expand(w.query, escaping(x, nginx.EscapeArgument))
		if err != nil {
			return "", err
		}
		location, separator = location+"?"+query, "&"
	}
	if !w.dropQuery && x.Query != "" {
		location += separator + x.Query
	}
	return location, nil
}

// escaping returns the function that looks up a variable for a URL. It escapes capture groups with escape, and the
// decoded path of the request as a path. Other variables are not changed.
func escaping(x *exchange.Exchange, escape func(string) string) func(name string) string {
	return func(name string) string {
		value := x.Variable(name)
		switch {
		case len(name) == 1 && '1' <= name[0] && name[0] <= '9':
			return escape(value)
		case name == "uri" || name == "document_uri":
			return escapePath(value)
		}
		return value
	}
}
