package message

import (
	"bytes"
	"strings"
)

// Kind identifies the name of a header field that is handled specially, or a class of other names.
type Kind uint8

// The kinds of fields.
const (
	// Other is any field that is not handled specially.
	Other Kind = iota

	// Fields about the connection or the framing. They are not forwarded. Outgoing messages get new fields instead.
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

	// Fields with which a client could impersonate someone else: the fields that describe the client to endpoints, and
	// the fields that endpoints may attribute to a trusted proxy or authentication service.
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
	Forwarded
	Proxy
	XOriginalURI
	XOriginalURL
	XOriginalMethod
	XRewriteURL

	// Fields that this project reads and forwards.
	Accept
	Authorization
	ContentType
	Cookie
	Origin
	Referer
	UserAgent
	// SSLClient is any name with the prefix ssl-client-, which tells backends about client certificates.
	SSLClient
	// Names with characters other than letters, digits and hyphens. Endpoints may confuse such a name with another one,
	// so these fields are not forwarded, unless a Names value allows it. nginx and Caddy do the same. Invalid names
	// could be confused with a name in this list and are never forwarded. The other names are Underscored if their only
	// additional characters are underscores, otherwise Odd.
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

// names holds the name of each kind in the usual HTTP/1.1 spelling.
var names = [kinds]string{
	Host: "Host", ContentLength: "Content-Length", TransferEncoding: "Transfer-Encoding", Connection: "Connection",
	ProxyConnection: "Proxy-Connection", KeepAlive: "Keep-Alive", ProxyAuthenticate: "Proxy-Authenticate",
	ProxyAuthorization: "Proxy-Authorization", Upgrade: "Upgrade", HTTP2Settings: "HTTP2-Settings", TE: "TE",
	Trailer: "Trailer",
	Expect:  "Expect", XRequestID: "X-Request-ID", XRealIP: "X-Real-IP", XForwardedFor: "X-Forwarded-For",
	XForwardedHost: "X-Forwarded-Host", XForwardedPort: "X-Forwarded-Port", XForwardedProto: "X-Forwarded-Proto",
	XForwardedScheme: "X-Forwarded-Scheme", XForwardedPrefix: "X-Forwarded-Prefix", XScheme: "X-Scheme",
	XOriginalForwardedFor: "X-Original-Forwarded-For", XOriginalForwardedHost: "X-Original-Forwarded-Host", Via: "Via",
	Forwarded: "Forwarded", Proxy: "Proxy", XOriginalURI: "X-Original-URI", XOriginalURL: "X-Original-URL",
	XOriginalMethod: "X-Original-Method", XRewriteURL: "X-Rewrite-URL", Accept: "Accept",
	Authorization: "Authorization",
	ContentType:   "Content-Type", Cookie: "Cookie", Origin: "Origin", Referer: "Referer",
	UserAgent: "User-Agent", AltSvc: "Alt-Svc", Date: "Date", Location: "Location", Server: "Server",
	SetCookie:               "Set-Cookie",
	StrictTransportSecurity: "Strict-Transport-Security", XAccelBuffering: "X-Accel-Buffering",
}

// Name returns the usual spelling of the name of a kind. It is empty for Other, SSLClient, Invalid, Underscored and
// Odd.
func (k Kind) Name() string { return names[k] }

// Field returns a field of kind k with this value.
func (k Kind) Field(value string) Field { return Field{names[k], value, k} }

// Hop reports whether a field is hop-by-hop (RFC 9110 7.6.1) or about the framing of a message. Such fields are never
// forwarded.
func (k Kind) Hop() bool { return Host <= k && k <= Trailer }

// Spoofable reports whether a client could impersonate someone else with a field of this kind.
func (k Kind) Spoofable() bool { return XRequestID <= k && k <= XRewriteURL }

// Removable reports whether a client may remove a field by naming it in Connection. A client must not be able to remove
// credentials, or fields that a trusted proxy adds to describe the client. So only fields without special handling are
// removable.
func (k Kind) Removable() bool { return k == Other || k == Underscored || k == Odd }

// Mistakable reports whether endpoints may confuse the name of a field with another name.
func (k Kind) Mistakable() bool { return Invalid <= k && k <= Odd }

// Names defines which request header fields with unusual characters in their names are forwarded; see Kind.Mistakable.
type Names uint8

// Each value allows more names than the one before it.
const (
	PlainNames Names = iota
	UnderscoredNames
	AllNames
)

// Allows reports whether fields of a kind are forwarded.
func (n Names) Allows(k Kind) bool {
	switch {
	case k == Underscored:
		return n >= UnderscoredNames
	case k == Odd:
		return n >= AllNames
	}
	return k != Invalid
}

// maxName is the length of the longest name in names.
const maxName = 25

// byLength[n] holds the kinds whose names have n bytes.
var byLength = func() (all [maxName + 1][]Kind) {
	for k, name := range names {
		if name != "" {
			all[len(name)] = append(all[len(name)], Kind(k))
		}
	}
	return all
}()

// sslClient is the prefix of the fields about the client certificate.
const sslClient = "ssl-client-"

// KindOf returns the kind of a name. The name must be a token as defined in RFC 9110 5.6.2.
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

// mistakable returns the kind of a name with characters other than letters, digits and hyphens. It returns Invalid if
// the letters and digits are equal to the letters and digits of a known name, because endpoints treat the other
// characters in different ways.
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

// words holds the names of all kinds in lower case, without hyphens.
var words = func() map[string]bool {
	all := map[string]bool{}
	for _, name := range names {
		if name != "" {
			all[strings.ToLower(strings.ReplaceAll(name, "-", ""))] = true
		}
	}
	return all
}()

// plain marks the characters that every endpoint accepts in names: letters, digits and hyphens.
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
