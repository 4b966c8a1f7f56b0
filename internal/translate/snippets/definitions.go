package snippets

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/k8singress/k8singress/internal/http/exchange"
	"github.com/k8singress/k8singress/internal/http/variables"
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/nginx"
)

// definition is a variable that a text for all hosts defines.
type definition struct {
	ir.Variable
	// finding is the index of the finding for the directive.
	finding int
	// uses are the names of the variables in its templates, except capture groups.
	uses []string
	// Traits are valid if state is resolved.
	Traits
	state resolving
}

// resolving is the state of a definition while the variables in its templates are searched.
type resolving uint8

const (
	unresolved resolving = iota
	inProgress
	resolved
	undefined
)

// newDefinition reads the name of the variable that a directive defines. The caller sets the rest of the definition.
func (r *reader) newDefinition(arg string) (*definition, error) {
	name, err := variableName(arg)
	if err != nil {
		return nil, err
	}
	if exchange.VariableOf(name) != nil {
		return nil, fmt.Errorf("the variable $%s exists already: use another name", name)
	}
	return &definition{Variable: ir.Variable{Name: name}, finding: len(r.out.Findings) - 1}, nil
}

// keep checks a definition, and adds it to the definitions of the text. As in nginx, the last definition of a variable
// counts.
func (r *reader) keep(of *definition) error {
	if err := variables.Check(&of.Variable); err != nil {
		return err
	}
	r.definitions = append(r.definitions, of)
	return nil
}

// template reads a template of a definition. The names in groups, and no other capture groups, are allowed besides the
// variables.
func (of *definition) template(text string, groups ...string) (string, error) {
	text = lowerVariables(text)
	t, err := nginx.ParseTemplate(text, func(name string) bool {
		return name == "" || name[0] < '0' || name[0] > '9' || slices.Contains(groups, name)
	})
	if err != nil {
		return "", err
	}
	for _, name := range t.Variables() {
		if !slices.Contains(groups, name) {
			of.uses = append(of.uses, name)
		}
	}
	return text, nil
}

// defineMap interprets map.
func (r *reader) defineMap(d *Directive) error {
	of, err := r.newDefinition(d.Args[1])
	if err != nil {
		return err
	}
	m := mapReader{reader: r, of: of, to: &ir.Map{Exact: map[string]string{}}}
	if m.to.Source, err = of.template(d.Args[0]); err != nil {
		return err
	}
	if err := eachEntry(d, m.entry); err != nil {
		return err
	}
	of.Map = m.to
	return r.keep(of)
}

// eachEntry calls a function for each line in the block of a directive that defines a variable. The first word of a
// line is its name.
func eachEntry(d *Directive, read func(*Directive) error) error {
	for i := range d.Block {
		line := &d.Block[i]
		err := error(nil)
		switch {
		case line.Block != nil:
			err = errors.New("a block is not allowed here: write a text and a value")
		case line.Name == "include":
			err = errOtherFile
		default:
			err = read(line)
		}
		if err != nil {
			return fmt.Errorf("line %d: %w", line.Line, err)
		}
	}
	return nil
}

var (
	errWords   = errors.New("write a text and a value")
	errDefault = errors.New("there is more than one default: remove one of them")
	errTwice   = errors.New("the text occurs twice: remove one of its lines")
)

// mapReader reads the block of a map.
type mapReader struct {
	*reader
	of         *definition
	to         *ir.Map
	hasDefault bool
}

func (m *mapReader) entry(line *Directive) error {
	switch {
	case len(line.Args) == 0 && line.Name == "hostnames":
		if len(m.to.Exact) > 0 {
			return errors.New("write hostnames in front of the names")
		}
		m.to.Hostnames = true
		return nil
	case len(line.Args) == 0 && line.Name == "volatile":
		m.to.Volatile = true
		return nil
	case len(line.Args) != 1:
		return errWords
	case strings.HasPrefix(line.Name, "~"):
		return m.pattern(line.Name[1:], line.Args[0])
	}
	value, err := m.of.template(line.Args[0])
	if err != nil {
		return err
	}
	if line.Name == "default" {
		if m.hasDefault {
			return errDefault
		}
		m.to.Default, m.hasDefault = value, true
		return nil
	}
	text := variables.Lower(strings.TrimPrefix(line.Name, `\`))
	if _, found := m.to.Exact[text]; found {
		return errTwice
	}
	m.to.Exact[text] = value
	return nil
}

// pattern reads a line with a regular expression.
func (m *mapReader) pattern(text, value string) (err error) {
	p := ir.MapPattern{}
	p.Pattern, p.Fold = strings.CutPrefix(text, "*")
	if err := m.checkPattern(p.Pattern, p.Fold); err != nil {
		return err
	}
	groups := slices.Concat(nginx.Groups, ir.GroupNames(p.Pattern))
	if p.Value, err = m.of.template(value, groups...); err != nil {
		return err
	}
	m.to.Patterns = append(m.to.Patterns, p)
	return nil
}

// defineGeo interprets geo.
func (r *reader) defineGeo(d *Directive) error {
	of, err := r.newDefinition(d.Args[len(d.Args)-1])
	if err != nil {
		return err
	}
	g := geoReader{to: &ir.Geo{}, values: map[addressRange]string{}}
	of.uses = []string{"remote_addr"}
	if len(d.Args) == 2 {
		if !strings.HasPrefix(d.Args[0], "$") || !nginx.IsVariable(d.Args[0][1:]) {
			return fmt.Errorf("%s is not a variable: write a variable with an address, such as $remote_addr",
				nginx.Quote(d.Args[0]))
		}
		of.uses = nil
		if g.to.Address, err = of.template(d.Args[0]); err != nil {
			return err
		}
	}
	if err := eachEntry(d, g.entry); err != nil {
		return err
	}
	for _, at := range slices.SortedFunc(maps.Keys(g.values), addressRange.compare) {
		g.to.Ranges = append(g.to.Ranges, ir.GeoRange{First: at.first, Last: at.last, Value: g.values[at]})
	}
	of.Geo = g.to
	return r.keep(of)
}

type addressRange struct{ first, last netip.Addr }

func (a addressRange) compare(b addressRange) int {
	return cmp.Or(a.first.Compare(b.first), a.last.Compare(b.last))
}

// geoReader reads the block of a geo. If ranges is set, networks are ranges of addresses.
type geoReader struct {
	to     *ir.Geo
	values map[addressRange]string
	ranges bool
}

func (g *geoReader) entry(line *Directive) error {
	switch {
	case line.Name == "ranges" && len(line.Args) == 0:
		if len(g.values) > 0 {
			return errors.New("write ranges in front of the addresses")
		}
		g.ranges = true
		return nil
	case line.Name == "proxy" || line.Name == "proxy_recursive":
		return &problem{Guard, "decides about the addresses of clients with " + line.Name +
			": use the ConfigMap keys enable-real-ip, forwarded-for-header and proxy-real-ip-cidr"}
	case len(line.Args) != 1:
		return errors.New("write a network and a value")
	case line.Name == "default":
		g.to.Default = line.Args[0]
		return nil
	case line.Name == "delete":
		at, err := g.network(line.Args[0])
		delete(g.values, at)
		return err
	}
	at, err := g.network(line.Name)
	if err == nil {
		g.values[at] = line.Args[0]
	}
	return err
}

// network reads a network or, with ranges, a range of IPv4 addresses such as 10.0.0.1-10.0.0.9.
func (g *geoReader) network(text string) (at addressRange, err error) {
	if g.ranges {
		first, last, _ := strings.Cut(text, "-")
		if at.first, err = netip.ParseAddr(first); err == nil {
			at.last, err = netip.ParseAddr(last)
		}
		if err != nil || !at.first.Is4() || !at.last.Is4() || at.last.Less(at.first) {
			return at, fmt.Errorf("%s is not a range of IPv4 addresses, such as 10.0.0.1-10.0.0.9", nginx.Quote(text))
		}
		return at, nil
	}
	network, err := netip.ParsePrefix(text)
	if err != nil {
		var address netip.Addr
		if address, err = netip.ParseAddr(text); err != nil || address.Zone() != "" {
			return at, fmt.Errorf("%s is not a network, such as 10.0.0.0/8", nginx.Quote(text))
		}
		network = netip.PrefixFrom(address, address.BitLen())
	}
	return addressRange{network.Masked().Addr(), lastAddress(network)}, nil
}

// lastAddress returns the last address of a network.
func lastAddress(network netip.Prefix) netip.Addr {
	bytes := network.Addr().AsSlice()
	for i := network.Bits(); i < 8*len(bytes); i++ {
		bytes[i/8] |= 1 << (7 - i%8)
	}
	last, _ := netip.AddrFromSlice(bytes)
	return last
}

// defineSplit interprets split_clients.
func (r *reader) defineSplit(d *Directive) error {
	of, err := r.newDefinition(d.Args[1])
	if err != nil {
		return err
	}
	to := &ir.SplitClients{}
	if to.Key, err = of.template(d.Args[0]); err != nil {
		return err
	}
	if err := eachEntry(d, func(line *Directive) error {
		if len(line.Args) != 1 {
			return errors.New("write a share and a value")
		}
		share, err := readShare(line.Name)
		to.Parts = append(to.Parts, ir.SplitPart{Share: share, Value: line.Args[0]})
		return err
	}); err != nil {
		return err
	}
	of.Split = to
	return r.keep(of)
}

// readShare reads a share such as 12.5% in hundredths of a percent. It returns 0 for "*".
func readShare(text string) (int, error) {
	if text == "*" {
		return 0, nil
	}
	percent, ok := strings.CutSuffix(text, "%")
	whole, decimals, _ := strings.Cut(percent, ".")
	n, err := strconv.ParseUint(whole+(decimals + "00")[:max(2, len(decimals))], 10, 16)
	if !ok || err != nil || len(decimals) > 2 || n == 0 || n > 10_000 {
		return 0, fmt.Errorf("%s is neither a share such as 12.5%% nor *", nginx.Quote(text))
	}
	return int(n), nil
}

// addresses are the variables of nginx with the address of the client.
var addresses = []string{"binary_remote_addr", "realip_remote_addr", "remote_addr", "the_real_ip"}

// resolveAll sets the variables of h: the definitions whose templates contain only variables that exist. Other
// definitions are left out, so that texts which use them are refused. Definitions that depend on each other are errors.
func (r *reader) resolveAll(h *HTTP) {
	byName := make(map[string]*definition, len(r.definitions))
	for _, of := range r.definitions {
		if before := byName[of.Name]; before != nil {
			r.mark(before, NoEffect, "a later line defines the same variable")
		}
		byName[of.Name] = of
	}
	for _, of := range r.definitions {
		if byName[of.Name] == of && r.resolve(of, byName) == resolved {
			h.Variables = append(h.Variables, of.Variable)
			h.Traits[of.Name] = of.Traits
		}
	}
}

// mark changes the finding of a definition.
func (r *reader) mark(of *definition, class Class, reason string) {
	f := &r.out.Findings[of.finding]
	f.Class, f.Text = class, sentence(quote(f.Directive), class, reason)
}

// resolve resolves a definition and the definitions that it uses, and returns its state.
func (r *reader) resolve(of *definition, byName map[string]*definition) resolving {
	if of.state != unresolved {
		return of.state
	}
	of.state = inProgress
	for _, name := range of.uses {
		if r.use(of, name, byName); of.state != inProgress {
			return of.state
		}
	}
	of.state = resolved
	return resolved
}

// use adds the traits of a variable that a definition uses. If the variable does not exist, it changes the state of the
// definition.
func (r *reader) use(of *definition, name string, byName map[string]*definition) {
	used := byName[name]
	switch {
	case exchange.VariableOf(name) != nil:
		of.OfResponse = of.OfResponse || exchange.OfResponse(name)
		of.OfAddress = of.OfAddress || slices.Contains(addresses, name)
		return
	case used == nil || used.state == undefined:
		of.state = undefined
		r.mark(of, LeftOut, fmt.Sprintf("there is no variable $%s, so $%s is not defined", name, of.Name))
		return
	case used.state == inProgress:
		of.state = undefined
		r.refuse(of.finding, fmt.Errorf("the variables $%s and $%s depend on each other", of.Name, name))
		return
	case r.resolve(used, byName) == undefined:
		r.use(of, name, byName)
		return
	}
	of.OfResponse = of.OfResponse || used.OfResponse
	of.OfAddress = of.OfAddress || used.OfAddress
}
