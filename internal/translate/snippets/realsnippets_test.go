package snippets_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/k8singress/k8singress/internal/translate/snippets"
)

// The directives in snippets of public repositories. With the first list alone, 238 of 290 different snippets can be
// written, and with both lists 278. The others contain Lua, include, env or files.
const (
	mostlyPublished = "add_header more_set_headers more_clear_headers more_set_input_headers " +
		"more_clear_input_headers proxy_set_header grpc_set_header proxy_hide_header proxy_pass_header " +
		"return rewrite if set location deny allow limit_except satisfy sub_filter sub_filter_once " +
		"sub_filter_types sub_filter_last_modified " +
		"auth_request_set expires default_type client_max_body_size error_page proxy_intercept_errors"
	alsoPublished = "map geo limit_req limit_req_zone limit_req_status limit_req_dry_run limit_req_log_level " +
		"limit_conn limit_conn_zone limit_conn_status limit_conn_dry_run limit_conn_log_level set_real_ip_from " +
		"real_ip_header real_ip_recursive auth_basic proxy_pass proxy_cookie_flags proxy_ssl_name " +
		"proxy_ssl_server_name proxy_ssl_verify proxy_ssl_verify_depth proxy_ssl_ciphers proxy_ssl_protocols " +
		"proxy_ssl_session_reuse proxy_ssl_certificate proxy_ssl_certificate_key proxy_ssl_trusted_certificate " +
		"gzip gzip_types gzip_vary gzip_proxied gzip_min_length gzip_comp_level " +
		"gzip_buffers gzip_http_version gzip_disable gzip_static server_tokens access_log log_not_found etag " +
		"client_header_buffer_size large_client_header_buffers send_timeout chunked_transfer_encoding " +
		"proxy_http_version"
)

// TestDirectivesOfRealSnippets checks that each directive of real snippets is interpreted, or has nothing to change
// here.
func TestDirectivesOfRealSnippets(t *testing.T) {
	classes := map[string]snippets.Class{}
	for _, row := range snippets.Table() {
		classes[row.Name] = row.Class
	}
	for _, name := range slices.Concat(strings.Fields(mostlyPublished), strings.Fields(alsoPublished)) {
		if class := classes[name]; class != snippets.Works && class != snippets.NoEffect {
			t.Errorf("%s has the class %q", name, class)
		}
	}
}
