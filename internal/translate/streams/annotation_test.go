package streams

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/kinds"
	"github.com/k8singress/k8singress/internal/model/report"
	"github.com/k8singress/k8singress/internal/translate/annotations"
)

// parsed parses annotations, which are given as pairs of a name without its prefix and a value.
func parsed(pairs ...string) (*Settings, []report.Problem) {
	all := map[string]string{"other.example/x": "y"}
	for i := 0; i < len(pairs); i += 2 {
		all[kinds.OwnPrefix+pairs[i]] = pairs[i+1]
	}
	return Parse(ir.StreamPolicy{Tries: 7},
		&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db", Annotations: all}})
}

var exported = cmpopts.IgnoreUnexported(Settings{})

func TestParse(t *testing.T) {
	policy := func(p ir.StreamPolicy) Settings {
		p.Tries = 7
		return Settings{Policy: p}
	}
	with := func(change func(*Settings)) Settings {
		s := policy(ir.StreamPolicy{})
		change(&s)
		return s
	}
	for _, test := range []struct {
		name  string
		pairs []string
		want  Settings
	}{
		{"nothing", nil, policy(ir.StreamPolicy{})},
		{"empty", []string{"tcp-ports", " ", "stream-idle-timeout", "", "stream-accept-proxy", ""},
			policy(ir.StreamPolicy{})},
		{"a list", []string{"tcp-ports", " 5432:pg,6379 ,7000:8000 "}, with(func(s *Settings) {
			s.TCPPorts = []Listed{{5432, "pg"}, {6379, "6379"}, {7000, "8000"}}
		})},
		{"udp", []string{"udp-ports", "53:dns"}, with(func(s *Settings) { s.UDPPorts = []Listed{{53, "dns"}} })},
		{"times", []string{"stream-idle-timeout", "1h 30m", "stream-connect-timeout", "500ms"},
			policy(ir.StreamPolicy{IdleTimeout: 90 * time.Minute, ConnectTimeout: 500 * time.Millisecond})},
		{"numbers", []string{"stream-max-connections", "5", "stream-responses", "2"},
			policy(ir.StreamPolicy{MaxConnections: 5, Responses: 2})},
		{"proxy", []string{"stream-accept-proxy", "true", "stream-trusted-proxies", "10.1.2.3/8, fd00::1",
			"stream-proxy-protocol", "V2"},
			with(func(s *Settings) {
				s.AcceptProxy, s.Trusted, s.SendProxy = true, []string{"10.0.0.0/8", "fd00::1/128"}, ir.ProxyV2
			})},
		{"chains", []string{"stream-chains", " office,,slow "},
			with(func(s *Settings) { s.Chains = []string{"office", "slow"} })},
		{"secret", []string{"stream-tls-secret", "pg-tls"}, with(func(s *Settings) {
			s.TLS = &ir.StreamTLS{Secret: ir.Name{Namespace: "shop", Name: "pg-tls"}}
		})},
		{"host", []string{"stream-tls-host", "DB.example.com"},
			with(func(s *Settings) { s.TLS = &ir.StreamTLS{Host: "db.example.com"} })},
		{"over TLS", []string{"stream-backend-tls", "true"},
			with(func(s *Settings) { s.BackendTLS = &ir.BackendTLS{} })},
		{"over TLS with a name", []string{"stream-backend-tls", "true", "stream-backend-tls-name", "PG.internal"},
			with(func(s *Settings) {
				s.BackendTLS = &ir.BackendTLS{Name: "pg.internal", SendName: true}
			})},
		{"over TLS, verified", []string{"stream-backend-tls", "true", "stream-backend-tls-secret", "ca",
			"stream-backend-tls-verify", "true"},
			with(func(s *Settings) {
				ca := ir.Name{Namespace: "shop", Name: "ca"}
				s.BackendTLS = &ir.BackendTLS{Secret: ca, Verify: true, Depth: 1, Name: "db.shop.svc", SendName: true}
			})},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, problems := parsed(test.pairs...)
			if diff := cmp.Diff(&test.want, got, exported); diff != "" || len(problems) > 0 {
				t.Errorf("%v, and (-want +got):\n%s", problems, diff)
			}
		})
	}
}

func TestParseRefused(t *testing.T) {
	for _, test := range []struct {
		name, value, words string
		closed             bool
	}{
		{"tcp-ports", "pg", `"pg" is not a valid entry`, false},
		{"tcp-ports", "0", `"0" is not a valid entry`, false},
		{"tcp-ports", "65536:pg", `"65536:pg" is not a valid entry`, false},
		{"tcp-ports", "5432:", `"5432:" is not a valid entry`, false},
		{"tcp-ports", "5432: pg", "such as 5432 or 5432:pg, without a space next to the colon; ", false},
		{"tcp-ports", "5432:pg:PROXY", "is not a valid entry", false},
		{"tcp-ports", "5432:53/udp", "is not a valid entry", false},
		{"tcp-ports", "5432:{env.HOME}", "is not a valid entry", false},
		{"tcp-ports", ",", "contains no port", false},
		{"udp-ports", "5\n3", "U+000A", false},
		{"stream-idle-timeout", "0", "is not a valid time", false},
		{"stream-idle-timeout", "{env.HOME}", "is not a valid time", false},
		{"stream-connect-timeout", "-1s", "is not a valid time", false},
		{"stream-max-connections", "0", "is not a number from 1", false},
		{"stream-responses", "-1", "is not a number from 0", false},
		{"stream-accept-proxy", "yes", "neither", true},
		{"stream-proxy-protocol", "v3", "is not one of v1, v2", true},
		{"stream-trusted-proxies", "10.0.0.0/8\x00", "U+0000", true},
		{"stream-chains", strings.Repeat("a,", 33), "the list has 33 names", true},
		{"stream-chains", "office\x00", "U+0000", true},
		{"stream-tls-secret", "other/pg-tls", "contains a namespace", true},
		{"stream-tls-secret", "PG", "is not the name of a Secret", true},
		{"stream-tls-host", "*.example.com", "is not a host name", true},
		{"stream-tls-host", "192.0.2.1", "is not a host name", true},
		{"stream-tls-host", "{env.HOME}", "is not a host name", true},
		{"stream-backend-tls", "on", "neither", true},
		{"stream-backend-tls-secret", "a/b", "contains a namespace", true},
		{"stream-backend-tls-verify", "on", "neither", true},
		{"stream-backend-tls-name", "a b", "is not a host name", true},
	} {
		t.Run(test.name+" "+test.value, func(t *testing.T) {
			got, problems := parsed(test.name, test.value)
			want := &Settings{Policy: ir.StreamPolicy{Tries: 7}, Closed: test.closed}
			if diff := cmp.Diff(want, got, exported); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if len(problems) != 1 || problems[0].Severity != report.Error ||
				!strings.Contains(problems[0].Message, test.words) ||
				problems[0].Field != "metadata.annotations[k8singress.io/"+test.name+"]" ||
				strings.Contains(problems[0].Message, staysClosed) != test.closed {
				t.Errorf("the problems are %+v", problems)
			}
		})
	}
}

// TestPartly checks that the valid entries of a list take effect although other entries are invalid.
func TestPartly(t *testing.T) {
	got, problems := parsed("tcp-ports", "5432:pg, nope, 6379, 5432:other")
	if diff := cmp.Diff([]Listed{{5432, "pg"}, {6379, "6379"}}, got.TCPPorts); diff != "" || len(problems) != 1 {
		t.Errorf("%v, and (-want +got):\n%s", problems, diff)
	}
	for value, want := range map[string]string{"10.0.0.0/8,nope": "10.0.0.0/8", "nope": "255.255.255.255/32",
		"{env.HOME}": "255.255.255.255/32"} {
		got, problems := parsed("stream-accept-proxy", "true", "stream-trusted-proxies", value)
		if diff := cmp.Diff([]string{want}, got.Trusted); diff != "" || len(problems) != 1 || got.Closed {
			t.Errorf("%s: %v, and (-want +got):\n%s", value, problems, diff)
		}
	}
}

func TestTogether(t *testing.T) {
	got, problems := parsed("stream-backend-tls", "true", "stream-backend-tls-verify", "true")
	if len(problems) != 1 || problems[0].Severity != report.Error || !got.Closed ||
		!strings.Contains(problems[0].Message, staysClosed) {
		t.Errorf("endpoints are verified with nothing: %+v, %+v", got, problems)
	}
	for _, pairs := range [][]string{
		{"stream-tls-host", "a.example", "stream-tls-secret", "pg"},
		{"stream-backend-tls-secret", "ca"}, {"stream-backend-tls-verify", "true"}, {"stream-backend-tls-name", "x"},
	} {
		got, problems := parsed(pairs...)
		if len(problems) != 1 || problems[0].Severity != report.Warning ||
			!strings.Contains(problems[0].Message, "has no effect") || got.Closed {
			t.Errorf("%v: %+v, %+v", pairs, got, problems)
		}
		if got.BackendTLS != nil || got.TLS != nil && got.TLS.Host != "" {
			t.Errorf("%v: %+v", pairs, got)
		}
	}
}

func TestUnknown(t *testing.T) {
	for name, near := range map[string]string{
		"stream-idle-timeuot": "k8singress.io/stream-idle-timeout", "tcp-port": "k8singress.io/tcp-ports",
		"frobnicate": "",
	} {
		_, problems := parsed(name, "x")
		if len(problems) != 1 || problems[0].Severity != report.Warning ||
			problems[0].Reason != report.UnknownAnnotation {
			t.Fatalf("%s: %+v", name, problems)
		}
		_, meant, _ := strings.Cut(problems[0].Message, "did you mean ")
		if want := near; want != "" && meant != strings.TrimPrefix(want, kinds.OwnPrefix)+"?" ||
			want == "" && meant != "" {
			t.Errorf("%s: %s", name, problems[0].Message)
		}
	}
}

// FuzzAnnotations checks that no value makes the parser panic, that each value is either used unchanged or rejected
// with a reason, and that ports stay closed if an annotation that restricts access is invalid.
func FuzzAnnotations(f *testing.F) {
	for _, row := range Table {
		f.Add(strings.TrimPrefix(row.Name, prefix), row.Example)
		f.Add(strings.TrimPrefix(row.Name, prefix), row.Example+"{env.HOME}")
		f.Add(strings.TrimPrefix(row.Name, prefix), "\x00"+row.Example)
	}
	for _, value := range []string{"", ",", ":", "::", "0", "65536", "1:1:1", "{$X}", "\xff", "a/b", "../x",
		"10.0.0.0/8,x", "::ffff:1.2.3.4/96"} {
		f.Add("tcp-ports", value)
		f.Add("stream-trusted-proxies", value)
		f.Add("stream-tls-secret", value)
	}
	f.Fuzz(func(t *testing.T, name, value string) {
		// parsed gets a valid annotation in addition to the fuzzed annotation.
		if name == "stream-connect-timeout" {
			t.Skip("it replaces the good one")
		}
		got, problems := parsed(name, value, "stream-connect-timeout", "2s")
		if got.Policy.ConnectTimeout != 2*time.Second {
			t.Errorf("another annotation is %v", got.Policy.ConnectTimeout)
		}
		refused := false
		for _, p := range problems {
			refused = refused || p.Severity == report.Error
			if p.Field != report.AnnotationField(prefix+name) || p.Message == "" {
				t.Errorf("the problem is %+v", p)
			}
		}
		if got.Closed && !refused {
			t.Error("the ports stay closed, and no word of it")
		}
		checkSettings(t, name, value, got, refused)
	})
}

// checkSettings checks the properties that all settings must have.
func checkSettings(t *testing.T, name, value string, s *Settings, refused bool) {
	t.Helper()
	for _, l := range append(s.TCPPorts, s.UDPPorts...) {
		if l.Port == 0 || l.Target == "" || !strings.Contains(value, l.Target) ||
			strings.ContainsAny(l.Target, "{}/:\x00") {
			t.Errorf("%q became %+v", value, l)
		}
	}
	if value = strings.TrimSpace(value); value == "" || s.Closed {
		return
	}
	switch name {
	case "stream-trusted-proxies":
		if len(s.Trusted) == 0 {
			t.Errorf("%q is everybody", value)
		}
	case "stream-tls-secret":
		if refused || s.TLS == nil || s.TLS.Secret != (ir.Name{Namespace: "shop", Name: value}) {
			t.Errorf("%q became %+v", value, s.TLS)
		}
	}
}

// TestAnnotationsOfTheOtherKind checks the warnings for annotations of Services on an Ingress, and the other way round.
func TestAnnotationsOfTheOtherKind(t *testing.T) {
	onIngress := map[string]string{}
	for _, row := range Table {
		onIngress[row.Name] = row.Example
	}
	_, problems := annotations.Parse(annotations.Settings{}, onIngress)
	if len(problems) != len(Table) {
		t.Errorf("%d problems for %d annotations", len(problems), len(Table))
	}
	for _, p := range problems {
		if p.Reason != report.UnknownAnnotation || !strings.Contains(p.Message, " is an annotation of Services") {
			t.Errorf("%+v", p)
		}
	}
	_, problems = parsed("auto-https", "all")
	if len(problems) != 1 ||
		problems[0].Message != "k8singress.io/auto-https is an annotation of Ingresses, and has no effect on a "+
			"Service" {
		t.Errorf("%+v", problems)
	}
}
