package proxy

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"golang.org/x/net/http/httpguts"
)

// forwarded is what an endpoint is told of the client and of its connection, as Caddy's reverse_proxy tells it. What the
// client itself has written counts if it is a trusted proxy.
type forwarded struct {
	client, proto, host, via string
}

func forwardedOf(r *http.Request) forwarded {
	f := forwarded{proto: "http", host: r.Host, via: strconv.Itoa(r.ProtoMajor) + "." + strconv.Itoa(r.ProtoMinor) + " Caddy"}
	if r.TLS != nil {
		f.proto = "https"
	}
	if ip, _, err := net.SplitHostPort(r.RemoteAddr); err == nil {
		f.client, _, _ = strings.Cut(ip, "%")
	}
	if trusted, _ := caddyhttp.GetVar(r.Context(), caddyhttp.TrustedProxyVarKey).(bool); trusted {
		f.trust(r.Header)
	}
	return f
}

// trust takes over what another proxy has said.
func (f *forwarded) trust(header http.Header) {
	if before := strings.Join(header["X-Forwarded-For"], ", "); before != "" {
		f.client = strings.TrimSuffix(before+", "+f.client, ", ")
	}
	for name, value := range map[string]*string{"X-Forwarded-Proto": &f.proto, "X-Forwarded-Host": &f.host} {
		if all := header[name]; len(all) > 0 && all[len(all)-1] != "" {
			*value = all[len(all)-1]
		}
	}
}

func (f *forwarded) write(w *bufio.Writer) error {
	for _, field := range [...]struct{ name, value string }{
		{"X-Forwarded-For", f.client}, {"X-Forwarded-Proto", f.proto}, {"X-Forwarded-Host", f.host}, {"Via", f.via},
	} {
		switch {
		case field.value == "":
		case !httpguts.ValidHeaderFieldValue(field.value):
			return fmt.Errorf("%w: %s would be %q", errBadRequest, field.name, field.value)
		default:
			writeField(w, field.name, field.value)
		}
	}
	return nil
}
