package snippets

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/k8singress/k8singress/internal/http/message"
)

// Auth interprets the configuration of the requests to an authentication service. In nginx, it stands in a location of
// its own, for a subrequest of the client's request. If the text is unreadable, only the findings of the result are
// set.
func Auth(text string) *Result { return (*HTTP)(nil).Auth(text) }

func interpretAuth(of texts) *Result {
	r := newReader(inLocation)
	r.auth = true
	r.readBoth(of)
	return r.finish()
}

// authSection lists directives that have another class in requests to authentication services than in locations.
type authSection struct {
	Class  Class
	Reason string
	// names are the names of the directives, separated by spaces.
	names string
}

// authSections lists all directives that are interpreted, and other directives whose class or reason differs. Every
// other directive that works in a location is a guard.
var authSections = []authSection{
	{Works, "the same as in a location, for the request to the service",
		"set if return auth_basic proxy_set_header more_set_input_headers more_clear_input_headers " +
			"proxy_connect_timeout proxy_read_timeout proxy_send_timeout"},
	{NoEffect, "it changes responses to clients",
		"add_header expires default_type sub_filter sub_filter_once sub_filter_types sub_filter_last_modified " +
			"proxy_cookie_domain proxy_cookie_path proxy_redirect absolute_redirect limit_rate limit_rate_after"},
	{NoEffect, "requests to the service have no body, and are not logged",
		"proxy_buffering proxy_request_buffering access_log"},
	{NoEffect, "the service is asked with HTTP/1.1", "proxy_http_version"},
	{NoEffect, "the response of the service does not exist yet: write it in configuration-snippet", "auth_request_set"},
	{LeftOut, "clients get the headers Set-Cookie and WWW-Authenticate as the service sends them, and no others",
		"more_set_headers more_clear_headers proxy_hide_header proxy_pass_header proxy_cookie_flags"},
	{LeftOut, "the service is asked once",
		"proxy_next_upstream proxy_next_upstream_timeout proxy_next_upstream_tries"},
	{LeftOut, "the service is asked without a client certificate",
		"proxy_ssl_certificate proxy_ssl_certificate_key proxy_ssl_password_file proxy_ssl_conf_command"},
	{Guard, "decides which responses are cached: use the annotations auth-cache-key and auth-cache-duration",
		"proxy_cache proxy_cache_background_update proxy_cache_bypass proxy_cache_key proxy_cache_lock " +
			"proxy_cache_lock_age proxy_cache_lock_timeout proxy_cache_methods proxy_cache_min_uses " +
			"proxy_cache_purge proxy_cache_revalidate proxy_cache_use_stale proxy_cache_valid proxy_ignore_headers " +
			"proxy_no_cache"},
	{Guard, "may replace a response that keeps clients out: write a condition with return",
		"error_page recursive_error_pages"},
}

// authByName returns the elements of authSections by the names of the directives.
var authByName = sync.OnceValue(func() map[string]*authSection {
	all := map[string]*authSection{}
	for i := range authSections {
		for name := range strings.FieldsSeq(authSections[i].names) {
			all[name] = &authSections[i]
		}
	}
	return all
})

// inAuth returns the class of a directive in requests to authentication services, and the reason for it.
func (r *Row) inAuth() (Class, string) {
	switch section := authByName()[r.Name]; {
	case section == nil && r.Class == Works:
		return Guard, "may keep clients out or let them in: write a condition with return"
	case section == nil || section.Class == Works:
		return r.Class, r.Doc
	default:
		return section.Class, section.Reason
	}
}

var errAuthHost = &problem{Guard, "the service may decide by the field Host: write the host in auth-url"}

// checkAuthInput returns a problem for more_set_input_headers if the field never comes from clients, because a client
// could then impersonate another client.
func (r *reader) checkAuthInput(name string) error {
	if !r.auth || !message.KindOf(name).Spoofable() {
		return nil
	}
	return &problem{Guard, "the service may decide by the field " + name + ": use proxy_set_header"}
}

// ofSubrequest contains the variables that describe the subrequest in nginx, and the client's request here.
var ofSubrequest = []string{"args", "document_uri", "is_args", "query_string", "uri"}

// checkAuthVariables returns an error if a variable describes the subrequest in nginx. A condition on it would decide
// differently here.
func (r *reader) checkAuthVariables(names ...string) error {
	if !r.auth {
		return nil
	}
	for _, name := range names {
		if slices.Contains(ofSubrequest, name) || strings.HasPrefix(name, "arg_") {
			return fmt.Errorf("the variable $%s does not describe the client's request here: use $request_uri", name)
		}
	}
	return nil
}
