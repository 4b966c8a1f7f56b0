package annotations

import (
	"slices"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/nginx"
	"github.com/k8singress/k8singress/internal/model/option"
	"github.com/k8singress/k8singress/internal/model/report"
	"github.com/k8singress/k8singress/internal/translate/snippets"
)

// HTTPSnippet is the ConfigMap key http-snippet. The variables that it defines exist for all other values, and other
// keys take precedence over its directives, so it must be read before them.
var HTTPSnippet = Annotation{
	Name: "http-snippet",
	Doc: "nginx configuration for all hosts. It defines variables with `map`, `geo` and `split_clients`, which all " +
		"values with nginx variables may contain, such as log-format-upstream, the annotation auth-url, and other " +
		"snippets, and opens ports with `server` for responses of `return` and `stub_status`. The page " +
		"[Snippets](snippets.md#variables-of-http-snippet) describes both. `limit_req_zone` and " +
		"`limit_conn_zone` define [zones for limits](snippets.md#limits-with-zones), and `set_real_ip_from` and " +
		"`real_ip_header` the [addresses of clients](snippets.md#addresses-of-clients). All hosts and paths inherit " +
		"[other directives](snippets.md#directives-for-all-hosts), such as `add_header`. If the text contains a " +
		"directive that may keep clients out and is not supported, or if it cannot be parsed, all requests get 503.",
	Values: configuration, Example: "map $http_x_tenant $tenant { default none; ~^[a-z]+$ $http_x_tenant; }",
	Default: "none", Lines: true,
	Parse: func(s *Settings, value string) error {
		switch {
		case value == "false":
			return nil
		case s.IgnoreSnippets:
			s.Asked.Snippets.WithoutEffect[rowHTTP] = true
			return nil
		}
		h := snippets.ReadHTTP(value)
		if f := h.Closed(); f != nil {
			return nginx.Unsupported(f.String())
		}
		s.HTTP = h
		return s.setHTTPValues()
	},
	OnError: (*Settings).close, Meanwhile: allClosed,
	Check: func(s *Settings) string {
		return option.Unless(!s.Asked.Snippets.WithoutEffect[rowHTTP], ignoredSnippet)
	},
	Report: func(s *Settings) []report.Problem {
		if s.HTTP == nil {
			return nil
		}
		return problemsOf(slices.Concat(s.HTTP.Findings, s.Asked.Snippets.HTTPInvalid), true)
	},
}

// setHTTPValues sets the values of annotations that http-snippet contains for all Ingresses. It returns an error for an
// invalid value that closes Ingresses.
func (s *Settings) setHTTPValues() error {
	invalid := s.setValues(s.HTTP.Values)
	if i := slices.IndexFunc(invalid, closes); i >= 0 {
		return nginx.Unsupported(invalid[i].String())
	}
	s.Asked.Snippets.HTTPInvalid = invalid
	return nil
}

// ListeningServer is a server in http-snippet with ports of its own.
type ListeningServer struct {
	*snippets.HTTPServer
	// Filters process the requests for all locations, before the filters of the location.
	Filters   []ir.Filter
	Locations []ServerLocation
}

// ListeningServers returns the servers in http-snippet. Annotations and other keys do not apply to
// them, except the statuses of limits.
func (s *Settings) ListeningServers() (all []ListeningServer) {
	if s.HTTP == nil {
		return nil
	}
	none := &Settings{HTTP: s.HTTP}
	none.Asked.Limits.Status, none.Asked.Limits.ConnectionsStatus = s.Asked.Limits.Status,
		s.Asked.Limits.ConnectionsStatus
	for i := range s.HTTP.Servers {
		server := ListeningServer{HTTPServer: &s.HTTP.Servers[i]}
		if server.Program != nil {
			server.Filters = []ir.Filter{*server.Program}
		}
		for j := range server.HTTPServer.Locations {
			server.Locations = append(server.Locations, none.locationOf(&server.HTTPServer.Locations[j]))
		}
		all = append(all, server)
	}
	return all
}

// withVariables returns a parser for a value that may contain nginx variables. It checks that the variables exist,
// and then calls parse, which checks the rest of the syntax.
func withVariables(parse func(*Settings, string) error) func(*Settings, string) error {
	return func(s *Settings, value string) error {
		if err := s.HTTP.CheckVariables(value); err != nil {
			return err
		}
		return parse(s, value)
	}
}
