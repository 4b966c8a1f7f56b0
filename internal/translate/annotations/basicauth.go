package annotations

import (
	"fmt"
	"slices"

	"github.com/k8singress/k8singress/internal/http/message"
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/nginx"
	"github.com/k8singress/k8singress/internal/model/option"
)

// The annotations for basic authentication, and for its combination with other access control.
var (
	authType = Annotation{
		Name: "auth-type",
		Doc: "Lets in clients by a name and a password that auth-secret has. Others get 401. While the Secret is " +
			"missing, or no user in it can be verified, all requests get 503, and so they do with `digest`, which " +
			"is not supported. A change of the Secret holds for the next request. The backend does not get the " +
			"header Authorization.",
		Values: "basic", Example: "basic", Default: "no password", Scope: ScopeLocation, Risk: RiskLow,
		Parse:   nginx.Into(func(s *Settings) *bool { return &s.Asked.BasicAuth.On }, readAuthType),
		OnError: (*Settings).close, Meanwhile: ingressClosed,
	}
	authSecret = Annotation{
		Name: "auth-secret",
		Doc: "The Secret with the users. Hashes may be of bcrypt with a cost up to 14, apr1, MD5, SHA-256 or " +
			"SHA-512 of crypt with up to 200,000 rounds, `{SHA}`, `{SSHA}`, DES, or `{PLAIN}` and the password " +
			"itself. A user with another one gets 401.",
		Values:  "name or namespace/name of a Secret; another namespace only with allow-cross-namespace-resources",
		Example: "users", Default: "none, which closes an Ingress with auth-type", Scope: ScopeLocation,
		Risk:    RiskMedium,
		Parse:   nginx.Into(func(s *Settings) *string { return &s.Asked.BasicAuth.Secret }, readObjectName),
		OnError: func(s *Settings) { s.Asked.BasicAuth.NoSecret = true }, Meanwhile: withAuthTypeClosed,
		Check: withoutAuthType,
	}
	authSecretType = Annotation{
		Name: "auth-secret-type",
		Doc: "How auth-secret has the users: with `auth-file` its key `auth` is a file of htpasswd, with lines such " +
			"as `alice:HASH`; with `auth-map` each key is a name, and its value the hash.",
		Values: "auth-file or auth-map", Example: "auth-map", Default: "auth-file", Scope: ScopeLocation, Risk: RiskLow,
		Parse:   nginx.Into(func(s *Settings) *bool { return &s.Asked.BasicAuth.Map }, readSecretType),
		OnError: func(s *Settings) { s.Asked.BasicAuth.NoSecret = true }, Meanwhile: withAuthTypeClosed,
		Check: withoutAuthType,
	}
	authRealm = Annotation{
		Name: "auth-realm",
		Doc: "What browsers show to those whom they ask for a password. `off` is a realm as any other, and does " +
			"not let everybody in.",
		Values: "up to 256 letters, digits, spaces and any of `" + realmChars + "`", Example: "Authentication Required",
		Default: "empty",
		Scope:   ScopeLocation, Risk: RiskMedium,
		Parse:     nginx.Into(func(s *Settings) *string { return &s.Asked.BasicAuth.Realm }, readRealm),
		Meanwhile: "the realm is empty", Check: withoutAuthType,
	}
	satisfy = Annotation{
		Name: "satisfy",
		Doc: "With `any`, a client gets in by its address, if " +
			"[allowlist-source-range](annotations.md#allowlist-source-range) has it, or else by its password, or " +
			"else if the service of auth-url lets it in: one will do. One that denylist-source-range has may get in " +
			"by the others. A wrong value is `all`.",
		Values: "all or any", Example: "any", Default: "all", Scope: ScopeLocation, Risk: RiskLow,
		Parse:     nginx.Into(func(s *Settings) *bool { return &s.Asked.SatisfyAny }, readSatisfy),
		Meanwhile: "it counts as all",
	}
)

const (
	realmChars     = "-_.~/:,;!?'()@&+=#*"
	mostRealmBytes = 256

	withAuthTypeClosed = "with auth-type, " + ingressClosed
)

func withoutAuthType(s *Settings) string {
	return option.Unless(s.Asked.BasicAuth.On || s.Closed, "this has no effect without auth-type")
}

// basicAuth holds the values of the annotations. NoSecret means that an annotation for the Secret is invalid.
type basicAuth struct {
	On, NoSecret, Map bool
	Secret, Realm     string
}

// AsksPassword reports whether clients need a password.
func (s *Settings) AsksPassword() bool { return s.Asked.BasicAuth.On }

// SecretOfUsers returns the name of the Secret with the users, with or without its namespace. The name is empty if
// there is no Secret. bad reports whether an annotation for the Secret is invalid.
func (s *Settings) SecretOfUsers() (name string, bad bool) {
	return s.Asked.BasicAuth.Secret, s.Asked.BasicAuth.NoSecret
}

// basicAuth returns the filter for basic authentication. It returns 503 for all requests while the Secret is unknown.
func (s *Settings) basicAuth(string) []ir.Filter {
	asked := &s.Asked.BasicAuth
	switch {
	case !asked.On:
		return nil
	case s.UsersSecret.IsZero():
		return []ir.Filter{ir.Unavailable}
	}
	return []ir.Filter{ir.BasicAuth{Users: ir.Users{Secret: s.UsersSecret, Map: asked.Map}, Realm: asked.Realm}}
}

// withoutPassword removes the Authorization header that let the client in, so that the backend does not get it. The
// filters for access control run before this filter. If an external service provides its own Authorization header, that
// header has already replaced the client's.
func (s *Settings) withoutPassword(path string) []ir.Filter {
	if !s.Asked.BasicAuth.On || s.withoutAuthentication(path) || slices.ContainsFunc(s.externalAuth(path), authorizes) {
		return nil
	}
	return []ir.Filter{ir.RequestHeaders{HeaderChanges: ir.HeaderChanges{Remove: []string{message.Authorization.Name()}}}}
}

// authorizes reports whether a filter replaces the client's Authorization header by the one of an external service.
func authorizes(f ir.Filter) bool {
	external, ok := f.(ir.ExternalAuth)
	return ok && slices.ContainsFunc(external.ResponseHeaders,
		func(name string) bool { return message.KindOf(name) == message.Authorization })
}

// access returns the filters that decide which clients are let in. A client must pass all of them or, with satisfy any,
// one of them.
func (s *Settings) access(path string) []ir.Filter {
	var all []ir.Filter
	for _, of := range guardians {
		if !s.withoutAuthentication(path) {
			all = append(all, of(s, path)...)
		}
	}
	sources := s.sourceRanges(path)
	if !s.Asked.SatisfyAny || len(all) == 0 {
		return append(sources, all...)
	}
	return s.anyAccess(all)
}

// anyAccess returns a filter that lets a client in if it passes one of several filters. As in nginx, a list of denied
// addresses lets no client in by itself.
func (s *Settings) anyAccess(others []ir.Filter) []ir.Filter {
	sources := s.SourceRanges
	if sources.Allow = s.allowedSources(); sources.Allow != nil {
		others = append([]ir.Filter{sources}, others...)
	}
	if len(others) == 1 {
		return others
	}
	return []ir.Filter{ir.AnyOf{Filters: others}}
}

func readAuthType(value string) (bool, error) {
	switch value {
	case "basic":
		return true, nil
	case "digest":
		return false, nginx.Unsupported(
			"digest is not supported: its Secret holds what is as good as the passwords themselves, and browsers " +
				"use it with MD5 only. Use basic, by HTTPS")
	}
	return false, fmt.Errorf("%s is not basic, which is the one type there is", nginx.Quote(value))
}

// readRealm reads a realm. It warns about the value that turns the password off in nginx.
func readRealm(value string) (string, error) {
	realm, err := nginx.Chars(realmChars+" ", mostRealmBytes)(value)
	if realm == "off" {
		err = nginx.Remark(
			"in ingress-nginx, off lets everybody in without a password. Here it is a realm as any other, and " +
				"clients are asked: remove auth-type to let everybody in")
	}
	return realm, err
}

func readSecretType(value string) (asMap bool, err error) {
	value, err = nginx.OneOf("auth-file", "auth-map")(value)
	return value == "auth-map", err
}

func readSatisfy(value string) (isAny bool, err error) {
	value, err = nginx.OneOf("all", "any")(value)
	return value == "any", err
}
