package snippets

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/nginx"
)

// rule interprets allow and deny.
func (r *reader) rule(d *Directive) error {
	network := d.Args[0]
	switch {
	case network == "unix:":
		return noEffect("the addresses of clients are IP addresses")
	case network != ir.AllClients:
		all, err := nginx.AllNetworks(network)
		if err != nil || len(all) != 1 {
			return fmt.Errorf("%s is neither a network, such as 10.0.0.0/8, nor all", nginx.Quote(network))
		}
		network = all[0]
	}
	rule := ir.AccessRule{Allow: d.Name == "allow", Network: network}
	if r.scope.context == inLimitExcept {
		r.scope.rules = append(r.scope.rules, rule)
		return nil
	}
	if r.out.Access == nil {
		r.out.Access = &ir.AccessRules{}
	}
	r.out.Access.Rules = append(r.out.Access.Rules, rule)
	return nil
}

// rules returns the rules that have been read outside of blocks of limit_except.
func (r *reader) rules() []ir.AccessRule {
	if r.out.Access == nil {
		return nil
	}
	return r.out.Access.Rules
}

// methodLimit is the directive limit_except of a location.
type methodLimit struct {
	Place
	ir.LimitExcept
}

// methods are the names that nginx accepts in limit_except.
var methods = []string{"GET", "HEAD", "POST", "PUT", "DELETE", "MKCOL", "COPY", "MOVE", "OPTIONS", "PROPFIND",
	"PROPPATCH", "LOCK", "UNLOCK", "PATCH"}

// limitExcept interprets limit_except.
func (r *reader) limitExcept(d *Directive) error {
	if err := r.onlyLimit(d); err != nil {
		return err
	}
	limit := &methodLimit{Place: r.place(d)}
	for _, arg := range d.Args {
		method := strings.ToUpper(arg)
		switch {
		case !slices.Contains(methods, method):
			return fmt.Errorf("%s is not one of the methods %s", nginx.Quote(arg), strings.Join(methods, ", "))
		case !slices.Contains(limit.Methods, method):
			limit.Methods = append(limit.Methods, method)
		}
	}
	if slices.Contains(limit.Methods, "GET") && !slices.Contains(limit.Methods, "HEAD") {
		limit.Methods = append(limit.Methods, "HEAD")
	}
	block := &scope{context: inLimitExcept}
	r.level(d.Block, block)
	if block.rules == nil {
		return noEffect("its block contains neither allow nor deny")
	}
	if !slices.ContainsFunc(block.rules, func(rule ir.AccessRule) bool {
		return !rule.Allow || rule.Network == ir.AllClients
	}) {
		r.out.Findings = append(r.out.Findings, Finding{Place: limit.Place, Directive: d.Name, Class: NoEffect,
			InLocation: r.location != nil, Text: quote(d.Name) + " rejects no client, because its block does not " +
				"contain deny, as in nginx: add deny all"})
	}
	limit.Rules = block.rules
	r.methodLimit = limit
	return nil
}

// onlyLimit returns an error if the location already contains limit_except. nginx refuses the second one.
func (r *reader) onlyLimit(d *Directive) error {
	err := r.first(d)
	if errors.As(err, new(*problem)) {
		return misuse("is in the snippet of the Ingress, too, so nginx would not start: remove one of them")
	}
	return err
}

// limitMethods adds the limit to the rules and the program of the location. The block of limit_except replaces the
// rules of its text, but not the rules of the other text.
func (r *reader) limitMethods() {
	if r.methodLimit == nil {
		return
	}
	r.out.Access = &ir.AccessRules{Rules: r.rules(),
		LimitExcept: &ir.LimitExcept{Methods: r.methodLimit.Methods, Rules: r.rulesOf[!r.methodLimit.Shared]}}
	if r.out.Program == nil {
		r.out.Program = &ir.Program{}
	}
	r.out.Program.LimitExcept = &r.methodLimit.LimitExcept
}

// authBasic interprets auth_basic. With "off", it cancels the auth_basic of an outer level.
func (r *reader) authBasic(d *Directive) error {
	err, asks := r.first(d), d.Args[0] != "off"
	switch {
	case asks && (err == nil || errors.As(err, new(*problem))):
		err = &problem{Guard, "may reject clients: use the annotations auth-type and auth-secret"}
	case err != nil:
		return err
	}
	switch {
	case r.scope.context == inLimitExcept && !asks:
		return leftOut("passwords are the same for all methods: write it outside of limit_except")
	case r.scope.context == inLimitExcept:
		return err
	case r.server == nil && !asks:
		place := r.place(d)
		r.out.WithoutPassword = &place
	}
	r.password = &asks
	return err
}
