package streams

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/kinds"
	"github.com/k8singress/k8singress/internal/model/report"
	"github.com/k8singress/k8singress/internal/model/settings"
	"github.com/k8singress/k8singress/internal/model/snapshot"
)

// service is a Service with annotations of this controller.
type service struct {
	object   *corev1.Service
	settings *Settings
	verdict  *report.Verdict
	// used is true if at least one port forwards to the Service.
	used bool
}

// settings returns the settings of a Service. Settings without an annotation come from Options.Policy.
func (r *reading) settings(of ir.Ref) *Settings {
	if object, ok := snapshot.Of[*corev1.Service](r.snapshot).Get(of.Namespace, of.Name); ok &&
		kinds.HasOwnAnnotation(object) {
		s := r.service(object)
		s.used = true
		return s.settings
	}
	return &Settings{Policy: r.options.Policy}
}

// service returns a Service with its parsed annotations. Each Service is parsed only once.
func (r *reading) service(object *corev1.Service) *service {
	ref := snapshot.RefOf(object)
	if s := r.services[ref]; s != nil {
		return s
	}
	s := &service{object: object, settings: &Settings{Closed: true}}
	r.services[ref] = s
	var problems []report.Problem
	if p := isolatingPanics(func() *report.Problem {
		s.settings, problems = Parse(r.options.Policy, object)
		problems = append(problems, s.settings.cap(&r.options)...)
		return cmp.Or(r.issuable(ref, s.settings), r.chained(s.settings))
	}); p != nil {
		s.settings.Closed = true
		problems = append(problems, *p)
	}
	// The Service is parsed only once, so the result contains no verdict for it yet.
	s.verdict = &report.Verdict{Object: ref, Problems: problems}
	r.result.Verdicts = append(r.result.Verdicts, s.verdict)
	for secret := range s.settings.secrets() {
		r.depend(secret)
	}
	return s
}

// issuable returns a problem if the Service requests a certificate from an issuer and the administrator does not allow
// this. Otherwise it returns nil.
func (r *reading) issuable(ref ir.Ref, s *Settings) *report.Problem {
	option := ""
	switch {
	case s.TLS == nil || s.TLS.Host == "":
		return nil
	case r.options.NoIssuer:
		option = "auto_https off"
	case slices.Contains(r.options.NoIssuerFor, ref.Namespace):
		option = "auto_https_except"
	default:
		return nil
	}
	return &report.Problem{
		Severity: report.Error, Reason: report.InvalidAnnotation, Field: report.AnnotationField(streamTLSHost.Name),
		Message: fmt.Sprintf(
			"the option %s disables certificates from issuers, so %s: set %s to a Secret",
			option, staysClosed,
			streamTLSSecret.Name),
	}
}

// The method annotated opens the ports that are defined in annotations of Services, starting with the oldest Service.
func (r *reading) annotated() {
	var all []*service
	for object := range snapshot.Of[*corev1.Service](r.snapshot).Annotated() {
		r.depend(snapshot.RefOf(object))
		if r.selected(object.Namespace) {
			all = append(all, r.service(object))
		}
	}
	slices.SortStableFunc(all, func(a, b *service) int { return older(a.object, b.object) })
	for _, s := range all {
		r.ports(s, &tcpPorts, ir.TCP, s.settings.TCPPorts)
		r.ports(s, &udpPorts, ir.UDP, s.settings.UDPPorts)
	}
	for _, s := range all {
		if s.settings.given && !s.used && s.verdict.Accepted() {
			s.say(&report.Problem{
				Severity: report.Info, Reason: report.InvalidAnnotation, Field: "metadata.annotations",
				Message: "the annotations for TCP and UDP ports have no effect, because no such port uses this Service",
			})
		}
	}
}

// older compares two Services by age, then by namespace and name. The older Service takes precedence.
func older(a, b *corev1.Service) int {
	return cmp.Or(
		a.CreationTimestamp.Time.Compare(b.CreationTimestamp.Time),
		cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name),
	)
}

// The method selected reports whether Services of a namespace may open ports, because the namespace matches the
// namespace selector.
func (r *reading) selected(namespace string) bool {
	o := &r.options.Services
	if o.Selector == nil {
		return true
	}
	r.depend(ir.Ref{Kind: kinds.Namespace, Name: namespace})
	all := labels.Set{corev1.LabelMetadataName: namespace}
	object, ok := snapshot.Of[*corev1.Namespace](r.snapshot).Get("", namespace)
	if ok {
		all = labels.Merge(all, object.Labels)
	}
	return (ok || o.Folder) && o.Selector.Matches(all)
}

// ports opens the ports in list, which is the parsed value of an annotation of the Service s. row describes this
// annotation.
func (r *reading) ports(s *service, row *Annotation, protocol ir.Protocol, list []Listed) {
	of := snapshot.RefOf(s.object)
	for _, listed := range list {
		s.used = true
		w := &wish{place: place{protocol, listed.Port}, service: of, target: listed.Target,
			field: report.AnnotationField(row.Name)}
		p := isolatingPanics(func() *report.Problem {
			if p := r.options.Services.refuse(of.Namespace, w.place); p != nil {
				return p
			}
			if most := r.options.Services.PerNamespace; most > 0 && r.opened[of.Namespace] >= most {
				return tooManyPorts(of.Namespace, w.place, most)
			}
			if p := r.take(w, of); p != nil {
				return p
			}
			r.opened[of.Namespace]++
			return r.open(w, of)
		})
		if p != nil {
			p.Field = w.field
			s.say(p)
		}
	}
}

func tooManyPorts(namespace string, at place, most int) *report.Problem {
	return &report.Problem{Severity: report.Error, Reason: report.PortNotAllowed, Message: fmt.Sprintf(
		"the %s stays closed: older Services and ConfigMap entries in the namespace %s already use %d ports, which "+
			"is the maximum: remove one of them, or ask the administrator to raise the option "+
			"service_ports_per_namespace", at, namespace, most)}
}

// The method say adds a problem to the verdict of the Service, which is its reported status. It does nothing if the
// verdict already contains the problem.
func (s *service) say(p *report.Problem) {
	if !slices.Contains(s.verdict.Problems, *p) {
		s.verdict.Problems = append(s.verdict.Problems, *p)
	}
}

// refuse returns a problem if Services of a namespace are not allowed to open a port. Otherwise it returns nil.
func (o *ServicePorts) refuse(namespace string, at place) *report.Problem {
	ranges := o.TCP
	if at.protocol == ir.UDP {
		ranges = o.UDP
	}
	message := ""
	switch {
	case len(ranges) == 0:
		message = fmt.Sprintf(
			"Services may not open %s ports here: the administrator can allow it with the option service_%s_ports",
			upper(at.protocol), at.protocol)
	case !o.namespace(namespace):
		message = fmt.Sprintf(
			"the Services of the namespace %s may not open ports here: the administrator can allow it with the "+
				"option service_port_namespaces", namespace)
	case !slices.ContainsFunc(ranges, func(r settings.PortRange) bool { return r.Has(at.port) }):
		message = fmt.Sprintf(
			"Services may not open the %s here: choose one of the ports %s, or ask the administrator to add it to the "+
				"option service_%s_ports", at, listOf(ranges), at.protocol)
	default:
		return nil
	}
	return &report.Problem{Severity: report.Error, Reason: report.PortNotAllowed, Message: message}
}

func listOf(ranges []settings.PortRange) string {
	var all []string
	for _, r := range ranges {
		all = append(all, r.String())
	}
	return strings.Join(all, ", ")
}

func (o *ServicePorts) namespace(name string) bool {
	return len(o.Namespaces) == 0 || settings.MatchNamespace(o.Namespaces, name)
}
