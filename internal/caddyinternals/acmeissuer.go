package caddyinternals

import (
	"errors"
	"reflect"

	"github.com/caddyserver/caddy/v2/modules/caddytls"
	"github.com/caddyserver/certmagic"
)

// ACMEIssuer returns certmagic's issuer inside of an issuer module of Caddy, after caddytls.ConfigSetter was called. It is nil
// without an error for a module that does not speak ACME.
//
// The module has no method that returns it. Only it takes a log and ports for a single order, and only to it certmagic gives
// the certificate that an order replaces, so that a renewal does not count towards the rate limit of the authority.
//
// It relies on the private field issuer of caddytls.ACMEIssuer. Where that is missing, has another type or is not set, it
// returns an error, and the module can be used as it is.
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
		return nil, errors.New("caddytls.ACMEIssuer of this version of Caddy does not keep certmagic's issuer in its field issuer")
	}
	return (*certmagic.ACMEIssuer)(field.UnsafePointer()), nil
}
