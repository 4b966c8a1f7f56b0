package streams_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/kinds"
	"github.com/k8singress/k8singress/internal/model/report"
	"github.com/k8singress/k8singress/internal/model/snapshot"
	"github.com/k8singress/k8singress/internal/translate/streams"
)

var options = streams.Options{
	TCP: ir.Name{Namespace: "ingress", Name: "tcp"}, UDP: ir.Name{Namespace: "ingress", Name: "udp"},
	Reserved: []streams.ReservedPort{{Protocol: ir.TCP, Port: 443, Owner: "https"}},
}

func service(name string, ports ...corev1.ServicePort) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name},
		Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeClusterIP, Ports: ports},
	}
}

func configMap(name string, data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ingress", Name: name}, Data: data}
}

// read translates two ConfigMaps with the given data, together with a few Services.
func read(tcp, udp map[string]string) *streams.Result {
	external := service("external", corev1.ServicePort{Port: 80})
	external.Spec.Type = corev1.ServiceTypeExternalName
	store := snapshot.NewStore()
	for _, o := range []kinds.Object{
		configMap("tcp", tcp), configMap("udp", udp), external,
		service("db", corev1.ServicePort{Name: "pg", Port: 5432}),
		// The name of the Service starts with the name of its port.
		service("http-echo", corev1.ServicePort{Name: "http", Port: 8080}),
		service("dns",
			corev1.ServicePort{Name: "dns", Port: 53, Protocol: corev1.ProtocolUDP},
			corev1.ServicePort{Name: "dns-tcp", Port: 53, Protocol: corev1.ProtocolTCP}),
	} {
		store.Set(o)
	}
	return streams.Translate(store.Take(), options)
}

// verdict returns the reason and field of each problem of a ConfigMap.
func verdict(r *streams.Result, name string) []string {
	return problemTexts(r, name, func(p report.Problem) string { return string(p.Reason) + " " + p.Field })
}

// messages returns the message of each problem of a ConfigMap.
func messages(r *streams.Result, name string) []string {
	return problemTexts(r, name, func(p report.Problem) string { return p.Message })
}

func problemTexts(r *streams.Result, name string, text func(report.Problem) string) []string {
	var all []string
	for _, v := range r.Verdicts {
		if v.Object != (ir.Ref{Kind: kinds.ConfigMap, Namespace: "ingress", Name: name}) {
			continue
		}
		for _, p := range v.Problems {
			all = append(all, text(p))
		}
	}
	return all
}

// backendOf returns the expected backend for a TCP port. If the port name is empty, the backend is marked as missing.
func backendOf(service, id, port string) *ir.Backend {
	return &ir.Backend{ID: id, Namespace: "shop", Service: service, Protocol: ir.TCP, PortName: port,
		Missing: port == ""}
}

func TestEntry(t *testing.T) {
	db := backendOf("db", "shop/db/5432", "pg")
	for _, test := range []struct {
		name, value string
		want        ir.StreamRoute
		reason      report.Reason
	}{
		{name: "number", value: "shop/db:5432", want: ir.StreamRoute{Backends: ir.To(db)}},
		{name: "name", value: "shop/db:pg", want: ir.StreamRoute{Backends: ir.To(db)}},
		{name: "PROXY from clients", value: "shop/db:pg:PROXY",
			want: ir.StreamRoute{Backends: ir.To(db), AcceptProxy: true}},
		{name: "PROXY to the backend", value: "shop/db:pg::PROXY",
			want: ir.StreamRoute{Backends: ir.To(db), SendProxy: ir.ProxyV1}},
		{name: "both", value: "shop/db:pg:proxy:Proxy",
			want: ir.StreamRoute{Backends: ir.To(db), AcceptProxy: true, SendProxy: ir.ProxyV1}},
		{
			name: "a Service that begins like its port", value: "shop/http-echo:http",
			want: ir.StreamRoute{Backends: ir.To(backendOf("http-echo", "shop/http-echo/8080", "http"))},
		},
		{
			name: "the port of this protocol", value: "shop/dns:53",
			want: ir.StreamRoute{Backends: ir.To(backendOf("dns", "shop/dns/53", "dns-tcp"))},
		},
		{
			name: "no such Service", value: "shop/nobody:1", reason: report.ServiceNotFound,
			want: ir.StreamRoute{Backends: ir.To(backendOf("nobody", "shop/nobody/1", ""))},
		},
		{
			name: "no such port", value: "shop/db:nope", reason: report.InvalidBackend,
			want: ir.StreamRoute{Backends: ir.To(backendOf("db", "shop/db/nope", ""))},
		},
		{
			name: "port 0", value: "shop/db:0", reason: report.InvalidBackend,
			want: ir.StreamRoute{Backends: ir.To(backendOf("db", "shop/db/0", ""))},
		},
		{
			name: "ExternalName", value: "shop/external:80", reason: report.InvalidBackend,
			want: ir.StreamRoute{Backends: ir.To(backendOf("external", "shop/external/80", ""))},
		},
		{name: "empty", value: "", reason: report.InvalidEntry},
		{name: "no namespace", value: "db:5432", reason: report.InvalidEntry},
		{name: "empty namespace", value: "/db:5432", reason: report.InvalidEntry},
		{name: "no Service", value: "shop/:5432", reason: report.InvalidEntry},
		{name: "no port", value: "shop/db", reason: report.InvalidEntry},
		{name: "empty port", value: "shop/db:", reason: report.InvalidEntry},
		{name: "too much", value: "shop/db:pg:PROXY:PROXY:PROXY", reason: report.InvalidEntry},
		{name: "not PROXY", value: "shop/db:pg:SOCKS", reason: report.InvalidEntry},
		{name: "three names", value: "shop/db/x:pg", reason: report.InvalidEntry},
		{name: "a port that is another backend's", value: "shop/dns:53/udp", reason: report.InvalidEntry},
		{name: "space", value: "shop/db: 5432", reason: report.InvalidEntry},
		{name: "placeholder", value: "shop/{env.HOME}:pg", reason: report.InvalidEntry},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := read(map[string]string{"9000": test.value}, nil)
			var problems []string
			if test.reason != "" {
				problems = []string{string(test.reason) + " data[9000]"}
			}
			if diff := cmp.Diff(problems, verdict(r, "tcp")); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
			var want []*ir.StreamRoute
			if test.want.Backends != nil {
				test.want.Protocol, test.want.Port, test.want.Field = ir.TCP, 9000, "data[9000]"
				test.want.Origin = ir.Ref{Kind: kinds.ConfigMap, Namespace: "ingress", Name: "tcp"}
				want = append(want, &test.want)
			}
			if diff := cmp.Diff(want, r.Routes); diff != "" {
				t.Errorf("routes (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPort(t *testing.T) {
	for _, test := range []struct {
		key  string
		port uint16
	}{
		{"1", 1}, {"65535", 65535}, {"0080", 80}, {"", 0}, {"0", 0}, {"65536", 0}, {"-1", 0}, {"+1", 0},
		{"0x50", 0}, {"1_0", 0},
		{"pg", 0}, {" 1", 0},
	} {
		r := read(map[string]string{test.key: "shop/db:pg"}, nil)
		switch {
		case test.port == 0 && (len(r.Routes) != 0 ||
			!cmp.Equal(verdict(r, "tcp"), []string{"InvalidEntry data[" + test.key + "]"})):
			t.Errorf("%q: got %v and %v", test.key, r.Routes, verdict(r, "tcp"))
		case test.port != 0 && (len(r.Routes) != 1 || r.Routes[0].Port != test.port || len(verdict(r, "tcp")) > 0):
			t.Errorf("%q: got %v and %v", test.key, r.Routes, verdict(r, "tcp"))
		}
	}
}

// TestTwice checks that of several entries for one port, the entry without leading zeros is used.
func TestTwice(t *testing.T) {
	r := read(map[string]string{"0053": "shop/db:pg", "53": "shop/dns:53", "00053": "shop/db:pg"}, nil)
	if len(r.Routes) != 1 || r.Routes[0].Backends[0].Backend.Service != "dns" {
		t.Errorf("routes: %v", r.Routes)
	}
	if diff := cmp.Diff([]string{"InvalidEntry data[0053]", "InvalidEntry data[00053]"},
		verdict(r, "tcp")); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
	for _, message := range messages(r, "tcp") {
		if !strings.Contains(message, " and the entry data[53] is used") {
			t.Errorf("it does not say which entry is used: %s", message)
		}
	}
}

func TestReserved(t *testing.T) {
	r := read(map[string]string{"443": "shop/db:pg"}, map[string]string{"443": "shop/dns:53"})
	if len(r.Routes) != 1 || r.Routes[0].Protocol != ir.UDP {
		t.Errorf("routes: %v", r.Routes)
	}
	if diff := cmp.Diff([]string{"PortConflict data[443]"}, verdict(r, "tcp")); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
}

// TestUDP checks that TCP and UDP share neither ports nor backends.
func TestUDP(t *testing.T) {
	r := read(map[string]string{"53": "shop/dns:53"},
		map[string]string{"53": "shop/dns:53", "54": "shop/dns:53:PROXY", "55": "shop/db:pg"})
	var got []string
	for _, route := range r.Routes {
		got = append(got, string(route.Protocol)+" "+route.Backends[0].Backend.ID+" "+
			route.Backends[0].Backend.PortName)
	}
	if diff := cmp.Diff([]string{"tcp shop/dns/53 dns-tcp", "udp shop/dns/53/udp dns", "udp shop/db/pg/udp "},
		got); diff != "" {
		t.Errorf("routes (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"InvalidEntry data[54]", "InvalidBackend data[55]"}, verdict(r, "udp")); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
}

// TestWithoutABackend checks that the messages describe the effect for clients of each protocol.
func TestWithoutABackend(t *testing.T) {
	data := map[string]string{"55": "shop/db:nope", "56": "shop/nobody:1"}
	r := read(data, data)
	for name, want := range map[string]string{"tcp": "connections are closed", "udp": "datagrams are dropped"} {
		verdict := messages(r, name)
		if len(verdict) != 2 || !strings.HasSuffix(verdict[0], ": "+want) ||
			!strings.HasSuffix(verdict[1], ": "+want+" until it exists") {
			t.Errorf("%s: want %s in %q", name, want, verdict)
		}
	}
}

// TestWithoutConfigMap checks that a missing ConfigMap opens no ports and gets a verdict, and that the result depends
// on the ConfigMap.
func TestWithoutConfigMap(t *testing.T) {
	r := streams.Translate(snapshot.NewStore().Take(), options)
	want := []ir.Ref{{Kind: kinds.ConfigMap, Namespace: "ingress", Name: "tcp"},
		{Kind: kinds.ConfigMap, Namespace: "ingress", Name: "udp"}}
	if diff := cmp.Diff(want, r.Refs); diff != "" || len(r.Routes) > 0 {
		t.Errorf("routes %v, refs (-want +got):\n%s", r.Routes, diff)
	}
	for i, message := range []string{
		"the ConfigMap ingress/tcp of the option tcp_services does not exist: no TCP ports are open until it exists",
		"the ConfigMap ingress/udp of the option udp_services does not exist: no UDP ports are open until it exists",
	} {
		verdict := &report.Verdict{Object: want[i], Problems: []report.Problem{{
			Severity: report.Warning, Reason: report.ConfigMapNotFound, Message: message,
		}}}
		if diff := cmp.Diff(verdict, r.Verdicts[i]); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
	if diff := cmp.Diff(&streams.Result{},
		streams.Translate(snapshot.NewStore().Take(), streams.Options{})); diff != "" {
		t.Errorf("without names (-want +got):\n%s", diff)
	}
}

// FuzzStreams checks that no entry makes the translation panic, that each entry is either used unchanged or rejected
// with a reason, and that other entries are not affected.
func FuzzStreams(f *testing.F) {
	for _, value := range []string{
		"shop/db:5432", "shop/db:pg:PROXY:PROXY", "shop/db:pg::", "shop/http-echo:http", "shop/dns:53/udp",
		"shop/dns/53:udp", "shop/nobody:1",
		"shop/external:80", "shop/{env.HOME}:80",
		"{file./etc/hostname}/db:5432", "shop/db:{env.HOME}", "shop/db:{$X}", "/:", "::::", "", "\x00/\xff:\n",
	} {
		for _, key := range []string{"9000", "5432", "05432", "443"} {
			f.Add(key, value, false)
			f.Add(key, value, true)
		}
	}
	for _, key := range []string{"", "0", "65536", "-1", "{env.HOME}", "{$X}", "\xff", "9000\n"} {
		f.Add(key, "shop/db:pg", false)
	}
	good := func() (tcp, udp map[string]string) {
		return map[string]string{"5432": "shop/db:pg",
			"8080": "shop/http-echo:http"}, map[string]string{"5432": "shop/dns:53"}
	}
	alone := read(good())
	f.Fuzz(func(t *testing.T, key, value string, isUDP bool) {
		tcp, udp := good()
		data, name, protocol := tcp, "tcp", ir.TCP
		if isUDP {
			data, name, protocol = udp, "udp", ir.UDP
		}
		if _, taken := data[key]; taken {
			t.Skip("it replaces a good entry")
		}
		data[key] = value
		r := read(tcp, udp)
		more := checkRoutes(t, alone, r)
		if len(more) > 1 {
			t.Fatalf("one entry makes %d routes", len(more))
		}
		if len(more) == 0 && len(verdict(r, name)) == 0 {
			t.Error("the entry is left out, and no word of it")
		}
		for _, route := range more {
			checkText(t, route, key, value)
			if route.Protocol != protocol || route.Backends[0].Backend.Missing != (len(verdict(r, name)) > 0) {
				t.Errorf("the route is %+v to %+v, the verdict %v", route, route.Backends[0].Backend, verdict(r, name))
			}
		}
		for _, field := range verdict(r, name) {
			if !strings.HasSuffix(field, "data["+key+"]") {
				t.Errorf("another entry is told: %s", field)
			}
		}
	})
}

// checkRoutes checks that r has all routes of alone, and that no two backends share an ID. It returns the routes of r
// that alone does not have.
func checkRoutes(t *testing.T, alone, r *streams.Result) []*ir.StreamRoute {
	t.Helper()
	type place struct {
		protocol ir.Protocol
		port     uint16
	}
	before := map[place]*ir.StreamRoute{}
	for _, route := range alone.Routes {
		before[place{route.Protocol, route.Port}] = route
	}
	var more []*ir.StreamRoute
	backends := map[string]*ir.Backend{}
	for _, route := range r.Routes {
		to := route.Backends[0].Backend
		if old := backends[to.ID]; old != nil && *old != *to {
			t.Errorf("two backends of one ID: %+v and %+v", old, to)
		}
		backends[to.ID] = to
		where := place{route.Protocol, route.Port}
		want := before[where]
		if want == nil {
			more = append(more, route)
			continue
		}
		if diff := cmp.Diff(want, route); diff != "" {
			t.Errorf("a good entry (-want +got):\n%s", diff)
		}
		delete(before, where)
	}
	if len(before) > 0 {
		t.Errorf("good entries are gone: %v", before)
	}
	return more
}

// checkText checks that the route has the texts of the entry.
func checkText(t *testing.T, route *ir.StreamRoute, key, value string) {
	t.Helper()
	b := route.Backends[0].Backend
	if !strings.HasPrefix(value, b.Namespace+"/"+b.Service+":") || strings.ContainsAny(b.ID, "{}$%\x00\n ") {
		t.Errorf("the entry %q became %+v", value, b)
	}
	if strings.Trim(key, "0123456789") != "" || route.Port == 0 {
		t.Errorf("the key %q became port %d", key, route.Port)
	}
}

// TestOneConfigMapForBoth checks that the options for TCP and UDP may name the same ConfigMap, which then gets a single
// verdict for both protocols.
func TestOneConfigMapForBoth(t *testing.T) {
	store := snapshot.NewStore()
	store.Set(configMap("both", map[string]string{"70": "shop/nothing:70"}))
	both := ir.Name{Namespace: "ingress", Name: "both"}
	r := streams.Translate(store.Take(), streams.Options{TCP: both, UDP: both})
	if len(r.Verdicts) != 1 || len(r.Verdicts[0].Problems) != 2 || len(r.Routes) != 2 {
		t.Errorf("%d verdicts, %v, %d ports", len(r.Verdicts), verdict(r, "both"), len(r.Routes))
	}
}
