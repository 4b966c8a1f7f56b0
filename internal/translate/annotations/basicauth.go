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
		Doc: "Requires basic authentication with a user name and password from the Secret in auth-secret. Clients " +
			"without a valid password get 401. The backend does not get the Authorization header.\n\n" +
			"While the Secret is missing or contains no valid user, all requests get 503. A change of the Secret " +
			"applies from the next request on. The value `digest` is not supported: with `digest`, all requests get " +
			"503.",
		Values: "basic", Example: "basic", Default: "no password", Scope: ScopeLocation, Risk: RiskLow,
		Parse:   nginx.Into(func(s *Settings) *bool { return &s.Asked.BasicAuth.On }, readAuthType),
		OnError: (*Settings).close, Meanwhile: ingressClosed,
	}
	authSecret = Annotation{
		Name: "auth-secret",
		Doc: "The Secret with the names and password hashes of the users. Supported hashes are bcrypt with a cost of " +
			"at most 14, apr1, MD5 crypt, SHA-256 and SHA-512 crypt with at most 200,000 rounds, `{SHA}`, `{SSHA}`, " +
			"DES crypt, and `{PLAIN}` followed by the password itself. A user with any other hash gets 401.",
		Values: "name or namespace/name of a Secret; if the Secret is not in the namespace of the Ingress, the key " +
			"allow-cross-namespace-resources of the ConfigMap must be `true`",
		Example: "users", Default: "none, so that all requests for an Ingress with auth-type get 503",
		Scope:   ScopeLocation,
		Risk:    RiskMedium,
		Parse:   nginx.Into(func(s *Settings) *string { return &s.Asked.BasicAuth.Secret }, readObjectName),
		OnError: func(s *Settings) { s.Asked.BasicAuth.NoSecret = true }, Meanwhile: withAuthTypeClosed,
		Check: withoutAuthType,
	}
	authSecretType = Annotation{
		Name: "auth-secret-type",
		Doc: "The format of the Secret in auth-secret. With `auth-file`, the key `auth` of the Secret contains an " +
			"htpasswd file, with lines such as `alice:HASH`. With `auth-map`, each key of the Secret is a user name, " +
			"and the value of the key is the password hash.",
		Values: "auth-file or auth-map", Example: "auth-map", Default: "auth-file", Scope: ScopeLocation, Risk: RiskLow,
		Parse:   nginx.Into(func(s *Settings) *bool { return &s.Asked.BasicAuth.Map }, readSecretType),
		OnError: func(s *Settings) { s.Asked.BasicAuth.NoSecret = true }, Meanwhile: withAuthTypeClosed,
		Check: withoutAuthType,
	}
	authRealm = Annotation{
		Name: "auth-realm",
		Doc: "The realm that browsers show when they prompt for a password. `off` is an ordinary realm here, and " +
			"does not disable authentication.",
		Values: "up to 256 letters, digits, spaces and any of `" + realmChars + "`", Example: "Authentication Required",
		Default: "empty",
		Scope:   ScopeLocation, Risk: RiskMedium,
		Parse:     nginx.Into(func(s *Settings) *string { return &s.Asked.BasicAuth.Realm }, readRealm),
		Meanwhile: "the realm is empty", Check: withoutAuthType,
	}
	satisfy = Annotation{
		Name: "satisfy",
		Doc: "With `all`, a client must pass all configured checks. With `any`, a client is allowed if at least one " +
			"check succeeds: its address is in [allowlist-source-range](annotations.md#allowlist-source-range), its " +
			"password is valid, or the authentication service in auth-url allows the request. With `any`, a valid " +
			"password or the authentication service also admits clients whose addresses are in " +
			"denylist-source-range. An invalid value is treated as `all`.",
		Values: "all or any", Example: "any", Default: "all", Scope: ScopeLocation, Risk: RiskLow,
		Parse:     nginx.Into(func(s *Settings) *bool { return &s.Asked.SatisfyAny }, readSatisfy),
		Meanwhile: "it is treated as all",
	}
)

const (
	realmChars    = "-_.~/:,;!?'()@&+=#*"
	maxRealmBytes = 256

	withAuthTypeClosed = "with auth-type, " + ingressClosed
)

func withoutAuthType(s *Settings) string {
	return option.Unless(s.Asked.BasicAuth.On || s.Closed, "the setting has no effect without auth-type")
}

// basicAuth holds the values of the annotations for basic authentication. NoSecret is true if auth-secret or
// auth-secret-type is invalid.
type basicAuth struct {
	On, NoSecret, Map bool
	Secret, Realm     string
}

// AsksPassword reports whether clients must log in with basic authentication.
func (s *Settings) AsksPassword() bool { return s.Asked.BasicAuth.On }

// SecretOfUsers returns the name of the Secret that contains the users for basic authentication, as "name" or
// "namespace/name". The name is "" if no Secret is set. bad is true if auth-secret or auth-secret-type is invalid.
func (s *Settings) SecretOfUsers() (name string, bad bool) {
	return s.Asked.BasicAuth.Secret, s.Asked.BasicAuth.NoSecret
}

// basicAuth returns the filter for basic authentication. If UsersSecret is not set, it returns a filter that responds
// with 503 to all requests instead.
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

// withoutPassword returns a filter that keeps the client's Authorization header from the backend, so that the backend
// does not get the password. It returns nil if the path does not use basic authentication, or if an external
// authentication service replaces the Authorization header.
func (s *Settings) withoutPassword(path string) []ir.Filter {
	if !s.Asked.BasicAuth.On || s.withoutAuthentication(path) || slices.ContainsFunc(s.externalAuth(path), authorizes) {
		return nil
	}
	return []ir.Filter{ir.WithoutAuthorization{}}
}

// The function authorizes reports whether a filter replaces the client's Authorization header with the Authorization
// header from an external authentication service.
func authorizes(f ir.Filter) bool {
	external, ok := f.(ir.ExternalAuth)
	return ok && slices.ContainsFunc(external.ResponseHeaders,
		func(name string) bool { return message.KindOf(name) == message.Authorization })
}

// access returns the filters that decide whether a client is allowed to request the path. A client must pass all of
// them. If the annotation satisfy is any, access combines them in a single filter, which a client passes if it passes
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

// anyAccess returns a filter that a client passes if it passes at least one of the authentication filters in others, or
// the filter for client addresses. As in nginx, the filter for client addresses only counts if there is a list of
// allowed addresses: with only a list of denied addresses, all other addresses would be allowed.
func (s *Settings) anyAccess(others []ir.Filter) []ir.Filter {
	sources := s.SourceRanges
	if sources.Allow = s.allowedSources(); sources.Allow != nil {
		others = append([]ir.Filter{sources}, others...)
	}
	if rules := s.admittingRules(); rules != nil {
		others = append([]ir.Filter{*rules}, others...)
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
			"digest is not supported, because its Secret would hold hashes that can be used like passwords, and " +
				"browsers support it with MD5 only: use basic, with HTTPS")
	}
	return false, fmt.Errorf("%s is not supported: write basic", nginx.Quote(value))
}

// readRealm reads the realm for basic authentication. It warns about the value "off", which disables authentication in
// nginx, but is an ordinary realm here.
func readRealm(value string) (string, error) {
	realm, err := nginx.Chars(realmChars+" ", maxRealmBytes)(value)
	if realm == "off" {
		err = nginx.Remark(
			"off is an ordinary realm here, and clients need a password, but in ingress-nginx it disables " +
				"authentication: to disable it, remove auth-type")
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
