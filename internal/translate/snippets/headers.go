package snippets

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/k8singress/k8singress/internal/http/exchange"
	"github.com/k8singress/k8singress/internal/http/message"
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/nginx"
)

// countHeaders adds n to the number of header fields that the program changes.
func (r *reader) countHeaders(n int) error {
	if r.headers += n; r.headers > maxHeaders {
		return fmt.Errorf("the snippet changes more than %d header fields: remove some of them", maxHeaders)
	}
	return nil
}

// checkField returns a problem if the header field with this name cannot be changed.
func checkField(name string) error {
	if _, err := nginx.Token(name); err != nil {
		return leftOut(err.Error())
	}
	switch kind := message.KindOf(name); {
	case kind == message.Upgrade, kind == message.Connection:
		return noEffect("the controller sets " + kind.Name() + " itself, and WebSockets work")
	case kind == message.CDNLoop:
		return leftOut("the controller detects loops by the field " + kind.Name())
	case kind.Hop():
		return leftOut("the field " + kind.Name() + " is different for each connection, and the controller sets it")
	}
	return nil
}

// addHeader interprets add_header NAME VALUE [always].
func (r *reader) addHeader(d *Directive) error {
	to := ir.AddedHeader{Name: d.Args[0], Value: d.Args[1]}
	if len(d.Args) == 3 {
		if to.Always = d.Args[2] == "always"; !to.Always {
			return fmt.Errorf("%s is not always: if it belongs to the value, write the value in quotes",
				nginx.Quote(d.Args[2]))
		}
	}
	if err := r.checkTemplate(&to.Value); err != nil {
		return err
	}
	// As in nginx, even a directive without effect ends the inheritance.
	if r.scope.own.AddHeaders == nil {
		r.scope.own.AddHeaders = []ir.AddedHeader{}
	}
	if err := checkResponseField(to.Name, to.Value); err != nil {
		return err
	}
	r.scope.own.AddHeaders = append(r.scope.own.AddHeaders, to)
	return r.countHeaders(1)
}

func checkResponseField(name, value string) error {
	if strings.ContainsFunc(value, isControl) {
		return leftOut(errControl.Error())
	}
	return checkField(name)
}

// setHeader interprets proxy_set_header and grpc_set_header. A field that the controller cannot set as the author wants
// makes the text unreadable, because endpoints may trust the field.
func (r *reader) setHeader(d *Directive) error {
	to := ir.Header{Name: d.Args[0], Value: d.Args[1]}
	if err := r.checkOneLine(&to.Value); err != nil {
		return err
	}
	if _, err := nginx.Token(to.Name); err != nil {
		return err
	}
	if message.KindOf(to.Name) != message.Host {
		if err := checkField(to.Name); err != nil {
			return err
		}
	} else if r.auth {
		return errAuthHost
	}
	if d.Name == "grpc_set_header" {
		r.scope.grpc = append(r.scope.grpc, to)
	} else {
		r.scope.own.EndpointHeaders = append(r.scope.own.EndpointHeaders, to)
	}
	if err := r.countHeaders(1); err != nil {
		return err
	}
	return r.onlyInLocations()
}

// hide interprets proxy_hide_header, and pass interprets proxy_pass_header.
func (r *reader) hide(d *Directive) error { return r.fieldName(d, &r.scope.own.Hide) }
func (r *reader) pass(d *Directive) error { return r.fieldName(d, &r.scope.own.Pass) }

func (r *reader) fieldName(d *Directive, to *[]string) error {
	if err := checkField(d.Args[0]); err != nil {
		return err
	}
	*to = append(*to, d.Args[0])
	return r.countHeaders(1)
}

// cookieFlags interprets proxy_cookie_flags. As in nginx, off stands alone, and ends the inheritance.
func (r *reader) cookieFlags(d *Directive) error {
	own, to := &r.scope.own, ir.CookieFlags{Cookie: d.Args[0]}
	off := len(d.Args) == 1
	if off && to.Cookie != "off" {
		return errors.New("write off, or the name of a cookie and its flags")
	}
	if err := r.first(d); err != nil && (off || len(own.CookieFlags) == 0) {
		return err
	}
	if own.CookieFlags == nil {
		own.CookieFlags = []ir.CookieFlags{}
	}
	if off {
		return nil
	}
	if err := r.checkCookie(&to.Cookie); err != nil {
		return err
	}
	words, unknown := exchange.CookieFlagWords(), error(nil)
	for _, flag := range d.Args[1:] {
		if err := r.checkTemplate(&flag); err != nil {
			return err
		}
		if strings.Contains(flag, "$") || slices.Contains(words, strings.ToLower(flag)) {
			to.Flags = append(to.Flags, flag)
			continue
		}
		unknown = leftOut(fmt.Sprintf("the flag %s is not one of %s", nginx.Quote(flag), strings.Join(words, ", ")))
	}
	own.CookieFlags = append(own.CookieFlags, to)
	return cmp.Or(r.countHeaders(1), unknown)
}

// checkCookie checks the name of a cookie, or the regular expression behind "~".
func (r *reader) checkCookie(name *string) error {
	if expression, ok := strings.CutPrefix(*name, "~"); ok {
		return r.checkPattern(expression, true)
	}
	return r.checkTemplate(name)
}

// expires interprets expires [modified] TIME, and expires with a word or a variable.
func (r *reader) expires(d *Directive) error {
	text, modified := d.Args[len(d.Args)-1], len(d.Args) == 2
	if modified && d.Args[0] != "modified" {
		return fmt.Errorf("write modified in front of the time, and not %s", nginx.Quote(d.Args[0]))
	}
	if strings.Contains(text, "$") {
		if err := r.checkTemplate(&text); err != nil {
			return err
		}
		r.scope.own.Expires = &ir.Expires{Modified: modified, Template: text}
		return nil
	}
	to, err := exchange.ParseExpires(text, modified)
	r.scope.own.Expires = &to
	return err
}

// defaultType interprets default_type.
func (r *reader) defaultType(d *Directive) error {
	if strings.ContainsFunc(d.Args[0], isControl) {
		return errControl
	}
	if r.scope.context == inHTTP {
		return useKey("default-type")
	}
	r.scope.own.DefaultType = d.Args[0]
	return nil
}

// accessLog interprets access_log. Only whether requests are logged has a meaning here.
func (r *reader) accessLog(d *Directive) error {
	logged := d.Args[0] != "off"
	if !logged && len(d.Args) > 1 {
		return errors.New("nginx allows no argument after off: is a semicolon missing?")
	}
	r.scope.logged = &logged
	switch {
	case logged:
		return noEffect("the ConfigMap configures the access log, see the key access-log-path")
	case r.scope.context == inLimitExcept:
		return leftOut("the log contains requests with all methods: write it outside of limit_except")
	}
	return nil
}
