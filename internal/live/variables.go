package live

import (
	"cmp"
	"net"
	"net/http"
	"net/netip"
	"strings"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/k8singress/k8singress/internal/ir"
	"github.com/k8singress/k8singress/internal/mtls"
)

// values tells the nginx variables by name. Those with http_, cookie_ and arg_ in front come from families.
var values = map[string]func(*Request) string{
	"args":                    query,
	"best_http_host":          func(r *Request) string { return r.Client().Host },
	"binary_remote_addr":      binaryAddress,
	"host":                    requestHost,
	"http_host":               func(r *Request) string { return r.r.Host },
	"ingress_name":            func(r *Request) string { return ir.ParseRef(r.Route.Origin).Name },
	"is_args":                 isArgs,
	"location_path":           func(r *Request) string { return r.Route.Path },
	"namespace":               func(r *Request) string { return ir.ParseRef(r.Route.Origin).Namespace },
	"pass_access_scheme":      func(r *Request) string { return r.Client().Proto },
	"query_string":            query,
	"remote_addr":             (*Request).ClientIP,
	"remote_port":             remotePort,
	"request_id":              (*Request).ID,
	"request_method":          func(r *Request) string { return r.r.Method },
	"request_uri":             requestURI,
	"scheme":                  scheme,
	"server_name":             func(r *Request) string { return cmp.Or(r.Route.Host, "_") },
	"server_port":             serverPort,
	"service_name":            func(r *Request) string { return r.service(1) },
	"service_port":            func(r *Request) string { return r.service(2) },
	"ssl_client_escaped_cert": ofPeer((*mtls.Client).Escaped),
	"ssl_client_i_dn":         ofPeer(func(c *mtls.Client) string { return c.Issuer }),
	"ssl_client_s_dn":         ofPeer(func(c *mtls.Client) string { return c.Subject }),
	"ssl_client_verify":       ofPeer(func(c *mtls.Client) string { return c.Verify }),
	"the_real_ip":             (*Request).ClientIP,
	"uri":                     func(r *Request) string { return CleanPath(r.r.URL.Path) },
}

// families are variables whose name ends with that of a part of the request.
var families = []struct {
	prefix string
	value  func(r *Request, name string) string
}{
	{"http_", (*Request).header},
	{"cookie_", (*Request).anyCookie},
	{"arg_", (*Request).argument},
}

// Variable returns the value of an nginx variable. What the request does not have is empty.
func (r *Request) Variable(name string) string {
	if value, ok := values[name]; ok {
		return value(r)
	}
	for _, family := range families {
		if rest, ok := strings.CutPrefix(name, family.prefix); ok {
			return family.value(r, rest)
		}
	}
	return ""
}

func query(r *Request) string { return r.r.URL.RawQuery }

func isArgs(r *Request) string {
	if r.r.URL.RawQuery == "" {
		return ""
	}
	return "?"
}

func requestHost(r *Request) string { return cmp.Or(hostname(r.r.Host), r.Route.Host) }

func scheme(r *Request) string {
	if r.r.TLS != nil {
		return "https"
	}
	return "http"
}

// requestURI is what the client sent, whatever was made of it since.
func requestURI(r *Request) string { return originalURI(r.r) }

func originalURI(r *http.Request) string {
	if original, ok := r.Context().Value(caddyhttp.OriginalRequestCtxKey).(http.Request); ok {
		return path(&original)
	}
	return path(r)
}

// path takes scheme and host off the target of a request to a proxy.
func path(r *http.Request) string {
	if strings.HasPrefix(r.RequestURI, "/") {
		return r.RequestURI
	}
	return r.URL.RequestURI()
}

func binaryAddress(r *Request) string {
	address, err := netip.ParseAddr(r.ClientIP())
	if err != nil {
		return ""
	}
	return string(address.Unmap().AsSlice())
}

func remotePort(r *Request) string {
	_, port, _ := net.SplitHostPort(r.r.RemoteAddr)
	return port
}

func serverPort(r *Request) string {
	if address, ok := r.r.Context().Value(http.LocalAddrContextKey).(net.Addr); ok {
		if _, port, err := net.SplitHostPort(address.String()); err == nil {
			return port
		}
	}
	if r.r.TLS != nil {
		return "443"
	}
	return "80"
}

// service returns a part of the ID of the backend: "namespace/service/port".
func (r *Request) service(part int) string {
	if r.to.backend == nil {
		return ""
	}
	parts := strings.Split(r.to.backend.ID(), "/")
	if part >= len(parts) {
		return ""
	}
	return parts[part]
}

// header returns a header by nginx's name for it, in lower case and with underscores.
func (r *Request) header(name string) string {
	return strings.Join(r.r.Header.Values(strings.ReplaceAll(name, "_", "-")), ", ")
}

// anyCookie returns a cookie whose name may be in another case.
func (r *Request) anyCookie(name string) string {
	for _, c := range r.r.Cookies() {
		if strings.EqualFold(c.Name, name) {
			return c.Value
		}
	}
	return ""
}

// argument returns an argument of the query as it was sent. Its name may be in another case.
func (r *Request) argument(name string) string {
	for pair := range strings.SplitSeq(r.r.URL.RawQuery, "&") {
		if key, value, ok := strings.Cut(pair, "="); ok && strings.EqualFold(key, name) {
			return value
		}
	}
	return ""
}
