package e2e

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/utils/ptr"
)

var pathRules = []sentence{
	{"Exact matches the URL path exactly and with case sensitivity", exactPath},
	{"Prefix matches on a path element by element basis, and is case sensitive", prefixPath},
	{"the examples of the documentation", pathExamples},
	{"precedence will be given first to the longest matching path", longestPath},
	{"if two paths are still equally matched, precedence will be given to Exact over Prefix", exactBeforePrefix},
	{"implementations are required to support all path types", implementationSpecific},
	{"a port of a Service is named by its name or its number, and leads to the target port", portsOfServices},
	{"a resource backend is skipped, and the other paths are served", resourceBackend},
}

func exactPath(f *conformance) {
	host := f.host("exact")
	f.rules("exact", []route{{host, exact, "/foo", "one"}})
	f.answers(
		answer{host, "/foo", "one"},
		answer{host, "/foo?query=1", "one"},
		answer{host, "/FOO", nobody},
		answer{host, "/foo/", nobody},
		answer{host, "/foo/bar", nobody},
		answer{host, "/bar", nobody},
		answer{host, "/", nobody},
	)
}

func prefixPath(f *conformance) {
	host := f.host("prefix")
	f.rules("prefix", []route{{host, prefix, "/foo/bar", "one"}})
	f.answers(
		answer{host, "/foo/bar", "one"},
		answer{host, "/foo/bar/", "one"},
		answer{host, "/foo/bar/baz", "one"},
		answer{host, "/foo/bar?query=/baz", "one"},
		answer{host, "/foo/barbaz", nobody},
		answer{host, "/foo", nobody},
		answer{host, "/foo/Bar", nobody},
		answer{host, "/FOO/bar", nobody},
		answer{host, "/x/foo/bar", nobody},
	)
}

// pathExamples checks the table of examples in the documentation of Ingress. The Services stand for the paths, in the
// same order.
func pathExamples(f *conformance) {
	services := []string{"one", "two", "three"}
	for i, row := range []struct {
		pathType networkingv1.PathType
		paths    []string
		request  string
		want     string
	}{
		{prefix, []string{"/"}, "/any/path", "one"},
		{exact, []string{"/foo"}, "/foo", "one"},
		{exact, []string{"/foo"}, "/bar", nobody},
		{exact, []string{"/foo"}, "/foo/", nobody},
		{exact, []string{"/foo/"}, "/foo", nobody},
		{prefix, []string{"/foo"}, "/foo", "one"},
		{prefix, []string{"/foo"}, "/foo/", "one"},
		{prefix, []string{"/foo/"}, "/foo", "one"},
		{prefix, []string{"/foo/"}, "/foo/", "one"},
		{prefix, []string{"/aaa/bb"}, "/aaa/bbb", nobody},
		{prefix, []string{"/aaa/bbb"}, "/aaa/bbb", "one"},
		{prefix, []string{"/aaa/bbb/"}, "/aaa/bbb", "one"},
		{prefix, []string{"/aaa/bbb"}, "/aaa/bbb/", "one"},
		{prefix, []string{"/aaa/bbb"}, "/aaa/bbb/ccc", "one"},
		{prefix, []string{"/aaa/bbb"}, "/aaa/bbbxyz", nobody},
		{prefix, []string{"/", "/aaa"}, "/aaa/ccc", "two"},
		{prefix, []string{"/", "/aaa", "/aaa/bbb"}, "/aaa/bbb", "three"},
		{prefix, []string{"/", "/aaa", "/aaa/bbb"}, "/ccc", "one"},
		{prefix, []string{"/aaa"}, "/ccc", nobody},
	} {
		name := fmt.Sprintf("example-%d", i)
		host := f.host(name)
		// This path shows that the Ingress is in effect. No request of the table uses it.
		routes := []route{{host, exact, "/in-effect", "other"}}
		for j, path := range row.paths {
			routes = append(routes, route{host, row.pathType, path, services[j]})
		}
		f.Run(fmt.Sprintf("%s %v %s", row.pathType, row.paths, row.request), func(t *testing.T) {
			t.Parallel()
			inner := &conformance{f.in(t), f.caddy}
			inner.rules(name, routes)
			inner.answers(answer{host, "/in-effect", "other"}, answer{host, row.request, row.want})
		})
	}
}

func longestPath(f *conformance) {
	host := f.host("longest")
	f.rules("longest", []route{
		{host, prefix, "/", "one"}, {host, prefix, "/aaa/bbb/ccc", "three"}, {host, prefix, "/aaa", "two"},
		{host, exact, "/aaa/bbb", "other"},
	})
	f.answers(
		answer{host, "/aaa/bbb/ccc/ddd", "three"},
		answer{host, "/aaa/bbb/cc", "two"},
		answer{host, "/aaa/bbb", "other"},
		answer{host, "/aaa", "two"},
		answer{host, "/aa", "one"},
	)
}

func exactBeforePrefix(f *conformance) {
	host := f.host("mixed")
	f.rules("mixed", []route{{host, prefix, "/foo", "one"}, {host, exact, "/foo", "two"}})
	f.answers(answer{host, "/foo", "two"}, answer{host, "/foo/", "one"}, answer{host, "/foo/bar", "one"})
}

// implementationSpecific checks that such a path is a prefix, as in ingress-nginx.
func implementationSpecific(f *conformance) {
	host := f.host("specific")
	f.rules("specific", []route{
		{host, exact, "/exact", "one"}, {host, prefix, "/prefix", "two"},
		{host, networkingv1.PathTypeImplementationSpecific, "/specific", "three"},
	})
	f.answers(answer{host, "/exact", "one"}, answer{host, "/prefix", "two"}, answer{host, "/specific", "three"})
}

func portsOfServices(f *conformance) {
	host := f.host("ports")
	f.rules("ports", []route{{host, prefix, "/name", "one"}, {host, prefix, "/number", "two"}},
		func(i *networkingv1.Ingress) {
			i.Spec.Rules[0].HTTP.Paths[1].Backend.Service.Port = networkingv1.ServiceBackendPort{Number: 80}
		})
	f.answers(answer{host, "/name", "one"}, answer{host, "/number", "two"})
}

func resourceBackend(f *conformance) {
	host := f.host("resource")
	f.rules("resource", []route{{host, prefix, "/", "one"}, {host, prefix, "/resource", "two"}},
		func(i *networkingv1.Ingress) {
			i.Spec.Rules[0].HTTP.Paths[1].Backend = networkingv1.IngressBackend{Resource: bucket()}
		})
	f.answers(answer{host, "/", "one"}, answer{host, "/resource", "one"})
	f.awaitReason(f.caddy, "resource", "InvalidBackend")
}

// bucket returns the example of a resource backend in the documentation.
func bucket() *corev1.TypedLocalObjectReference {
	return &corev1.TypedLocalObjectReference{APIGroup: ptr.To("k8s.example.com"), Kind: "StorageBucket",
		Name: "icon-assets"}
}
