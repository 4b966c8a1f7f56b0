package annotations

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"

	"github.com/k8singress/k8singress/internal/ir"
	"github.com/k8singress/k8singress/internal/option"
	"github.com/k8singress/k8singress/internal/report"
	"github.com/k8singress/k8singress/internal/suggest"
)

// guards are annotations that keep requests away from a backend, and are not supported yet. Without effect, they would let every
// request in; so the Ingress answers 503, as ingress-nginx does where it cannot do what such an annotation says.
var guards = []string{
	"allowlist-source-range", "auth-type", "auth-url", "denylist-source-range", "whitelist-source-range",
}

// unsupportedGuard closes the Ingress. An empty value asks for nothing, and neither does a list of all addresses, which
// cert-manager writes into the Ingresses that answer its challenges.
func unsupportedGuard(r *option.Reading[Settings], name, value, field string) {
	switch {
	case strings.TrimSpace(value) == "":
		r.Warn(report.UnknownAnnotation, field, unknown(Key(name)))
		return
	case (name == "whitelist-source-range" || name == "allowlist-source-range") && allAddresses(value):
		return
	}
	r.Settings.close()
	r.Refuse(report.UnsupportedAccessControl, field, fmt.Sprintf("the annotation %s of ingress-nginx keeps requests out, and is not supported yet: "+
		"%s. To serve it without, remove the annotation", name, ingressClosed))
}

// allAddresses says whether a list of networks has all addresses in it.
func allAddresses(value string) bool {
	var v4, v6 bool
	for network := range strings.SplitSeq(value, ",") {
		switch strings.TrimSpace(network) {
		case "0.0.0.0/0":
			v4 = true
		case "::/0":
			v6 = true
		}
	}
	return v4 && v6
}

// ingressClosed is what close does, for messages.
const ingressClosed = "all requests for this Ingress get 503"

func (s *Settings) close() { s.Closed = true }

// closed answers in place of everything else.
func (s *Settings) closed(string) []ir.Filter {
	if !s.Closed {
		return nil
	}
	return []ir.Filter{ir.DirectResponse{Status: 503}}
}

// knownNames are the annotations of ingress-nginx v1.15.1, one on each line.
//
//go:embed known.txt
var knownNames string

var known = strings.Fields(knownNames)

// unknown says that an annotation with one of the two prefixes is not in the table.
func unknown(key string) string {
	name, isNginx := strings.CutPrefix(key, Prefix)
	if slices.Contains(known, name) {
		return fmt.Sprintf("the annotation %s of ingress-nginx is not supported yet, and has no effect", name)
	}
	own := strings.TrimPrefix(name, OwnPrefix)
	switch other := Table.Find(OwnPrefix + own); {
	case isNginx && other != nil:
		return fmt.Sprintf("there is no annotation %q, and it has no effect; did you mean %s?", key, other.Name)
	case isNginx:
		return fmt.Sprintf("there is no annotation %q, and it has no effect%s", key, suggest.Hint(name, known))
	case Table.Find(own) != nil:
		return fmt.Sprintf("there is no annotation %q, and it has no effect; did you mean %s?", key, Key(own))
	case own == "tcp-ports", own == "udp-ports", strings.HasPrefix(own, "stream-"):
		return fmt.Sprintf("%s is an annotation of Services, and has no effect on an Ingress: it is for TCP and UDP ports, and belongs on "+
			"the Service", key)
	}
	return fmt.Sprintf("there is no annotation %q, and it has no effect%s", key, suggest.Hint(own, ownNames()))
}

// ownNames returns the names of the annotations of our own, without their prefix.
func ownNames() []string {
	var names []string
	for _, name := range Table.Names() {
		if own, ok := strings.CutPrefix(name, OwnPrefix); ok {
			names = append(names, own)
		}
	}
	return names
}
