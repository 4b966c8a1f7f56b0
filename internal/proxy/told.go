package proxy

import (
	"encoding/binary"
	"encoding/hex"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/k8singress/k8singress/internal/realip"
)

// told is what an endpoint is told of the client, in the words of ingress-nginx. It replaces whatever the client has written
// there itself. Fields without a value are left out.
type told struct {
	// values are those of toldNames.
	values [len(toldNames)]string
	// host is the Host header, prefix what X-Forwarded-Prefix is, if it is not the client's.
	host, prefix string
}

var toldNames = [...]string{
	"X-Request-Id", "X-Real-Ip", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Port", "X-Forwarded-Proto", "X-Forwarded-Scheme",
	"X-Scheme", "X-Original-Forwarded-For", "X-Original-Forwarded-Host", "X-Forwarded-Prefix", "Via",
}

// pseudonym is what proxies call this one in the Via header. Caddy's own is "Caddy".
const pseudonym = "k8singress"

// Tell prepares what endpoints are told of a request. id is its RequestID.
func (x *Exchange) Tell(r *http.Request, c *realip.Client, id, forwardedFor string) {
	host := r.Host
	if x.settings.host != nil {
		host = x.settings.host.Expand(x.endpoints.Variable)
	}
	x.told = told{host: host, prefix: x.settings.Prefix, values: [...]string{
		id, c.IP, forwardedFor, c.Host, c.Port, c.Proto, c.Proto,
		c.Proto, r.Header.Get("X-Forwarded-For"), r.Header.Get("X-Forwarded-Host"), x.settings.Prefix, via(r),
	}}
	if x.settings.speaksCGI() {
		x.tellCGI(r)
	}
}

// via adds this proxy to those that the request has come through, by RFC 9110 7.6.3.
func via(r *http.Request) string {
	own := "1.1 " + pseudonym
	if r.ProtoMajor != 1 || r.ProtoMinor != 1 {
		own = strconv.Itoa(r.ProtoMajor) + "." + strconv.Itoa(r.ProtoMinor) + " " + pseudonym
	}
	if before := r.Header["Via"]; len(before) > 0 {
		return strings.Join(before, ", ") + ", " + own
	}
	return own
}

// mostLoops is how often a request may have come through this controller: one may stand in front of another.
const mostLoops = 8

// Loops says that a request goes round in circles, as when an ExternalName leads back here.
func Loops(r *http.Request) bool {
	times := 0
	for _, value := range r.Header["Via"] {
		times += strings.Count(value, pseudonym)
	}
	return times >= mostLoops
}

// longestID is how long an id may be that a client gives its request.
const longestID = 128

// RequestID returns the id that the client gave, if it is one that can stand in a log. Otherwise it makes a new one as nginx
// does, 32 hexadecimal digits, if it is to; each call makes another one.
func RequestID(r *http.Request, generate bool) string {
	if values := r.Header["X-Request-Id"]; len(values) == 1 && validID(values[0]) {
		return values[0]
	}
	if !generate {
		return ""
	}
	var raw [16]byte
	binary.LittleEndian.PutUint64(raw[:8], rand.Uint64())
	binary.LittleEndian.PutUint64(raw[8:], rand.Uint64())
	return hex.EncodeToString(raw[:])
}

func validID(id string) bool {
	if id == "" || len(id) > longestID {
		return false
	}
	for i := range len(id) {
		if c := id[i]; c <= ' ' || c >= 0x7f || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}

// spoofable are the headers by which a client could pass for somebody else: what fields replaces, and what backends may take
// for the word of a proxy or of an authentication in front of them.
var spoofable = []string{
	"X-Request-Id", "X-Real-Ip", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Port", "X-Forwarded-Proto", "X-Forwarded-Scheme",
	"X-Scheme", "X-Original-Forwarded-For", "X-Original-Forwarded-Host", "Via", "Forwarded", "Proxy",
	"X-Original-Uri", "X-Original-Url", "X-Original-Method", "X-Rewrite-Url",
	// This one is answered here: the body of a request is asked for when it is wanted.
	"Expect",
}

// ofConnection are the headers that end here because they are about a connection, or are written by writeHead itself.
var ofConnection = []string{
	"Connection", "Proxy-Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization", "Transfer-Encoding", "Upgrade",
	"Http2-Settings", "Trailer", "Content-Length", "Host",
}

// dropped has all of them.
var dropped = func() map[string]bool {
	all := map[string]bool{}
	for _, name := range slices.Concat(spoofable, ofConnection) {
		all[name] = true
	}
	return all
}()

// apply puts everything into the headers of a request that somebody else writes.
func (t *told) apply(r *http.Request) {
	for _, name := range spoofable {
		delete(r.Header, name)
	}
	for i, value := range t.values {
		if value != "" {
			r.Header[toldNames[i]] = []string{value}
		}
	}
	r.Host = t.host
}
