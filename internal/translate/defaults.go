package translate

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/kinds"
	"github.com/k8singress/k8singress/internal/model/report"
	"github.com/k8singress/k8singress/internal/model/snapshot"
	"github.com/k8singress/k8singress/internal/translate/annotations"
	"github.com/k8singress/k8singress/internal/translate/configmap"
	"github.com/k8singress/k8singress/internal/translate/ingress"
	"github.com/k8singress/k8singress/internal/translate/streams"
)

// defaults holds the settings from ConfigMaps: settings for the whole process, for all Ingresses, and for the Ingresses
// of each IngressClass.
type defaults struct {
	global  *ir.Global
	ingress ingress.Options
	// refs is the set of objects from which the default settings are read, except IngressClasses. If one of these
	// objects changes, the default settings must be read again.
	refs     set[ir.Ref]
	verdicts map[ir.Ref]*report.Verdict
	// backend is the default backend, or nil.
	backend *ir.Backend
	// followed are the backends that Caddy modules use.
	followed []ir.FollowedBackend
	// hasBackend reports whether the option default_backend is set.
	hasBackend bool
	// listening are the ports that http-snippet opens.
	listening []*ir.ListenerGroup
	// anyPathType is true if strict-validate-path-type is false.
	anyPathType bool
}

// readDefaults reads the settings from ConfigMaps and IngressClasses. The result depends only on the objects in the
// snapshot and on the options.
func readDefaults(s *snapshot.Snapshot, o Options) *defaults {
	d := &defaults{ingress: o.Ingress, refs: set[ir.Ref]{}, verdicts: map[ir.Ref]*report.Verdict{}}
	d.hasBackend = !o.DefaultBackend.IsZero()
	d.configMap(s, o.ConfigMap, o.Streams.Reserved, o.TrustedProxies)
	d.defaultBackend(s, o)
	d.follow(s, o)
	d.ingress.Classes = map[string]ingress.Class{}
	defaultClasses := ingress.DefaultClasses(s)
	for class := range snapshot.Of[*networkingv1.IngressClass](s).All() {
		if class.Spec.Controller != o.Ingress.ControllerName {
			continue
		}
		d.class(s, class, o.ConfigMap.Namespace)
		if len(defaultClasses) > 1 && slices.Contains(defaultClasses, class) {
			d.rivals(class, defaultClasses)
		}
	}
	return d
}

// configMap reads the settings for all Ingresses from the controller's ConfigMap. If the ConfigMap does not exist, all
// settings have their default values. reserved are the ports that http-snippet cannot open. trustedProxies is the field
// of Options.
func (d *defaults) configMap(s *snapshot.Snapshot, name ir.Name, reserved streams.ReservedPorts, trustedProxies bool) {
	object, ok := snapshot.Of[*corev1.ConfigMap](s).Get(name.Namespace, name.Name)
	if !ok {
		object = &corev1.ConfigMap{}
	}
	config, problems := configmap.Parse(d.ingress.Defaults, object.Data)
	d.global, d.ingress.Defaults, d.anyPathType = &config.Global, config.Defaults, config.AnyPathType
	nameCause(&d.ingress.Defaults, name)
	d.global.Headers.Responses = d.headers(s, config.AddHeaders)
	d.global.Headers.Requests = d.headers(s, config.SetHeaders)
	if name.IsZero() {
		return
	}
	if len(config.Defaults.ErrorPages.Statuses) > 0 && !d.hasBackend {
		problems = append(problems, report.Problem{
			Severity: report.Warning, Reason: report.InvalidEntry, Field: "data[custom-http-errors]",
			Message: "the key applies only to Ingresses with the annotation default-backend: for other Ingresses, " +
				"set the option default_backend",
		})
	}
	if tracing := &config.Defaults.Asked.Tracing; tracing.On && !tracing.Collected {
		problems = append(problems, report.Problem{
			Severity: report.Warning, Reason: report.InvalidEntry, Field: "data[enable-opentelemetry]",
			Message: annotations.NoCollector,
		})
	}
	if trustedProxies {
		problems = append(problems, config.BesideTrustedProxies(object.Data)...)
	}
	if !ok {
		problems = append(problems, report.Problem{
			Severity: report.Warning, Reason: report.ConfigMapNotFound,
			Message: fmt.Sprintf(
				"the ConfigMap %s of the option configmap does not exist: all keys have their defaults until it exists",
				name),
		})
	}
	ref := name.Of(kinds.ConfigMap)
	d.refs[ref] = struct{}{}
	d.say(ref, problems...)
	d.listening, problems = readListening(config.Defaults.ListeningServers(), ref, reserved)
	d.say(ref, problems...)
}

// nameCause adds the name of the ConfigMap to the reason why settings from it are closed.
func nameCause(settings *annotations.Settings, name ir.Name) {
	if settings.ClosedBy != "" {
		settings.ClosedBy = fmt.Sprintf("ConfigMap %s, %s", name, settings.ClosedBy)
	}
}

// headers reads the headers from the ConfigMap to which add-headers or proxy-set-headers refers. Invalid headers are
// skipped and reported.
func (d *defaults) headers(s *snapshot.Snapshot, name ir.Name) []ir.Header {
	if name.IsZero() {
		return nil
	}
	ref := name.Of(kinds.ConfigMap)
	d.refs[ref] = struct{}{}
	object, ok := snapshot.Of[*corev1.ConfigMap](s).Get(name.Namespace, name.Name)
	if !ok {
		d.say(ref, report.Problem{Severity: report.Warning, Reason: report.ConfigMapNotFound, Message: fmt.Sprintf(
			"the ConfigMap %s, to which the controller's ConfigMap refers, does not exist: its headers are not "+
				"added until it exists", name)})
		return nil
	}
	headers, bad := configmap.ReadHeaders(object.Data, d.ingress.Defaults.HTTP)
	d.say(ref)
	for _, key := range slices.Sorted(maps.Keys(bad)) {
		d.say(ref, report.Problem{
			Severity: report.Error, Reason: report.InvalidEntry, Field: "data[" + key + "]",
			Message: fmt.Sprintf("%v: this header is ignored", bad[key]),
		})
	}
	return headers
}

// defaultBackend finds the backend for requests that no route matches.
func (d *defaults) defaultBackend(s *snapshot.Snapshot, o Options) {
	if !d.hasBackend {
		return
	}
	ref := o.DefaultBackend.Service.Of(kinds.Service)
	d.refs[ref] = struct{}{}
	var p *report.Problem
	d.backend, p = find(s, ir.FollowedPort{ServicePort: o.DefaultBackend, Protocol: ir.TCP}, o)
	d.global.DefaultBackend = d.backend.ID
	if p != nil {
		d.say(ref, report.Problem{Severity: p.Severity, Reason: p.Reason,
			Message: p.Message + " (option default_backend): requests that no host or path matches get 404"})
	}
}

// class reads the parameters of an IngressClass, which refer to a ConfigMap. own is the namespace of the controller's
// ConfigMap.
func (d *defaults) class(s *snapshot.Snapshot, class *networkingv1.IngressClass, own string) {
	of := ir.Ref{Kind: kinds.IngressClass, Name: class.Name}
	ref, p := ingress.Parameters(class, own)
	if p != nil {
		d.say(of, *p)
		if p.Severity == report.Error {
			d.closed(class.Name, ref)
		}
		return
	}
	if ref.Name == "" {
		return
	}
	d.refs[ref] = struct{}{}
	object, ok := snapshot.Of[*corev1.ConfigMap](s).Get(ref.Namespace, ref.Name)
	if !ok {
		d.say(of, *ingress.NoParameters(ref))
		// The ConfigMap may restrict access, so all requests for Ingresses of the class get 503 until the ConfigMap
		// exists.
		d.closed(class.Name, ref)
		return
	}
	settings, problems := configmap.ParseClass(d.ingress.Defaults, object.Data)
	if settings.ClosedBy != d.ingress.Defaults.ClosedBy {
		nameCause(&settings, ir.Name{Namespace: ref.Namespace, Name: ref.Name})
	}
	d.say(of)
	d.say(ref, problems...)
	d.ingress.Classes[class.Name] = ingress.Class{ConfigMap: ref, Defaults: settings}
}

// The method closed is called if the parameters of an IngressClass cannot be read. Because they may restrict access, it
// makes all requests for Ingresses of the class get 503.
func (d *defaults) closed(class string, of ir.Ref) {
	settings := d.ingress.Defaults
	settings.Closed = true
	d.ingress.Classes[class] = ingress.Class{ConfigMap: of, Defaults: settings, Unread: true}
}

// rivals adds a warning to a default IngressClass if there are other default IngressClasses. all lists all default
// IngressClasses, including the given one.
func (d *defaults) rivals(class *networkingv1.IngressClass, all []*networkingv1.IngressClass) {
	var others []string
	for _, other := range all {
		if other.Name != class.Name {
			others = append(others, other.Name)
		}
	}
	d.say(ir.Ref{Kind: kinds.IngressClass, Name: class.Name}, report.Problem{
		Severity: report.Warning, Reason: report.ClassConflict,
		Field: report.AnnotationField(networkingv1.AnnotationIsDefaultIngressClass),
		Message: fmt.Sprintf(
			"there are other default classes (%s): a new Ingress without a class gets the newest one, %s. Mark only "+
				"one class as the default", strings.Join(others, ", "), all[0].Name),
	})
}

// The method say adds problems to the verdict, which is the reported status of an object. Problems that the verdict
// already contains are skipped. Without any problem, the verdict reports the object as accepted.
func (d *defaults) say(of ir.Ref, problems ...report.Problem) {
	v := d.verdicts[of]
	if v == nil {
		v = &report.Verdict{Object: of}
		d.verdicts[of] = v
	}
	for _, p := range problems {
		if !slices.Contains(v.Problems, p) {
			v.Problems = append(v.Problems, p)
		}
	}
}
