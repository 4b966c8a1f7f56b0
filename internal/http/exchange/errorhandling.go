package exchange

import (
	"errors"
	"net/http"
	"slices"
	"strings"

	"golang.org/x/net/http/httpguts"

	"github.com/k8singress/k8singress/internal/http/message"
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/nginx"
)

// errorHandling is a compiled ir.ErrorHandling.
type errorHandling struct {
	pages                []errorPage
	intercept, recursive *bool
}

// errorPage is a compiled ir.ErrorPage. named is the name of the location with the page. If it is empty, target is the
// template of a path or a URL.
type errorPage struct {
	*ir.ErrorPage
	named  string
	target *nginx.Template
}

// errorState says how errors of a request are handled. pages are the error pages of the route; programs set them.
type errorState struct {
	pages                []errorPage
	intercept, recursive bool
	// page is the error page that the request is for. It is nil for a request that has not failed yet.
	page *servedPage
}

// servedPage is an error page for which a request got another route.
type servedPage struct {
	// err is the error of the failed request.
	err error
	// status is the status that the client gets with the page, or zero for the status of the page.
	status int
	// fields are the header fields that the failed request has set for its response, such as WWW-Authenticate.
	fields message.Fields
	// final is true if errors of the page itself are not replaced.
	final bool
}

// maxTarget is the maximum length in bytes of the path or URL of an error page.
const maxTarget = 1 << 16

var (
	// ErrDotSegments is the reason to reject a request whose path has a dot segment after a filter has changed it.
	ErrDotSegments = errors.New(
		"the rewritten path contains a dot segment, with which it could leave the path that the Ingress configures")
	errTarget = Fail(http.StatusInternalServerError, errors.New("the path or URL of the error page is not valid"))
)

// setErrors compiles the handling of errors, unless it is zero.
func (d *Directives) setErrors(of *ir.Directives) error {
	from := &of.Errors
	if from.Pages == nil && from.Intercept == nil && from.Recursive == nil {
		return nil
	}
	d.errors = &errorHandling{intercept: from.Intercept, recursive: from.Recursive}
	for i := range from.Pages {
		page := errorPage{ErrorPage: &from.Pages[i]}
		if ir.IsNamedLocation(page.Target) {
			page.named = page.Target
		} else {
			var err error
			if page.target, err = d.template(page.Target); err != nil {
				return err
			}
		}
		d.errors.pages = append(d.errors.pages, page)
	}
	return nil
}

// use makes h apply to the request. What h does not set stays as it is.
func (h *errorHandling) use(x *Exchange) {
	if x.errors == nil {
		x.errors = &errorState{}
	}
	s := x.errors
	if h.pages != nil {
		s.pages = h.pages
	}
	if h.intercept != nil {
		s.intercept = *h.intercept
	}
	if h.recursive != nil {
		s.recursive = *h.recursive
	}
}

// find returns the error page of a program for a status, or nil. s may be nil.
func (s *errorState) find(status int) *errorPage {
	if s == nil || s.page != nil && s.page.final {
		return nil
	}
	for i := range s.pages {
		if slices.Contains(s.pages[i].Statuses, status) {
			return &s.pages[i]
		}
	}
	return nil
}

// HasPageFor reports whether a program has an error page for a request that has failed with err.
func (x *Exchange) HasPageFor(err error) bool {
	// Most requests have no program with error pages. They need no memory to look into the error.
	return x.errors != nil && x.HasErrorPage(StatusOf(err)) && !isUndecided(err)
}

// isUndecided reports whether a filter could not decide about the request that has failed with err.
func isUndecided(err error) bool {
	failure := (*Failure)(nil)
	return errors.As(err, &failure) && failure.Undecided
}

// HasErrorPage reports whether a program has an error page for responses of the controller with this status.
func (x *Exchange) HasErrorPage(status int) bool { return x.errors.find(status) != nil }

// Replaces reports whether an error page replaces an endpoint's response with this status.
func (x *Exchange) Replaces(status int) bool {
	return slices.Contains(x.Replaced, status) || x.errors != nil && x.errors.intercept && x.HasErrorPage(status)
}

// AtErrorPage reports whether the request is for an error page of a program, and errors of this page are not replaced.
func (x *Exchange) AtErrorPage() bool {
	return x.errors != nil && x.errors.page != nil && x.errors.page.final
}

// PassToErrorPage makes the request, which has failed with err, a request for the error page of a program, and returns
// ErrReroute. If the page is at another host, it redirects the client. The caller must have checked with HasPageFor
// that there is a page.
func (x *Exchange) PassToErrorPage(err error) error {
	// The caches are filled, because they are derived from the request of the client.
	x.ID()
	x.Client()
	page := x.errors.find(StatusOf(err))
	served := &servedPage{err: err, status: StatusOf(err), fields: x.ErrorFields, final: !x.errors.recursive}
	if page.Status != 0 || page.AnyStatus {
		served.status = page.Status
	}
	// As in nginx, the variable $status has this value from now on.
	x.pageStatus = served.status
	if page.named != "" {
		x.useRequestForNamed()
		x.Named = page.named
	} else {
		target, ok := page.target.ExpandWithin(maxTarget, x.Variable)
		failed := x.VariablesFailed()
		switch {
		case failed != nil:
			return failed
		case !ok || target == "":
			return errTarget
		case target[0] != '/':
			return x.redirectToErrorPage(page, served, target)
		}
		// The request of the client stays unchanged, since the server and the logs use it.
		before := x.Request
		x.useRequestWithoutBody()
		if x.Method != http.MethodHead {
			x.Method = http.MethodGet
		}
		if err := x.SetTarget(target); err != nil {
			x.Request = before
			return err
		}
	}
	x.errors.page = served
	return ErrReroute
}

// useRequestForNamed replaces the request by a copy for a named location. It has no body if the body may have been
// read.
func (x *Exchange) useRequestForNamed() {
	if x.Forwarded || x.Retained {
		x.useRequestWithoutBody()
		return
	}
	request := *x.Request
	x.Request = &request
}

// useRequestWithoutBody replaces the request by the result of requestWithoutBody.
func (x *Exchange) useRequestWithoutBody() {
	x.Request = x.requestWithoutBody()
	if x.received != nil {
		x.received = withoutBody(x.received)
	}
}

// redirectToErrorPage redirects the client to an error page at a URL.
func (x *Exchange) redirectToErrorPage(page *errorPage, served *servedPage, to string) error {
	if !httpguts.ValidHeaderFieldValue(to) {
		return errTarget
	}
	status := http.StatusFound
	switch page.Status {
	case http.StatusMovedPermanently, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		status = page.Status
	}
	x.HideError(served.err)
	return x.Respond(status, "", append(slices.Clone(served.fields), message.Location.Field(to))...)
}

// SetTarget replaces the path and the query of the request, as nginx does for an internal redirect: the steps of the
// host run again. target is the decoded path, and the query behind a question mark.
func (x *Exchange) SetTarget(target string) error {
	path, query, _ := strings.Cut(target, "?")
	if message.HasDotSegment(path) {
		return Fail(http.StatusBadRequest, ErrDotSegments)
	}
	x.SetPath(path)
	x.Query, x.ForceQuery, x.ServerProgram = nginx.EscapeGraphic(query), false, nil
	return nil
}

// resume applies what a request for an error page keeps when it gets its route. s may be nil.
func (s *errorState) resume(x *Exchange) {
	if s == nil || s.page == nil {
		return
	}
	page := s.page
	x.errors, x.pageStatus = &errorState{page: page}, page.status
	x.unavailable = page.status == http.StatusServiceUnavailable && !errors.Is(page.err, ErrReplaced)
	if len(page.fields) > 0 {
		x.ForAllResponses = slices.Concat(Changes{{Remove: page.fields, Add: page.fields}}, x.ForAllResponses)
	}
}

// EndReroutes must be called after a request with another route has been served. at is the result of Arrival, err is
// the error of the request, and found is false if there was no route. EndReroutes makes the request of the client the
// request of the exchange again. It returns the error of the request. If there is no route for an error page, this is
// the error for which the page was meant.
func (x *Exchange) EndReroutes(at Arrival, found bool, err error) error {
	x.Request = at.request
	if x.errors == nil || x.errors.page == nil {
		return err
	}
	page := x.errors.page
	switch {
	case !found:
		return page.err
	case err == nil:
		x.HideError(page.err)
	}
	return err
}

// HideError records the error of a request whose client got another response: in Hidden, or in Refused if the request
// was rejected on purpose. It does nothing if an endpoint has returned the error.
func (x *Exchange) HideError(err error) {
	switch {
	case errors.Is(err, ErrReplaced):
	case errors.Is(err, ErrRejected):
		if x.Refused == nil {
			x.Refused = err
		}
	case x.Hidden == nil:
		x.Hidden = err
	}
}
