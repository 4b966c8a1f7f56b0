package annotations

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/k8singress/k8singress/internal/http/callout"
	"github.com/k8singress/k8singress/internal/http/exchange"
	"github.com/k8singress/k8singress/internal/http/message"
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/nginx"
	"github.com/k8singress/k8singress/internal/model/option"
	"github.com/k8singress/k8singress/internal/model/report"
)

// authFailed is called if an annotation for external authentication is invalid. It makes all requests for the Ingress
// get 503.
func authFailed(s *Settings) { s.Asked.Auth.Broken = true }

// The annotations for external authentication. GlobalAuth derives the ConfigMap keys global-auth-* from them.
var (
	authURL = Annotation{
		Name: "auth-url",
		Doc: "The URL of an authentication service. For each client request, the controller sends a request without " +
			"a body to this URL. If the service responds with a 2xx status, the client's request is allowed. If the " +
			"service responds with 401 or 403, the client gets this status. With any other response, or if the " +
			"service cannot be reached, the client gets 500. Redirects are not followed.\n\n" +
			"The service gets the headers of the client's request, plus X-Request-ID, X-Original-URL, " +
			"X-Original-Method, X-Real-IP, X-Forwarded-For, X-Auth-Request-Redirect and X-Sent-From, but no " +
			"X-Forwarded-Proto.\n\n" +
			"The host of the URL may contain only the variables $host, $http_host, $namespace, $ingress_name and " +
			"$service_name. In the host, $host and $http_host do not contain a port, and can be used only if the " +
			"rule of the Ingress has a host. Certificates are not verified. proxy-connect-timeout, " +
			"proxy-read-timeout and proxy-send-timeout also apply to requests to the service. " +
			"[Tenants](tenants.md#endpoints) lists the addresses to which the controller never connects.",
		Values:  "a URL that may contain nginx variables",
		Example: "http://auth.example.svc.cluster.local:8080/check?path=$escaped_request_uri",
		Default: "none", Scope: ScopeLocation, Risk: RiskHigh,
		Parse:   withVariables(nginx.Into(func(s *Settings) *string { return &s.Asked.Auth.URL }, readAuthURL)),
		OnError: authFailed, Meanwhile: ingressClosed,
	}
	authMethod = Annotation{
		Name: "auth-method",
		Doc: "The HTTP method of the request to the authentication service. If the annotation is set, the service " +
			"also gets the headers X-Original-URI and X-Scheme.",
		Values: "GET, HEAD, POST, PUT, PATCH, DELETE or OPTIONS", Example: "HEAD", Default: "GET", Scope: ScopeLocation,
		Risk: RiskLow,
		Parse: nginx.Into(func(s *Settings) *string { return &s.Asked.Auth.Method },
			nginx.OneOf("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")),
		OnError: authFailed, Meanwhile: ingressClosed, Check: withoutAuth,
	}
	authSignIn = Annotation{
		Name: "auth-signin",
		Doc: "The URL to which clients are redirected with status 302 if the authentication service responds with " +
			"401. The URL of the client's request is added as a query parameter, whose name is the value of " +
			"auth-signin-redirect-param, unless the auth-signin URL already contains this parameter.",
		Values: "a URL or a path that may contain nginx variables", Example: "https://auth.example.com/login",
		Default: "none",
		Scope:   ScopeLocation, Risk: RiskHigh,
		Parse: withVariables(nginx.Into(func(s *Settings) *string { return &s.Asked.Auth.SignIn },
			func(value string) (string, error) {
				_, err := callout.ParseSignIn(value)
				return value, err
			})), Meanwhile: "clients get 401", Check: withoutAuth,
	}
	authSignInParam = Annotation{
		Name: "auth-signin-redirect-param",
		Doc: "The name of the query parameter that is added to the auth-signin URL. Its value is the URL of the " +
			"client's request.",
		Values: "a name", Example: "target", Default: "rd", Scope: ScopeLocation, Risk: RiskMedium,
		Parse: nginx.Into(func(s *Settings) *string { return &s.Asked.Auth.Param },
			nginx.Chars("-_.", maxHeaderBytes)), Check: withoutAuth,
	}
	authResponseHeaders = Annotation{
		Name: "auth-response-headers",
		Doc: "The headers of the authentication service's response that are sent to the backend. Headers with these " +
			"names in the client's request, in any spelling, are always removed, even if the response of the service " +
			"does not contain them.",
		Values: "comma-separated names", Example: "X-Auth-Request-User, X-Auth-Request-Email", Default: "none",
		Scope: ScopeLocation, Risk: RiskMedium,
		Parse:   nginx.Into(func(s *Settings) *[]string { return &s.Asked.Auth.Headers }, readAuthHeaders),
		OnError: authFailed, Meanwhile: ingressClosed, Check: withoutAuth, Lines: true,
	}
	authRequestRedirect = Annotation{
		Name: "auth-request-redirect", Doc: "The value of the X-Auth-Request-Redirect header in requests to the " +
			"authentication service.",
		Values: "text that may contain nginx variables", Example: "https://$host$request_uri",
		Default: "$request_uri",
		Scope:   ScopeLocation, Risk: RiskMedium,
		Parse: withVariables(nginx.Into(func(s *Settings) *string { return &s.Asked.Auth.Redirect }, readAuthText)),
		Check: withoutAuth,
	}
	authProxySetHeaders = Annotation{
		Name: "auth-proxy-set-headers",
		Doc: "The ConfigMap whose data are sent as headers to the authentication service. These headers replace " +
			"other headers with the same names. Values may contain nginx variables. While the ConfigMap does not " +
			"exist, is in another namespace or contains an invalid header, all requests get 503.",
		Values: "name or namespace/name", Example: "auth-headers", Default: "none", Scope: ScopeLocation,
		Risk:    RiskMedium,
		Parse:   nginx.Into(func(s *Settings) *string { return &s.Asked.Auth.SetHeaders }, readObjectName),
		OnError: authFailed, Meanwhile: ingressClosed, Check: withoutAuth,
	}
	authCacheKey = Annotation{
		Name: "auth-cache-key",
		Doc: "Caches responses of the authentication service under this key, and uses them for later requests with " +
			"the same key. The key must contain everything on which the decision of the service depends, such as a " +
			"cookie or the Authorization header. The host and path of the Ingress are always part of the key.\n\n" +
			"Responses with Set-Cookie are not cached. The headers X-Accel-Expires, Cache-Control and Expires of a " +
			"response take precedence over auth-cache-duration. The maximum size of the cache, for all Ingresses " +
			"together, is 128 MiB.",
		Values: "text that may contain nginx variables", Example: "$cookie_session$http_authorization",
		Default: "responses are not cached",
		Scope:   ScopeLocation, Risk: RiskMedium,
		Parse: withVariables(nginx.Into(func(s *Settings) *string { return &s.Asked.Auth.CacheKey }, readAuthText)),
		Check: withoutAuth, Meanwhile: "responses are not cached",
	}
	authCacheDuration = Annotation{
		Name: "auth-cache-duration", Doc: "The status codes of the responses to cache, and how long they are cached.",
		Values:  "comma-separated entries; each entry is one or more status codes and a time, separated by spaces",
		Example: "200 202 10m, 401 30s",
		Default: "200 202 401 5m", Scope: ScopeLocation, Risk: RiskMedium,
		Parse:     nginx.Into(func(s *Settings) *[]ir.AuthLifetime { return &s.Asked.Auth.CacheFor }, readLifetimes),
		OnError:   func(s *Settings) { s.Asked.Auth.NoCache = true },
		Meanwhile: "responses are not cached",
		Check: func(s *Settings) string {
			return option.Unless(s.Asked.Auth.CacheKey != "", "the setting has no effect without auth-cache-key")
		},
	}
	authAlwaysSetCookie = Annotation{
		Name: "auth-always-set-cookie",
		Doc: "With `true`, every response to the client gets the cookies that the authentication service sets. With " +
			"`false`, only responses with the status 200, 201, 204, 206, 301, 302, 303, 304, 307 or 308 get these " +
			"cookies.",
		Values: booleans, Example: "true", Default: "false", Scope: ScopeLocation, Risk: RiskLow,
		Parse: nginx.Into(func(s *Settings) *bool { return &s.Asked.Auth.AlwaysSetCookie }, nginx.Bool),
		Check: withoutAuth,
	}
	authKeepalive = Annotation{
		Name: "auth-keepalive",
		Doc: "The maximum number of idle connections to the authentication service. With 0, each connection is " +
			"closed after its request. Unlike in ingress-nginx, idle connections are also kept if the annotation is " +
			"not set, or if the host in auth-url contains variables.",
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
		Name: "auth-keepalive-requests", Doc: "The maximum number of requests on one connection to the " +
			"authentication service.",
		Values: "a number from 1 to 1000000", Example: "100", Default: "1000", Scope: ScopeLocation, Risk: RiskLow,
		Parse: nginx.Into(func(s *Settings) *int { return &s.Asked.Auth.KeepAliveRequests }, nginx.Number(1, 1000000)),
		Check: withoutAuth,
	}
	authKeepaliveTimeout = Annotation{
		Name:   "auth-keepalive-timeout",
		Doc:    "The number of seconds for which an idle connection to the authentication service stays open.",
		Values: nginx.AreSeconds(1), Example: "30", Default: "60", Scope: ScopeLocation, Risk: RiskLow,
		Parse: nginx.Into(func(s *Settings) *time.Duration { return &s.Asked.Auth.KeepAliveTimeout }, nginx.Seconds(1)),
		Check: withoutAuth,
	}
	authKeepaliveShareVars = Annotation{
		Name: "auth-keepalive-share-vars",
		Ignored: "the request to the authentication service always has the same variables and X-Request-ID as the " +
			"client's request",
		Risk: RiskLow,
	}
	enableGlobalAuth = Annotation{
		Name: "enable-global-auth",
		Doc: "Applies the key [global-auth-url](configmap.md#global-auth-url) of the ConfigMap to the Ingress, " +
			"unless the Ingress has its own auth-url. An invalid value is treated as true.",
		Values: booleans, Example: "false", Default: "true", Scope: ScopeLocation, Risk: RiskLow,
		Parse: nginx.Into(func(s *Settings) *bool { return &s.Asked.NoGlobalAuth }, nginx.No),
	}
)

func withoutAuth(s *Settings) string {
	return option.Unless(s.Asked.Auth.URL != "" || s.Asked.Auth.Broken, "the setting has no effect without auth-url")
}

// externalAuth holds the values of the annotations for external authentication. Broken is true if an invalid value
// could cause requests to be allowed by mistake. NoCache is true if a value for caching is invalid.
type externalAuth struct {
	URL, Method, SignIn, Param, Redirect string
	Headers                              []string
	CacheKey                             string
	CacheFor                             []ir.AuthLifetime
	AlwaysSetCookie, Broken, NoCache     bool

	KeepAlive, KeepAliveRequests int
	KeepAliveTimeout             time.Duration
	// SetHeaders is the name of the ConfigMap in auth-proxy-set-headers, and Set is the data of this ConfigMap: headers
	// to add to requests to the authentication service. The code that reads the ConfigMap sets Set after
	// CheckAuthHeader has accepted all headers.
	SetHeaders string
	Set        map[string]string
	Snippet    authSnippets
}

// GlobalAuth returns the ConfigMap key global-auth-* that corresponds to the given annotation. The key applies to all
// Ingresses that do not set auth-url.
func GlobalAuth(name string) *Annotation {
	row := *Table.Find(name)
	own := row
	// The parser functions of an annotation only access Asked.Auth. So global swaps Asked.Auth and Asked.GlobalAuth
	// while it calls do. If do calls a parser function, the function then accesses the global settings.
	global := func(s *Settings, do func()) {
		s.Asked.Auth, s.Asked.GlobalAuth = s.Asked.GlobalAuth, s.Asked.Auth
		do()
		s.Asked.Auth, s.Asked.GlobalAuth = s.Asked.GlobalAuth, s.Asked.Auth
	}
	row.Name = "global-" + own.Name
	row.Doc = fmt.Sprintf(
		"Has the effect of the annotation [%s](annotations.md#%s) on all Ingresses without auth-url, unless an "+
			"Ingress sets enable-global-auth to `false`.",
		own.Name, own.Name)
	row.Parse = func(s *Settings, value string) (err error) {
		global(s, func() { err = own.Parse(s, value) })
		return err
	}
	if own.OnError != nil {
		row.OnError = func(s *Settings) { global(s, func() { own.OnError(s) }) }
	}
	if own.Meanwhile == ingressClosed {
		row.Meanwhile = "all requests to which the key applies get 503"
	}
	row.Check = func(s *Settings) (message string) {
		if own.Check != nil {
			global(s, func() { message = own.Check(s) })
		}
		return strings.Replace(message, " without auth-", ", because there is no global-auth-", 1)
	}
	row.Report = func(s *Settings) (all []report.Problem) {
		if own.Report != nil {
			global(s, func() { all = own.Report(s) })
		}
		return all
	}
	return &row
}

// NoAuthLocations is the ConfigMap key no-auth-locations. It is not in Table, because it is not an annotation.
var NoAuthLocations = Annotation{
	Name: "no-auth-locations",
	Doc: "Paths that need no basic or external authentication, even if an annotation or the ConfigMap configures it. " +
		"A path of an Ingress is exempt if it equals one of these paths or is below it.",
	Values: "comma-separated paths", Example: "/.well-known/acme-challenge,/healthz",
	Default: "/.well-known/acme-challenge",
	Parse:   nginx.Into(func(s *Settings) *[]string { return &s.Asked.NoAuth }, nginx.Locations), Lines: true,
}

// isBelow reports whether a path equals a location or is a subpath of it. Unlike in ingress-nginx, /healthz-admin does
// not match the location /healthz.
func isBelow(path, location string) bool {
	rest, ok := strings.CutPrefix(path, location)
	return ok && (rest == "" || rest[0] == '/' || strings.HasSuffix(location, "/"))
}

// withoutAuthentication reports whether no-auth-locations exempts a path from authentication.
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
	case asked.Broken, asked.Snippet.Refused:
		return []ir.Filter{ir.Unavailable}
	}
	f := ir.ExternalAuth{
		URL: asked.URL, Method: asked.Method, SignIn: asked.signIn(), RequestRedirect: asked.Redirect,
		ResponseHeaders: asked.Headers,
		AlwaysSetCookie: asked.AlwaysSetCookie,
		Connect:         cmp.Or(asked.Snippet.Timeouts.Connect, s.Attempts.Connect),
		Read:            cmp.Or(asked.Snippet.Timeouts.Read, s.Attempts.Read),
		Write:           cmp.Or(asked.Snippet.Timeouts.Write, s.Attempts.Write),
		KeepAlive:       asked.KeepAlive, KeepAliveTimeout: asked.KeepAliveTimeout,
		KeepAliveRequests: asked.KeepAliveRequests,
	}
	if asked.Snippet.Read != nil {
		f.Program = asked.Snippet.Read.Program
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

// signIn returns the sign-in URL with a query parameter that contains the URL of the original request, as in
// ingress-nginx. It returns "" if no sign-in URL is set.
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
		return "", fmt.Errorf("%s contains a brace that is not part of a variable", nginx.Quote(value))
	}
	_, err := exchange.ParseTemplate(value)
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
					"the header %s contains a character other than letters, digits and hyphens: such headers are "+
						"not forwarded to backends", name)
		case kind.Spoofable():
			return nil,
				fmt.Errorf(
					"the controller itself sets the header %s: remove it from the list",
					name)
		}
		names = append(names, name)
	}
	return names, nil
}

// CheckAuthHeader returns an error if a header must not be added to requests to the authentication service.
func (s *Settings) CheckAuthHeader(name, value string) error {
	if err := checkHeaderName(name); err != nil {
		return err
	}
	for _, r := range value {
		if r < ' ' || r > '~' {
			return fmt.Errorf("the value contains the character %U: write one line of ASCII text", r)
		}
	}
	if _, err := exchange.ParseTemplate(strings.TrimSpace(value)); err != nil {
		return err
	}
	return s.HTTP.CheckVariables(value)
}

// readLifetimes parses cache lifetimes in the format of nginx's proxy_cache_valid: status codes followed by a duration.
func readLifetimes(value string) (all []ir.AuthLifetime, err error) {
	for text := range strings.SplitSeq(value, ",") {
		words := strings.Fields(text)
		if len(words) == 0 {
			continue
		}
		l := ir.AuthLifetime{}
		if l.For, err = nginx.Time(words[len(words)-1]); err != nil || len(words) == 1 || l.For <= 0 {
			return nil, fmt.Errorf("%s is not a list of status codes and a time, such as 200 202 5m", nginx.Quote(text))
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
