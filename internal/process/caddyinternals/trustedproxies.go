package caddyinternals

import (
	"errors"
	"reflect"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

// TrustedProxies returns the module with the networks of the proxies that a server trusts (trusted_proxies). It returns
// nil if the server has no such module. Caddy must have provisioned the module, as it does before it provisions the
// listener wrappers and the routes of the server.
//
// The server does not export the provisioned module. caddyhttp.PrepareRequest uses it, but only for an *http.Request,
// and it does not tell whether there is a module.
//
// TrustedProxies relies on the private field trustedProxies of caddyhttp.Server. If the field is missing or has another
// type, TrustedProxies returns an error.
func TrustedProxies(server *caddyhttp.Server) (caddyhttp.IPRangeSource, error) {
	field := reflect.ValueOf(server).Elem().FieldByName("trustedProxies")
	if !field.IsValid() || field.Type() != reflect.TypeFor[caddyhttp.IPRangeSource]() {
		return nil, errors.New(
			"caddyhttp.Server of this version of Caddy does not keep the trusted proxies in its field trustedProxies")
	}
	return *(*caddyhttp.IPRangeSource)(field.Addr().UnsafePointer()), nil
}
