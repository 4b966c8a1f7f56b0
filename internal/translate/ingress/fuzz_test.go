package ingress_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/kinds"
	"github.com/k8singress/k8singress/internal/model/report"
	"github.com/k8singress/k8singress/internal/translate"
	"github.com/k8singress/k8singress/internal/translate/ingress"
)

// These bits select the optional parts of an Ingress.
const (
	hasHTTP = 1 << iota
	hasPathType
	hasService
	hasResource
	hasPortName
	hasDefault
	hasRules
	hasTLS
	hasTLSHosts
	hasClass
	twice
	whole = hasHTTP | hasPathType | hasService | hasRules | hasTLS | hasTLSHosts
)

// words holds the texts of an Ingress.
type words struct {
	host, path, pathType, service, portName string
	port                                    int32
}

// build returns an Ingress with the given parts. It is younger than the valid Ingress beside it.
func (w words) build(parts uint16) *networkingv1.Ingress {
	b := networkingv1.IngressBackend{}
	if parts&hasService != 0 {
		b.Service = &networkingv1.IngressServiceBackend{Name: w.service,
			Port: networkingv1.ServiceBackendPort{Number: w.port}}
		if parts&hasPortName != 0 {
			b.Service.Port.Name = w.portName
		}
	}
	if parts&hasResource != 0 {
		b.Resource = &corev1.TypedLocalObjectReference{Kind: w.service, Name: w.portName}
	}
	p := networkingv1.HTTPIngressPath{Path: w.path, Backend: b}
	if parts&hasPathType != 0 {
		p.PathType = (*networkingv1.PathType)(&w.pathType)
	}
	o := aged(&networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "fuzzed"}}, 2)
	if parts&hasRules != 0 {
		o.Spec.Rules = []networkingv1.IngressRule{{Host: w.host}}
	}
	if parts&hasRules != 0 && parts&hasHTTP != 0 {
		o.Spec.Rules[0].HTTP = &networkingv1.HTTPIngressRuleValue{Paths: []networkingv1.HTTPIngressPath{p}}
	}
	if parts&twice != 0 {
		o.Spec.Rules = append(o.Spec.Rules, o.Spec.Rules...)
	}
	if parts&hasDefault != 0 {
		o.Spec.DefaultBackend = &b
	}
	if parts&hasTLS != 0 {
		o.Spec.TLS = []networkingv1.IngressTLS{{SecretName: w.service}, {}}
	}
	if parts&hasTLS != 0 && parts&hasTLSHosts != 0 {
		o.Spec.TLS[0].Hosts = []string{w.host, "good.example", ""}
	}
	if parts&hasClass != 0 {
		o.Spec.IngressClassName = &w.portName
	}
	return o
}

// FuzzIngressSpec checks that no Ingress makes the translation panic, that its texts are not changed, that each part
// that is left out has a problem, and that a valid Ingress beside it is served as before.
func FuzzIngressSpec(f *testing.F) {
	for _, text := range []string{
		"", "/", ".", "*", "*.", "a", "good.example", "*.good.example", "GOOD.example.", "\u212a.example",
		"/{env.HOME}", "{env.HOME}.example",
		"{file./etc/hostname}", "/{file./etc/hostname}", "/{$HOME}", "/{http.request.uri}", "/\x00", "/\xff", "/\u2028",
		"/(", "web", "80/udp", "%",
	} {
		f.Add(text, text, text, text, text, int32(80), uint16(whole))
		f.Add("a.example", text, "Prefix", "web", "http", int32(80), uint16(whole|hasPortName))
		f.Add(text, "/", "Exact", text, text, int32(0), uint16(whole|hasPortName|hasDefault))
	}
	for bit := range 11 {
		f.Add("good.example", "/", "Prefix", "web", "http", int32(80), uint16(whole^1<<bit))
		f.Add("b.example", "/x", "ImplementationSpecific", "nobody", "nope", int32(-1), uint16(1<<bit))
	}
	good := aged(object("good", "good.example", prefix("/", backend("web", 80)), prefix("/x", backend("web", 8080))), 1)
	good.Spec.TLS = []networkingv1.IngressTLS{{Hosts: []string{"good.example"}, SecretName: "good-tls"}}
	around := []kinds.Object{
		good,
		service("web", corev1.ServicePort{Name: "http", Port: 80}, corev1.ServicePort{Name: "alt", Port: 8080}),
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "good-tls"}},
	}
	alone, _ := translate.Translate(take(around...), translate.Options{Ingress: everything})

	f.Fuzz(func(t *testing.T, host, path, pathType, service, portName string, port int32, parts uint16) {
		w := words{host, path, pathType, service, portName, port}
		o := w.build(parts)
		objects := take(append([]kinds.Object{o}, around...)...)
		r := ingress.Translate(objects, o, everything)
		w.checkLiteral(t, r)
		w.checkCertificates(t, r)
		checkReasons(t, o, r)
		config, verdicts := translate.Translate(objects, translate.Options{Ingress: everything})
		checkGood(t, alone, config)
		if v := verdicts.Get(ir.Ref{Kind: kinds.Ingress, Namespace: "shop", Name: "good"}); v == nil ||
			len(v.Problems) > 0 {
			t.Errorf("the good Ingress is told %v", v)
		}
	})
}

// checkLiteral checks that hosts and paths are the same bytes as in the Ingress, except for the case of a host.
func (w words) checkLiteral(t *testing.T, r *ingress.Result) {
	t.Helper()
	host := strings.TrimSuffix(lower(w.host), ".")
	path := w.path
	if path == "" {
		path = "/"
	}
	for got, paths := range r.Paths {
		if got != host {
			t.Errorf("the host %q became %q", w.host, got)
		}
		for _, p := range paths {
			if p.Match.Path != path && !p.Last {
				t.Errorf("the path %q became %q", w.path, p.Match.Path)
			}
			if b := p.Backend; b == nil || b.Service != w.service || b.Namespace != "shop" {
				t.Errorf("the backend is %+v, of a Service %q", b, w.service)
			}
		}
	}
}

// checkCertificates checks that certificates are for the hosts of the Ingress, and come from the Secret that it names.
func (w words) checkCertificates(t *testing.T, r *ingress.Result) {
	t.Helper()
	host := strings.TrimSuffix(lower(w.host), ".")
	for got, c := range r.Certificates {
		if got != host && got != "good.example" || c.Host != got ||
			c.Secret != (ir.Name{Namespace: "shop", Name: w.service}) {
			t.Errorf("the certificate of %q is %+v", got, c)
		}
	}
}

// lower converts only ASCII letters to lower case.
func lower(s string) string {
	b := []byte(s)
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return string(b)
}

// checkReasons checks that an Ingress is served or has a problem, and that each problem is complete.
func checkReasons(t *testing.T, o *networkingv1.Ingress, r *ingress.Result) {
	t.Helper()
	for _, p := range r.Problems {
		if p.Severity == "" || p.Reason == "" || p.Field == "" || p.Message == "" || p.Reason == report.Quarantined {
			t.Errorf("a problem says too little: %+v", p)
		}
	}
	if r.Ours && len(r.Problems) == 0 {
		checkServed(t, o, r)
	}
}

// checkServed checks that all parts of an Ingress are served.
func checkServed(t *testing.T, o *networkingv1.Ingress, r *ingress.Result) {
	t.Helper()
	wanted, got := 0, 0
	for _, rule := range o.Spec.Rules {
		if rule.HTTP != nil {
			wanted += len(rule.HTTP.Paths)
		}
	}
	for _, paths := range r.Paths {
		for _, p := range paths {
			if p.Backend.Missing {
				t.Errorf("the backend %s is missing, and no word of it", p.Backend.ID)
			}
			if !p.Last {
				got++
			}
		}
	}
	if got != wanted || len(o.Spec.Rules) == 0 && r.Fallback == nil {
		t.Errorf("%d of %d paths are there, and no word of it", got, wanted)
	}
}

// checkGood checks that config serves everything that alone serves, the configuration of the valid Ingress without the
// other one.
func checkGood(t *testing.T, alone, config *ir.Config) {
	t.Helper()
	hosts, backends, certificates := map[string][]*ir.Route{}, map[string]*ir.Backend{}, map[string]*ir.Certificate{}
	for _, h := range config.VirtualHosts {
		hosts[h.Host] = h.Routes
	}
	for _, b := range config.Backends {
		backends[b.ID] = b
	}
	for _, c := range config.Certificates {
		certificates[c.Host] = c
	}
	for _, h := range alone.VirtualHosts {
		var ours []*ir.Route
		for _, r := range hosts[h.Host] {
			if r.Origin.Name == "good" {
				ours = append(ours, r)
			}
		}
		if diff := cmp.Diff(h.Routes, ours); diff != "" {
			t.Errorf("routes of the good Ingress (-want +got):\n%s", diff)
		}
	}
	for _, b := range alone.Backends {
		if diff := cmp.Diff(b, backends[b.ID]); diff != "" {
			t.Errorf("backend of the good Ingress (-want +got):\n%s", diff)
		}
	}
	for _, c := range alone.Certificates {
		if diff := cmp.Diff(c, certificates[c.Host]); diff != "" {
			t.Errorf("certificate of the good Ingress (-want +got):\n%s", diff)
		}
	}
}
