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

	"github.com/k8singress/k8singress/internal/callout"
	"github.com/k8singress/k8singress/internal/exchange"
	"github.com/k8singress/k8singress/internal/extauth"
	"github.com/k8singress/k8singress/internal/ir"
	"github.com/k8singress/k8singress/internal/message"
	"github.com/k8singress/k8singress/internal/nginx"
	"github.com/k8singress/k8singress/internal/pools"
)

// externalAuth asks an external service whether a request is let in, as nginx's auth_request does with what ingress-nginx tells it.
type externalAuth struct {
	shared  *Shared
	service extauth.Service
	// to is where the questions go.
	to     callout.Service
	url    *callout.URL
	method string
	// detailed has the service told what ingress-nginx tells with a method.
	detailed bool
	// signIn is nil for nowhere, and redirect for what the client asked for. key is nil where no answer is kept.
	signIn, redirect, key *nginx.Template
	// set are told to the service besides, and own are the names of all that a client cannot tell it.
	set []setField
	own []message.Field
	// always has cookies set with every answer.
	always bool
	// digest tells the questions of this filter from those of others.
	digest [sha256.Size]byte
}

// setField is a field whose value is a template.
type setField struct {
	field message.Field
	value *nginx.Template
}

// What ingress-nginx tells the service, besides fields that have a kind.
const (
	sentFrom     = "nginx-ingress-controller"
	redirectName = "X-Auth-Request-Redirect"
	sentFromName = "X-Sent-From"
)

func newExternalAuth(of ir.ExternalAuth, shared *Shared) (_ Filter, err error) {
	h := &externalAuth{
		shared: shared, method: cmp.Or(of.Method, http.MethodGet), detailed: of.Method != "", always: of.AlwaysSetCookie,
		to: callout.Service{
			Purpose: "external authentication",
			Connect: cmp.Or(of.Connect, 5*time.Second), Read: cmp.Or(of.Read, time.Minute), Write: cmp.Or(of.Write, time.Minute),
			Idle: of.KeepAlive, IdleTimeout: of.KeepAliveTimeout, Requests: cmp.Or(of.KeepAliveRequests, 1000),
		},
	}
	if h.url, err = callout.ParseURL(of.URL); err != nil {
		return nil, err
	}
	if err := h.setTemplates(&of); err != nil {
		return nil, err
	}
	if h.service.Wanted, err = wantedOf(of.ResponseHeaders); err != nil {
		return nil, err
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
		if h.redirect, err = nginx.ParseTemplate(of.RequestRedirect); err != nil {
			return err
		}
	}
	if of.CacheKey != "" {
		if h.key, err = nginx.ParseTemplate(of.CacheKey); err != nil {
			return err
		}
	}
	h.own = []message.Field{message.NewField(redirectName, ""), message.NewField(sentFromName, "")}
	for _, header := range of.SetHeaders {
		value, err := nginx.ParseTemplate(header.Value)
		if err != nil {
			return err
		}
		field := message.NewField(header.Name, "")
		if field.Kind.Hop() || !httpguts.ValidHeaderFieldName(header.Name) {
			return fmt.Errorf("the header %q cannot be set", header.Name)
		}
		if field.Kind != message.Via {
			h.set, h.own = append(h.set, setField{field, value}), append(h.own, field)
		}
	}
	return nil
}

// wantedOf refuses what would change how the request is sent on.
func wantedOf(names []string) (wanted []message.Field, _ error) {
	for _, name := range names {
		field := message.NewField(name, "")
		if field.Kind.Hop() || field.Kind == message.Invalid {
			return nil, fmt.Errorf("the header %q of an answer cannot go to the backend", name)
		}
		wanted = append(wanted, field)
	}
	return wanted, nil
}

var (
	errAuthHost    = errors.New("external authentication: the URL has the host of the request in it, and the Ingress answers for any host")
	errAuthRefused = errors.New("external authentication: the service does not let the request in")
)

// Apply asks, or knows the answer. Whatever that is, nothing that the client has written stands where the backend looks for the word of
// the service.
func (h *externalAuth) Apply(x *exchange.Exchange) (bool, error) {
	if hostOf(x) == "" && h.url.NamesClientsHost() {
		return false, exchange.Fail(http.StatusServiceUnavailable, errAuthHost)
	}
	answer, err := h.answer(x)
	h.skip(x)
	switch {
	case errors.Is(err, callout.ErrBusy):
		return false, exchange.Fail(http.StatusServiceUnavailable, err)
	case err != nil:
		return false, exchange.Fail(http.StatusInternalServerError, err)
	}
	if !answer.LetsIn() {
		return h.refuse(x, answer)
	}
	h.setCookies(x, answer)
	for _, name := range h.service.Wanted {
		if value, ok := answer.Join(name); ok && value != "" {
			name.Value = value
			x.Fields.Add(name)
		}
	}
	return false, nil
}

// refuse answers for the service: with its status, or with the way to where clients sign in.
func (h *externalAuth) refuse(x *exchange.Exchange, answer *extauth.Answer) (bool, error) {
	switch {
	case !answer.Refuses():
		return false, exchange.Fail(http.StatusInternalServerError, fmt.Errorf("external authentication: the service answers %d", answer.Status))
	case answer.Status == http.StatusUnauthorized && h.signIn != nil:
		h.setCookies(x, answer)
		return true, x.Respond(http.StatusFound, "", message.Location.Field(callout.ExpandURL(h.signIn, x.Variable)))
	}
	if h.always {
		h.setCookies(x, answer)
	}
	if answer.Status == http.StatusUnauthorized {
		for i := range answer.Fields {
			if extauth.IsChallenge(&answer.Fields[i]) {
				x.Left = append(x.Left, answer.Fields[i])
			}
		}
	}
	return false, exchange.Fail(answer.Status, errAuthRefused)
}

// setCookies hands the cookies of the service to the client, each in a field of its own.
func (h *externalAuth) setCookies(x *exchange.Exchange, answer *extauth.Answer) {
	if !answer.Fields.Has(message.SetCookie) {
		return
	}
	changes := &message.Changes{ByAddHeader: !h.always}
	for i := range answer.Fields {
		if answer.Fields[i].Kind == message.SetCookie {
			changes.Add = append(changes.Add, answer.Fields[i])
		}
	}
	if h.always {
		x.Always = slices.Concat(x.Always, exchange.Changes{changes})
		return
	}
	x.ChangeAnswer(changes)
}

// skip takes off the request what only the service may say. It is what is left to do for a request that is let in without being asked
// about.
func (h *externalAuth) skip(x *exchange.Exchange) {
	if len(h.service.Wanted) == 0 {
		return
	}
	x.Fields = slices.DeleteFunc(x.Fields, h.reserved)
	if behind := x.Trailers; behind != nil {
		x.Trailers = func() message.Fields { return slices.DeleteFunc(behind(), h.reserved) }
	}
}

// reserved says whether a backend may take a field for the word of the service.
func (h *externalAuth) reserved(f message.Field) bool {
	for i := range h.service.Wanted {
		if extauth.SameToBackends(h.service.Wanted[i].Name, f.Name) {
			return true
		}
	}
	return false
}

func (h *externalAuth) answer(x *exchange.Exchange) (*extauth.Answer, error) {
	if h.key == nil {
		return h.ask(x)
	}
	key := h.keyOf(x)
	if answer := h.shared.answers.Get(key, x.Fields); answer != nil {
		return answer, nil
	}
	question := extauth.Question{Service: &h.service, Key: key, Fields: x.Fields, Again: exchange.Rounds(x.Request) > 0}
	return h.shared.answers.Fetch(x.Context(), question, func() (*extauth.Answer, error) { return h.ask(x) })
}

// keyOf tells questions apart by the settings, the host, the path of the Ingress, and what its author says. No text can be read as another
// one: each has its length in front.
func (h *externalAuth) keyOf(x *exchange.Exchange) extauth.Key {
	buffer := buffers.Get()
	b := append(buffer.Bytes()[:0], h.digest[:]...)
	for _, text := range [...]string{x.Route.Origin, x.Route.Host, x.Route.Type, x.Route.Path, message.Hostname(x.Host), h.key.Expand(x.Variable)} {
		n := len(text)
		b = append(b, byte(n), byte(n>>8), byte(n>>16), byte(n>>24))
		b = append(b, text...)
	}
	key := extauth.Key{Namespace: ir.ParseRef(x.Route.Origin).Namespace, Digest: sha256.Sum256(b)}
	buffer.Replace(b)
	buffer.Release()
	return key
}

// buffers are for keys, and for texts of calls.
var buffers = pools.NewBuffers("filter: text", 1<<10)

// calls keep room for their fields.
var calls = pools.New("filter: call", nil, func(q *callout.Call) {
	clear(q.Fields)
	*q = callout.Call{Fields: q.Fields[:0]}
})

func (h *externalAuth) ask(x *exchange.Exchange) (*extauth.Answer, error) {
	q := calls.Get()
	answer, err := h.askBy(x, q.Value())
	q.Release()
	return answer, err
}

// askBy asks the service by a call that is the caller's.
func (h *externalAuth) askBy(x *exchange.Exchange, q *callout.Call) (*extauth.Answer, error) {
	q.Service, q.Method, q.Namespace = &h.to, h.method, ir.ParseRef(x.Route.Origin).Namespace
	host := hostOf(x)
	if err := h.url.Fill(q, host, x.Variable); err != nil {
		return nil, err
	}
	q.Own = q.Host == host
	q.Fields = h.headers(x, q.Fields[:0])
	found, err := h.shared.ask(x.Request, q)
	if err != nil {
		return nil, err
	}
	answer := extauth.Answer(found)
	return &answer, nil
}

// hostOf is the host of the route, or the name below its wildcard; it is empty where that cannot be said: what a client calls a host by an
// alias may be any name.
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

// headers adds what the service gets: what the client sent, but for what it could pass for somebody else by, and what ingress-nginx tells.
func (h *externalAuth) headers(x *exchange.Exchange, to message.Fields) message.Fields {
	for i := range x.Fields {
		f := &x.Fields[i]
		switch {
		case !goesOut(x, f):
		case slices.ContainsFunc(h.own, func(own message.Field) bool { return extauth.SameToBackends(own.Name, f.Name) }):
		default:
			to = append(to, *f)
		}
	}
	to = h.addField(to, message.XRequestID, x.ID())
	to = h.addField(to, message.XOriginalURL, originalURL(x))
	to = h.addField(to, message.XOriginalMethod, x.Method)
	to = h.addField(to, message.XRealIP, x.Client().IP)
	to = h.addField(to, message.XForwardedFor, x.ForwardedFor())
	// Whatever the settings say: it is how a question that comes back is known.
	to = append(to, message.Via.Field(x.Via()))
	if h.detailed {
		to = h.addField(to, message.XOriginalURI, x.Target)
		to = h.addField(to, message.XScheme, x.Client().Proto)
	}
	redirect := x.Target
	if h.redirect != nil {
		redirect = nginx.EscapeControls(h.redirect.Expand(x.Variable))
	}
	to = append(to, message.Field{Name: sentFromName, Value: sentFrom}, message.Field{Name: redirectName, Value: redirect})
	for _, set := range h.set {
		if set.field.Value = nginx.EscapeControls(set.value.Expand(x.Variable)); set.field.Value != "" {
			to = append(to, set.field)
		}
	}
	return to
}

// goesOut says whether another service than the backend may get a field of a request: none that is about the connection, and none by which
// a client could pass for somebody else.
func goesOut(x *exchange.Exchange, f *message.Field) bool {
	return !f.Kind.Hop() && !f.Kind.Spoofable() && f.Kind != message.Expect && f.Kind != message.Invalid &&
		(f.Kind != message.SSLClient || x.Peer != nil)
}

// addField leaves out what the settings say otherwise, and what has no value.
func (h *externalAuth) addField(to message.Fields, kind message.Kind, value string) message.Fields {
	for i := range h.set {
		if h.set[i].field.Kind == kind {
			return to
		}
	}
	if value == "" {
		return to
	}
	return append(to, kind.Field(value))
}

// originalURL is what the client asked for.
func originalURL(x *exchange.Exchange) string {
	buffer := buffers.Get()
	b := append(append(buffer.Bytes()[:0], x.Scheme()...), "://"...)
	b = append(append(b, x.Host...), x.Target...)
	url := x.Keep(b)
	buffer.Replace(b)
	buffer.Release()
	return url
}
