package message

import (
	"bytes"
	"strings"
)

// Kind identifies a header field by its name: most kinds stand for one well-known name, the others for a class of
// names.
type Kind uint8

// The kinds of fields.
const (
	// Other is the kind of all fields that are not handled specially.
	Other Kind = iota

	// Fields about the connection or the length of the body. They are not forwarded, because they are different for
	// each connection.
	Host
	ContentLength
	TransferEncoding
	Connection
	ProxyConnection
	KeepAlive
	ProxyAuthenticate
	ProxyAuthorization
	Upgrade
	HTTP2Settings
	TE
	Trailer
	Expect

	// Fields with which a client could impersonate another client. They describe the client, or endpoints may trust
	// them because they usually come from a proxy or an authentication service.
	XRequestID
	XRealIP
	XForwardedFor
	XForwardedHost
	XForwardedPort
	XForwardedProto
	XForwardedScheme
	XForwardedPrefix
	XScheme
	XOriginalForwardedFor
	XOriginalForwardedHost
	Via
	CDNLoop
	Forwarded
	Proxy
	XOriginalURI
	XOriginalURL
	XOriginalMethod
	XRewriteURL

	// Fields that this project reads but also forwards.
	Accept
	Authorization
	ContentType
	Cookie
	Origin
	Referer
	UserAgent
	// SSLClient is the kind of all names with the prefix ssl-client-, which describe the client certificate to
	// backends.
	SSLClient
	// Kinds of names with characters other than letters, digits and hyphens. Endpoints may confuse such a name with
	// another name, so fields with these names are only forwarded if the administrator allows it (see Names), as in
	// nginx and Caddy. Invalid is the kind of names that could be confused with a well-known name; they are never
	// forwarded. Underscored is the kind of other names whose only unusual characters are underscores. Odd is the kind
	// of all remaining names.
	Invalid
	Underscored
	Odd

	// Response fields.
	AltSvc
	Date
	Location
	Server
	SetCookie
	StrictTransportSecurity
	XAccelBuffering

	kinds
)

// names maps each kind to its name in the usual spelling of HTTP/1.1.
var names = [kinds]string{
	Host: "Host", ContentLength: "Content-Length", TransferEncoding: "Transfer-Encoding", Connection: "Connection",
	ProxyConnection: "Proxy-Connection", KeepAlive: "Keep-Alive", ProxyAuthenticate: "Proxy-Authenticate",
	ProxyAuthorization: "Proxy-Authorization", Upgrade: "Upgrade", HTTP2Settings: "HTTP2-Settings", TE: "TE",
	Trailer: "Trailer",
	Expect:  "Expect", XRequestID: "X-Request-ID", XRealIP: "X-Real-IP", XForwardedFor: "X-Forwarded-For",
	XForwardedHost: "X-Forwarded-Host", XForwardedPort: "X-Forwarded-Port", XForwardedProto: "X-Forwarded-Proto",
	XForwardedScheme: "X-Forwarded-Scheme", XForwardedPrefix: "X-Forwarded-Prefix", XScheme: "X-Scheme",
	XOriginalForwardedFor: "X-Original-Forwarded-For", XOriginalForwardedHost: "X-Original-Forwarded-Host", Via: "Via",
	CDNLoop: "CDN-Loop", Forwarded: "Forwarded", Proxy: "Proxy", XOriginalURI: "X-Original-URI",
	XOriginalURL:    "X-Original-URL",
	XOriginalMethod: "X-Original-Method", XRewriteURL: "X-Rewrite-URL", Accept: "Accept",
	Authorization: "Authorization",
	ContentType:   "Content-Type", Cookie: "Cookie", Origin: "Origin", Referer: "Referer",
	UserAgent: "User-Agent", AltSvc: "Alt-Svc", Date: "Date", Location: "Location", Server: "Server",
	SetCookie:               "Set-Cookie",
	StrictTransportSecurity: "Strict-Transport-Security", XAccelBuffering: "X-Accel-Buffering",
}

// Name returns the name of the header field in its usual spelling. It returns an empty string for the kinds that stand
// for several names: Other, SSLClient, Invalid, Underscored and Odd.
func (k Kind) Name() string { return names[k] }

// Field returns a header field of this kind with the given value.
func (k Kind) Field(value string) Field { return Field{names[k], value, k} }

// Hop reports whether fields of this kind are hop-by-hop fields (RFC 9110 7.6.1) or describe the length of the body.
// They are never forwarded.
func (k Kind) Hop() bool { return Host <= k && k <= Trailer }

// Spoofable reports whether a client could impersonate another client if its fields of this kind were forwarded.
func (k Kind) Spoofable() bool { return XRequestID <= k && k <= XRewriteURL }

// Removable reports whether a client may remove fields of this kind by listing them in the Connection field. It returns
// false for all fields that are handled specially: a client must not be able to remove credentials, or fields with
// which a trusted proxy describes the client.
func (k Kind) Removable() bool { return k == Other || k == Underscored || k == Odd }

// Mistakable reports whether the names of this kind contain unusual characters, so that endpoints may confuse them with
// other names.
func (k Kind) Mistakable() bool { return Invalid <= k && k <= Odd }

// Names defines which request header fields with unusual characters in their names are forwarded.
type Names uint8

// PlainNames allows letters, digits and hyphens in names, UnderscoredNames also underscores, and AllNames any
// characters.
const (
	PlainNames Names = iota
	UnderscoredNames
	AllNames
)

// Allows reports whether fields of this kind are forwarded.
func (n Names) Allows(k Kind) bool {
	switch {
	case k == Underscored:
		return n >= UnderscoredNames
	case k == Odd:
		return n >= AllNames
	}
	return k != Invalid
}

// maxName is the length of the longest well-known name in bytes.
const maxName = 25

// byLength[n] lists the kinds whose names have n bytes.
var byLength = func() (all [maxName + 1][]Kind) {
	for k, name := range names {
		if name != "" {
			all[len(name)] = append(all[len(name)], Kind(k))
		}
	}
	return all
}()

// sslClient is the prefix of the names of fields that describe the client certificate.
const sslClient = "ssl-client-"

// KindOf returns the kind of a header field name. The name must be a token as defined in RFC 9110 5.6.2.
func KindOf(name string) Kind {
	if 0 < len(name) && len(name) <= maxName {
		for _, k := range byLength[len(name)] {
			if equalFold(name, names[k]) {
				return k
			}
		}
	}
	for i := range len(name) {
		if !plain[name[i]] {
			return mistakable(name)
		}
	}
	if len(name) >= len(sslClient) && equalFold(name[:len(sslClient)], sslClient) {
		return SSLClient
	}
	return Other
}

// mistakable returns the kind of a name that contains characters other than letters, digits and hyphens. It returns
// Invalid if the letters and digits of the name spell a well-known name, because some endpoints ignore or replace the
// other characters.
func mistakable(name string) Kind {
	kind, word := Underscored, make([]byte, 0, maxName+1)
	for i := range len(name) {
		switch c := name[i]; {
		case c == '-' || c == '_':
		case !plain[c]:
			kind = Odd
		case len(word) <= maxName:
			word = append(word, c|0x20)
		}
	}
	if words[string(word)] || bytes.HasPrefix(word, []byte("sslclient")) {
		return Invalid
	}
	return kind
}

// words is the set of all well-known names, in lower case and without hyphens.
var words = func() map[string]bool {
	all := map[string]bool{}
	for _, name := range names {
		if name != "" {
			all[strings.ToLower(strings.ReplaceAll(name, "-", ""))] = true
		}
	}
	return all
}()

// plain marks the characters that every endpoint accepts in header field names: letters, digits and hyphens.
var plain = func() (all [256]bool) {
	for c := range all {
		all[c] = 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '-'
	}
	return all
}()

// equalFold reports whether two strings of the same length are equal, ignoring case. b must consist of letters, digits
// and hyphens.
func equalFold(a, b string) bool {
	for i := range len(a) {
		if a[i] != b[i] && a[i]|0x20 != b[i]|0x20 {
			return false
		}
	}
	return true
}
