package caddyinternals

import (
	"errors"
	"reflect"

	"github.com/caddyserver/caddy/v2/modules/caddytls"
	"github.com/caddyserver/certmagic"
)

// ACMEIssuer returns the certmagic issuer that an issuer module of Caddy contains. Caddy must have called the module's
// method SetConfig (caddytls.ConfigSetter) before. ACMEIssuer returns nil without an error for a module that does not
// use ACME.
//
// The module has no method that returns the certmagic issuer. The controller needs this issuer for two reasons: only
// this issuer accepts a logger and ports for a single order, and certmagic passes the replaced certificate only to this
// issuer, which exempts a renewal from the rate limit of the certificate authority.
//
// ACMEIssuer relies on the private field issuer of caddytls.ACMEIssuer. If the field is missing, has another type or is
// not set, ACMEIssuer returns an error. The module can still be used in this case.
func ACMEIssuer(module certmagic.Issuer) (*certmagic.ACMEIssuer, error) {
	m, ok := module.(interface{ GetACMEIssuer() *caddytls.ACMEIssuer })
	if !ok {
		return nil, nil
	}
	outer := m.GetACMEIssuer()
	if outer == nil {
		return nil, nil
	}
	field := reflect.ValueOf(outer).Elem().FieldByName("issuer")
	if !field.IsValid() || field.Type() != reflect.TypeFor[*certmagic.ACMEIssuer]() || field.IsNil() {
		return nil,
			errors.New(
				"caddytls.ACMEIssuer of this version of Caddy does not keep certmagic's issuer in its field issuer")
	}
	return (*certmagic.ACMEIssuer)(field.UnsafePointer()), nil
}
