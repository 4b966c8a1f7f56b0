package message

import (
	"bytes"
	"strings"
)

// Kind is which of the fields that this house knows a field is.
type Kind uint8

// The kinds. Each is followed by what it is for, where that is not what its name says.
const (
	// Other is any field that nothing here looks at.
	Other Kind = iota

	// About the connection or the framing: they end here, and are written anew.
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

	// Fields by which a client could pass for somebody else: what endpoints are told of the client, and what they may take for the
	// word of a proxy, or of an authentication, in front of them.
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

	// Fields that are read here, and go on.
	Accept
	Authorization
	ContentType
	Cookie
	Origin
	Referer
	UserAgent
	// SSLClient is any name with ssl-client- in front: what backends are told of client certificates.
	SSLClient
	// Names with other characters than letters, digits and hyphens. Endpoints may take one for another name, so such fields go no
	// further, as in nginx and Caddy, if Names does not say otherwise. An Invalid one could be taken for a name of this list, and never
	// goes on. Of the others, those that are Underscored have underscores besides, and Odd ones have anything.
	Invalid
	Underscored
	Odd

	// Of answers.
	AltSvc
	Date
	Location
	Server
	SetCookie
	StrictTransportSecurity
	XAccelBuffering

	kinds
)

// names are the names of the kinds in the spelling that HTTP/1.1 is used to.
var names = [kinds]string{
	Host: "Host", ContentLength: "Content-Length", TransferEncoding: "Transfer-Encoding", Connection: "Connection",
	ProxyConnection: "Proxy-Connection", KeepAlive: "Keep-Alive", ProxyAuthenticate: "Proxy-Authenticate",
	ProxyAuthorization: "Proxy-Authorization", Upgrade: "Upgrade", HTTP2Settings: "HTTP2-Settings", TE: "TE", Trailer: "Trailer",
	Expect: "Expect", XRequestID: "X-Request-ID", XRealIP: "X-Real-IP", XForwardedFor: "X-Forwarded-For",
	XForwardedHost: "X-Forwarded-Host", XForwardedPort: "X-Forwarded-Port", XForwardedProto: "X-Forwarded-Proto",
	XForwardedScheme: "X-Forwarded-Scheme", XForwardedPrefix: "X-Forwarded-Prefix", XScheme: "X-Scheme",
	XOriginalForwardedFor: "X-Original-Forwarded-For", XOriginalForwardedHost: "X-Original-Forwarded-Host", Via: "Via",
	Forwarded: "Forwarded", Proxy: "Proxy", XOriginalURI: "X-Original-URI", XOriginalURL: "X-Original-URL",
	XOriginalMethod: "X-Original-Method", XRewriteURL: "X-Rewrite-URL", Accept: "Accept", Authorization: "Authorization",
	ContentType: "Content-Type", Cookie: "Cookie", Origin: "Origin", Referer: "Referer",
	UserAgent: "User-Agent", AltSvc: "Alt-Svc", Date: "Date", Location: "Location", Server: "Server", SetCookie: "Set-Cookie",
	StrictTransportSecurity: "Strict-Transport-Security", XAccelBuffering: "X-Accel-Buffering",
}

// Name returns how the name of a kind is written. Other, SSLClient and those that are Mistakable have none.
func (k Kind) Name() string { return names[k] }

// Field returns a field of the kind.
func (k Kind) Field(value string) Field { return Field{names[k], value, k} }

// Hop says whether a field is about one connection, by RFC 9110 7.6.1, or about the framing of a message. Such fields never go on.
func (k Kind) Hop() bool { return Host <= k && k <= Trailer }

// Spoofable says whether a client could pass for somebody else by a field.
func (k Kind) Spoofable() bool { return XRequestID <= k && k <= XRewriteURL }

// Removable says whether a client may have a field end here by naming it in Connection. It must not be able to remove what a proxy in
// front says of it, nor what it is asked to show, so these are the fields that nothing here looks at.
func (k Kind) Removable() bool { return k == Other || k == Underscored || k == Odd }

// Mistakable says whether endpoints may take the name of a field for another.
func (k Kind) Mistakable() bool { return Invalid <= k && k <= Odd }

// Names says which fields of a client go on whose names are Mistakable.
type Names uint8

// Each lets more fields go on than the one before it.
const (
	PlainNames Names = iota
	UnderscoredNames
	AllNames
)

// Let says whether fields of a kind go on.
func (n Names) Let(k Kind) bool {
	switch {
	case k == Underscored:
		return n >= UnderscoredNames
	case k == Odd:
		return n >= AllNames
	}
	return k != Invalid
}

// longest is the length of the longest name.
const longest = 25

// byLength finds the kinds of names with a length.
var byLength = func() (all [longest + 1][]Kind) {
	for k, name := range names {
		if name != "" {
			all[len(name)] = append(all[len(name)], Kind(k))
		}
	}
	return all
}()

// sslClient is what the names begin with that tell of a client certificate.
const sslClient = "ssl-client-"

// KindOf returns the kind of a name, which is a token by RFC 9110 5.6.2.
func KindOf(name string) Kind {
	if 0 < len(name) && len(name) <= longest {
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

// mistakable returns the kind of a name with other characters than letters, digits and hyphens. It is compared by its letters and digits
// alone: what endpoints make of the rest is theirs to say.
func mistakable(name string) Kind {
	kind, word := Underscored, make([]byte, 0, longest+1)
	for i := range len(name) {
		switch c := name[i]; {
		case c == '-' || c == '_':
		case !plain[c]:
			kind = Odd
		case len(word) <= longest:
			word = append(word, c|0x20)
		}
	}
	if words[string(word)] || bytes.HasPrefix(word, []byte("sslclient")) {
		return Invalid
	}
	return kind
}

// words are the letters and digits of the names of all kinds, in lower case.
var words = func() map[string]bool {
	all := map[string]bool{}
	for _, name := range names {
		if name != "" {
			all[strings.ToLower(strings.ReplaceAll(name, "-", ""))] = true
		}
	}
	return all
}()

// plain are the characters of names that every endpoint takes for what they are.
var plain = func() (all [256]bool) {
	for c := range all {
		all[c] = 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '-'
	}
	return all
}()

// equalFold compares texts of the same length, of which the second is of letters, digits and hyphens.
func equalFold(a, b string) bool {
	for i := range len(a) {
		if a[i] != b[i] && a[i]|0x20 != b[i]|0x20 {
			return false
		}
	}
	return true
}
