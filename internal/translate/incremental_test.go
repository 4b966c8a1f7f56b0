package translate_test

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"pgregory.net/rapid"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/kinds"
	"github.com/k8singress/k8singress/internal/model/snapshot"
	"github.com/k8singress/k8singress/internal/tests/fixture"
	"github.com/k8singress/k8singress/internal/translate"
	"github.com/k8singress/k8singress/internal/translate/annotations"
	"github.com/k8singress/k8singress/internal/translate/configmap"
	"github.com/k8singress/k8singress/internal/translate/streams"
)

// These are the values from which random objects are drawn. There are only a few names, so that objects often refer to
// each other.
var (
	namespaces = []string{"a", "a", "a", "b"}
	names      = []string{"one", "two", "three"}
	hosts      = []string{"", "a.example", "a.example", "a.example", "*.example", "c.example", "c.a.example",
		"*.a.example", "{env.HOME}"}
	paths  = []string{"/", "/", "/foo", "/foo", "/foo/", "/foo/(.*)", "/(", "", "no-slash"}
	stamps = []time.Time{time.Unix(1, 0), time.Unix(2, 0)}
	bad    = []string{"", "nope", "bad\nvalue", "{env.HOME}"}
)

// values maps each annotation or key to the values that may be drawn for it.
type values map[string][]string

// tables holds the values for the rows of all tables, and groups of annotations that take effect together.
type tables struct {
	ingress, service, configMap values
	// groups are the groups in this file. cases are the cases in internal/translate/annotations/testdata.
	groups, cases []map[string]string
	// contents are the contents that Secrets may have. Nil is a Secret without data.
	contents []map[string][]byte
}

// references are values that name other objects. They replace the examples of the rows.
var references = values{
	annotations.Prefix + "auth-tls-secret":          {"a/one", "a/two", "b/one", "b/three", "one"},
	annotations.Prefix + "proxy-ssl-secret":         {"a/one", "a/two", "b/one", "b/three", "one"},
	annotations.Prefix + "fastcgi-params-configmap": {"one", "two", "a/one", "b/one", "gone"},
	annotations.Prefix + "custom-headers":           {"one", "two", "a/one", "b/one", "gone"},
	kinds.OwnPrefix + "tcp-ports":                   {"5432:80, 6379:http", "6379", "5432:http", "6380:80"},
	kinds.OwnPrefix + "udp-ports":                   {"53:80", "54:80"},
	kinds.OwnPrefix + "stream-chains":               {"office", "gone"},
	kinds.OwnPrefix + "stream-tls-secret":           {"one", "two", "a/one"},
	kinds.OwnPrefix + "stream-tls-host":             {"a.example", "s.example"},
	kinds.OwnPrefix + "stream-backend-tls-secret":   {"one", "two", "a/one"},
	"cert-manager.io/issuer":                        {"some-issuer", ""},
	annotations.Prefix + "canary-by-header":         {"X-Canary", "X-Region"},
	"auto-https":                                    {"off", "tls", "all"},
	"allow-cross-namespace-resources":               {"true", "false"},
	"global-allowed-response-headers":               {"X-One", "x-one, X-Two"},
	"use-forwarded-headers":                         {"true", "false"},
	"proxy-stream-timeout":                          {"1h", "2h"},
}

// groups are sets of annotations that take effect only together, or that affect other Ingresses.
var groups = []map[string]string{
	{"backend-protocol": "FCGI", "fastcgi-params-configmap": "one"},
	{"backend-protocol": "FCGI", "fastcgi-params-configmap": "two", "fastcgi-index": "index.php"},
	{"custom-headers": "one"},
	{"backend-protocol": "HTTPS", "proxy-ssl-secret": "a/one", "proxy-ssl-verify": "on", "proxy-ssl-name": "x.example"},
	{"backend-protocol": "GRPCS", "proxy-ssl-secret": "b/one"},
	{"auth-tls-secret": "a/one"},
	{"auth-tls-secret": "b/one", "auth-tls-verify-client": "optional"},
	{"affinity": "cookie", "session-cookie-name": "route"},
	{"canary": "true", "canary-weight": "30"},
	{"canary": "true", "canary-by-header": "X-Canary", "canary-by-header-value": "yes"},
	{"canary": "true", "canary-by-cookie": "canary", "affinity": "cookie"},
	{"service-upstream": "true", "load-balance": "ewma"},
	{"load-balance": "round_robin", "affinity": "cookie"},
	{"upstream-hash-by": "$remote_addr"},
	{"ssl-passthrough": "true"},
	{"ssl-passthrough": "true", "rewrite-target": "/"},
}

// readTables reads the rows of all tables, so that this test draws new rows without a change of its own.
func readTables(t testing.TB) *tables {
	t.Helper()
	all := &tables{ingress: values{}, service: values{}, configMap: values{}, contents: []map[string][]byte{
		nil, fixture.Certificate(t, "*.example").Secret(), fixture.Certificate(t, "*.a.example", "a.example").Secret(),
	}}
	for i := range annotations.Table {
		row := &annotations.Table[i]
		all.ingress.add(annotations.Key(row.Name), row.Example)
	}
	for _, row := range streams.Table {
		all.service.add(row.Name, row.Example)
	}
	for i := range configmap.Table {
		all.configMap.add(configmap.Table[i].Name, configmap.Table[i].Example)
	}
	all.ingress.add("cert-manager.io/issuer", "issuer")
	for _, group := range groups {
		whole := map[string]string{}
		for name, value := range group {
			whole[annotations.Prefix+name] = value
		}
		all.groups = append(all.groups, whole)
	}
	all.readCases(t, "annotations/testdata/*.txt")
	return all
}

// add adds the values for one key, valid values first.
func (v values) add(key, example string) {
	good := references[key]
	if len(good) == 0 {
		good = []string{example, example, example, example}
	}
	v[key] = append(slices.Clone(good), bad...)
}

// readCases adds the cases in files like those in internal/translate/annotations/testdata. Each line is an annotation,
// and an empty line separates cases. Indented lines are expected results, which are ignored.
func (b *tables) readCases(t testing.TB, pattern string) {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("%s: %d files, error %v", pattern, len(files), err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for part := range strings.SplitSeq(strings.TrimSpace(string(text)), "\n\n") {
			group := map[string]string{}
			for line := range strings.SplitSeq(part, "\n") {
				name, value, ok := strings.Cut(line, ":")
				if !ok || strings.HasPrefix(line, " ") {
					continue
				}
				if !strings.Contains(name, "/") {
					name = annotations.Prefix + name
				}
				group[name] = strings.TrimPrefix(value, " ")
				if _, there := b.ingress[name]; there {
					b.ingress[name] = append(b.ingress[name], group[name])
				}
			}
			b.cases = append(b.cases, group)
		}
	}
}

// draw returns one of the values.
func draw[T any](t *rapid.T, from []T) T { return rapid.SampledFrom(from).Draw(t, "value") }

// once returns true in one of n cases.
func once(t *rapid.T, n int, what string) bool { return rapid.IntRange(1, n).Draw(t, what) == 1 }

// some draws up to most keys, and a value for each.
func (v values) some(t *rapid.T, most int) map[string]string {
	result := map[string]string{}
	keys := slices.Sorted(maps.Keys(v))
	for range rapid.IntRange(0, most).Draw(t, "number of keys") {
		key := draw(t, keys)
		result[key] = draw(t, v[key])
	}
	return result
}

// annotations draws the annotations of an Ingress: some single ones, and sometimes a group that refers to objects which
// may exist.
func (b *tables) annotations(t *rapid.T) map[string]string {
	result := b.ingress.some(t, 3)
	switch rapid.IntRange(0, 3).Draw(t, "group") {
	case 0, 1:
		maps.Copy(result, draw(t, b.groups))
	case 2:
		maps.Copy(result, draw(t, b.cases))
	}
	for _, key := range slices.Sorted(maps.Keys(result)) {
		if known := references[key]; len(known) > 0 && rapid.Bool().Draw(t, "a reference") {
			result[key] = draw(t, known)
		}
	}
	return result
}

func meta(t *rapid.T) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: draw(t, namespaces), Name: draw(t, names),
		CreationTimestamp: metav1.NewTime(draw(t, stamps))}
}

func drawBackend(t *rapid.T) networkingv1.IngressBackend {
	if once(t, 10, "resource") {
		return networkingv1.IngressBackend{Resource: &corev1.TypedLocalObjectReference{Kind: "Bucket", Name: "x"}}
	}
	return networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{Name: draw(t, names),
		Port: draw(t, ports)}}
}

func drawIngress(t *rapid.T, all *tables) *networkingv1.Ingress {
	object := &networkingv1.Ingress{ObjectMeta: meta(t)}
	object.Annotations = all.annotations(t)
	switch rapid.IntRange(0, 5).Draw(t, "class") {
	case 0:
		object.Annotations["kubernetes.io/ingress.class"] = draw(t, []string{"nginx", "other", ""})
	case 1:
	default:
		object.Spec.IngressClassName = new(draw(t, []string{"one", "one", "two", "gone"}))
	}
	if once(t, 3, "default backend") {
		object.Spec.DefaultBackend = new(drawBackend(t))
	}
	for range rapid.IntRange(0, 2).Draw(t, "rules") {
		object.Spec.Rules = append(object.Spec.Rules, drawRule(t))
	}
	if word := draw(t, []string{"", "", "", "off", "all"}); word != "" {
		object.Annotations[annotations.OwnPrefix+"auto-https"] = word
	}
	for range rapid.IntRange(0, 2).Draw(t, "tls") {
		entry := networkingv1.IngressTLS{SecretName: draw(t, append([]string{""}, names...))}
		if !once(t, 5, "no hosts") {
			entry.Hosts = []string{draw(t, hosts)}
		}
		object.Spec.TLS = append(object.Spec.TLS, entry)
	}
	return object
}

func drawRule(t *rapid.T) networkingv1.IngressRule {
	rule := networkingv1.IngressRule{Host: draw(t, hosts)}
	for range rapid.IntRange(0, 2).Draw(t, "paths") {
		kind := draw(t, []networkingv1.PathType{
			networkingv1.PathTypeExact, networkingv1.PathTypePrefix, networkingv1.PathTypeImplementationSpecific,
		})
		if rule.HTTP == nil {
			rule.HTTP = &networkingv1.HTTPIngressRuleValue{}
		}
		rule.HTTP.Paths = append(rule.HTTP.Paths,
			networkingv1.HTTPIngressPath{Path: draw(t, paths), PathType: &kind, Backend: drawBackend(t)})
	}
	return rule
}

func drawService(t *rapid.T, all *tables) *corev1.Service {
	port := corev1.ServicePort{Name: draw(t, []string{"http", ""}), Port: 80, TargetPort: intstr.FromInt32(8080)}
	object := &corev1.Service{ObjectMeta: meta(t), Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{port}}}
	if rapid.Bool().Draw(t, "has ports of its own") {
		object.Annotations = all.service.some(t, 3)
		object.Annotations[kinds.OwnPrefix+"tcp-ports"] = draw(t, references[kinds.OwnPrefix+"tcp-ports"])
	}
	switch rapid.IntRange(0, 4).Draw(t, "type") {
	case 0:
		object.Spec.Type = corev1.ServiceTypeExternalName
		object.Spec.ExternalName = draw(t, []string{"example.org", "localhost"})
	case 1:
		object.Spec.ClusterIP = draw(t, []string{"None", "10.96.0.1"})
		object.Spec.SessionAffinity = corev1.ServiceAffinityClientIP
	}
	return object
}

func drawClass(t *rapid.T) *networkingv1.IngressClass {
	class := &networkingv1.IngressClass{ObjectMeta: meta(t)}
	class.Namespace = ""
	class.Spec.Controller = draw(t, []string{"k8s.io/ingress-nginx", "k8s.io/ingress-nginx", "example.com/other"})
	if once(t, 3, "default class") {
		class.Annotations = map[string]string{networkingv1.AnnotationIsDefaultIngressClass: "true"}
	}
	if rapid.Bool().Draw(t, "parameters") {
		class.Spec.Parameters = &networkingv1.IngressClassParametersReference{
			Kind: draw(t, []string{"ConfigMap", "ConfigMap", "Bucket"}),
			Name: draw(t, []string{"class", "one", "gone"}),
		}
		if rapid.Bool().Draw(t, "scope") {
			class.Spec.Parameters.Scope, class.Spec.Parameters.Namespace = new("Namespace"), new(draw(t, namespaces))
		}
	}
	return class
}

// drawConfigMap draws a ConfigMap with ports, with defaults, with FastCGI parameters or with headers.
func drawConfigMap(t *rapid.T, all *tables) *corev1.ConfigMap {
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: draw(t, namespaces), Name: draw(t, []string{
		"tcp", "udp", "global", "global", "class", "one", "two",
	})}}
	switch object.Name {
	case "tcp", "udp":
		port, backend := draw(t, []string{"53", "5432", "6379", "x"}), draw(t, namespaces)+"/"+draw(t, names)
		object.Data = map[string]string{port: backend + ":" + draw(t, []string{"80", "http", "nope"})}
	case "global", "class":
		object.Data = all.configMap.some(t, 5)
	default:
		object.Data = map[string]string{"SCRIPT_FILENAME": draw(t,
			[]string{"/app$fastcgi_script_name", "/srv", "$unknown"})}
		if rapid.Bool().Draw(t, "headers") {
			object.Data = map[string]string{draw(t, []string{"X-One", "X-Two"}): draw(t, []string{"1", "2", ""})}
		}
		maps.Copy(object.Data, all.configMap.some(t, 1))
	}
	return object
}

func (w *world) drawObject(t *rapid.T) kinds.Object {
	switch rapid.IntRange(0, 13).Draw(t, "kind") {
	case 0, 1:
		return drawService(t, w.tables)
	case 2, 3:
		return &corev1.Secret{ObjectMeta: meta(t), Data: draw(t, w.contents)}
	case 4:
		return drawClass(t)
	case 5, 6:
		return drawConfigMap(t, w.tables)
	case 7:
		object := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: draw(t, namespaces)}}
		object.Labels = map[string]string{"team": draw(t, []string{"shop", "shop", "other"})}
		return object
	}
	next := drawIngress(t, w.tables)
	if old, ok := w.ingresses[snapshot.RefOf(next)]; ok && rapid.Bool().Draw(t, "other annotations only") {
		next.Spec, next.CreationTimestamp = old.Spec, old.CreationTimestamp
	}
	return next
}

// world is a cluster in which objects are created, changed and deleted.
type world struct {
	*tables
	store     *snapshot.Store
	ingresses map[ir.Ref]*networkingv1.Ingress
}

func newWorld(all *tables) *world {
	w := &world{tables: all, store: snapshot.NewStore(), ingresses: map[ir.Ref]*networkingv1.Ingress{}}
	w.store.Set(&networkingv1.IngressClass{
		ObjectMeta: metav1.ObjectMeta{Name: "one"},
		Spec:       networkingv1.IngressClassSpec{Controller: "k8s.io/ingress-nginx"},
	})
	return w
}

// step changes one or several objects. Sometimes a Secret becomes unreadable, or readable again.
func (w *world) step(t *rapid.T) {
	var set, gone []kinds.Object
	for range draw(t, []int{1, 1, 1, 3}) {
		object := w.drawObject(t)
		next, isIngress := object.(*networkingv1.Ingress)
		if once(t, 5, "delete") {
			gone = append(gone, object)
			delete(w.ingresses, snapshot.RefOf(object))
			continue
		}
		set = append(set, object)
		if isIngress {
			w.ingresses[snapshot.RefOf(next)] = next
		}
	}
	w.store.Apply(set, gone)
	if once(t, 8, "deny") {
		w.store.Deny(ir.Ref{Kind: kinds.Secret, Namespace: draw(t, namespaces), Name: draw(t, names)},
			rapid.Bool().Draw(t, "denied"))
	}
}

// TestIncrementalEqualsFull checks that a translator that has seen any sequence of changes returns the same result as a
// new translator.
func TestIncrementalEqualsFull(t *testing.T) {
	all := readTables(t)
	for name, o := range map[string]translate.Options{
		"open": options, "narrow": narrow, "issuance": scarce,
		"owned": owned(scarce), "reserved": reserved(owned(options)), "reserved and shared": reserved(scarce),
	} {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) { checkIncremental(t, newWorld(all), o) })
		})
	}
}

func checkIncremental(t *rapid.T, w *world, o translate.Options) {
	translator := translate.New()
	var waiting *snapshot.Snapshot
	for range rapid.IntRange(1, 40).Draw(t, "steps") {
		w.step(t)
		s := w.store.Take()
		if waiting != nil {
			s = s.Joined(waiting)
		}
		if once(t, 4, "follow") {
			o.Followed = drawFollowed(t)
		}
		// Sometimes several changes are translated together.
		if waiting = nil; once(t, 4, "wait") {
			waiting = s
			continue
		}
		equal(t, translator, s, o)
	}
}

// drawFollowed draws the Service ports that Caddy modules use.
func drawFollowed(t *rapid.T) []ir.FollowedPort {
	var all []ir.FollowedPort
	for range rapid.IntRange(0, 3).Draw(t, "followed") {
		port := ir.FollowedPort{Protocol: draw(t, []ir.Protocol{ir.TCP, ir.TCP, ir.UDP})}
		port.Service = ir.Name{Namespace: draw(t, namespaces), Name: draw(t, names)}
		port.Port = draw(t, []string{"80", "http", "nope", ""})
		all = append(all, port)
	}
	slices.SortFunc(all, ir.FollowedPort.Compare)
	return slices.Compact(all)
}

// equal checks that a translator returns the same result for a snapshot as a new translator.
func equal(t *rapid.T, translator *translate.Translator, s *snapshot.Snapshot, o translate.Options) {
	full := translate.New()
	wantConfig, wantReport := full.Translate(s, o)
	config, verdicts := translator.Translate(s, o)
	if diff := cmp.Diff(wantConfig, config); diff != "" {
		t.Fatalf("configuration (-full +incremental):\n%s", diff)
	}
	if diff := cmp.Diff(wantReport, verdicts); diff != "" {
		t.Fatalf("report (-full +incremental):\n%s", diff)
	}
	if diff := cmp.Diff(secrets(full), secrets(translator)); diff != "" {
		t.Fatalf("Secrets (-full +incremental):\n%s", diff)
	}
}

// secrets returns the Secrets that the objects in a translator refer to, without duplicates.
func secrets(t *translate.Translator) []string {
	var all []string
	for ref := range t.Secrets() {
		all = append(all, ref.String())
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// TestSecretsAreListedWhileReferenced checks that the translator lists a Secret if and only if an object refers to it.
// The contents of Secrets that are not listed are dropped.
func TestSecretsAreListedWhileReferenced(t *testing.T) {
	service := func(name, value string) kinds.Object {
		object := exposing(0, "7000:80")
		object.Annotations[kinds.OwnPrefix+"stream-backend-tls"] = "true"
		object.Annotations[kinds.OwnPrefix+name] = value
		return object
	}
	ingress := func(pairs ...string) kinds.Object {
		object := numbered(0, "/")
		object.Annotations = map[string]string{}
		for i := 0; i < len(pairs); i += 2 {
			object.Annotations[annotations.Prefix+pairs[i]] = pairs[i+1]
		}
		return object
	}
	listed := numbered(0, "/")
	listed.Spec.TLS = []networkingv1.IngressTLS{{Hosts: []string{"h0.example"}, SecretName: "secret"}}
	for name, c := range map[string]struct{ with, without kinds.Object }{
		"spec.tls":        {listed, numbered(0, "/")},
		"auth-tls-secret": {ingress("auth-tls-secret", "a/secret"), ingress()},
		"proxy-ssl-secret": {ingress("proxy-ssl-secret", "a/secret", "backend-protocol", "HTTPS"),
			ingress("backend-protocol", "HTTPS")},
		"stream-tls-secret": {service("stream-tls-secret", "secret"), service("stream-tls-secret", "")},
		"stream-backend-tls-secret": {service("stream-backend-tls-secret", "secret"),
			service("stream-backend-tls-secret", "")},
	} {
		t.Run(name, func(t *testing.T) {
			store, translator := fill(1), translate.New()
			for i, step := range []struct {
				object kinds.Object
				want   []string
			}{{c.without, nil}, {c.with, []string{"Secret/a/secret"}}, {c.without, nil}} {
				store.Set(step.object)
				translator.Translate(store.Take(), options)
				if diff := cmp.Diff(step.want, secrets(translator)); diff != "" {
					t.Errorf("step %d (-want +got):\n%s", i, diff)
				}
			}
		})
	}
}
