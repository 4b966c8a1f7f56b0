package explain_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/k8singress/k8singress/internal/control/explain"
	"github.com/k8singress/k8singress/internal/model/document"
	"github.com/k8singress/k8singress/internal/model/ir"
)

// TestDirectives checks that the directives of snippets are printed one by one, as nginx writes them.
func TestDirectives(t *testing.T) {
	on := true
	for name, c := range map[string]struct {
		handler string
		of      ir.Filter
		want    string
	}{
		"steps": {"program", ir.Program{Steps: []ir.Step{
			{Set: &ir.SetVariable{Name: "to", Value: "a b"}},
			{If: &ir.If{Condition: ir.Condition{Variable: "http_user_agent", Operator: ir.MatchesFold,
				Value: "bad(bot|spider)"},
				Steps: []ir.Step{{Return: &ir.Return{Status: 403}}}}},
			{If: &ir.If{Condition: ir.Condition{Variable: "to"},
				Steps:      []ir.Step{{Set: &ir.SetVariable{Name: "to"}}, {Break: true}},
				Directives: &ir.Directives{AddHeaders: []ir.AddedHeader{{Name: "X-To", Value: "$to"}}}}},
			{If: &ir.If{Condition: ir.Condition{Variable: "uri"}, Directives: &ir.Directives{Unlogged: true}}},
			{Rewrite: &ir.Rewrite{Pattern: `^/old\.html$`, Target: "/new", Flag: ir.Last}},
			{Rewrite: &ir.Rewrite{Pattern: "^/a", Target: "/b"}},
			{Return: &ir.Return{Status: 200, Text: "one \"line\";\n", HasText: true}},
			{Return: &ir.Return{Status: 200, HasText: true}},
		}, RelativeRedirects: true, Directives: ir.Directives{Unlogged: true}}, `      set $to "a b";
      if ($http_user_agent ~* bad(bot|spider)) {
        return 403;
      }
      if ($to) {
        set $to "";
        break;
        add_header X-To $to;
        access_log on;
      }
      if ($uri) {
        access_log off;
      }
      rewrite "^/old\.html$" /new last;
      rewrite ^/a /b;
      return 200 "one \"line\";\n";
      return 200 "";
      access_log off;
      absolute_redirect off;
`},
		"directives": {"program", ir.Program{Directives: ir.Directives{
			InputHeaders: []ir.MoreHeaders{{Clear: []string{"X-In*"}},
				{Set: []ir.Header{{Name: "X-In", Value: "$host"}}, IfPresent: true}},
			EndpointHeaders: []ir.Header{{Name: "X-Empty"}, {Name: "X-Host", Value: "$host"}},
			Hide:            []string{"X-Hidden", "X-Other"}, Pass: []string{"Server"},
			CookieFlags: []ir.CookieFlags{{Cookie: "~", Flags: []string{"secure", "samesite=lax"}}},
			AddHeaders:  []ir.AddedHeader{{Name: "X-Always", Value: "yes", Always: true}},
			Expires:     &ir.Expires{Seconds: -1},
			MoreHeaders: []ir.MoreHeaders{{
				Set:      []ir.Header{{Name: "X-Frame-Options", Value: "DENY"}, {Name: "X-None"}},
				Statuses: []int{404, 500}, Types: []string{"text/html", "text/plain"},
			}, {Clear: []string{"Server"}}},
			AuthVariables: []ir.SetVariable{{Name: "user", Value: "$upstream_http_x_user"}},
			DefaultType:   "text/plain", Unlogged: true,
		}}, `      more_clear_input_headers X-In*;
      more_set_input_headers -r "X-In: $host";
      proxy_set_header X-Empty "";
      proxy_set_header X-Host $host;
      proxy_hide_header X-Hidden;
      proxy_hide_header X-Other;
      proxy_pass_header Server;
      proxy_cookie_flags ~ secure samesite=lax;
      add_header X-Always yes always;
      expires -1;
      more_set_headers -s "404 500" -t "text/html text/plain" "X-Frame-Options: DENY" X-None:;
      more_clear_headers Server;
      auth_request_set $user $upstream_http_x_user;
      default_type text/plain;
      access_log off;
`},
		"expires": {"program", ir.Program{Directives: ir.Directives{
			Expires: &ir.Expires{Seconds: 60, Modified: true}}}, "      expires modified 60;\n"},
		"expires max": {"program", ir.Program{Directives: ir.Directives{Expires: &ir.Expires{Mode: "max"}}},
			"      expires max;\n"},
		"expires daily": {"program", ir.Program{Directives: ir.Directives{
			Expires: &ir.Expires{Mode: ir.ExpiresDaily, Seconds: 60}}}, "      expires @60;\n"},
		"expires variable": {"program", ir.Program{Directives: ir.Directives{
			Expires: &ir.Expires{Template: "$a", Modified: true}}}, "      expires modified $a;\n"},
		"values that need escapes": {"program", ir.Program{Steps: []ir.Step{
			{Set: &ir.SetVariable{Name: "a", Value: "\x1b[31m\t'\\n\\d\\"}},
		}}, `      set $a "\x1b[31m\t'\\n\d\\";` + "\n"},
		"error pages": {"program", ir.Program{Directives: ir.Directives{Errors: ir.ErrorHandling{
			Pages: []ir.ErrorPage{{Statuses: []int{502, 503}, Target: "@sorry", AnyStatus: true},
				{Statuses: []int{404}, Target: "/a b", Status: 200}, {Statuses: []int{403}, Target: "/c"}},
			Intercept: new(bool), Recursive: &on,
		}}}, `      error_page 502 503 = @sorry;
      error_page 404 =200 "/a b";
      error_page 403 /c;
      proxy_intercept_errors off;
      recursive_error_pages on;
`},
		"internal":  {"internal", ir.Internal{}, "      internal;\n"},
		"try files": {"try_files", ir.TryFiles{Target: "@a"}, "      try_files $uri @a;\n"},
		"a server":  {"program", ir.Program{Steps: []ir.Step{{Break: true}}, Server: true}, "      break;\n"},
		"no files":  {"try_files", ir.TryFiles{Status: 404}, "      try_files $uri =404;\n"},
		"access rules": {"access_rules", ir.AccessRules{Rules: []ir.AccessRule{
			{Allow: true, Network: "10.0.0.0/8"}, {Network: ir.AllClients},
		}}, "      allow 10.0.0.0/8;\n      deny all;\n"},
		"rules for other methods": {"access_rules", ir.AccessRules{
			Rules: []ir.AccessRule{{Network: ir.AllClients}},
			LimitExcept: &ir.LimitExcept{Methods: []string{"GET", "HEAD"},
				Rules: []ir.AccessRule{{Allow: true, Network: ir.AllClients}}},
		}, "      deny all;\n      limit_except GET HEAD {\n        allow all;\n      }\n"},
		"no rules for other methods": {"access_rules", ir.AccessRules{
			Rules:       []ir.AccessRule{{Network: ir.AllClients}},
			LimitExcept: &ir.LimitExcept{Methods: []string{"GET"}, Rules: []ir.AccessRule{}},
		}, "      deny all;\n"},
		"limited methods": {"program", ir.Program{
			Steps: []ir.Step{{Break: true}}, LimitExcept: &ir.LimitExcept{Methods: []string{"POST"},
				Rules: []ir.AccessRule{{Network: ir.AllClients}}},
		}, "      limit_except POST {\n        deny all;\n      }\n      break;\n"},
		"zone limits": {"zone_limits", ir.ZoneLimits{
			Requests: []ir.RequestLimit{
				{Zone: ir.RequestZone{Zone: ir.Zone{Name: "a"}}, Burst: 5, Undelayed: 5},
				{Zone: ir.RequestZone{Zone: ir.Zone{Name: "b"}}, Burst: 5, Undelayed: 2},
				{Zone: ir.RequestZone{Zone: ir.Zone{Name: "c"}}},
			},
			Connections: []ir.ConnectionLimit{{Zone: ir.Zone{Name: "d"}, Max: 3}},
			Status:      429, ConnectionsStatus: 509, DryRun: new(true), ConnectionsDryRun: new(true),
		}, `      limit_req zone=a burst=5 nodelay;
      limit_req zone=b burst=5 delay=2;
      limit_req zone=c;
      limit_req_status 429;
      limit_req_dry_run on;
      limit_conn d 3;
      limit_conn_status 509;
      limit_conn_dry_run on;
`},
		"substitution": {"substitution", ir.Substitution{Pairs: []ir.Replacement{{From: "</head>", To: "<link></head>"},
			{From: "a b"}}, Repeat: true, Types: []string{"text/css", "*"}, KeepLastModified: true},
			`      sub_filter </head> <link></head>;
      sub_filter "a b" "";
      sub_filter_once off;
      sub_filter_types text/css *;
      sub_filter_last_modified on;
`},
	} {
		t.Run(name, func(t *testing.T) {
			got := explain.Text(&document.Live{Hosts: map[string]*document.Host{"a.example": {
				Routes: []*document.Route{{Type: "prefix", Path: "/", Origin: "Ingress/a/web",
					Destination: document.Destination{Chain: chain(handlerOf(t, c.handler, c.of))}}},
			}}}, explain.Used{})
			readable := strings.ReplaceAll(c.handler, "_", " ")
			if p, ok := c.of.(ir.Program); ok && p.Server {
				readable = "server snippets"
			} else if ok {
				readable = "snippets"
			}
			want := "a.example\n  prefix /  (Ingress/a/web)\n    " + readable + "\n" + c.want
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestAuthDirectives checks that the directives of a snippet for external authentication are printed below its other
// settings.
func TestAuthDirectives(t *testing.T) {
	auth := ir.ExternalAuth{URL: "http://auth", Program: &ir.Program{
		Steps:      []ir.Step{{Return: &ir.Return{Status: 200}}},
		Directives: ir.Directives{EndpointHeaders: []ir.Header{{Name: "X-A", Value: "b"}}},
	}}
	got := explain.Text(&document.Live{Hosts: map[string]*document.Host{"a.example": {
		Routes: []*document.Route{{Type: "prefix", Path: "/", Origin: "Ingress/a/web",
			Destination: document.Destination{Chain: chain(handlerOf(t, "external_auth", auth))}}},
	}}}, explain.Used{})
	want := "a.example\n  prefix /  (Ingress/a/web)\n" +
		"    external auth {\"url\":\"http://auth\"}\n      return 200;\n      proxy_set_header X-A b;\n"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// handlerOf returns the JSON of the handler for a filter.
func handlerOf(t *testing.T, name string, of ir.Filter) string {
	t.Helper()
	fields := map[string]any{}
	if err := json.Unmarshal(document.Encode(of), &fields); err != nil {
		t.Fatal(err)
	}
	fields["handler"] = "k8singress_" + name
	return string(document.Encode(fields))
}
