package snippets

import (
	"errors"
	"fmt"
	"strings"
)

// rule specifies under which conditions a directive is harmless.
type rule struct {
	// args reports whether the directive is harmless with the given arguments. If it is nil, all arguments are
	// harmless.
	args func(args []string) bool
	// block means that the directive must have a block. The content of the block is not checked, because the lines in
	// the block of a map directive are not directives.
	block bool
}

// harmless is a map from names of directives to rules. A directive is harmless if it does not decide whether a request
// is accepted, and does not change what a backend receives. All directives that are not in the map may restrict access.
var harmless = map[string]rule{
	"proxy_set_header": {args: forwardedHeader}, "grpc_set_header": {args: forwardedHeader},
	"map": {block: true}, "map_hash_bucket_size": {}, "map_hash_max_size": {},
}

// The names of directives that are harmless whatever their arguments are, grouped by purpose.
const (
	responseHeaders = "add_header add_trailer add_header_inherit add_trailer_inherit more_set_headers " +
		"more_clear_headers expires etag server_tokens default_type charset charset_types override_charset " +
		"source_charset proxy_hide_header proxy_pass_header grpc_hide_header grpc_pass_header fastcgi_hide_header " +
		"fastcgi_pass_header proxy_cookie_flags"
	timeouts = "proxy_connect_timeout proxy_read_timeout proxy_send_timeout grpc_connect_timeout " +
		"grpc_read_timeout grpc_send_timeout fastcgi_connect_timeout fastcgi_read_timeout fastcgi_send_timeout " +
		"client_body_timeout client_header_timeout send_timeout keepalive_timeout keepalive_requests keepalive_time " +
		"lingering_close lingering_time lingering_timeout resolver_timeout proxy_next_upstream_timeout " +
		"grpc_next_upstream_timeout fastcgi_next_upstream_timeout reset_timedout_connection"
	buffers = "proxy_buffering proxy_buffers proxy_buffer_size proxy_busy_buffers_size proxy_max_temp_file_size " +
		"proxy_temp_file_write_size proxy_request_buffering grpc_buffer_size fastcgi_buffering fastcgi_buffers " +
		"fastcgi_buffer_size fastcgi_busy_buffers_size fastcgi_request_buffering client_body_buffer_size " +
		"client_header_buffer_size large_client_header_buffers output_buffers postpone_output " +
		"chunked_transfer_encoding tcp_nodelay tcp_nopush sendfile proxy_headers_hash_max_size " +
		"proxy_headers_hash_bucket_size variables_hash_max_size variables_hash_bucket_size"
	compression = "gzip gzip_buffers gzip_comp_level gzip_disable gzip_http_version gzip_min_length gzip_proxied " +
		"gzip_static gzip_types gzip_vary gunzip gunzip_buffers brotli brotli_buffers brotli_comp_level " +
		"brotli_min_length brotli_static brotli_types brotli_window"
	logs = "access_log error_log log_format log_not_found log_subrequest open_log_file_cache rewrite_log"
)

func init() {
	for _, names := range []string{responseHeaders, timeouts, buffers, compression, logs} {
		for name := range strings.FieldsSeq(names) {
			harmless[name] = rule{}
		}
	}
}

// forwardedHeader reports whether the first argument of a directive is a request header that the controller itself sets
// or removes. A snippet that sets such a header is harmless, because the backend gets the header without the snippet as
// well.
func forwardedHeader(args []string) bool {
	if len(args) == 0 {
		return false
	}
	name := strings.ToLower(args[0])
	switch name {
	case "upgrade", "connection", "host", "x-real-ip":
		return true
	}
	return strings.HasPrefix(name, "x-forwarded-")
}

// The map instead contains the advice for messages: it maps the name of a directive to the setting that users should
// use in place of it.
var instead = map[string]string{
	"allow":                "use the annotation allowlist-source-range",
	"deny":                 "use the annotation denylist-source-range or allowlist-source-range",
	"auth_basic":           "use the annotations auth-type and auth-secret",
	"auth_request":         "use the annotation auth-url",
	"auth_request_set":     "use the annotation auth-response-headers",
	"client_max_body_size": "use the annotation proxy-body-size",
	"error_page":           "use the annotation custom-http-errors",
	"limit_conn":           "use the annotation limit-connections",
	"limit_rate":           "use the annotation limit-rate",
	"limit_req":            "use the annotation limit-rps or limit-rpm",
	"proxy_set_header": "set the header in a handler chain, and name the chain in the annotation " +
		"k8singress.io/chains",
	"return":     "use permanent-redirect, temporal-redirect or k8singress.io/maintenance, or a handler chain",
	"rewrite":    "use the annotation rewrite-target",
	"satisfy":    "use the annotation satisfy",
	"sub_filter": "use a handler chain",
}

// Harmless returns an error if nginx configuration contains a directive that is not harmless. The error contains the
// first such directive. Comments are harmless, and so is empty text.
func Harmless(text string) error {
	directives, err := Parse(text)
	if err != nil {
		return err
	}
	for i := range directives {
		if err := directives[i].harmless(); err != nil {
			return err
		}
	}
	return nil
}

func (d *Directive) harmless() error {
	r, ok := harmless[d.Name]
	if ok && (d.Block == nil) != r.block && (r.args == nil || r.args(d.Args)) {
		return nil
	}
	advice := instead[d.Name]
	if advice == "" {
		advice = "remove it"
	}
	name := d.Name
	if name == "proxy_set_header" && len(d.Args) > 0 {
		name += " " + d.Args[0]
	}
	return fmt.Errorf("line %d: the directive %s is not supported, and might reject requests: %s", d.Line,
		quote(name), advice)
}

// quote shortens and quotes the name of a directive for an error message. The result contains no control characters,
// which could affect a terminal or a log.
func quote(name string) string {
	const longest = 64
	if len(name) > longest {
		name = name[:longest] + "..."
	}
	return fmt.Sprintf("%q", name)
}

var errRefuses = errors.New("these rules may reject requests: set SecRuleEngine DetectionOnly, or remove them")

// DetectsOnly returns an error if ModSecurity rules may reject requests. It returns nil if the last SecRuleEngine
// directive is DetectionOnly or Off and no rule enables the engine for single requests, or if text is empty.
func DetectsOnly(text string) error {
	engine, _ := lastEngine(text)
	detects := engine == "off" || engine == "detectiononly"
	if strings.TrimSpace(text) == "" || detects && !strings.Contains(strings.ToLower(text), "ruleengine=") {
		return nil
	}
	return errRefuses
}

// EngineOn reports whether ModSecurity rules enable the rule engine, so that it can reject requests.
func EngineOn(text string) bool {
	engine, found := lastEngine(text)
	return found && engine != "off" && engine != "detectiononly" ||
		strings.Contains(strings.ToLower(text), "ruleengine=on")
}

// lastEngine returns the argument of the last SecRuleEngine directive, in lower case and without quotes. found is false
// if there is no such directive.
func lastEngine(text string) (engine string, found bool) {
	for line := range strings.Lines(text) {
		fields := strings.Fields(strings.ToLower(line))
		if len(fields) > 1 && fields[0] == "secruleengine" {
			engine, found = strings.Trim(fields[1], `"'`), true
		}
	}
	return engine, found
}
