package streams

//go:generate go test -run ^TestReference$ -update

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/k8singress/k8singress/internal/annotations"
	"github.com/k8singress/k8singress/internal/ir"
	"github.com/k8singress/k8singress/internal/kinds"
	"github.com/k8singress/k8singress/internal/nginx"
	"github.com/k8singress/k8singress/internal/report"
	"github.com/k8singress/k8singress/internal/suggest"
)

// Annotation is one row of the table.
type Annotation struct {
	// Name is without kinds.OwnPrefix.
	Name string
	// Doc says in one or two sentences what it does, Values what may stand in it.
	Doc, Values string
	Example     string
	Default     string

	// parse reads a value into the settings. An error is worded for whoever wrote the value; with a values.Remark, and with a
	// partly error, the value counts.
	parse func(*Settings, string) error
	// closes says that an error keeps the ports closed, because the value says who gets in, or what is sent unencrypted.
	closes bool
	// check says what is the matter with an annotation that was read, once the others are known. Empty is nothing.
	check func(*Settings) string
}

// Key is the name with its prefix.
func (a *Annotation) Key() string { return kinds.OwnPrefix + a.Name }

// Table lists the annotations of Services: a new one is a line here, and a row in the file of its feature.
var Table = []*Annotation{
	&tcpPorts, &udpPorts,
	&streamIdleTimeout, &streamConnectTimeout, &streamMaxConnections, &streamResponses,
	&streamAcceptProxy, &streamTrustedProxies, &streamProxyProtocol,
	&streamTLSSecret, &streamTLSHost,
	&streamBackendTLS, &streamBackendTLSSecret, &streamBackendTLSVerify, &streamBackendTLSName,
}

const staysClosed = "the ports of this Service stay closed"

func field(name string) string { return "metadata.annotations[" + kinds.OwnPrefix + name + "]" }

// Parse reads the annotations of a Service. What it does not say is as in policy. An annotation that cannot be read is left
// out and reported, and the others count; with some, the ports stay closed.
func Parse(policy ir.StreamPolicy, service *corev1.Service) (*Settings, []report.Problem) {
	p := parsing{settings: &Settings{Policy: policy}}
	for _, key := range slices.Sorted(maps.Keys(service.Annotations)) {
		if name, ours := strings.CutPrefix(key, kinds.OwnPrefix); ours {
			p.one(name, service.Annotations[key])
		}
	}
	p.finishTLS(service)
	for _, row := range p.read {
		if row.check == nil {
			continue
		}
		if message := row.check(p.settings); message != "" {
			p.say(row.Name, report.Warning, report.InvalidAnnotation, message)
		}
	}
	return p.settings, p.problems
}

// parsing is what becomes of the annotations of one Service.
type parsing struct {
	settings *Settings
	problems []report.Problem
	// read are the rows whose values count.
	read []*Annotation
}

// one reads a value. An empty one asks for nothing.
func (p *parsing) one(name, value string) {
	i := slices.IndexFunc(Table, func(row *Annotation) bool { return row.Name == name })
	if i < 0 {
		p.say(name, report.Warning, report.UnknownAnnotation, unknown(name))
		return
	}
	row := Table[i]
	err := annotations.CheckText(value)
	if err == nil {
		if value = strings.TrimSpace(value); value == "" {
			return
		}
		p.settings.given = true
		err = row.parse(p.settings, value)
	}
	var partly partlyError
	switch {
	case err == nil:
	case nginx.Counts(err):
		p.say(name, report.Warning, report.InvalidAnnotation, err.Error())
	case errors.As(err, &partly):
		p.say(name, report.Error, report.InvalidAnnotation, err.Error())
	case row.closes:
		p.settings.Closed = true
		p.say(name, report.Error, report.InvalidAnnotation, err.Error()+"; "+staysClosed)
		return
	default:
		p.say(name, report.Error, report.InvalidAnnotation, err.Error())
		return
	}
	p.read = append(p.read, row)
}

func (p *parsing) say(name string, severity report.Severity, reason report.Reason, message string) {
	p.problems = append(p.problems, report.Problem{Severity: severity, Reason: reason, Field: field(name), Message: message})
}

// partlyError is for a value of which a part counts.
type partlyError struct{ error }

// unknown says what is the matter with an annotation that is not in the table.
func unknown(name string) string {
	var names []string
	for _, row := range Table {
		names = append(names, row.Name)
	}
	if row := annotations.FindOwn(name); row != nil {
		return row.Key() + " is an annotation of Ingresses, and has no effect on a Service"
	}
	message := fmt.Sprintf("a Service has no annotation %q, and it has no effect", kinds.OwnPrefix+name)
	if near := suggest.Of(name, names); near != "" {
		message += ": did you mean " + near + "?"
	}
	return message
}
