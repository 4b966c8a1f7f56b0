package annotations

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"

	"github.com/k8singress/k8singress/internal/report"
	"github.com/k8singress/k8singress/internal/suggest"
)

// knownNames are the annotations of ingress-nginx v1.15.1, one on each line.
//
//go:embed known.txt
var knownNames string

var known = strings.Fields(knownNames)

// OfServices are the annotations of our own, without their prefix, that Services have, and no Ingress.
var OfServices = []string{
	"tcp-ports", "udp-ports", "stream-idle-timeout", "stream-connect-timeout", "stream-max-connections", "stream-responses",
	"stream-accept-proxy", "stream-trusted-proxies", "stream-proxy-protocol", "stream-tls-secret", "stream-tls-host", "stream-backend-tls",
	"stream-backend-tls-secret", "stream-backend-tls-verify", "stream-backend-tls-name",
}

// unknown says what is the matter with an annotation that is not in the table.
func unknown(name string, own bool) *report.Problem {
	p := &report.Problem{Severity: report.Warning, Reason: report.UnknownAnnotation}
	if !own && slices.Contains(known, name) {
		p.Message = fmt.Sprintf("the annotation %s of ingress-nginx is not supported yet, and has no effect", name)
		return p
	}
	if slices.Contains(OfServices, name) {
		p.Message = fmt.Sprintf("%s is an annotation of Services, and has no effect on an Ingress: it is for TCP and UDP ports, and belongs on "+
			"the Service", OwnPrefix+name)
		return p
	}
	prefix, names := Prefix, known
	if own {
		prefix, names = OwnPrefix, ownNames()
	}
	p.Message = fmt.Sprintf("there is no annotation %q, and it has no effect", prefix+name)
	if other := find(name, !own); other != nil {
		p.Message += ": did you mean " + other.Key() + "?"
	} else if near := suggest.Of(name, names); near != "" {
		p.Message += ": did you mean " + near + "?"
	}
	return p
}

func ownNames() []string {
	var names []string
	for i := range Table {
		if Table[i].Own {
			names = append(names, Table[i].Name)
		}
	}
	return names
}
