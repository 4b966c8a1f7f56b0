package snippets

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/report"
	"github.com/k8singress/k8singress/internal/model/suggest"
)

// The limits of one result. The limit of the regular expressions is pattern.MaxHostSize.
const (
	maxSteps   = 1000
	maxHeaders = 500
	// maxErrors is the number of errors after which the rest of a text is not read.
	maxErrors = 20
)

// reader interprets directives. It holds the meaning of the directives that have been read.
type reader struct {
	out *Result
	// shared is true while the text of the ConfigMap is read.
	shared bool
	// top is the level outside of conditions. The level that is being read is scope: top, or the block of a condition.
	top, scope *scope
	// conditions are the blocks of all conditions. Their directives are complete when both texts have been read.
	conditions []condition
	// rulesOf maps Place.Shared to the rules of allow and deny in one of two texts for locations. methodLimit is the
	// limit_except of the level, or nil.
	rulesOf     map[bool][]ir.AccessRule
	methodLimit *methodLimit
	// substitution becomes Result.Substitution if it has pairs.
	substitution ir.Substitution
	// auth is true for the text of the requests to an authentication service.
	auth bool
	// server collects the locations of a text for servers. It is nil for other texts.
	server *serverReader
	// inHeader is true while values of header fields are read that may contain the variables of alwaysEmpty.
	inHeader bool
	// location is the location whose content is read. It is nil outside of the locations of a text for servers.
	location *ServerLocation
	// guarded is true if the level contains or inherits a guard that is not supported, and that locations inherit.
	guarded bool
	// password is true if auth_basic asks for a password, which is not supported, and false with "auth_basic off". Nil
	// means that the level inherits it.
	password *bool
	// status is true if a server contains stub_status outside of its locations.
	status bool
	*common
}

// common is the state that the readers of all levels of a text share.
type common struct {
	// defined contains the names of the variables that the texts define. http has the variables for all hosts.
	defined map[string]bool
	http    *HTTP
	// outside contains the names of the variables that have values before the texts run, except defined ones. The value
	// is true if the texts read the variable.
	outside map[string]bool
	// definitions are the variables that a text for all hosts defines, zones its zones, and listening its servers. keys
	// are the keys of the zones.
	definitions []*definition
	zones       Zones
	keys        []zoneKey
	listening   []listeningReader
	// realIP are the directives of the module realip. It is nil if there are none.
	realIP *RealIP
	// steps and headers count the elements of the programs, and patternSize is the total size of their regular
	// expressions. errors counts the findings of class Unreadable in the current text.
	steps, headers, patternSize, errors int
}

// condition is an if with its block.
type condition struct {
	step *ir.If
	own  *scope
}

// newReader returns a reader for texts in a context.
func newReader(context string) *reader {
	top := &scope{context: context}
	return &reader{
		out: &Result{}, common: &common{defined: map[string]bool{}, outside: map[string]bool{}}, top: top, scope: top,
	}
}

// problem is the error of an interpreter for a directive that is not applied, although the text is readable.
type problem struct {
	class  Class
	reason string
}

func (p *problem) Error() string { return p.reason }

// misuse is a problem of class Guard. It follows the name of the directive directly, and says what is wrong with its
// arguments.
type misuse string

func (m misuse) Error() string { return string(m) }

func noEffect(reason string) error { return &problem{NoEffect, reason} }
func leftOut(reason string) error  { return &problem{LeftOut, reason} }

// level interprets the directives of one block.
func (r *reader) level(directives []Directive, of *scope) {
	outer := r.scope
	r.scope = of
	for i := range directives {
		if r.errors >= maxErrors {
			break
		}
		d := &directives[i]
		// The finding is added first, so that it precedes the findings of the directive's block.
		at := len(r.out.Findings)
		r.out.Findings = append(r.out.Findings, Finding{Place: r.place(d), Directive: d.Name,
			InLocation: r.location != nil || r.server != nil && d.Name == "location"})
		class, text := r.judge(d)
		r.out.Findings[at].Class, r.out.Findings[at].Text = class, text
		r.findSwallowed(d)
		r.findEmpty(d)
		r.findLoop(d)
		switch {
		case class == Unreadable:
			r.errors++
		case class == Guard && r.location != nil && r.server.listens == nil:
			r.location.Closed = true
			r.guarded = r.guarded || r.scope.context != inLimitExcept && !slices.Contains(notInherited, d.Name)
			r.out.Findings[at].Text += fmt.Sprintf("%srequests for the location in line %d get 503",
				report.Meanwhile, r.location.Line)
		}
	}
	r.scope = outer
}

// notInherited are the guards of a location that the locations in it do not inherit. They inherit auth_basic, but may
// cancel it. Locations also inherit nothing of a block of limit_except.
var notInherited = []string{"auth_basic", "limit_except", "location", "proxy_pass"}

// findSwallowed adds a finding for each argument that looks like the next directive, because a semicolon is missing in
// front of it. nginx does not notice that in a directive with any number of arguments, except listen.
func (r *reader) findSwallowed(d *Directive) {
	row := byName()[d.Name]
	if row == nil || row.counts.most != maxArgs || row.Block || d.Block != nil || d.Name == "listen" {
		return
	}
	for i, arg := range d.Args {
		if i == 0 || i == len(d.Args)-1 || byName()[arg] == nil || slices.Contains(likeFields, arg) {
			continue
		}
		r.out.Findings = append(r.out.Findings, Finding{Place: r.place(d), Directive: arg, Class: LeftOut,
			InLocation: r.location != nil,
			Text: fmt.Sprintf("%s is an argument of %s, as in nginx, and not a directive: is a semicolon missing in "+
				"front of it?", quote(arg), quote(d.Name))})
	}
}

// likeFields are the names of directives that are also names of header fields.
var likeFields = []string{"allow", "etag", "expires", "server", "upgrade"}

func (r *reader) place(d *Directive) Place { return Place{Shared: r.shared, Line: d.Line} }

// judge interprets one directive. It returns the class of the directive, and the sentence for the finding.
func (r *reader) judge(d *Directive) (Class, string) {
	row, err := r.rowOf(d)
	if err != nil {
		return Unreadable, err.Error()
	}
	class, reason := row.Class, row.Doc
	if key := keyInstead[d.Name]; key != "" && r.scope.context == inHTTP {
		class, reason = LeftOut, "use the ConfigMap key "+key
	}
	if r.auth {
		class, reason = row.inAuth()
	}
	if class == Works {
		r.inHeader = !r.auth && slices.Contains(setsHeader, d.Name)
		err = r.interpret(d)
		r.inHeader = false
	}
	if p, m := (*problem)(nil), misuse(""); errors.As(err, &m) {
		return Guard, quote(d.Name) + " " + string(m)
	} else if errors.As(err, &p) {
		class, reason = p.class, p.reason
	} else if err != nil {
		return Unreadable, notValid(d.Name, err)
	}
	return class, sentence(quote(d.Name), class, reason)
}

// keyInstead maps directives that are not interpreted to the ConfigMap keys with the same effect for all hosts.
var keyInstead = map[string]string{
	"gzip": "use-gzip", "gzip_comp_level": "gzip-level", "gzip_disable": "gzip-disable",
	"gzip_min_length": "gzip-min-length", "gzip_types": "gzip-types",
	"brotli": "enable-brotli", "brotli_comp_level": "brotli-level", "brotli_min_length": "brotli-min-length",
	"brotli_types":        "brotli-types",
	"client_body_timeout": "client-body-timeout", "client_header_timeout": "client-header-timeout",
	"keepalive_requests": "keep-alive-requests", "keepalive_timeout": "keep-alive",
	"http2_max_concurrent_streams": "http2-max-concurrent-streams", "ignore_invalid_headers": "ignore-invalid-headers",
	"server_tokens": "server-tokens", "underscores_in_headers": "enable-underscores-in-headers",
}

// sentence returns the text of a finding.
func sentence(name string, class Class, reason string) string {
	switch class {
	case NoEffect:
		return name + " has no effect: " + reason
	case LeftOut:
		return name + " is left out: " + reason
	case Guard:
		return name + " is not supported, and " + reason
	case Unreadable:
		return name + " is not supported: " + reason
	default:
		return reason
	}
}

// notValid returns the text of the finding for a directive that nginx or this package refuses.
func notValid(directive string, err error) string {
	return fmt.Sprintf("%s is not valid: %v", quote(directive), err)
}

// rowOf returns the row of a directive, or an error if nginx would refuse the directive here.
func (r *reader) rowOf(d *Directive) (*Row, error) {
	name := quote(d.Name)
	row := byName()[d.Name]
	switch {
	case row == nil:
		return nil, noDirective(d.Name, r.scope.context)
	case row.Class == Unreadable:
		return nil, errors.New(sentence(name, Unreadable, row.Doc))
	case !row.allowedIn(r.scope.context):
		return nil, fmt.Errorf("nginx does not allow %s here, but in: %s", name, row.places())
	case row.Block && d.Block == nil:
		return nil, fmt.Errorf("%s needs a block in braces: write { ... } behind it", name)
	case !row.Block && d.Block != nil:
		return nil, fmt.Errorf(
			"%s has no block: end it with a semicolon, and write quotes around arguments with braces", name)
	case !row.counts.accept(d.Args):
		return nil, wrongArguments(d, row)
	}
	return row, nil
}

// wrongArguments returns the error for a directive with a wrong number of arguments, or with another argument than on
// and off. The usual reason is a missing semicolon.
func wrongArguments(d *Directive, row *Row) error {
	name := quote(d.Name)
	for i, arg := range d.Args {
		if i > 0 && byName()[arg] != nil && !slices.Contains(likeFields, arg) {
			return fmt.Errorf("%s has too many arguments: is a semicolon missing in front of %s?", name, quote(arg))
		}
	}
	switch n := len(d.Args); {
	case row.counts.flag && n == 1:
		return fmt.Errorf("%s is neither on nor off, but %s", name, quote(d.Args[0]))
	case n == 1:
		return fmt.Errorf("%s has 1 argument, and nginx expects: %s", name, row.Args)
	default:
		return fmt.Errorf("%s has %d arguments, and nginx expects: %s", name, n, row.Args)
	}
}

// noDirective returns the error for a name that is not the name of a directive. The error suggests a directive that
// nginx allows in a context. The context "" stands for all contexts.
func noDirective(name, context string) error {
	if slices.Contains([]string{"else", "elseif", "elsif", "elif"}, name) {
		return fmt.Errorf("nginx has no %s: write another if with the opposite condition", name)
	}
	if strings.HasPrefix(name, "if(") {
		return fmt.Errorf("there is no directive %s: write a space behind if", quote(name))
	}
	var known []string
	for _, row := range Table() {
		if context == "" || row.allowedIn(context) {
			known = append(known, row.Name)
		}
	}
	return fmt.Errorf("there is no directive %s%s", quote(name), suggest.Hint(name, known))
}

// interpret calls the interpreter of a directive of class Works.
func (r *reader) interpret(d *Directive) error {
	switch d.Name {
	case "if":
		return r.ifBlock(d)
	case "location":
		return r.readLocation(d)
	case "limit_except":
		return r.limitExcept(d)
	}
	if c, ok := conversions[d.Name]; ok {
		return r.convert(d, &c)
	}
	i := interpreters[d.Name]
	if i.once {
		if err := r.first(d); err != nil {
			return err
		}
	}
	return i.read(r, d)
}

// first returns an error if the same block of the same text already contains a directive with this name. nginx refuses
// the second one.
func (r *reader) first(d *Directive) error {
	before, found := r.scope.seen[d.Name]
	switch {
	case found && before.Shared == r.shared:
		return fmt.Errorf("line %d already contains it: remove one of them", before.Line)
	case found:
		return noEffect("the snippet of the Ingress contains it, too, and takes precedence")
	case r.scope.seen == nil:
		r.scope.seen = map[string]Place{}
	}
	r.scope.seen[d.Name] = r.place(d)
	return nil
}
