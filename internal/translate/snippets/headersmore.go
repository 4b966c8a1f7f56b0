package snippets

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/nginx"
)

// The interpreters of the module headers-more.
func (r *reader) moreSetHeaders(d *Directive) error   { return r.more(d, &r.scope.own.MoreHeaders) }
func (r *reader) moreClearHeaders(d *Directive) error { return r.more(d, &r.scope.own.MoreHeaders) }
func (r *reader) moreSetInput(d *Directive) error     { return r.more(d, &r.scope.own.InputHeaders) }
func (r *reader) moreClearInput(d *Directive) error   { return r.more(d, &r.scope.own.InputHeaders) }

// more interprets a directive of the module headers-more, and adds it to the list. If only some of its fields can be
// changed, these are changed, and more returns a problem.
func (r *reader) more(d *Directive, list *[]ir.MoreHeaders) error {
	input, clears := strings.HasSuffix(d.Name, "_input_headers"), strings.HasPrefix(d.Name, "more_clear_")
	fields, to, err := moreOptions(d.Args, input)
	if err != nil {
		return err
	}
	var unapplied *problem
	for _, arg := range fields {
		h := fieldOf(arg)
		check := r.checkSet
		if clears {
			h.Value, check = "", r.checkCleared
		}
		if err := check(&h, input); errors.As(err, &unapplied) {
			continue
		} else if err != nil {
			return err
		}
		if clears {
			to.Clear = append(to.Clear, h.Name)
		} else {
			to.Set = append(to.Set, h)
		}
	}
	if to.Set != nil || to.Clear != nil {
		*list = append(*list, to)
	}
	if err := r.countHeaders(len(fields)); err != nil {
		return err
	}
	if unapplied != nil {
		return unapplied
	}
	return nil
}

// checkSet checks a field that a directive of headers-more sets. input is true for fields of requests: if such a value
// has several lines, the text is unreadable, because endpoints may trust the field.
func (r *reader) checkSet(h *ir.Header, input bool) error {
	if err := r.checkTemplate(&h.Value); err != nil {
		return err
	}
	if input && strings.ContainsFunc(h.Value, isControl) {
		return errControl
	}
	if err := r.checkAuthInput(h.Name); err != nil {
		return err
	}
	return checkResponseField(h.Name, h.Value)
}

// checkCleared checks a field that a directive of headers-more removes.
func (r *reader) checkCleared(h *ir.Header, _ bool) error {
	name := strings.TrimSuffix(h.Name, "*")
	if name == "" {
		return errors.New("the name of a header is missing before the asterisk: write a part of it, such as X-App-*")
	}
	return checkField(name)
}

// moreOptions splits the arguments of a directive of headers-more into its options and the other arguments. input is
// true for directives for requests.
func moreOptions(args []string, input bool) (fields []string, to ir.MoreHeaders, err error) {
	for ; len(args) > 0; args = args[1:] {
		option := args[0]
		switch {
		case !strings.HasPrefix(option, "-"):
			fields = append(fields, option)
			continue
		case option == "-r" && input:
			to.IfPresent = true
			continue
		case option != "-t" && (option != "-s" || input):
			return nil, to, fmt.Errorf("there is no option %s: write %s", nginx.Quote(option), optionsOf(input))
		case len(args) == 1:
			return nil, to, fmt.Errorf("the option %s needs a value, and a header behind it", option)
		}
		args = args[1:]
		if err := restrict(&to, option, nginx.List(args[0])); err != nil {
			return nil, to, err
		}
	}
	if fields == nil {
		return nil, to, errors.New(`it names no header: write "NAME: VALUE", or only the name to clear a header`)
	}
	return fields, to, nil
}

// optionsOf returns the options that nginx knows, for a message.
func optionsOf(input bool) string {
	if input {
		return "-r or -t TYPES"
	}
	return "-s STATUSES or -t TYPES"
}

// restrict adds the words of the options -s or -t to a directive.
func restrict(to *ir.MoreHeaders, option string, words []string) error {
	if option == "-t" {
		to.Types = append(to.Types, words...)
		return nil
	}
	for _, word := range words {
		status, err := strconv.Atoi(word)
		if err != nil || status < 100 || status > 999 {
			return fmt.Errorf("%s is not a status code from 100 to 999", nginx.Quote(word))
		}
		to.Statuses = append(to.Statuses, status)
	}
	return nil
}

// fieldOf splits an argument of headers-more into the name of a field and its value. The name ends at the first colon
// or white space. Without a value, the field is removed.
func fieldOf(arg string) ir.Header {
	arg = strings.TrimSpace(arg)
	end := strings.IndexFunc(arg, func(c rune) bool { return c == ':' || strings.ContainsRune(" \t\r\n\v\f", c) })
	if end < 0 {
		return ir.Header{Name: arg}
	}
	return ir.Header{Name: arg[:end], Value: strings.TrimSpace(arg[end+1:])}
}
