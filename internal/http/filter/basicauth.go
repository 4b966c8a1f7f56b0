package filter

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"golang.org/x/net/http/httpguts"

	"github.com/k8singress/k8singress/internal/http/basicauth"
	"github.com/k8singress/k8singress/internal/http/exchange"
	"github.com/k8singress/k8singress/internal/http/message"
	"github.com/k8singress/k8singress/internal/model/ir"
)

// basicAuth authenticates clients by user name and password (HTTP basic authentication).
type basicAuth struct {
	users *basicauth.Users
	// challenge is the WWW-Authenticate header field for responses with status 401.
	challenge message.Field
}

func newBasicAuth(of ir.BasicAuth, shared *Shared) (Filter, error) {
	if of.Users.Secret.IsZero() {
		return nil, errors.New("no Secret with users is configured")
	}
	if strings.ContainsAny(of.Realm, `"\\`) || !httpguts.ValidHeaderFieldValue(of.Realm) {
		return nil, fmt.Errorf("the realm %q contains characters that are not allowed", of.Realm)
	}
	return &basicAuth{shared.Users.Users(of.Users),
		message.NewField("WWW-Authenticate", `Basic realm="`+of.Realm+`"`)}, nil
}

var errNoPassword = errors.New("the request has no user name and password")

// Apply rejects requests without valid credentials with status 401. If the user list is not available, it rejects all
// requests with status 503.
func (h *basicAuth) Apply(x *exchange.Exchange) (bool, error) {
	credentials, ok := credentialsOf(x.Fields)
	if ok && h.users.Verified(credentials) {
		x.Authenticated = true
		return false, nil
	}
	err := errNoPassword
	if ok {
		err = h.users.Verify(x.Context(), credentials)
	} else if !h.users.Available() {
		err = basicauth.ErrUnavailable
	}
	switch {
	case err == nil:
		x.Authenticated = true
		return false, nil
	case errors.Is(err, basicauth.ErrUnavailable), errors.Is(err, basicauth.ErrBusy):
		return false, exchange.FailUndecided(http.StatusServiceUnavailable, err)
	case errors.Is(err, basicauth.ErrRefused), errors.Is(err, errNoPassword):
		x.ErrorFields = append(x.ErrorFields, h.challenge)
		return false, exchange.Fail(http.StatusUnauthorized, err)
	}
	// The client disconnected while its password was waiting to be verified.
	return false, err
}

// credentialsOf returns the credentials in the Authorization header of a request, without the scheme. ok is false if
// the header occurs more than once, because it would be ambiguous which value is valid.
func credentialsOf(fields message.Fields) (credentials string, ok bool) {
	const scheme = "basic "
	text := fields.Get(message.Authorization)
	if len(text) < len(scheme) || !strings.EqualFold(text[:len(scheme)], scheme) ||
		fields.Count(message.Authorization) > 1 {
		return "", false
	}
	return strings.TrimLeft(text[len(scheme):], " "), true
}
