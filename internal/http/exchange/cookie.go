package exchange

import (
	"cmp"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/k8singress/k8singress/internal/http/message"
	"github.com/k8singress/k8singress/internal/model/ir"
)

// setCookie sets x.cookie to the session cookie for the endpoint of the current attempt. If the response must not set a
// session cookie, x.cookie becomes empty. This depends on the Ingress of the route.
func (x *Exchange) setCookie() {
	if x.cookie = ""; x.noCookie || x.choice.Cookie == "" ||
		!slices.Contains(x.choice.Session.Origins, x.Route.Origin) {
		return
	}
	// If the cookie name is invalid, String returns an empty string, and no cookie is set.
	x.cookie = x.sessionCookie(x.choice.Session, x.choice.Cookie).String()
}

func (x *Exchange) sessionCookie(session *ir.SessionCookie, value string) *http.Cookie {
	cookie := &http.Cookie{
		Name: session.Name, Value: value, Path: cmp.Or(session.Path, x.Route.Path), Domain: session.Domain,
		MaxAge: int(session.MaxAge / time.Second), Secure: session.Secure || x.Scheme() == "https", HttpOnly: true,
	}
	if session.Expires != 0 {
		cookie.Expires = time.Now().Add(session.Expires)
	}
	switch strings.ToLower(session.SameSite) {
	case "none":
		if !session.OmitSameSiteNone || !refusesSameSiteNone(x.Fields.Get(message.UserAgent)) {
			cookie.SameSite = http.SameSiteNoneMode
		}
	case "lax":
		cookie.SameSite = http.SameSiteLaxMode
	case "strict":
		cookie.SameSite = http.SameSiteStrictMode
	}
	return cookie
}
