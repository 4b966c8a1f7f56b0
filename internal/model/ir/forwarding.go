package ir

import (
	"cmp"
	"time"
)

// Proxy configures how the requests of a route are proxied. It is the JSON configuration of the last handler of a
// handler chain, with the defaults filled in. Package proxy reads it unchanged, so a new setting for the proxy only has
// to be added here.
type Proxy struct {
	Attempts
	Forwarding
	// Params are additional FastCGI parameters. Their values may contain nginx variables.
	Params map[string]string `json:"params,omitempty"`
}

// WithDefaults returns the settings with ingress-nginx's defaults in place of zero values. The defaults are defined
// only here.
func (p Proxy) WithDefaults() Proxy {
	p.Connect = cmp.Or(p.Connect, 5*time.Second)
	p.Read, p.Write = cmp.Or(p.Read, time.Minute), cmp.Or(p.Write, time.Minute)
	p.Tries, p.MaxBody = cmp.Or(p.Tries, 3), cmp.Or(p.MaxBody, 1<<20)
	if p.On == nil {
		p.On = []RetryOn{RetryOnError, RetryOnTimeout}
	}
	return p
}

// Attempts configures the timeouts of a request and the retries at other endpoints of its backend. Zero fields use
// ingress-nginx's defaults, see Proxy.WithDefaults.
type Attempts struct {
	// Connect is the timeout for opening a connection. Read and Write are the maximum times without receiving or
	// sending data, respectively; after that, the connection is closed.
	Connect time.Duration `json:"connect_timeout,omitempty"`
	Read    time.Duration `json:"read_timeout,omitempty"`
	Write   time.Duration `json:"write_timeout,omitempty"`
	// Tries is the maximum number of endpoints to try, including the first one.
	Tries int `json:"tries,omitempty"`
	// Total is the time after the start of the request during which another endpoint may still be tried. Zero means no
	// limit.
	Total time.Duration `json:"retry_timeout,omitempty"`
	// On lists the conditions under which another endpoint is tried. WithDefaults replaces nil with the default
	// conditions. An empty list disables retries; it is left out of the JSON configuration.
	On []RetryOn `json:"retry_on,omitempty"`
}

// RetryOn is one condition of nginx's proxy_next_upstream.
type RetryOn string

// The retry conditions. A condition whose name contains a number applies to responses with this status code.
const (
	// RetryOnError is the condition that a connection fails, or ends before the response headers are complete.
	RetryOnError RetryOn = "error"
	// RetryOnTimeout is the condition that an endpoint does not accept the connection, receive the request or respond
	// in time.
	RetryOnTimeout RetryOn = "timeout"
	// RetryOnInvalidHeader is the condition that a response is empty or not valid HTTP.
	RetryOnInvalidHeader RetryOn = "invalid_header"
	RetryOn500           RetryOn = "http_500"
	RetryOn502           RetryOn = "http_502"
	RetryOn503           RetryOn = "http_503"
	RetryOn504           RetryOn = "http_504"
	RetryOn403           RetryOn = "http_403"
	RetryOn404           RetryOn = "http_404"
	RetryOn429           RetryOn = "http_429"
	// RetryNonIdempotent also allows POST, LOCK and PATCH requests to be repeated after an endpoint may have received
	// them.
	RetryNonIdempotent RetryOn = "non_idempotent"
)

// BackendProtocol is the protocol of the endpoints.
type BackendProtocol string

// The protocols of endpoints.
const (
	// HTTP is HTTP/1.1 without TLS.
	HTTP BackendProtocol = "http"
	// HTTPS is HTTP/1.1 over TLS. The certificate of the endpoint is not verified unless BackendTLS requires it.
	HTTPS BackendProtocol = "https"
	// AutoHTTP uses the protocol of the client's request: HTTP or HTTPS.
	AutoHTTP BackendProtocol = "auto"
	// GRPC is HTTP/2 without TLS. GRPCS is HTTP/2 over TLS.
	GRPC  BackendProtocol = "grpc"
	GRPCS BackendProtocol = "grpcs"
	// FastCGI is the protocol of PHP-FPM.
	FastCGI BackendProtocol = "fastcgi"
)

// NoLimit is the value of Forwarding.MaxBody for no limit.
const NoLimit = -1

// Forwarding configures how a request is forwarded to an endpoint. It is comparable.
type Forwarding struct {
	// Protocol is the protocol of the endpoints. Empty means HTTP.
	Protocol BackendProtocol `json:"protocol,omitempty"`
	// Host is the Host header for the endpoint. It may contain nginx variables. If it is empty, the client's Host
	// header is forwarded.
	Host string `json:"host,omitempty"`
	// Connection is the Connection header for the endpoint: "close" or "keep-alive". If the field is empty, the value
	// depends on the request.
	Connection string `json:"connection,omitempty"`
	// MaxBody is the maximum size of a request body in bytes, or NoLimit. Zero means the default, see
	// Proxy.WithDefaults.
	MaxBody int64 `json:"max_body,omitempty"`
	// StreamRequest forwards the request body while it arrives. Otherwise the whole body is read before an endpoint is
	// tried.
	StreamRequest bool `json:"stream_request,omitempty"`
	// BufferResponse reads a response as fast as the endpoint sends it, even if the client is slow. Otherwise the
	// response is forwarded while it arrives.
	BufferResponse bool `json:"buffer_response,omitempty"`
	// Prefix is the X-Forwarded-Prefix header for the endpoint. If it is empty, the client's header is forwarded.
	Prefix string `json:"prefix,omitempty"`
	// CookiePath and CookieDomain rewrite the attributes Path and Domain of the cookies that endpoints set. The zero
	// value does not change them.
	CookiePath   ResponseRewrite `json:"cookie_path,omitzero"`
	CookieDomain ResponseRewrite `json:"cookie_domain,omitzero"`
	// Redirect rewrites the Location and Refresh header fields of responses. The zero value does not change them.
	Redirect ResponseRewrite `json:"redirect,omitzero"`
	// Index is the file name that is appended to a path that ends with a slash. Only FastCGI uses it.
	Index string `json:"index,omitempty"`
	// TLS configures TLS connections to endpoints. If it is nil, these connections use no client certificate, and the
	// certificates of the endpoints are not verified. The JSON configuration of the handler does not contain TLS: it is
	// in document.Destination, so that its Secret can be found without parsing the handler chain.
	TLS *BackendTLS `json:"-"`
}

// ResponseRewrite rewrites a cookie attribute, as nginx's proxy_cookie_path and proxy_cookie_domain do, or the URL of a
// redirect, as proxy_redirect does. It is comparable.
type ResponseRewrite struct {
	// From is the string to replace: the prefix of a path or URL, or a whole domain. It may contain nginx variables. If
	// it starts with "~", or with "~*" to ignore case, the rest is an RE2 regular expression that may match any part of
	// the value. Regular expressions for domains always ignore case.
	From string `json:"from"`
	// To replaces the string that From matches. If From is a regular expression, To replaces the whole value. To may
	// contain nginx variables, and $1 to $9 for the capture groups of the regular expression.
	To string `json:"to"`
	// Attributes are added to a cookie whose path From matches, such as "; Secure; HttpOnly". Paths of cookies are the
	// only values with attributes.
	Attributes string `json:"attributes,omitempty"`
}

// Global holds the settings for all requests and all hosts. Zero fields use ingress-nginx's defaults.
type Global struct {
	Clients Clients `json:"clients,omitzero"`
	HSTS    HSTS    `json:"hsts,omitzero"`
	// TLS is the TLS policy for hosts without their own policy and for unknown server names.
	TLS TLSPolicy `json:"tls,omitzero"`
	// OnlyHTTP1 disables HTTP/2 for clients.
	OnlyHTTP1 bool `json:"only_http1,omitempty"`
	// RejectUnknown rejects TLS handshakes for unknown server names.
	RejectUnknown bool `json:"reject_unknown,omitempty"`
	// KeepAlive is the maximum number of idle connections to one endpoint: zero means 320, and a negative value means
	// none. KeepAliveTimeout is how long an idle connection is kept: zero means 60 s.
	KeepAlive        int           `json:"keepalive,omitempty"`
	KeepAliveTimeout time.Duration `json:"keepalive_timeout,omitempty"`
	// Drain is how long the open streams of a removed route may continue. Zero means 240 s.
	Drain time.Duration `json:"drain,omitempty"`
	// Streams is the policy for TCP and UDP connections that have no policy of their own, such as the connections to
	// hosts with TLS passthrough.
	Streams StreamPolicy `json:"streams,omitzero"`
	// Connections holds the limits for client connections.
	Connections ClientConnections `json:"connections,omitzero"`
	// ServerTokens adds a Server header with the name of this server to responses. BackendServer keeps the Server
	// header in the responses of endpoints.
	ServerTokens  bool `json:"server_tokens,omitempty"`
	BackendServer bool `json:"backend_server,omitempty"`
	// AccessLog configures the log of requests.
	AccessLog AccessLog `json:"access_log,omitzero"`
	// StreamLog configures the log of connections to TCP and UDP ports.
	StreamLog StreamLog `json:"stream_log,omitzero"`
	// Collector configures where traces are sent.
	Collector Collector `json:"collector,omitzero"`
	// Status configures which clients may read the status page.
	Status StatusPage `json:"status,omitzero"`
	// Compression configures the compression of responses.
	Compression Compression `json:"compression,omitzero"`
	// DefaultType is the Content-Type of the texts with which programs respond, unless they have a type of their own.
	// Empty means text/html.
	DefaultType string `json:"default_type,omitempty"`
	// Headers contains changes to the header fields of all requests and responses.
	Headers Headers `json:"headers,omitzero"`
	// Variables are variables that all templates may contain in addition to nginx's variables. If a name occurs several
	// times, the last definition counts.
	Variables []Variable `json:"variables,omitempty"`
	// DefaultBackend is the ID of the backend for requests that match no route. It also serves the error pages of
	// routes without their own backend for error pages. It is empty if there is no default backend.
	DefaultBackend string `json:"default_backend,omitempty"`
	// NoRequestID disables the generation of request IDs for requests without a request ID.
	NoRequestID bool `json:"no_request_id,omitempty"`
	// Block rejects the requests of some clients on all hosts.
	Block Block `json:"block,omitzero"`
}

// StatusPage lists the networks whose clients may read the status page, which shows counters of connections and
// requests in nginx's format. Nil lists mean ingress-nginx's default: only this machine.
type StatusPage struct {
	IPv4 []string `json:"ipv4,omitempty"`
	IPv6 []string `json:"ipv6,omitempty"`
}

// Block rejects requests with 403 by client network, User-Agent and Referer. An entry of UserAgents or Referers must
// equal the whole header value, ignoring case. If an entry starts with "~", or with "~*" to ignore case, the rest is an
// RE2 regular expression.
type Block struct {
	Networks   []string `json:"networks,omitempty"`
	UserAgents []string `json:"user_agents,omitempty"`
	Referers   []string `json:"referers,omitempty"`
}

// AccessLog configures the access log, which has one line for each request. The zero value logs as ingress-nginx does.
type AccessLog struct {
	Off bool `json:"off,omitempty"`
	// Path is the path of the log file, or the constant Syslog followed by host:port of a syslog server. If it is
	// empty, the log goes to standard output.
	Path string `json:"path,omitempty"`
	// Format is a string with nginx variables. If it is empty, ingress-nginx's format is used.
	Format string    `json:"format,omitempty"`
	Escape LogEscape `json:"escape,omitempty"`
	// Skip lists request targets (a path with its query); requests for them are not logged. An entry that starts with
	// "~" is a regular expression.
	Skip []string `json:"skip,omitempty"`
	// Unknown also logs requests for hosts and paths that no Ingress defines.
	Unknown bool `json:"unknown,omitempty"`
}

// StreamLog configures the log of TCP connections and UDP sessions. One line is written when a connection or session
// ends. The zero value logs as ingress-nginx does.
type StreamLog struct {
	Off bool `json:"off,omitempty"`
	// Path is as in AccessLog.
	Path string `json:"path,omitempty"`
	// Format is a string that may contain the variables of accesslog.StreamVariables. If it is empty, ingress-nginx's
	// format is used.
	Format string `json:"format,omitempty"`
}

// LogStdout is the default value of ingress-nginx's access-log-path. In the container image of ingress-nginx, this path
// is a link to standard output. This controller therefore writes to standard output if the path of a log is LogStdout.
const LogStdout = "/var/log/nginx/access.log"

// Syslog is the prefix of a log path that is the address of a syslog server instead of a file.
const Syslog = "syslog:"

// LogEscape selects how the values of variables are escaped in a log.
type LogEscape string

// The kinds of escaping, as in nginx's log_format.
const (
	EscapeDefault LogEscape = ""
	EscapeJSON    LogEscape = "json"
	EscapeNone    LogEscape = "none"
)

// Headers contains changes to the header fields of all requests and responses. Values may contain nginx variables.
type Headers struct {
	// Responses lists header fields that are set in responses to clients. Requests lists header fields that are set in
	// requests to endpoints. Each of them replaces existing fields with the same name.
	Responses []Header `json:"answers,omitempty"`
	Requests  []Header `json:"requests,omitempty"`
	// Hidden lists the names of header fields that are removed from the responses of endpoints.
	Hidden []string `json:"hidden,omitempty"`
	// OriginalURI sends the path and query of the client's request to endpoints in X-Original-URI.
	OriginalURI bool `json:"original_uri,omitempty"`
}

// ClientConnections holds the limits for HTTP connections of clients. If a field is zero, the HTTP server uses its own
// setting in Caddy's JSON configuration, which is ingress-nginx's default.
type ClientConnections struct {
	// HeaderTimeout is the maximum time for reading the headers of a request. BodyTimeout is the maximum time without
	// receiving data of the request body.
	HeaderTimeout time.Duration `json:"header_timeout,omitempty"`
	BodyTimeout   time.Duration `json:"body_timeout,omitempty"`
	// KeepAlive is how long a connection may wait for its next request. A negative value disables keep-alive, so each
	// connection serves one request.
	KeepAlive time.Duration `json:"keepalive,omitempty"`
	// Requests is the maximum number of requests on one connection. Zero means no limit.
	Requests int `json:"requests,omitempty"`
	// MaxHead is the maximum size of the request line and headers, in bytes.
	MaxHead int `json:"max_head,omitempty"`
	// SnippetHead is the largest size of the request line and headers for which a host has a snippet, in bytes. It
	// raises MaxHead or the setting of the server, but not a setting of the administrator in Caddy's configuration.
	SnippetHead int `json:"snippet_head,omitempty"`
	// Streams is the maximum number of concurrent HTTP/2 requests on one connection.
	Streams int `json:"streams,omitempty"`
	// Underscores forwards header fields whose names contain underscores. InvalidNames forwards header fields whose
	// names contain other characters that nginx does not accept.
	Underscores  bool `json:"underscores,omitempty"`
	InvalidNames bool `json:"invalid_names,omitempty"`
}

// ProxyTimeout is the default time limit for receiving a PROXY protocol header (ingress-nginx's
// proxy-protocol-header-timeout).
const ProxyTimeout = 5 * time.Second

// Clients configures how the address and other properties of a client are determined.
type Clients struct {
	// ProxyProtocol expects a PROXY protocol header on connections from peers in Trusted. The field ProxyTimeout is the
	// time limit for receiving this header; if it is zero, the constant ProxyTimeout is used.
	ProxyProtocol bool          `json:"proxy_protocol,omitempty"`
	ProxyTimeout  time.Duration `json:"proxy_protocol_timeout,omitempty"`
	// UseForwarded makes the controller use the X-Forwarded-* headers of peers in Trusted. RealIP makes it use only the
	// header with the client's address.
	UseForwarded bool `json:"use_forwarded_headers,omitempty"`
	RealIP       bool `json:"enable_real_ip,omitempty"`
	// AppendForwarded appends the peer's address to X-Forwarded-For. Otherwise the client's address replaces the
	// header.
	AppendForwarded bool `json:"compute_full_forwarded_for,omitempty"`
	// Header is the name of the header field with the client's address. Empty means X-Forwarded-For.
	Header string `json:"forwarded_for_header,omitempty"`
	// HostHeader is the name of the header field that contains the host requested by the client. It is used only if
	// UseForwarded is set. Empty means X-Forwarded-Host.
	HostHeader string `json:"forwarded_host_header,omitempty"`
	// LastAddress takes the last address in Header, even if it belongs to a trusted proxy. It is nginx's
	// "real_ip_recursive off".
	LastAddress bool `json:"last_address,omitempty"`
	// Trusted lists the networks of trusted proxies, as CIDRs. If it is empty, all peers are trusted, as in
	// ingress-nginx.
	Trusted []string `json:"trusted,omitempty"`
}

// NamesProxies reports whether the settings decide which proxies may report the client of an HTTP request. Trusted does
// not count if it only lists the peers that send a PROXY protocol header.
func (c *Clients) NamesProxies() bool {
	return c.UseForwarded || c.RealIP || len(c.Trusted) > 0 && !c.ProxyProtocol
}
