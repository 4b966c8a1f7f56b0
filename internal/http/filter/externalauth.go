package filter

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"

	"github.com/k8singress/k8singress/internal/http/callout"
	"github.com/k8singress/k8singress/internal/http/exchange"
	"github.com/k8singress/k8singress/internal/http/extauth"
	"github.com/k8singress/k8singress/internal/http/message"
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/nginx"
	"github.com/k8singress/k8singress/internal/model/pools"
)

// externalAuth asks an external service for each request whether to accept it, like nginx's auth_request. It sends the
// same headers to the service as ingress-nginx.
type externalAuth struct {
	shared  *Shared
	service extauth.Service
	// to holds the connection settings for requests to the service.
	to     callout.Service
	url    *callout.URL
	method string
	// detailed is true if the service also gets X-Original-URI and X-Scheme. ingress-nginx only sends these if
	// auth-method is set.
	detailed bool
	// signIn is the URL of the sign-in page, or nil if there is no sign-in page. redirect is the value of
	// X-Auth-Request-Redirect; if it is nil, the target of the client's request is used. key is the configured cache
	// key, or nil if responses are not cached.
	signIn, redirect, key *nginx.Template
	// program runs before the service is asked. It is nil if no program runs.
	program *program
	// set are additional header fields for the requests to the service. own are the names of all header fields that are
	// never copied from the client's request.
	set []setField
	own []message.Field
	// always is true if the service's cookies are added to all responses, including error responses.
	always bool
	// digest is a hash of the settings. It is part of the cache key, so that filters with different settings do not
	// share cached responses.
	digest [sha256.Size]byte
}

// setField is a header field whose value may contain nginx variables. ofProgram is true if the program of the filter
// sets it.
type setField struct {
	field     message.Field
	value     *nginx.Template
	ofProgram bool
}

// The names of two header fields that ingress-nginx sends to authentication services, and the value of X-Sent-From.
const (
	sentFrom     = "nginx-ingress-controller"
	redirectName = "X-Auth-Request-Redirect"
	sentFromName = "X-Sent-From"
)

func newExternalAuth(of ir.ExternalAuth, shared *Shared) (_ Filter, err error) {
	h := &externalAuth{
		shared: shared, method: cmp.Or(of.Method, http.MethodGet), detailed: of.Method != "",
		always: of.AlwaysSetCookie,
		to: callout.Service{
			Purpose: "external authentication",
			Connect: cmp.Or(of.Connect, 5*time.Second), Read: cmp.Or(of.Read, time.Minute),
			Write: cmp.Or(of.Write, time.Minute),
			Idle:  of.KeepAlive, IdleTimeout: of.KeepAliveTimeout, Requests: cmp.Or(of.KeepAliveRequests, 1000),
		},
	}
	if h.url, err = callout.ParseURL(of.URL); err != nil {
		return nil, err
	}
	if err := h.setTemplates(&of); err != nil {
		return nil, err
	}
	if of.Program != nil {
		if err := h.setProgram(of.Program); err != nil {
			return nil, err
		}
	}
	if h.service.Wanted, err = wantedOf(of.ResponseHeaders); err != nil {
		return nil, err
	}
	for _, name := range of.KeptHeaders {
		h.service.Kept = append(h.service.Kept, message.NewField(name, ""))
	}
	for _, l := range of.CacheFor {
		for _, status := range l.Statuses {
			h.service.Keep = append(h.service.Keep, extauth.Lifetime{Status: status, For: l.For})
		}
	}
	if h.key == nil {
		h.service.Keep = nil
	}
	h.to.Wants = h.service.Wants
	raw, err := json.Marshal(of)
	h.digest = sha256.Sum256(raw)
	return h, err
}

func (h *externalAuth) setTemplates(of *ir.ExternalAuth) (err error) {
	if of.SignIn != "" {
		if h.signIn, err = callout.ParseSignIn(of.SignIn); err != nil {
			return err
		}
	}
	if of.RequestRedirect != "" {
		if h.redirect, err = exchange.ParseTemplate(of.RequestRedirect); err != nil {
			return err
		}
	}
	if of.CacheKey != "" {
		if h.key, err = exchange.ParseTemplate(of.CacheKey); err != nil {
			return err
		}
	}
	h.own = []message.Field{message.NewField(redirectName, ""), message.NewField(sentFromName, "")}
	for _, header := range of.SetHeaders {
		value, err := exchange.ParseTemplate(header.Value)
		if err != nil {
			return err
		}
		if err := h.setHeader(header.Name, value, false); err != nil {
			return err
		}
	}
	return nil
}

// setHeader adds a header field to the requests to the service. It replaces an earlier one with the same name.
func (h *externalAuth) setHeader(name string, value *nginx.Template, ofProgram bool) error {
	field := message.NewField(name, "")
	if field.Kind.Hop() || !httpguts.ValidHeaderFieldName(name) {
		return fmt.Errorf("the header %q cannot be set", name)
	}
	if field.Kind == message.CDNLoop {
		return nil
	}
	h.set = slices.DeleteFunc(h.set, func(s setField) bool { return s.field.Is(field.Kind, field.Name) })
	h.set, h.own = append(h.set, setField{field, value, ofProgram}), append(h.own, field)
	return nil
}

// wantedOf returns the header fields to copy from the service's response to the request for the backend. It returns an
// error for names that could change how the request is forwarded.
func wantedOf(names []string) (wanted []message.Field, _ error) {
	for _, name := range names {
		field := message.NewField(name, "")
		if field.Kind.Hop() || field.Kind == message.Invalid {
			return nil, fmt.Errorf("the response header %q cannot be sent to the backend", name)
		}
		wanted = append(wanted, field)
	}
	return wanted, nil
}

var (
	errAuthHost = errors.New(
		"external authentication: the URL contains the host of the request, but the Ingress serves any host")
	errAuthRefused = errors.New("external authentication: the request was rejected")
)

// Apply accepts or rejects the request according to the service's response, which may come from the cache. The
// configuration can name header fields to copy from the service's response to the request for the backend. Apply
// removes these fields from the client's request, and also similar names that the backend could confuse with them.
func (h *externalAuth) Apply(x *exchange.Exchange) (bool, error) {
	if hostOf(x) == "" && h.url.NamesClientsHost() {
		return false, exchange.FailUndecided(http.StatusServiceUnavailable, errAuthHost)
	}
	verdict, err := h.verdict(x)
	h.skip(x)
	failure := (*exchange.Failure)(nil)
	switch {
	case errors.As(err, &failure):
		return false, err
	case errors.Is(err, callout.ErrBusy):
		return false, exchange.FailUndecided(http.StatusServiceUnavailable, err)
	case err != nil:
		return false, exchange.Fail(http.StatusInternalServerError, err)
	}
	x.SetAuthVariables(verdict.Status, verdict.Fields)
	if !verdict.Allows() {
		return h.refuse(x, verdict)
	}
	h.setCookies(x, verdict)
	for _, name := range h.service.Wanted {
		if value, ok := verdict.Join(name); ok && value != "" {
			name.Value = value
			x.Fields.Add(name)
		}
	}
	return false, nil
}

// refuse rejects the request with the status of the service's response, or redirects the client to the sign-in page.
func (h *externalAuth) refuse(x *exchange.Exchange, verdict *extauth.Verdict) (bool, error) {
	switch {
	case !verdict.Denies():
		return false, exchange.Fail(http.StatusInternalServerError,
			fmt.Errorf("external authentication: the response has the status %d", verdict.Status))
	case verdict.Status == http.StatusUnauthorized && h.signIn != nil:
		location := callout.ExpandURL(h.signIn, x.Variable)
		if err := x.VariablesFailed(); err != nil {
			return false, err
		}
		h.setCookies(x, verdict)
		return true, x.Respond(http.StatusFound, "", message.Location.Field(location))
	}
	if h.always {
		h.setCookies(x, verdict)
	}
	if verdict.Status == http.StatusUnauthorized {
		for i := range verdict.Fields {
			if extauth.IsChallenge(&verdict.Fields[i]) {
				x.ErrorFields = append(x.ErrorFields, verdict.Fields[i])
			}
		}
	}
	return false, exchange.Fail(verdict.Status, errAuthRefused)
}

// setCookies adds the service's cookies to the response, each in its own Set-Cookie header.
func (h *externalAuth) setCookies(x *exchange.Exchange, verdict *extauth.Verdict) {
	if !verdict.Fields.Has(message.SetCookie) {
		return
	}
	changes := &message.Changes{ByAddHeader: !h.always}
	for i := range verdict.Fields {
		if verdict.Fields[i].Kind == message.SetCookie {
			changes.Add = append(changes.Add, verdict.Fields[i])
		}
	}
	if h.always {
		x.ForAllResponses = slices.Concat(x.ForAllResponses, exchange.Changes{changes})
		return
	}
	x.ChangeResponse(changes)
}

// skip removes the request header fields that only the service may set. It must also be called for requests that are
// accepted without asking the service.
func (h *externalAuth) skip(x *exchange.Exchange) {
	if len(h.service.Wanted) == 0 {
		return
	}
	x.Fields = slices.DeleteFunc(x.Fields, h.reserved)
	if behind := x.Trailers; behind != nil {
		x.Trailers = func() message.Fields { return slices.DeleteFunc(behind(), h.reserved) }
	}
}

// reserved reports whether a header field must not come from the client, because the backend could mistake it for a
// header field that the service has set.
func (h *externalAuth) reserved(f message.Field) bool {
	for i := range h.service.Wanted {
		if extauth.SameToBackends(h.service.Wanted[i].Name, f.Name) {
			return true
		}
	}
	return false
}

// verdict returns the decision about the request: the response of the program or of the service.
func (h *externalAuth) verdict(x *exchange.Exchange) (*extauth.Verdict, error) {
	if h.program != nil {
		return h.runProgram(x)
	}
	return h.ask(x)
}

// ask returns the service's response for the request. It uses the cache if caching is enabled.
func (h *externalAuth) ask(x *exchange.Exchange) (*extauth.Verdict, error) {
	if h.key == nil {
		return h.call(x)
	}
	key := h.keyOf(x)
	if err := x.VariablesFailed(); err != nil {
		return nil, err
	}
	if verdict := h.shared.verdicts.Get(key, x.Fields); verdict != nil {
		return verdict, nil
	}
	request := extauth.Request{Service: &h.service, Key: key, Fields: x.Fields,
		Again: exchange.CountPasses(x.Request) > 0}
	return h.shared.verdicts.Fetch(x.Context(), request, func() (*extauth.Verdict, error) { return h.call(x) })
}

// keyOf returns the cache key for a request. It contains a hash of the settings, the Ingress, the host, the path of the
// route, the configured cache key, and the values of the header fields that the program sets.
func (h *externalAuth) keyOf(x *exchange.Exchange) extauth.Key {
	buffer := buffers.Get()
	b := append(buffer.Bytes()[:0], h.digest[:]...)
	for _, text := range [...]string{x.Route.Origin, x.Route.Host, x.Route.Type, x.Route.Path, message.Hostname(x.Host),
		h.key.Expand(x.Variable)} {
		b = appendToKey(b, text)
	}
	for i := range h.set {
		if h.set[i].ofProgram {
			b = appendToKey(b, h.set[i].value.Expand(x.Variable))
		}
	}
	key := extauth.Key{Namespace: ir.ParseRef(x.Route.Origin).Namespace, Digest: sha256.Sum256(b)}
	buffer.Replace(b)
	buffer.Release()
	return key
}

// appendToKey appends a string with its length, so that different lists of strings never produce the same input for the
// hash.
func appendToKey(b []byte, text string) []byte {
	n := len(text)
	b = append(b, byte(n), byte(n>>8), byte(n>>16), byte(n>>24))
	return append(b, text...)
}

// buffers is a pool of buffers for building cache keys and URLs.
var buffers = pools.NewBuffers("filter: text", 1<<10)

// calls is a pool of Calls. A Call in the pool keeps the allocated memory of its Fields.
var calls = pools.New("filter: call", nil, func(q *callout.Call) {
	clear(q.Fields)
	*q = callout.Call{Fields: q.Fields[:0]}
})

func (h *externalAuth) call(x *exchange.Exchange) (*extauth.Verdict, error) {
	q := calls.Get()
	verdict, err := h.callWith(x, q.Value())
	q.Release()
	return verdict, err
}

// callWith sends the request to the service, using q to hold the request. The caller may reuse q afterwards.
func (h *externalAuth) callWith(x *exchange.Exchange, q *callout.Call) (*extauth.Verdict, error) {
	q.Service, q.Method, q.Namespace = &h.to, h.method, ir.ParseRef(x.Route.Origin).Namespace
	host := hostOf(x)
	if err := h.url.Fill(q, host, x.Variable); err != nil {
		return nil, err
	}
	q.Own = q.Host == host
	q.Fields = h.headers(x, q.Fields[:0])
	if err := x.VariablesFailed(); err != nil {
		return nil, err
	}
	response, err := h.shared.call(x.Request, q)
	if err != nil {
		return nil, err
	}
	verdict := extauth.Verdict(response)
	return &verdict, nil
}

// hostOf returns the host of the route. For a route with a wildcard host, it returns the host of the request. It
// returns an empty string if the request's host does not match the wildcard. In this case, the request matched an alias
// of the wildcard host, and the client could have chosen any host.
func hostOf(x *exchange.Exchange) string {
	suffix, wild := strings.CutPrefix(x.Route.Host, "*")
	if !wild {
		return x.Route.Host
	}
	if name := message.Hostname(x.Host); len(name) > len(suffix) && strings.HasSuffix(name, suffix) {
		return name
	}
	return ""
}

// headers appends the header fields for the request to the service: the client's header fields, except fields that
// would let the client impersonate another client, and then the header fields that ingress-nginx sends.
func (h *externalAuth) headers(x *exchange.Exchange, to message.Fields) message.Fields {
	for i := range x.Fields {
		f := &x.Fields[i]
		switch {
		case !mayForward(x, f):
		case slices.ContainsFunc(h.own,
			func(own message.Field) bool { return extauth.SameToBackends(own.Name, f.Name) }):
		default:
			to = append(to, *f)
		}
	}
	to = h.addField(to, message.XRequestID.Field(x.ID()))
	to = h.addField(to, message.XOriginalURL.Field(originalURL(x)))
	to = h.addField(to, message.XOriginalMethod.Field(x.Method))
	to = h.addField(to, message.XRealIP.Field(x.Client().IP))
	to = h.addField(to, message.XForwardedFor.Field(x.ForwardedFor()))
	to = h.addField(to, message.Via.Field(x.Via()))
	// CDN-Loop is always sent, because it is needed to detect requests that loop back to this controller through the
	// service.
	to = append(to, message.CDNLoop.Field(x.CDNLoop()))
	if h.detailed {
		to = h.addField(to, message.XOriginalURI.Field(x.Target))
		to = h.addField(to, message.XScheme.Field(x.Client().Proto))
	}
	redirect := x.Target
	if h.redirect != nil {
		redirect = nginx.EscapeControls(h.redirect.Expand(x.Variable))
	}
	to = h.addField(to, message.Field{Name: sentFromName, Value: sentFrom})
	to = h.addField(to, message.Field{Name: redirectName, Value: redirect})
	for _, set := range h.set {
		if set.field.Value = nginx.EscapeControls(set.value.Expand(x.Variable)); set.field.Value != "" {
			to = append(to, set.field)
		}
	}
	return to
}

// mayForward reports whether a header field of a request may be sent to a service other than the backend. It returns
// false for connection-specific fields, for fields with which a client could impersonate another client, and for a
// password that the backend must not get.
func mayForward(x *exchange.Exchange, f *message.Field) bool {
	return !f.Kind.Hop() && !f.Kind.Spoofable() && f.Kind != message.Expect && f.Kind != message.Invalid &&
		(f.Kind != message.SSLClient || x.Peer != nil) && (f.Kind != message.Authorization || !x.WithoutAuthorization)
}

// addField appends a header field to the list of header fields (to) and returns the new list. It appends nothing if the
// value is empty, or if the configuration contains its own value for this header field.
func (h *externalAuth) addField(to message.Fields, field message.Field) message.Fields {
	for i := range h.set {
		if h.set[i].field.Is(field.Kind, field.Name) {
			return to
		}
	}
	if field.Value == "" {
		return to
	}
	return append(to, field)
}

// originalURL returns the absolute URL that the client requested.
func originalURL(x *exchange.Exchange) string {
	buffer := buffers.Get()
	b := append(append(buffer.Bytes()[:0], x.Scheme()...), "://"...)
	b = append(append(b, x.Host...), x.Target...)
	url := x.Keep(b)
	buffer.Replace(b)
	buffer.Release()
	return url
}
