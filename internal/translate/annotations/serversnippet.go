package annotations

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/nginx"
	"github.com/k8singress/k8singress/internal/model/option"
	"github.com/k8singress/k8singress/internal/model/report"
	"github.com/k8singress/k8singress/internal/translate/snippets"
)

// serverTexts holds the snippets for servers and their meaning.
type serverTexts struct {
	// Own is the text of the annotation server-snippet, and Shared the text of the ConfigMap key server-snippet. Both
	// are readable. Refused is true if the annotation is set and is not readable, or may keep clients out in a way that
	// is not supported.
	Own, Shared string
	Refused     bool
	// Reason is the finding because of which Refused is true. It is empty if the annotation is not allowed.
	Reason string
	// Findings are the findings for both texts, and for the values of annotations in locations.
	Findings []snippets.Finding
	// MaxHead is the value of the ConfigMap key large-client-header-buffers in bytes, or 0. No annotation changes it.
	MaxHead int
}

// serverSnippetName is the name of the annotation and of the key for servers.
const serverSnippetName = "server-snippet"

// serverSnippetKey is the complete key of the annotation.
const serverSnippetKey = Prefix + serverSnippetName

const serverDoc = " The page [Snippets](snippets.md) lists the directives and their effects. "

// The rows for the snippets for servers: an annotation, and the key of the ConfigMap.
var (
	serverSnippet = func() Annotation {
		row := serverRow(serverSnippetName, "nginx configuration for the hosts of the Ingress, such as locations."+
			serverDoc+"It applies to all paths of the host in the namespace that [owns the host](tenants.md). If "+
			"several Ingresses of this namespace have the annotation, the annotation of the oldest Ingress applies. "+
			"Locations never serve the paths of other namespaces."+gateDoc, rowServer, false)
		row.Meanwhile = serverClosed
		return row
	}()
	ServersSnippet = func() Annotation {
		row := serverRow(serverSnippetName, "nginx configuration for all hosts, behind the snippet of the Ingress."+
			serverDoc+"Its locations also serve paths that are in the namespaces of other Ingresses.", rowServers, true)
		row.Meanwhile = allClosed
		return row
	}()
)

// serverClosed describes the effect of an invalid server-snippet.
const serverClosed = "all requests for the paths of its hosts in this namespace get 503"

// serverRow returns the row for a snippet for servers. shared is true for the text of the ConfigMap.
func serverRow(name, doc string, row snippetRow, shared bool) Annotation {
	of := interpretedSnippet(row, func(s *Settings, value string) error {
		texts := &s.Asked.Snippets.Server
		own, all := value, ""
		if shared {
			own, all = "", value
		}
		if f := s.HTTP.Server(own, all).Closed(shared); f != nil {
			texts.Reason = option.Unless(shared, f.String())
			return nginx.Unsupported(f.String())
		}
		if shared {
			texts.Shared = value
		} else {
			texts.Own = value
		}
		return nil
	})
	of.Name, of.Doc, of.Example, of.Scope = name, doc, "location /admin { deny all; }", ScopeIngress
	of.OnError = func(s *Settings) {
		s.Closed = true
		s.Asked.Snippets.Server.Refused = s.Asked.Snippets.Server.Refused || !shared
	}
	of.Report = func(s *Settings) []report.Problem { return problemsOf(s.Asked.Snippets.Server.Findings, shared) }
	return of
}

// readServer returns the meaning of the snippets for servers, or nil if there are none. It includes the directives that
// servers inherit from http-snippet.
func (s *Settings) readServer() *snippets.ServerResult {
	texts := &s.Asked.Snippets.Server
	if texts.Own == "" && texts.Shared == "" && !s.HTTP.ReachesPaths() {
		return nil
	}
	return s.HTTP.Server(texts.Own, texts.Shared)
}

// serverVariables returns the names of the variables that the snippets for servers set for the paths of their hosts. It
// may contain duplicates.
func (s *Settings) serverVariables() []string {
	texts := &s.Asked.Snippets.Server
	if texts.Own == "" && texts.Shared == "" {
		return nil
	}
	program := s.HTTP.Server(texts.Own, texts.Shared).Program
	if program == nil {
		return nil
	}
	return program.OwnVariables()
}

// serverVariablesInUse returns the names of the variables of serverVariables that the snippets for locations read.
func (s *Settings) serverVariablesInUse() []string {
	read := s.Asked.Snippets.Location.Read
	if read == nil || read.Outside == nil {
		return nil
	}
	set := s.serverVariables()
	return slices.DeleteFunc(slices.Clone(read.Outside), func(name string) bool { return !slices.Contains(set, name) })
}

// RealIP returns the directives in the ConfigMap's http-snippet and server-snippet that determine the addresses of
// clients. Neither result is nil. s must be the settings of the ConfigMap.
func (s *Settings) RealIP() (http, servers *snippets.RealIP) {
	http, servers = &snippets.RealIP{}, &snippets.RealIP{}
	if s.HTTP != nil && s.HTTP.RealIP != nil {
		http = s.HTTP.RealIP
	}
	if text := s.Asked.Snippets.Server.Shared; text != "" {
		servers = cmp.Or(s.HTTP.Server("", text).RealIP, servers)
	}
	return http, servers
}

// checkServer makes all requests get 503 if the snippets of the Ingress and of the ConfigMap cannot be interpreted
// together.
func (s *Settings) checkServer() {
	s.FindInServers()
	if read := s.readServer(); read != nil {
		s.Closed = s.Closed || read.Closed(false) != nil || read.Closed(true) != nil
	}
}

// FindInServers sets the findings that are reported for the snippets for servers. They include values of annotations in
// locations that are not valid.
func (s *Settings) FindInServers() {
	read := s.readServer()
	if read == nil {
		return
	}
	findings := slices.Clone(read.Findings)
	for i := range read.Locations {
		_, invalid := s.contentOf(&read.Locations[i])
		findings = append(findings, invalid...)
	}
	if limit := max(maxSnippetHead, s.Asked.Snippets.Server.MaxHead); read.Head.Bytes > int64(limit) {
		findings = append(findings, snippets.Finding{Place: read.Head.Place, Class: snippets.LeftOut,
			Text: fmt.Sprintf("%q allows headers of %dk in total, for all hosts. For larger ones, set the ConfigMap "+
				"key large-client-header-buffers", read.Head.Directive, limit>>10)})
	}
	s.Asked.Snippets.Server.Findings = findings
}

// Server is what the snippets for servers contain.
type Server struct {
	// Text is the text of the annotation. It is empty if only the ConfigMap has a snippet, or if Closed is true.
	Text string
	// Closed is true if the snippet of the Ingress is not supported, so that all requests must get 503.
	Closed bool
	// Reason is the finding because of which Closed is true. It may be empty.
	Reason string
	// Filters process the requests for all paths of a host. Shared are the filters of the ConfigMap alone.
	Filters, Shared []ir.Filter
	// Reads are the names of the variables that the paths of the Ingress read, and that the snippets for servers set.
	Reads []string
	// Limits are the limits that the paths inherit. SharedLimits are the limits of the ConfigMap alone. Nil means none.
	Limits, SharedLimits *ir.ZoneLimits
	// MaxHead is the size of request headers that the hosts need, in bytes, up to maxSnippetHead. It is 0 if the
	// snippets do not set it.
	MaxHead   int
	Locations []ServerLocation
}

// maxSnippetHead is the maximum size of request headers that a snippet can configure, in bytes. The limit applies to
// all hosts, because the headers are read before the host of a request is known.
const maxSnippetHead = 64 << 10

// ServerLocation is a location of a snippet for servers.
type ServerLocation struct {
	Match ir.Match
	// Line is the line of the location in its text.
	Line int
	// Filters process the requests for the location. The first ones, as many as Early, precede the filters of the
	// server.
	Filters []ir.Filter
	Early   int
	// Settings are the settings for forwarding requests. Service is the target of the requests, or nil.
	Settings *Settings
	Service  *snippets.Service
}

// Server returns the meaning of the snippets for servers. It returns nil if there are none.
func (s *Settings) Server() *Server {
	texts := &s.Asked.Snippets.Server
	read := s.readServer()
	if read == nil && !texts.Refused {
		return nil
	}
	shared := s.HTTP.Server("", texts.Shared)
	server := &Server{Text: texts.Own, Closed: texts.Refused, Reason: texts.Reason, Shared: serverFilters(shared),
		SharedLimits: s.withDefaults(shared.Limits), Reads: s.serverVariablesInUse()}
	if read != nil && !server.Closed {
		if f := cmp.Or(read.Closed(false), read.Closed(true)); f != nil {
			server.Closed, server.Reason = true, f.String()
		}
	}
	if server.Closed {
		// The locations of the ConfigMap may keep clients out of the paths of other namespaces.
		read = shared
	} else {
		server.Filters, server.Limits = serverFilters(read), s.withDefaults(read.Limits)
		server.MaxHead = int(min(read.Head.Bytes, maxSnippetHead))
	}
	for i := range read.Locations {
		server.Locations = append(server.Locations, s.locationOf(&read.Locations[i]))
	}
	return server
}

// serverFilters returns the filters that run the part of a snippet outside of locations.
func serverFilters(of *snippets.ServerResult) (all []ir.Filter) {
	if of.Program != nil {
		all = append(all, *of.Program)
	}
	if of.Access != nil {
		all = append(all, *of.Access)
	}
	if of.Substitution != nil {
		all = append(all, *of.Substitution)
	}
	return all
}

// locationOf returns a location with the filters for its requests: first the filters with which the Ingress may reject
// all requests, and then the filters of its content.
func (s *Settings) locationOf(l *snippets.ServerLocation) ServerLocation {
	content, invalid := s.contentOf(l)
	early := s.FiltersBeforeServer(l.Match.Path)
	location := ServerLocation{
		Match: ir.Match{PathMatch: l.Match, Everywhere: l.Shared, Within: l.Within}, Line: l.Line,
		Early: len(early), Settings: content, Service: l.Service,
	}
	switch {
	case l.Closed, slices.ContainsFunc(invalid, closes):
		location.Filters = []ir.Filter{ir.Unavailable}
		location.Early = 1
	default:
		var first []ir.Filter
		if l.Internal {
			first = []ir.Filter{ir.Internal{Everywhere: l.Shared}}
		}
		location.Filters = slices.Concat(early, first, content.Filters(l.Match.Path))
		switch {
		case l.Status:
			location.Filters = append(location.Filters, ir.StubStatus{})
		case l.Service == nil:
			location.Filters = append(location.Filters, ir.NotFound)
		}
	}
	return location
}

// contentOf returns the settings for the requests of a location. As in nginx, the annotations of the Ingress do not
// apply to it. invalid contains findings for values of annotations in the location that are not valid.
func (s *Settings) contentOf(l *snippets.ServerLocation) (content *Settings, invalid []snippets.Finding) {
	content = &Settings{Ingress: s.Ingress}
	content.Asked.Limits.Status = s.Asked.Limits.Status
	content.Asked.Limits.ConnectionsStatus = s.Asked.Limits.ConnectionsStatus
	invalid = content.setValues(l.Content.Values)
	content.Finish()
	content.Asked.Snippets.Location.Read = l.Content
	return content, invalid
}

// FiltersBeforeServer returns the first filters for one path of the Ingress. The filters of snippets for servers follow
// them.
func (s *Settings) FiltersBeforeServer(path string) []ir.Filter {
	return s.filtersBefore(serverPhase, path)
}

// FiltersBeforeLimits returns the first filters for one path of the Ingress. The limits of the path follow them.
func (s *Settings) FiltersBeforeLimits(path string) []ir.Filter {
	return s.filtersBefore(limitsPhase, path)
}

func (s *Settings) filtersBefore(name, path string) []ir.Filter {
	return s.filtersOf(phases[:slices.IndexFunc(phases, func(p phase) bool { return p.Name == name })], path)
}

// serverPhase is the name of the phase in which snippets for servers run, and limitsPhase the name of the phase for
// limits.
const (
	serverPhase = "server snippets"
	limitsPhase = "limits"
)
