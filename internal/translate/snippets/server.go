package snippets

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/nginx"
	"github.com/k8singress/k8singress/internal/model/report"
)

// ServerResult is the meaning of the configuration of a server. The embedded Result is the part outside of locations,
// but with the findings for the whole text. It is immutable.
type ServerResult struct {
	Result
	// Locations are in the order in which nginx searches their regular expressions.
	Locations []ServerLocation
	// RealIP holds the directives of the ConfigMap's text that determine the addresses of clients. It is nil if there
	// are none.
	RealIP *RealIP
	// Head is the size of request headers that the hosts need.
	Head Head
}

// ServerLocation is a location in the configuration of a server.
type ServerLocation struct {
	Place
	Match ir.PathMatch
	// Within is the location in which this location stands, or nil. It precedes this location.
	Within *ir.PathMatch
	// Closed is true if requests must get 503, because of a directive that is not supported. Internal is true if
	// requests of clients must get 404, and only requests that other locations pass on are served.
	Closed, Internal bool
	// Status is true if requests get the numbers of connections and requests.
	Status bool
	// Content is what applies to requests for the location, including what it inherits. It has no findings.
	Content *Result
	// Service is the target of proxy_pass. If it is nil, and Content does not respond, requests get 404.
	Service *Service
}

// Service is one port of a Service.
type Service struct {
	// Namespace is empty for the namespace of the text.
	Namespace, Name, Port string
}

// Server interprets the configuration of a server: the text of an Ingress, and the text that the ConfigMap adds to all
// servers behind it. Both may be empty. If one of them is unreadable, only the findings of the result are set.
func Server(own, shared string) *ServerResult {
	return (*HTTP)(nil).Server(own, shared)
}

// serverReader collects the locations of a text.
type serverReader struct {
	locations []*locationReader
	// listens is the server in a text for all hosts whose content is read. It is nil for texts for the hosts of
	// Ingresses.
	listens *HTTPServer
	// head is the size of request headers.
	head Head
}

// locationReader is a location that has been read. outer is the reader of the level from which it inherits.
type locationReader struct {
	ServerLocation
	content, outer *reader
}

func interpretServer(of texts) *ServerResult {
	r := newReader(inServer)
	r.server = &serverReader{}
	r.readBoth(of)
	if of.http != nil && of.http.outer != nil {
		r.inherit(of.http.outer)
	}
	out := &ServerResult{Result: *r.finish()}
	if unreadable(out.Findings) {
		return out
	}
	out.RealIP, out.Head = r.realIP, r.server.head
	out.Locations = r.server.finish()
	out.hideFromPaths()
	return out
}

// finish returns the locations after the whole text has been read.
func (s *serverReader) finish() (all []ServerLocation) {
	for _, l := range s.locations {
		l.content.inherit(l.outer)
		l.Content = l.content.finish()
		all = append(all, l.ServerLocation)
	}
	return all
}

// hideFromPaths removes what only locations inherit from the server.
func (s *ServerResult) hideFromPaths() {
	s.Values = nil
	if s.Program == nil {
		return
	}
	paths := *s.Program
	paths.EndpointHeaders, paths.Server = nil, true
	if s.Program = &paths; len(paths.Steps) == 0 && paths.ChangesNothing() {
		s.Program = nil
	}
}

// modifiers are the words in front of the path of a location. The longer ones come first.
var modifiers = []struct {
	word string
	of   ir.MatchType
}{
	{"~*", ir.LocationRegexFold}, {"~", ir.LocationRegex}, {"^~", ir.LocationPrefixOnly}, {"=", ir.LocationExact},
}

// pathOf returns the path of a location from its arguments.
func pathOf(args []string) (ir.PathMatch, error) {
	path, word := args[len(args)-1], args[0]
	for _, m := range modifiers {
		switch {
		case len(args) == 2 && word == m.word:
			return ir.PathMatch{Type: m.of, Path: path}, nil
		case len(args) == 1 && strings.HasPrefix(path, m.word):
			return ir.PathMatch{Type: m.of, Path: path[len(m.word):]}, nil
		}
	}
	switch {
	case len(args) == 1 && ir.IsNamedLocation(path):
		return ir.PathMatch{Type: ir.LocationNamed, Path: path}, nil
	case len(args) == 2:
		return ir.PathMatch{}, fmt.Errorf("%s is not one of =, ~, ~* and ^~", nginx.Quote(word))
	}
	return ir.PathMatch{Type: ir.LocationPrefix, Path: path}, nil
}

// readLocation interprets a location with its block.
func (r *reader) readLocation(d *Directive) error {
	if r.server == nil {
		return &problem{Guard, "changes who responds: write it in the annotation server-snippet"}
	}
	match, err := pathOf(d.Args)
	if err == nil {
		err = r.checkPath(&match)
	}
	if err != nil {
		return err
	}
	l := r.newLocation(r.place(d), match)
	err = r.server.add(l)
	l.content.level(d.Block, l.content.top)
	r.out.Findings = append(r.out.Findings, l.content.out.Findings...)
	l.content.out.Findings = nil
	return err
}

// newLocation returns a location without content, inside the level that r reads.
func (r *reader) newLocation(place Place, match ir.PathMatch) *locationReader {
	l := &locationReader{ServerLocation: ServerLocation{Place: place, Match: match}, outer: r}
	if r.location != nil {
		l.Within = &r.location.Match
	}
	top := &scope{context: inLocation}
	l.content = &reader{out: &Result{}, common: r.common, shared: r.shared, server: r.server, top: top, scope: top,
		location: &l.ServerLocation}
	return l
}

func isRegex(t ir.MatchType) bool { return t == ir.LocationRegex || t == ir.LocationRegexFold }

func (r *reader) checkPath(match *ir.PathMatch) error {
	switch {
	case match.Type == ir.LocationNamed && r.location != nil,
		r.location != nil && r.location.Match.Type == ir.LocationNamed:
		return errors.New("nginx allows a location with a name only outside of other locations, and no locations in it")
	case match.Type == ir.LocationNamed:
		return checkLocationName(match.Path)
	case r.location != nil && r.location.Match.Type == ir.LocationExact:
		return errors.New("it is in a location with an equal sign, which nginx does not allow: write it outside of " +
			"that location")
	case isRegex(match.Type):
		return r.checkPattern(match.Path, match.Type == ir.LocationRegexFold)
	case !strings.HasPrefix(match.Path, "/"):
		return fmt.Errorf("the path %s does not begin with a slash: write /%s", nginx.Quote(match.Path), match.Path)
	case strings.ContainsFunc(match.Path, isControl):
		return errControl
	case r.location == nil:
		return nil
	case !strings.HasPrefix(match.Path, r.location.Match.Path) && isRegex(r.location.Match.Type):
		return errors.New("it is in a location with a regular expression, which nginx does not allow: write it " +
			"outside of that location")
	case !strings.HasPrefix(match.Path, r.location.Match.Path):
		return fmt.Errorf("the path is not below %s, the path of the outer location: write it outside of that location",
			nginx.Quote(r.location.Match.Path))
	case isRegex(r.location.Match.Type):
		// nginx compares the path with the text of the regular expression, but builds no search tree inside of it.
		return leftOut("nginx never uses it, because it is in a location with a regular expression: write it outside " +
			"of that location")
	}
	return nil
}

// add adds a location. If the text of the Ingress and the text of the ConfigMap have a location with the same path,
// requests for it are rejected: nginx would not start. If one text has two of them, add returns an error.
func (s *serverReader) add(l *locationReader) error {
	i := slices.IndexFunc(s.locations, func(o *locationReader) bool {
		return !isRegex(l.Match.Type) && o.Match.Path == l.Match.Path && !isRegex(o.Match.Type) &&
			(o.Match.Type == ir.LocationExact) == (l.Match.Type == ir.LocationExact)
	})
	if i < 0 {
		s.locations = append(s.locations, l)
		return nil
	}
	before := s.locations[i]
	if before.Shared == l.Shared {
		return fmt.Errorf("line %d already has a location with this path: remove one of them", before.Line)
	}
	before.Closed, before.Shared = true, true
	return misuse(fmt.Sprintf("has the same path as the location in line %d of the Ingress's snippet, so nginx would "+
		"not start: remove one of them%srequests for it get 503", before.Line, report.Meanwhile))
}

func (r *reader) internal(*Directive) error {
	if r.location == nil {
		return &problem{Guard, "may reject clients: write it in a location of the annotation server-snippet"}
	}
	r.location.Internal = true
	return nil
}

// proxyPass interprets proxy_pass in a location.
func (r *reader) proxyPass(d *Directive) error {
	if r.location == nil || r.scope.context != inLocation {
		return &problem{Guard, "changes who responds: write it in a location of the annotation server-snippet"}
	}
	if r.server.listens != nil {
		return leftOut("a server in http-snippet cannot forward requests: serve them with an Ingress")
	}
	scheme, rest, _ := strings.Cut(d.Args[0], "://")
	host, port, hasPort := strings.Cut(rest, ":")
	labels := strings.Split(host, ".")
	defaults := map[string]string{"http": "80", "https": "443"}
	if !hasPort {
		port = defaults[scheme]
	}
	switch domain := strings.Join(labels[min(2, len(labels)):], "."); {
	case defaults[scheme] == "", !isLabel(labels[0]), len(labels) > 1 && !isLabel(labels[1]), !isLabel(port),
		domain != "" && domain != "svc" && domain != "svc.cluster.local":
		return misuse("does not name a Service: write http:// or https://, and the name and the port of a Service in " +
			"this namespace, such as http://NAME:8080 or http://NAME.NAMESPACE.svc.cluster.local:8080, without a " +
			"path and without variables")
	}
	r.location.Service = &Service{Name: labels[0], Port: port}
	if len(labels) > 1 {
		r.location.Service.Namespace = labels[1]
	}
	if scheme == "https" {
		r.out.Values = append(r.out.Values, Value{Place: r.place(d), Directive: d.Name,
			Annotation: "backend-protocol", Text: "HTTPS"})
	}
	return nil
}

// isLabel reports whether text may be a label of a DNS name, or a number.
func isLabel(text string) bool {
	return text != "" && !strings.ContainsFunc(text, func(c rune) bool {
		return (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-'
	})
}
