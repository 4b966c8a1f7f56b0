package annotations

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/k8singress/k8singress/internal/http/callout"
	"github.com/k8singress/k8singress/internal/http/message"
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/nginx"
	"github.com/k8singress/k8singress/internal/model/option"
)

// authFailed makes requests get 503 if a value for external authentication is invalid.
func authFailed(s *Settings) { s.Asked.Auth.Broken = true }

// The annotations for external authentication. GlobalAuth returns the keys of the ConfigMap for all Ingresses.
var (
	authURL = Annotation{
		Name: "auth-url",
		Doc: "Asks this service about each request, without the body. 2xx lets the request in, 401 and 403 refuse " +
			"it with that status, and anything else is 500, as is a service that cannot be reached. The service " +
			"gets the headers of the request, and X-Request-ID, X-Original-URL, X-Original-Method, X-Real-IP, " +
			"X-Forwarded-For, X-Auth-Request-Redirect and X-Sent-From; no X-Forwarded-Proto. Redirects are not " +
			"followed, and a certificate is not verified. In the host, only $host, $http_host, $namespace, " +
			"$ingress_name and $service_name are variables, the first two without the port and for rules with a " +
			"host only. proxy-connect-timeout, proxy-read-timeout and proxy-send-timeout hold for the service, too. " +
			"[Tenants](tenants.md#endpoints) says which addresses are never dialled.",
		Values:  "a URL, in which nginx variables may stand",
		Example: "http://auth.example.svc.cluster.local:8080/check?path=$escaped_request_uri",
		Default: "none", Scope: ScopeLocation, Risk: RiskHigh,
		Parse:   nginx.Into(func(s *Settings) *string { return &s.Asked.Auth.URL }, readAuthURL),
		OnError: authFailed, Meanwhile: ingressClosed,
	}
	authMethod = Annotation{
		Name:   "auth-method",
		Doc:    "The method of the request to the service, which gets X-Original-URI and X-Scheme then, too.",
		Values: "GET, HEAD, POST, PUT, PATCH, DELETE or OPTIONS", Example: "HEAD", Default: "GET", Scope: ScopeLocation,
		Risk: RiskLow,
		Parse: nginx.Into(func(s *Settings) *string { return &s.Asked.Auth.Method },
			nginx.OneOf("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")),
		OnError: authFailed, Meanwhile: ingressClosed, Check: withoutAuth,
	}
	authSignIn = Annotation{
		Name: "auth-signin",
		Doc: "Where clients are sent with 302 in place of 401. The URL of the request is added as an argument that " +
			"auth-signin-redirect-param names, unless the URL has one.",
		Values: "a URL or a path, in which nginx variables may stand", Example: "https://auth.example.com/login",
		Default: "none",
		Scope:   ScopeLocation, Risk: RiskHigh,
		Parse: nginx.Into(func(s *Settings) *string { return &s.Asked.Auth.SignIn },
			func(value string) (string, error) {
				_, err := callout.ParseSignIn(value)
				return value, err
			}), Meanwhile: "clients get 401", Check: withoutAuth,
	}
	authSignInParam = Annotation{
		Name: "auth-signin-redirect-param", Doc: "The argument of auth-signin.",
		Values: "a name", Example: "target", Default: "rd", Scope: ScopeLocation, Risk: RiskMedium,
		Parse: nginx.Into(func(s *Settings) *string { return &s.Asked.Auth.Param },
			nginx.Chars("-_.", mostHeaderBytes)), Check: withoutAuth,
	}
	authResponseHeaders = Annotation{
		Name: "auth-response-headers",
		Doc: "The headers of the answer of the service that the backend gets. What a client sends by these names, " +
			"in whatever spelling, the backend never gets, also where the service does not send them.",
		Values: "names with commas between them", Example: "X-Auth-Request-User, X-Auth-Request-Email", Default: "none",
		Scope: ScopeLocation, Risk: RiskMedium,
		Parse:   nginx.Into(func(s *Settings) *[]string { return &s.Asked.Auth.Headers }, readAuthHeaders),
		OnError: authFailed, Meanwhile: ingressClosed, Check: withoutAuth, Lines: true,
	}
	authRequestRedirect = Annotation{
		Name: "auth-request-redirect", Doc: "What the service gets as X-Auth-Request-Redirect.",
		Values: "text, in which nginx variables may stand", Example: "https://$host$request_uri",
		Default: "$request_uri",
		Scope:   ScopeLocation, Risk: RiskMedium,
		Parse: nginx.Into(func(s *Settings) *string { return &s.Asked.Auth.Redirect }, readAuthText),
		Check: withoutAuth,
	}
	authProxySetHeaders = Annotation{
		Name: "auth-proxy-set-headers",
		Doc: "The ConfigMap whose data are headers that the service gets in place of others of these names. nginx " +
			"variables may stand in their values. While the ConfigMap does not exist, is in another namespace or " +
			"has a header that cannot be used, all requests get 503.",
		Values: "name or namespace/name", Example: "auth-headers", Default: "none", Scope: ScopeLocation,
		Risk:    RiskMedium,
		Parse:   nginx.Into(func(s *Settings) *string { return &s.Asked.Auth.SetHeaders }, readObjectName),
		OnError: authFailed, Meanwhile: ingressClosed, Check: withoutAuth,
	}
	authCacheKey = Annotation{
		Name: "auth-cache-key",
		Doc: "Keeps answers of the service, and gives them to requests for which this is the same. Put in all that " +
			"the service decides by: the cookie or the Authorization header. Host and path of the Ingress belong to " +
			"the key anyway. Answers with Set-Cookie are not kept; X-Accel-Expires, Cache-Control and Expires of " +
			"the service count before auth-cache-duration. All kept answers have 128 MiB.",
		Values: "text, in which nginx variables may stand", Example: "$cookie_session$http_authorization",
		Default: "no answer is kept",
		Scope:   ScopeLocation, Risk: RiskMedium,
		Parse: nginx.Into(func(s *Settings) *string { return &s.Asked.Auth.CacheKey }, readAuthText),
		Check: withoutAuth, Meanwhile: "no answer is kept",
	}
	authCacheDuration = Annotation{
		Name: "auth-cache-duration", Doc: "Which answers are kept, by their status, and for how long.",
		Values: "statuses and a time, with spaces between them; several with commas", Example: "200 202 10m, 401 30s",
		Default: "200 202 401 5m", Scope: ScopeLocation, Risk: RiskMedium,
		Parse:     nginx.Into(func(s *Settings) *[]ir.AuthLifetime { return &s.Asked.Auth.CacheFor }, readLifetimes),
		OnError:   func(s *Settings) { s.Asked.Auth.NoCache = true },
		Meanwhile: "no answer is kept",
		Check: func(s *Settings) string {
			return option.Unless(s.Asked.Auth.CacheKey != "", "this has no effect without auth-cache-key")
		},
	}
	authAlwaysSetCookie = Annotation{
		Name: "auth-always-set-cookie",
		Doc: "Sets the cookies of the service with every answer. Otherwise it is with those of the statuses 200, " +
			"201, 204, 206, 301, 302, 303, 304, 307 and 308.",
		Values: booleans, Example: "true", Default: "false", Scope: ScopeLocation, Risk: RiskLow,
		Parse: nginx.Into(func(s *Settings) *bool { return &s.Asked.Auth.AlwaysSetCookie }, nginx.Bool),
		Check: withoutAuth,
	}
	authKeepalive = Annotation{
		Name: "auth-keepalive",
		Doc: "How many idle connections to the service are kept. 0 keeps none. Unlike in ingress-nginx, connections " +
			"are kept without it, and it works with variables in the host.",
		Values: "a number from 0 to 65535", Example: "32", Default: "320", Scope: ScopeLocation, Risk: RiskLow,
		Parse: nginx.Into(func(s *Settings) *int { return &s.Asked.Auth.KeepAlive }, func(value string) (int, error) {
			n, err := nginx.Number(0, 65535)(value)
			if err == nil && n == 0 {
				n = -1
			}
			return n, err
		}), Check: withoutAuth,
	}
	authKeepaliveRequests = Annotation{
		Name: "auth-keepalive-requests", Doc: "How many requests one connection to the service may have.",
		Values: "a number from 1 to 1000000", Example: "100", Default: "1000", Scope: ScopeLocation, Risk: RiskLow,
		Parse: nginx.Into(func(s *Settings) *int { return &s.Asked.Auth.KeepAliveRequests }, nginx.Number(1, 1000000)),
		Check: withoutAuth,
	}
	authKeepaliveTimeout = Annotation{
		Name: "auth-keepalive-timeout", Doc: "For how many seconds an idle connection to the service is kept.",
		Values: nginx.AreSeconds(1), Example: "30", Default: "60", Scope: ScopeLocation, Risk: RiskLow,
		Parse: nginx.Into(func(s *Settings) *time.Duration { return &s.Asked.Auth.KeepAliveTimeout }, nginx.Seconds(1)),
		Check: withoutAuth,
	}
	authKeepaliveShareVars = Annotation{
		Name:    "auth-keepalive-share-vars",
		Ignored: "the request to the service has the variables and the X-Request-ID of its request anyway",
		Risk:    RiskLow,
	}
	enableGlobalAuth = Annotation{
		Name: "enable-global-auth",
		Doc: "Whether [global-auth-url](configmap.md#global-auth-url) of the ConfigMap holds for an Ingress without " +
			"an auth-url of its own. A value that cannot be read is true.",
		Values: booleans, Example: "false", Default: "true", Scope: ScopeLocation, Risk: RiskLow,
		Parse: nginx.Into(func(s *Settings) *bool { return &s.Asked.NoGlobalAuth }, nginx.No),
	}
)

func withoutAuth(s *Settings) string {
	return option.Unless(s.Asked.Auth.URL != "" || s.Asked.Auth.Broken, "this has no effect without auth-url")
}

// externalAuth holds the values of the annotations. Broken means that a value is invalid without which requests could
// be let in by mistake. NoCache means that a value for caching is invalid.
type externalAuth struct {
	URL, Method, SignIn, Param, Redirect string
	Headers                              []string
	CacheKey                             string
	CacheFor                             []ir.AuthLifetime
	AlwaysSetCookie, Broken, NoCache     bool

	KeepAlive, KeepAliveRequests int
	KeepAliveTimeout             time.Duration
	// SetHeaders is the name of a ConfigMap, and Set its data. The code that reads the ConfigMap sets it after
	// CheckAuthHeader accepted all headers.
	SetHeaders string
	Set        map[string]string
}

// GlobalAuth returns the ConfigMap key for the annotation of the given name. The key applies to all Ingresses without
// auth-url.
func GlobalAuth(name string) *Annotation {
	row := *Table.Find(name)
	own := row
	// global swaps the two settings while do runs, so that the functions of the annotation change GlobalAuth.
	global := func(s *Settings, do func()) {
		s.Asked.Auth, s.Asked.GlobalAuth = s.Asked.GlobalAuth, s.Asked.Auth
		do()
		s.Asked.Auth, s.Asked.GlobalAuth = s.Asked.GlobalAuth, s.Asked.Auth
	}
	row.Name = "global-" + own.Name
	row.Doc = fmt.Sprintf(
		"[%s](annotations.md#%s) for all Ingresses that have no auth-url of their own, and no enable-global-auth "+
			"that is false.",
		own.Name, own.Name)
	row.Parse = func(s *Settings, value string) (err error) {
		global(s, func() { err = own.Parse(s, value) })
		return err
	}
	if own.OnError != nil {
		row.OnError = func(s *Settings) { global(s, func() { own.OnError(s) }) }
	}
	if own.Meanwhile == ingressClosed {
		row.Meanwhile = "all requests that it is for get 503"
	}
	row.Check = func(s *Settings) (message string) {
		if own.Check != nil {
			global(s, func() { message = own.Check(s) })
		}
		return strings.Replace(message, " without auth-", ", because there is no global-auth-", 1)
	}
	return &row
}

// NoAuthLocations is a key of the ConfigMap, and is not in Table.
var NoAuthLocations = Annotation{
	Name: "no-auth-locations",
	Doc: "Paths of Ingresses that are one of these, or below one, are served without a password and without " +
		"external authentication, whether the Ingress or the ConfigMap asks for it.",
	Values: "paths, with commas between them", Example: "/.well-known/acme-challenge,/healthz",
	Default: "/.well-known/acme-challenge",
	Parse:   nginx.Into(func(s *Settings) *[]string { return &s.Asked.NoAuth }, nginx.Locations), Lines: true,
}

// isBelow reports whether a path is equal to a location or below it. Unlike in ingress-nginx, /healthz-admin is not
// below /healthz.
func isBelow(path, location string) bool {
	rest, ok := strings.CutPrefix(path, location)
	return ok && (rest == "" || rest[0] == '/' || strings.HasSuffix(location, "/"))
}

// withoutAuthentication reports whether the Ingress or the ConfigMap exempts a path from authentication.
func (s *Settings) withoutAuthentication(path string) bool {
	locations := s.Asked.NoAuth
	if locations == nil {
		locations = exempt
	}
	return slices.ContainsFunc(locations, func(location string) bool { return isBelow(path, location) })
}

func (s *Settings) externalAuth(string) []ir.Filter {
	asked := &s.Asked.Auth
	if asked.URL == "" && !asked.Broken && !s.Asked.NoGlobalAuth {
		asked = &s.Asked.GlobalAuth
	}
	switch {
	case asked.URL == "" && !asked.Broken:
		return nil
	case asked.Broken, asked == &s.Asked.GlobalAuth && s.Asked.Snippets.GlobalAuth:
		return []ir.Filter{ir.Unavailable}
	}
	f := ir.ExternalAuth{
		URL: asked.URL, Method: asked.Method, SignIn: asked.signIn(), RequestRedirect: asked.Redirect,
		ResponseHeaders: asked.Headers,
		AlwaysSetCookie: asked.AlwaysSetCookie, Connect: s.Attempts.Connect, Read: s.Attempts.Read,
		Write:     s.Attempts.Write,
		KeepAlive: asked.KeepAlive, KeepAliveTimeout: asked.KeepAliveTimeout,
		KeepAliveRequests: asked.KeepAliveRequests,
	}
	for name, value := range asked.Set {
		f.SetHeaders = append(f.SetHeaders, ir.Header{Name: name, Value: value})
	}
	slices.SortFunc(f.SetHeaders, func(a, b ir.Header) int { return strings.Compare(a.Name, b.Name) })
	if asked.CacheKey != "" && !asked.NoCache {
		if f.CacheKey, f.CacheFor = asked.CacheKey, asked.CacheFor; f.CacheFor == nil {
			f.CacheFor = []ir.AuthLifetime{{Statuses: []int{200, 202, 401}, For: 5 * time.Minute}}
		}
	}
	return []ir.Filter{f}
}

// signIn returns the sign-in URL. Like ingress-nginx it adds the URL of the request.
func (a *externalAuth) signIn() string {
	const client = "=$pass_access_scheme://$http_host$escaped_request_uri"
	param := cmp.Or(a.Param, "rd")
	_, query, has := strings.Cut(a.SignIn, "?")
	switch {
	case a.SignIn == "":
		return ""
	case !has:
		return a.SignIn + "?" + param + client
	}
	for pair := range strings.SplitSeq(query, "&") {
		if name, value, _ := strings.Cut(pair, "="); name == param && value != "" {
			return a.SignIn
		}
	}
	if query == "" {
		return a.SignIn + param + client
	}
	return a.SignIn + "&" + param + client
}

func readAuthURL(value string) (string, error) {
	_, err := callout.ParseURL(value)
	return value, err
}

func readAuthText(value string) (string, error) {
	if strings.Contains(strings.ReplaceAll(value, "${", ""), "{") {
		return "", fmt.Errorf("%s has a brace in it that does not belong to a variable", nginx.Quote(value))
	}
	_, err := nginx.ParseTemplate(value)
	return value, err
}

// readAuthHeaders reads a list of header names. It rejects headers that would change how the request is forwarded.
func readAuthHeaders(value string) ([]string, error) {
	var names []string
	for name := range strings.SplitSeq(value, ",") {
		if name = strings.TrimSpace(name); name == "" {
			continue
		}
		if err := checkHeaderName(name); err != nil {
			return nil, err
		}
		switch kind := message.KindOf(name); {
		case kind.Mistakable():
			return nil,
				fmt.Errorf(
					"the header %s has another character than letters, digits and hyphens in it: no backend gets "+
						"such a header", name)
		case kind.Spoofable():
			return nil,
				fmt.Errorf(
					"the header %s is what the controller itself tells backends of a client: take it off the list",
					name)
		}
		names = append(names, name)
	}
	return names, nil
}

// CheckAuthHeader returns an error if a header cannot be sent to a service.
func CheckAuthHeader(name, value string) error {
	if err := checkHeaderName(name); err != nil {
		return err
	}
	for _, r := range value {
		if r < ' ' || r > '~' {
			return fmt.Errorf("the value has the character %U in it: write it on one line of ASCII text", r)
		}
	}
	_, err := nginx.ParseTemplate(strings.TrimSpace(value))
	return err
}

// readLifetimes reads a list in the format of nginx's proxy_cache_valid.
func readLifetimes(value string) (all []ir.AuthLifetime, err error) {
	for text := range strings.SplitSeq(value, ",") {
		words := strings.Fields(text)
		if len(words) == 0 {
			continue
		}
		l := ir.AuthLifetime{}
		if l.For, err = nginx.Time(words[len(words)-1]); err != nil || len(words) == 1 || l.For <= 0 {
			return nil, fmt.Errorf("%s is not statuses and a time, such as 200 202 5m", nginx.Quote(text))
		}
		for _, word := range words[:len(words)-1] {
			status, err := strconv.Atoi(word)
			if err != nil || status < 200 || status > 599 {
				return nil, fmt.Errorf("%s is not a status such as 200", nginx.Quote(word))
			}
			l.Statuses = append(l.Statuses, status)
		}
		all = append(all, l)
	}
	return all, nil
}
