package exchange

import (
	"crypto/tls"
	"encoding/base64"
	"strconv"
	"strings"

	"github.com/k8singress/k8singress/internal/http/message"
)

// requestLine returns the request line. As in nginx, it returns an empty string if the request line could not be
// parsed.
func requestLine(x *Exchange) string {
	if x.Method == "" {
		return ""
	}
	return x.Method + " " + x.Target + " " + x.Protocol()
}

// upstreamName returns ingress-nginx's name for a backend: "namespace-service-port".
func upstreamName(x *Exchange) string {
	if x.Backend == nil {
		return ""
	}
	return strings.ReplaceAll(x.Backend.ID(), "/", "-")
}

// remoteUser returns the user name in the Authorization header of the request, even if the credentials are wrong.
func remoteUser(x *Exchange) string {
	kind, credentials, _ := strings.Cut(x.Fields.Get(message.Authorization), " ")
	if !strings.EqualFold(kind, "Basic") {
		return ""
	}
	plain, err := base64.StdEncoding.DecodeString(strings.TrimSpace(credentials))
	if err != nil {
		return ""
	}
	name, _, _ := strings.Cut(string(plain), ":")
	return name
}

// requestLength returns the size of the request in bytes: the size of the request line and headers in HTTP/1.1 format,
// plus the length of the body if it is known.
func requestLength(x *Exchange) string {
	return strconv.FormatInt(x.headSize()+max(x.Length, 0), 10)
}

// headSize returns the size of the request line and headers in HTTP/1.1 format.
func (x *Exchange) headSize() int64 {
	const lineEnd, separator = 2, 2
	size := len(x.Method) + len(x.Target) + len(" HTTP/1.1 ") + lineEnd + len("Host: ") + len(x.Host) +
		lineEnd + lineEnd
	for i := range x.Fields {
		size += len(x.Fields[i].Name) + separator + len(x.Fields[i].Value) + lineEnd
	}
	return int64(size)
}

// http2 returns "h2" for a request with HTTP/2 over TLS, "h2c" for HTTP/2 without TLS, and otherwise an empty string.
func http2(x *Exchange) string {
	if x.Major != 2 {
		return ""
	}
	if x.TLS() != nil {
		return "h2"
	}
	return "h2c"
}

// ofTLS returns the function for a variable that describes the client's TLS connection. The variable is empty without
// TLS.
func ofTLS(value func(*tls.ConnectionState) string) func(*Exchange) string {
	return func(x *Exchange) string {
		if x.TLS() == nil {
			return ""
		}
		return value(x.TLS())
	}
}

// tlsVersion returns the TLS version of the client's connection as nginx writes it, such as TLSv1.3.
func tlsVersion(s *tls.ConnectionState) string {
	return strings.Replace(tls.VersionName(s.Version), "TLS 1", "TLSv1", 1)
}

func tlsCipher(s *tls.ConnectionState) string { return tls.CipherSuiteName(s.CipherSuite) }

// contentLength returns the Content-Length of the request, or an empty string if there is no body or its length is not
// known.
func contentLength(x *Exchange) string {
	if x.Length <= 0 {
		return ""
	}
	return strconv.FormatInt(x.Length, 10)
}

// connectedAddress returns the address of the connection, which may be the address of a proxy.
func connectedAddress(x *Exchange) string {
	if !x.Conn.Remote.IsValid() {
		return ""
	}
	return x.Conn.Remote.Addr().Unmap().String()
}
