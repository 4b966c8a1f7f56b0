package live

import (
	"cmp"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/k8singress/k8singress/internal/balancer"
	"github.com/k8singress/k8singress/internal/ir"
)

// setCookie writes the session cookie of a choice into the header of the answer, if the route is one of those that set it.
func (r *Request) setCookie(choice balancer.Choice) {
	if choice.Cookie == "" || !slices.Contains(choice.Session.Origins, r.Route.Origin) {
		return
	}
	// A name that is none makes an empty text.
	text := r.sessionCookie(choice.Session, choice.Cookie).String()
	if text == "" {
		return
	}
	header := r.w.Header()
	if r.cookie != "" {
		header["Set-Cookie"] = slices.DeleteFunc(header["Set-Cookie"], func(line string) bool { return line == r.cookie })
	}
	header.Add("Set-Cookie", text)
	r.cookie = text
}

func (r *Request) sessionCookie(session *ir.SessionCookie, value string) *http.Cookie {
	cookie := &http.Cookie{
		Name: session.Name, Value: value, Path: cmp.Or(session.Path, r.Route.Path), Domain: session.Domain,
		MaxAge: int(session.MaxAge / time.Second), Secure: session.Secure || scheme(r) == "https", HttpOnly: true,
	}
	if session.Expires != 0 {
		cookie.Expires = time.Now().Add(session.Expires)
	}
	switch strings.ToLower(session.SameSite) {
	case "none":
		if !session.OmitSameSiteNone || !refusesSameSiteNone(r.r.UserAgent()) {
			cookie.SameSite = http.SameSiteNoneMode
		}
	case "lax":
		cookie.SameSite = http.SameSiteLaxMode
	case "strict":
		cookie.SameSite = http.SameSiteStrictMode
	}
	return cookie
}
