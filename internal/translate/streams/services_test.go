package streams_test

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/kinds"
	"github.com/k8singress/k8singress/internal/model/report"
	"github.com/k8singress/k8singress/internal/model/settings"
	"github.com/k8singress/k8singress/internal/model/snapshot"
	"github.com/k8singress/k8singress/internal/translate/streams"
)

// open returns options that let the Services of some namespaces open some ports.
func open(namespaces ...string) streams.Options {
	o := options
	o.Services = streams.ServicePorts{
		TCP:        []settings.PortRange{{First: 400, Last: 499}, {First: 5432, Last: 5432}},
		UDP:        []settings.PortRange{{First: 53, Last: 54}},
		Namespaces: namespaces,
	}
	return o
}

// serviceWithPorts returns a Service with the TCP port pg 5432 and the UDP port dns 53. A larger age makes it older.
// pairs alternates between names of annotations, without their prefix, and their values.
func serviceWithPorts(namespace, name string, age int, pairs ...string) *corev1.Service {
	s := service(name, corev1.ServicePort{Name: "pg", Port: 5432},
		corev1.ServicePort{Name: "dns", Port: 53, Protocol: corev1.ProtocolUDP})
	s.Namespace, s.CreationTimestamp, s.Annotations = namespace, metav1.NewTime(time.Unix(int64(1000-age), 0)),
		map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		s.Annotations[kinds.OwnPrefix+pairs[i]] = pairs[i+1]
	}
	return s
}

func translated(o streams.Options, objects ...kinds.Object) *streams.Result {
	store := snapshot.NewStore()
	for _, object := range objects {
		store.Set(object)
	}
	return streams.Translate(store.Take(), o)
}

// owners returns the port, origin and backend of each route, in order.
func owners(r *streams.Result) []string {
	var all []string
	for _, route := range r.Routes {
		all = append(all, streamName(route)+" "+route.Origin.String()+" "+route.Backends[0].Backend.ID)
	}
	return all
}

func streamName(r *ir.StreamRoute) string {
	return string(r.Protocol) + "/" + strconv.Itoa(int(r.Port))
}

func problemsOf(r *streams.Result, ref ir.Ref) []string {
	var all []string
	for _, v := range r.Verdicts {
		if v.Object != ref {
			continue
		}
		for _, p := range v.Problems {
			all = append(all, string(p.Severity)+" "+string(p.Reason)+" "+p.Field+": "+p.Message)
		}
	}
	return all
}

func refOf(namespace, name string) ir.Ref {
	return ir.Ref{Kind: kinds.Service, Namespace: namespace, Name: name}
}

func TestServiceOpensPorts(t *testing.T) {
	r := translated(open(), serviceWithPorts("shop", "db", 1, "tcp-ports", "400:pg, 5432", "udp-ports", "53:dns"))
	want := []string{
		"tcp/400 Service/shop/db shop/db/5432", "tcp/5432 Service/shop/db shop/db/5432",
		"udp/53 Service/shop/db shop/db/53/udp",
	}
	if diff := cmp.Diff(want, owners(r)); diff != "" || problemsOf(r, refOf("shop", "db")) != nil {
		t.Errorf("it is told %q, and opens (-want +got):\n%s", problemsOf(r, refOf("shop", "db")), diff)
	}
	if len(r.Verdicts) != 3 {
		// The ConfigMaps do not exist, and the Service is accepted.
		t.Errorf("%d verdicts", len(r.Verdicts))
	}
}

// TestServiceIsRefused checks that a Service cannot open ports that the administrator does not allow, and that the
// problem names the allowed ones.
func TestServiceIsRefused(t *testing.T) {
	const field = "metadata.annotations[k8singress.io/tcp-ports]: "
	selector := open()
	selector.Services.Selector = labels.SelectorFromSet(labels.Set{"team": "shop"})
	for _, test := range []struct {
		name, ports string
		options     streams.Options
		want        []string
	}{
		{"by default", "400:pg,401:pg", options, []string{"error PortNotAllowed " + field +
			"Services may not open TCP ports here: the administrator can allow it with the option service_tcp_ports"}},
		{"namespace", "400:pg", open("web", "sho", "team-*"), []string{"error PortNotAllowed " + field +
			"the Services of the namespace shop may not open ports here: the administrator can allow it with the " +
			"option service_port_namespaces"}},
		{"port", "22:pg", open(), []string{"error PortNotAllowed " + field +
			"Services may not open the TCP port 22 here: choose one of the ports 400-499, 5432, or ask the " +
			"administrator to add it to the option service_tcp_ports"}},
		{"reserved", "443:pg", open(), []string{"error PortConflict " + field +
			"port 443 is the https port of the controller itself: choose another port"}},
		{"empty", " ", open(), nil},
		{"another namespace_selector", "400:pg", selector, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := translated(test.options, serviceWithPorts("shop", "db", 1, "tcp-ports", test.ports))
			if len(r.Routes) > 0 {
				t.Errorf("it opens %v", owners(r))
			}
			if diff := cmp.Diff(test.want, problemsOf(r, refOf("shop", "db"))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestServiceIsAllowed(t *testing.T) {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop",
		Labels: map[string]string{"team": "shop"}}}
	selector := open()
	selector.Services.Selector = labels.SelectorFromSet(labels.Set{"team": "shop"})
	for name, o := range map[string]streams.Options{
		"all": open(), "name": open("web", "shop"), "pattern": open("sh*"), "star": open("*"), "selector": selector,
	} {
		if r := translated(o, namespace, serviceWithPorts("shop", "db", 1, "tcp-ports", "400:pg")); len(r.Routes) != 1 {
			t.Errorf("%s: it is told %q", name, problemsOf(r, refOf("shop", "db")))
		}
	}
}

// TestMissingServicePort checks that an entry with an unknown port name does not affect the other entries.
func TestMissingServicePort(t *testing.T) {
	r := translated(open(), serviceWithPorts("shop", "db", 1, "tcp-ports", "400:nope,401:dns,402:pg,403:53"))
	missing := func(i int) bool { return r.Routes[i].Backends[0].Backend.Missing }
	if len(r.Routes) != 4 || !missing(0) || !missing(1) || missing(2) {
		t.Errorf("it opens %q", owners(r))
	}
	const field = "error InvalidBackend metadata.annotations[k8singress.io/tcp-ports]: the Service shop/db has no " +
		"TCP port "
	want := []string{field + "nope: connections are closed", field + "dns: connections are closed",
		field + "53: connections are closed"}
	if diff := cmp.Diff(want, problemsOf(r, refOf("shop", "db"))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestOnePortForMany checks which of several objects gets a port, and that the problems of the other objects name no
// object of another namespace.
func TestOnePortForMany(t *testing.T) {
	const field = "error PortConflict metadata.annotations[k8singress.io/tcp-ports]: "
	tcp := configMap("tcp", map[string]string{"5432": "shop/db:pg"})
	all := []kinds.Object{
		serviceWithPorts("shop", "db", 9, "tcp-ports", "5432:pg,400:pg"),
		serviceWithPorts("shop", "young", 1, "tcp-ports", "400:pg"),
		serviceWithPorts("web", "old", 10, "tcp-ports", "401:pg"),
		serviceWithPorts("shop", "next", 2, "tcp-ports", "401:pg"), tcp,
		// Both have the same age.
		serviceWithPorts("a", "one", 5, "tcp-ports", "402:pg"), serviceWithPorts("b", "one", 5, "tcp-ports", "402:pg"),
	}
	r := translated(open(), all...)
	want := []string{
		"tcp/400 Service/shop/db shop/db/5432", "tcp/401 Service/web/old web/old/5432",
		"tcp/402 Service/a/one a/one/5432",
		"tcp/5432 ConfigMap/ingress/tcp shop/db/5432",
	}
	if diff := cmp.Diff(want, owners(r)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for ref, words := range map[ir.Ref]string{
		refOf("shop",
			"db"): "an entry of the ConfigMap in the option tcp_services already uses the TCP port 5432: " +
			"choose another port",
		refOf("shop", "young"): "the TCP port 400 is already used by the older Service/shop/db: choose another port",
		refOf("shop",
			"next"): "the TCP port 401 is already used by an older Service of another namespace: choose another port",
		refOf("b",
			"one"): "the TCP port 402 is already used by a Service of another namespace (which is treated as older " +
			"because of its name: both were created in the same second): choose another port",
	} {
		if diff := cmp.Diff([]string{field + words}, problemsOf(r, ref)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", ref, diff)
		}
	}
	// The order of the objects does not matter. When the owner of a port is deleted, the next Service gets the port.
	if again := translated(open(), append([]kinds.Object{all[3], all[1]}, all[4])...); len(again.Routes) != 3 {
		t.Errorf("without the older ones there are %q", owners(again))
	}
}

// TestSettingsOfEitherForm checks that the annotations of a Service apply to ports from its own annotations and to
// ports from an entry of a ConfigMap. They are added to the flags of the entry.
func TestSettingsOfEitherForm(t *testing.T) {
	base := open()
	base.Policy = ir.StreamPolicy{IdleTimeout: time.Hour, Tries: 2, Responses: 3}
	db := serviceWithPorts("shop", "db", 1, "tcp-ports", "400:pg", "udp-ports", "53:dns", "stream-idle-timeout", "2h",
		"stream-proxy-protocol", "v2", "stream-trusted-proxies", "10.0.0.0/8", "stream-tls-secret", "pg-tls",
		"stream-backend-tls", "true")
	r := translated(base, db, service("plain", corev1.ServicePort{Port: 1}),
		serviceWithPorts("shop", "udp", 1, "udp-ports", "54:dns", "stream-idle-timeout", "1m"),
		configMap("tcp", map[string]string{"1": "shop/db:pg:PROXY:PROXY", "2": "shop/plain:1:PROXY:PROXY",
			"3": "shop/db:pg"}))
	tls, over := &ir.StreamTLS{Secret: ir.Name{Namespace: "shop", Name: "pg-tls"}}, &ir.BackendTLS{}
	policy := ir.StreamPolicy{IdleTimeout: 2 * time.Hour, Tries: 2}
	trusted := []string{"10.0.0.0/8"}
	want := map[string]ir.StreamRoute{
		"tcp/1": {AcceptProxy: true, Trusted: trusted, SendProxy: ir.ProxyV2, Policy: policy, TLS: tls,
			BackendTLS: over},
		"tcp/2": {AcceptProxy: true, SendProxy: ir.ProxyV1, Policy: ir.StreamPolicy{IdleTimeout: time.Hour, Tries: 2}},
		"tcp/3": {SendProxy: ir.ProxyV2, Policy: policy, TLS: tls, BackendTLS: over},
		// Trusted proxies have no effect without a PROXY protocol header, and cause no warning.
		"tcp/400": {SendProxy: ir.ProxyV2, Policy: policy, TLS: tls, BackendTLS: over},
		"udp/54":  {Policy: ir.StreamPolicy{IdleTimeout: time.Minute, Tries: 2, Responses: 3}},
	}
	for _, route := range r.Routes {
		name, got := streamName(route), *route
		got.Protocol, got.Port, got.Backends, got.Origin, got.Field = "", 0, nil, ir.Ref{}, ""
		if diff := cmp.Diff(want[name], got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		delete(want, name)
	}
	if len(want) > 0 {
		t.Errorf("there are no routes for %v", want)
	}
	// UDP does not support TLS, and the port must not be opened without it.
	if got := problemsOf(r, refOf("shop", "db")); len(got) != 1 ||
		!strings.Contains(got[0], "the UDP port 53 stays closed") {
		t.Errorf("the problems of the Service are %q", got)
	}
	if secret := (ir.Ref{Kind: kinds.Secret, Namespace: "shop", Name: "pg-tls"}); !slices.Contains(r.Refs, secret) {
		t.Errorf("the result does not depend on %s: %v", secret, r.Refs)
	}
}

// TestClosedPorts checks that ports stay closed if an annotation that restricts access is invalid, and that no other
// Service gets them.
func TestClosedPorts(t *testing.T) {
	for _, pairs := range [][]string{
		{"stream-tls-secret", "a/b"}, {"stream-accept-proxy", "yes"}, {"stream-proxy-protocol", "v9"},
		{"stream-backend-tls", "true", "stream-backend-tls-verify", "true"},
	} {
		r := translated(open(), serviceWithPorts("shop", "db", 9, append(pairs, "tcp-ports", "400:pg")...),
			serviceWithPorts("web", "next", 1, "tcp-ports", "400:pg,401:pg"),
			configMap("tcp", map[string]string{"1": "shop/db:pg", "2": "web/next:pg"}))
		want := []string{"tcp/2 ConfigMap/ingress/tcp web/next/5432", "tcp/401 Service/web/next web/next/5432"}
		if diff := cmp.Diff(want, owners(r)); diff != "" {
			t.Errorf("%v (-want +got):\n%s", pairs, diff)
		}
		if got := verdict(r, "tcp"); !cmp.Equal(got, []string{"InvalidAnnotation data[1]"}) {
			t.Errorf("%v: the problems of the ConfigMap are %q", pairs, got)
		}
		if len(problemsOf(r, refOf("shop", "db"))) != 1 || len(problemsOf(r, refOf("web", "next"))) != 1 {
			t.Errorf("%v: the Services are told %q and %q", pairs, problemsOf(r, refOf("shop", "db")),
				problemsOf(r, refOf("web", "next")))
		}
	}
}

// TestStreamChains checks that the ports of a Service get its chains, and stay closed if the administrator has not
// defined one of them. UDP ports do not support chains, and stay closed, too.
func TestStreamChains(t *testing.T) {
	o := open()
	o.Chains = []string{"office", "slow"}
	with := func(chains string) *streams.Result {
		return translated(o, serviceWithPorts("shop", "db", 1, "tcp-ports", "400:pg", "udp-ports", "53",
			"stream-chains", chains), configMap("tcp", map[string]string{"1": "shop/db:pg"}))
	}
	r := with("slow,office")
	if diff := cmp.Diff([]string{"tcp/1 ConfigMap/ingress/tcp shop/db/5432", "tcp/400 Service/shop/db shop/db/5432"},
		owners(r)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	for _, route := range r.Routes {
		if !slices.Equal(route.Chains, []string{"slow", "office"}) {
			t.Errorf("%s has the chains %q", streamName(route), route.Chains)
		}
	}
	if got := problemsOf(r, refOf("shop", "db")); len(got) != 1 ||
		!strings.Contains(got[0], "the UDP port 53 stays closed, because annotations of Service/shop/db configure "+
			"TLS, the PROXY protocol or chains") {
		t.Errorf("the problems of the Service are %q", got)
	}
	for chains, hint := range map[string]string{
		"office,ofice": `"ofice"; did you mean office?`, "x": `"x": the configuration defines only other chains`,
	} {
		r := with(chains)
		got := problemsOf(r, refOf("shop", "db"))
		if len(r.Routes) > 0 || len(got) != 1 || !strings.HasPrefix(got[0], "error InvalidAnnotation "+
			"metadata.annotations[k8singress.io/stream-chains]: there is no stream_chain "+hint) ||
			!strings.Contains(got[0], "the ports of this Service stay closed") {
			t.Errorf("%s: %q, the problems of the Service are %q", chains, owners(r), got)
		}
		if got := verdict(r, "tcp"); !cmp.Equal(got, []string{"InvalidAnnotation data[1]"}) {
			t.Errorf("%s: the problems of the ConfigMap are %q", chains, got)
		}
	}
}

func TestNoIssuer(t *testing.T) {
	off, except := open(), open()
	off.NoIssuer, except.NoIssuerFor = true, []string{"shop"}
	db := serviceWithPorts("shop", "db", 1, "tcp-ports", "400:pg", "stream-tls-host", "db.example.com")
	if r := translated(open(), db); len(r.Routes) != 1 || r.Routes[0].TLS == nil ||
		r.Routes[0].TLS.Host != "db.example.com" {
		t.Errorf("the routes are %q", owners(r))
	}
	for option, o := range map[string]streams.Options{"auto_https off": off, "auto_https_except": except} {
		r := translated(o, db)
		want := []string{"error InvalidAnnotation metadata.annotations[k8singress.io/stream-tls-host]: the option " +
			option +
			" disables certificates from issuers, so the ports of this Service stay closed: set " +
			"k8singress.io/stream-tls-secret to a Secret"}
		if diff := cmp.Diff(want, problemsOf(r, refOf("shop", "db"))); diff != "" || len(r.Routes) > 0 {
			t.Errorf("%s: %q, and (-want +got):\n%s", option, owners(r), diff)
		}
	}
}

// TestWithoutAPort checks that a Service whose annotations request no port gets an Info problem and no error.
func TestWithoutAPort(t *testing.T) {
	r := translated(open(), serviceWithPorts("shop", "db", 1, "stream-idle-timeout", "1h"))
	if got := problemsOf(r, refOf("shop", "db")); len(got) != 1 ||
		got[0] != "info InvalidAnnotation metadata.annotations: the annotations for TCP and UDP ports have no "+
			"effect, because no such port uses this Service" {
		t.Errorf("it is told %q", got)
	}
	if r := translated(open(), serviceWithPorts("shop", "db", 1)); problemsOf(r, refOf("shop", "db")) != nil ||
		len(r.Verdicts) != 2 {
		t.Errorf("there are %d verdicts", len(r.Verdicts))
	}
}

// TestExternalName checks that ports from annotations and from a ConfigMap use the external name of a Service if the
// option external_names allows it.
func TestExternalName(t *testing.T) {
	away := serviceWithPorts("shop", "away", 1, "tcp-ports", "400:5432", "udp-ports", "53")
	away.Spec = corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "db.example."}
	near := service("near")
	near.Spec = corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "127.0.0.1"}
	entries := configMap("tcp", map[string]string{"1": "shop/away:5432", "2": "shop/near:5432"})
	r := translated(open(), away, near, entries)
	names := map[string]string{}
	for _, route := range r.Routes {
		names[streamName(route)] = route.Backends[0].Backend.ExternalName
	}
	want := map[string]string{"tcp/1": "db.example:5432", "tcp/2": "", "tcp/400": "db.example:5432",
		"udp/53": "db.example:53"}
	if diff := cmp.Diff(want, names); diff != "" || !cmp.Equal(verdict(r, "tcp"), []string{"InvalidBackend data[2]"}) {
		t.Errorf("%q, and (-want +got):\n%s", verdict(r, "tcp"), diff)
	}
	off := open()
	off.ExternalNames = settings.ExternalNamesOff
	if r := translated(off, away, entries); !r.Routes[0].Backends[0].Backend.Missing ||
		len(problemsOf(r, refOf("shop", "away"))) != 2 {
		t.Errorf("it is told %q", problemsOf(r, refOf("shop", "away")))
	}
}

// FuzzServices checks that no annotations of two Services make the translation panic, that no port has two owners, and
// that the entry of the ConfigMap is not affected.
func FuzzServices(f *testing.F) {
	for _, value := range []string{"400:pg", "400:pg,401,5432:dns", "53", "443", "0,65536", ":",
		"400:{env.HOME}", "\x00", ""} {
		f.Add("tcp-ports", value, "tcp-ports", "400:pg")
		f.Add("udp-ports", value, "stream-tls-secret", value)
		f.Add("stream-trusted-proxies", value, "stream-accept-proxy", "true")
	}
	f.Fuzz(func(t *testing.T, first, value, second, other string) {
		r := translated(open(), serviceWithPorts("shop", "db", 2, first, value),
			serviceWithPorts("web", "db", 1, second, other, "udp-ports", "53:dns"),
			service("plain", corev1.ServicePort{Port: 1}), configMap("tcp", map[string]string{"5432": "shop/plain:1"}))
		checkPlaces(t, r)
		for _, v := range r.Verdicts {
			for _, p := range v.Problems {
				if p.Message == "" || p.Reason == report.Quarantined {
					t.Errorf("%s is told %+v", v.Object, p)
				}
			}
		}
	})
}

// checkPlaces checks that each port has one owner, that the options allow the port, and that the ConfigMap keeps its
// port.
func checkPlaces(t *testing.T, r *streams.Result) {
	t.Helper()
	seen := map[string]bool{}
	for _, route := range r.Routes {
		name, allowed := streamName(route), route.Port == 53 || route.Port == 5432 || route.Port >= 400 &&
			route.Port <= 499
		if seen[name] || !allowed || route.Port == 443 {
			t.Errorf("%s leads to %s", name, route.Origin)
		}
		if seen[name] = true; name == "tcp/5432" &&
			(route.Origin.Kind != kinds.ConfigMap || route.Backends[0].Backend.Service != "plain") {
			t.Errorf("%s leads to %s of %s", name, route.Backends[0].Backend.ID, route.Origin)
		}
	}
	if !seen["tcp/5432"] {
		t.Error("the entry of the ConfigMap has no port")
	}
}

// TestPortsOfANamespace checks the limit for the number of ports of a namespace. The oldest Services keep their ports,
// and other namespaces are not affected.
func TestPortsOfANamespace(t *testing.T) {
	o := open()
	o.Services.PerNamespace = 3
	r := translated(o, serviceWithPorts("b", "young", 10, "tcp-ports", "403:pg,404:pg"),
		serviceWithPorts("b", "old", 90, "tcp-ports", "401:pg,402:pg"),
		serviceWithPorts("a", "one", 5, "tcp-ports", "405:pg", "udp-ports", "53:dns"))
	want := []string{
		"tcp/401 Service/b/old b/old/pg", "tcp/402 Service/b/old b/old/pg", "tcp/403 Service/b/young b/young/pg",
		"tcp/405 Service/a/one a/one/pg", "udp/53 Service/a/one a/one/dns",
	}
	if got := owners(r); len(got) != len(want) ||
		slices.ContainsFunc(got, func(s string) bool { return strings.HasPrefix(s, "tcp/404") }) {
		t.Errorf("open are %q, want %q", got, want)
	}
	for _, v := range r.Verdicts {
		refused := slices.ContainsFunc(v.Problems,
			func(p report.Problem) bool { return p.Reason == report.PortNotAllowed })
		if refused != (v.Object.Name == "young") {
			t.Errorf("%s: %v", v.Object, v.Problems)
		}
	}
}

// TestServiceLimits checks that the administrator's maximum values limit the annotations of a Service, but
// not the keys of the ConfigMap.
func TestServiceLimits(t *testing.T) {
	o := open()
	o.Most = ir.StreamPolicy{MaxConnections: 100, IdleTimeout: time.Minute}
	r := translated(o, serviceWithPorts("b", "greedy", 1, "tcp-ports", "401:pg", "stream-max-connections", "5000",
		"stream-idle-timeout", "1h"),
		serviceWithPorts("b", "modest", 2, "tcp-ports", "402:pg", "stream-max-connections", "50",
			"stream-idle-timeout", "30s"))
	if p := r.Routes[0].Policy; p.MaxConnections != 100 || p.IdleTimeout != time.Minute {
		t.Errorf("the greedy one has %+v", p)
	}
	if p := r.Routes[1].Policy; p.MaxConnections != 50 || p.IdleTimeout != 30*time.Second {
		t.Errorf("the modest one has %+v", p)
	}
	for _, v := range r.Verdicts {
		if got := len(v.Problems); (v.Object.Name == "greedy") != (got == 2) {
			t.Errorf("%s: %v", v.Object, v.Problems)
		}
	}
	o.Policy.IdleTimeout = time.Hour
	r = translated(o, serviceWithPorts("b", "plain", 1, "tcp-ports", "401:pg"))
	if p := r.Routes[0].Policy; p.IdleTimeout != time.Hour {
		t.Errorf("what the ConfigMap says becomes %s", p.IdleTimeout)
	}
}
