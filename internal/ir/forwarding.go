package ir

import (
	"cmp"
	"time"
)

// Proxy is how the requests of a route are proxied. The handler at the end of a chain has it as its JSON, with the defaults
// in it, and package proxy reads it as it is: a field here is all that a new setting needs on its way there.
type Proxy struct {
	Attempts
	Forwarding
	// Params are for FastCGI: parameters besides the usual ones, with nginx variables in their values.
	Params map[string]string `json:"params,omitempty"`
}

// WithDefaults returns the settings with ingress-nginx's defaults for what is zero. It is the one place that knows them.
func (p Proxy) WithDefaults() Proxy {
	p.Connect = cmp.Or(p.Connect, 5*time.Second)
	p.Read, p.Write = cmp.Or(p.Read, time.Minute), cmp.Or(p.Write, time.Minute)
	p.Tries, p.MaxBody = cmp.Or(p.Tries, 3), cmp.Or(p.MaxBody, 1<<20)
	if p.On == nil {
		p.On = []RetryOn{RetryOnError, RetryOnTimeout}
	}
	return p
}

// Attempts are how a request tries the endpoints of its backend. A field that is zero has a default of ingress-nginx, which
// Proxy.WithDefaults knows.
type Attempts struct {
	// Connect is for a new connection; Read and Write end a connection on which nothing comes in or goes out for so long.
	Connect time.Duration `json:"connect_timeout,omitempty"`
	Read    time.Duration `json:"read_timeout,omitempty"`
	Write   time.Duration `json:"write_timeout,omitempty"`
	// Tries is how many endpoints are asked at most, the first one included.
	Tries int `json:"tries,omitempty"`
	// Total is how long after the request another endpoint may still be asked; zero is no limit.
	Total time.Duration `json:"retry_timeout,omitempty"`
	// On is what lets another endpoint be asked. Nil is the default; an empty list, which JSON leaves out, is never.
	On []RetryOn `json:"retry_on,omitempty"`
}

// RetryOn is one condition of nginx's proxy_next_upstream.
type RetryOn string

// The conditions there are. Those with a number are an answer with that status.
const (
	// RetryOnError is a connection that fails, or ends before the head of an answer.
	RetryOnError RetryOn = "error"
	// RetryOnTimeout is an endpoint that does not accept, take or answer in time.
	RetryOnTimeout RetryOn = "timeout"
	// RetryOnInvalidHeader is an answer that is empty, or is no HTTP.
	RetryOnInvalidHeader RetryOn = "invalid_header"
	RetryOn500           RetryOn = "http_500"
	RetryOn502           RetryOn = "http_502"
	RetryOn503           RetryOn = "http_503"
	RetryOn504           RetryOn = "http_504"
	RetryOn403           RetryOn = "http_403"
	RetryOn404           RetryOn = "http_404"
	RetryOn429           RetryOn = "http_429"
	// RetryNonIdempotent lets POST, LOCK and PATCH be repeated, too, when an endpoint may have got them.
	RetryNonIdempotent RetryOn = "non_idempotent"
)

// BackendProtocol is what endpoints speak.
type BackendProtocol string

// The protocols there are.
const (
	// HTTP is HTTP/1.1 without TLS.
	HTTP BackendProtocol = "http"
	// HTTPS is HTTP/1.1 over TLS. The certificate of the endpoint is not verified unless something else says so.
	HTTPS BackendProtocol = "https"
	// AutoHTTP is what the client speaks: HTTP or HTTPS.
	AutoHTTP BackendProtocol = "auto"
	// GRPC is HTTP/2 without TLS, GRPCS HTTP/2 over TLS.
	GRPC  BackendProtocol = "grpc"
	GRPCS BackendProtocol = "grpcs"
	// FastCGI is what PHP-FPM speaks.
	FastCGI BackendProtocol = "fastcgi"
)

// NoLimit is a Forwarding.MaxBody without limit.
const NoLimit = -1

// Forwarding is how a request is handed to an endpoint. It can be compared.
type Forwarding struct {
	// Protocol is HTTP where it is empty.
	Protocol BackendProtocol `json:"protocol,omitempty"`
	// Host is the Host header for the endpoint, with nginx variables in it; empty is what the client sent.
	Host string `json:"host,omitempty"`
	// Connection is the Connection header for the endpoint: "close" or "keep-alive"; empty is by the request.
	Connection string `json:"connection,omitempty"`
	// MaxBody is how many bytes the body of a request may have, or NoLimit. Zero has a default: see Proxy.WithDefaults.
	MaxBody int64 `json:"max_body,omitempty"`
	// StreamRequest sends the body of a request on as it comes in. Otherwise all of it is read before an endpoint is asked.
	StreamRequest bool `json:"stream_request,omitempty"`
	// BufferResponse reads an answer as fast as the endpoint sends it, whatever the client does. Otherwise it is sent on as
	// it comes in.
	BufferResponse bool `json:"buffer_response,omitempty"`
	// Prefix is the X-Forwarded-Prefix header for the endpoint; empty is what the client sent.
	Prefix string `json:"prefix,omitempty"`
	// CookiePath and CookieDomain rewrite the attributes of cookies that endpoints set; zero leaves them as they are.
	CookiePath   AnswerRewrite `json:"cookie_path,omitzero"`
	CookieDomain AnswerRewrite `json:"cookie_domain,omitzero"`
	// Redirect rewrites the Location and the Refresh of answers; zero leaves them as they are.
	Redirect AnswerRewrite `json:"redirect,omitzero"`
	// Index is for FastCGI: the file that a path with a slash at its end means.
	Index string `json:"index,omitempty"`
	// TLS is for endpoints that speak TLS; nil is without verification, and without a certificate. It is not part of a chain:
	// the document has it in the route, where the Secret is followed.
	TLS *BackendTLS `json:"-"`
}

// AnswerRewrite replaces an attribute of cookies, as nginx's proxy_cookie_path and proxy_cookie_domain do, or where a redirect leads, as
// proxy_redirect does. It can be compared.
type AnswerRewrite struct {
	// From is the beginning of a path or of a URL, or a whole domain, with nginx variables in it. After ~, or ~* for any case, it is a
	// regular expression of the kind RE2 that is searched in the attribute; that of a domain is always for any case.
	From string `json:"from"`
	// To takes the place of what From matches: of all of the attribute, if that is an expression. It may have nginx
	// variables in it, and $1 to $9 for the groups of the expression.
	To string `json:"to"`
}

// Global is what holds for every request and every host. What is zero has ingress-nginx's default.
type Global struct {
	Clients Clients `json:"clients,omitzero"`
	HSTS    HSTS    `json:"hsts,omitzero"`
	// TLS is for hosts that have no policy of their own, and for names that nobody has.
	TLS TLSPolicy `json:"tls,omitzero"`
	// OnlyHTTP1 offers no HTTP/2 to clients.
	OnlyHTTP1 bool `json:"only_http1,omitempty"`
	// RejectUnknown ends the handshake for a name that nobody has.
	RejectUnknown bool `json:"reject_unknown,omitempty"`
	// KeepAlive is how many idle connections to one endpoint are kept; zero is 320, less than zero none. KeepAliveTimeout is
	// for how long; zero is 60 s.
	KeepAlive        int           `json:"keepalive,omitempty"`
	KeepAliveTimeout time.Duration `json:"keepalive_timeout,omitempty"`
	// Drain is how long the streams of a route go on after the route has gone; zero is 240 s.
	Drain time.Duration `json:"drain,omitempty"`
	// Streams is how connections are passed on whose port has no policy of its own: TLS connections that go to the backend of
	// their host as they are.
	Streams StreamPolicy `json:"streams,omitzero"`
	// Connections are the limits of the connections of clients.
	Connections ClientConnections `json:"connections,omitzero"`
	// ServerTokens names this server in the Server field of answers. BackendServer lets the one of an endpoint pass.
	ServerTokens  bool `json:"server_tokens,omitempty"`
	BackendServer bool `json:"backend_server,omitempty"`
	// AccessLog is what is noted of requests.
	AccessLog AccessLog `json:"access_log,omitzero"`
	// StreamLog is what is noted of the connections of TCP and UDP ports.
	StreamLog StreamLog `json:"stream_log,omitzero"`
	// Collector is where spans go.
	Collector Collector `json:"collector,omitzero"`
	// Status is who may read the numbers of connections and requests.
	Status StatusPage `json:"status,omitzero"`
	// Compression is what compresses answers.
	Compression Compression `json:"compression,omitzero"`
	// Headers are changes to the header fields of all requests and answers.
	Headers Headers `json:"headers,omitzero"`
	// DefaultBackend is the ID of the backend that answers requests which no route is for, and errors whose route names no backend for
	// them; empty is none.
	DefaultBackend string `json:"default_backend,omitempty"`
	// NoRequestID makes up no id for requests that come without one.
	NoRequestID bool `json:"no_request_id,omitempty"`
	// Block are requests that are refused wherever they go.
	Block Block `json:"block,omitzero"`
}

// StatusPage is who may read nginx's numbers of connections and requests: clients in these networks. nil is ingress-nginx's default, this
// machine.
type StatusPage struct {
	IPv4 []string `json:"ipv4,omitempty"`
	IPv6 []string `json:"ipv6,omitempty"`
}

// Block are requests that get 403: of clients in some networks, and with some User-Agent and Referer fields. Those are texts in any case, or
// regular expressions of the kind RE2 behind ~, or behind ~* for any case.
type Block struct {
	Networks   []string `json:"networks,omitempty"`
	UserAgents []string `json:"user_agents,omitempty"`
	Referers   []string `json:"referers,omitempty"`
}

// AccessLog is what is noted of requests, a line each. The zero value is as ingress-nginx does it.
type AccessLog struct {
	Off bool `json:"off,omitempty"`
	// Path is the file; empty is the standard output. It may be the host:port of a syslog server, with Syslog in front of it.
	Path string `json:"path,omitempty"`
	// Format is text with nginx variables; empty is that of ingress-nginx.
	Format string    `json:"format,omitempty"`
	Escape LogEscape `json:"escape,omitempty"`
	// Skip are targets of requests that are not noted, as path and query, or patterns with "~" in front of them.
	Skip []string `json:"skip,omitempty"`
	// Unknown notes requests for hosts and paths that no Ingress has, too.
	Unknown bool `json:"unknown,omitempty"`
}

// StreamLog is what is noted of connections of TCP ports and of clients of UDP ports, a line each when they end. The zero value is as
// ingress-nginx does it.
type StreamLog struct {
	Off bool `json:"off,omitempty"`
	// Path is as in AccessLog.
	Path string `json:"path,omitempty"`
	// Format is text with nginx.StreamVariables; empty is that of ingress-nginx.
	Format string `json:"format,omitempty"`
}

// LogStdout is ingress-nginx's access-log-path, which is the standard output in its image.
const LogStdout = "/var/log/nginx/access.log"

// Syslog is in front of the address of a syslog server, in place of the path of a file.
const Syslog = "syslog:"

// LogEscape says how the values of variables are written in a log.
type LogEscape string

// The ways there are, by nginx's log_format.
const (
	EscapeDefault LogEscape = ""
	EscapeJSON    LogEscape = "json"
	EscapeNone    LogEscape = "none"
)

// Headers are changes to the header fields of all requests and answers. Values may have nginx variables.
type Headers struct {
	// Answers are for clients, and Requests for endpoints, each in place of others with the same name.
	Answers  []Header `json:"answers,omitempty"`
	Requests []Header `json:"requests,omitempty"`
	// Hidden are names of fields of endpoints that clients do not get.
	Hidden []string `json:"hidden,omitempty"`
	// OriginalURI tells endpoints the path and query that the client has sent.
	OriginalURI bool `json:"original_uri,omitempty"`
}

// ClientConnections are the limits of the connections of clients by HTTP. What is zero is as the server in Caddy's JSON has it, where the
// defaults of ingress-nginx stand.
type ClientConnections struct {
	// HeaderTimeout is how long the head of a request may take, and BodyTimeout how long nothing may come of its body.
	HeaderTimeout time.Duration `json:"header_timeout,omitempty"`
	BodyTimeout   time.Duration `json:"body_timeout,omitempty"`
	// KeepAlive is how long a connection may wait for its next request; less than zero is that each has one request.
	KeepAlive time.Duration `json:"keepalive,omitempty"`
	// Requests is how many a connection may have; zero is any number.
	Requests int `json:"requests,omitempty"`
	// MaxHead is how many bytes the head of a request may have.
	MaxHead int `json:"max_head,omitempty"`
	// Streams is how many requests of HTTP/2 a connection may have at a time.
	Streams int `json:"streams,omitempty"`
	// Underscores lets fields with underscores in their names go on, and InvalidNames those with any character.
	Underscores  bool `json:"underscores,omitempty"`
	InvalidNames bool `json:"invalid_names,omitempty"`
}

// ProxyTimeout is how long a PROXY protocol header may take where nothing else is said: ingress-nginx's
// proxy-protocol-header-timeout.
const ProxyTimeout = 5 * time.Second

// Clients is what is believed of who a request comes from.
type Clients struct {
	// ProxyProtocol says that each connection begins with a PROXY protocol header, if its peer is in Trusted. It must come
	// within ProxyTimeout; zero is the constant of that name.
	ProxyProtocol bool          `json:"proxy_protocol,omitempty"`
	ProxyTimeout  time.Duration `json:"proxy_protocol_timeout,omitempty"`
	// UseForwarded believes the X-Forwarded-* headers of peers in Trusted; RealIP only the one with the address.
	UseForwarded bool `json:"use_forwarded_headers,omitempty"`
	RealIP       bool `json:"enable_real_ip,omitempty"`
	// AppendForwarded adds the peer to X-Forwarded-For, rather than replace it by the address of the client.
	AppendForwarded bool `json:"compute_full_forwarded_for,omitempty"`
	// Header has the address of the client; empty is X-Forwarded-For.
	Header string `json:"forwarded_for_header,omitempty"`
	// HostHeader has the host that the client asked for, where UseForwarded is set; empty is X-Forwarded-Host.
	HostHeader string `json:"forwarded_host_header,omitempty"`
	// Trusted are the networks whose word counts, as CIDRs. Empty is everybody, as with ingress-nginx.
	Trusted []string `json:"trusted,omitempty"`
}
