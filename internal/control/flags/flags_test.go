package flags_test

import (
	"flag"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/k8singress/k8singress/internal/control/flags"
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/report"
	"github.com/k8singress/k8singress/internal/model/settings"
	"github.com/k8singress/k8singress/internal/tests/fixture"
)

var update = flag.Bool("update", false, "rewrite the document")

func TestReference(t *testing.T) {
	fixture.Printed(t, "../../../docs/flags.md", map[string]any{"Rows": flags.Table}, *update)
}

// known lists the flags of ingress-nginx v1.15.1, without the flags of its libraries.
const known = `annotations-prefix apiserver-host bucket-factor certificate-authority configmap controller-class
deep-inspect default-backend-service default-server-port default-ssl-certificate disable-catch-all disable-full-test
disable-leader-election disable-svc-external-name disable-sync-events dynamic-configuration-retries election-id
election-ttl enable-annotation-validation enable-metrics enable-ssl-chain-completion enable-ssl-passthrough
enable-topology-aware-routing exclude-socket-metrics health-check-path health-check-timeout healthz-host healthz-port
http-port https-port ingress-class ingress-class-by-name internal-logger-address kubeconfig length-buckets max-buckets
maxmind-edition-ids maxmind-license-key maxmind-mirror maxmind-retries-count maxmind-retries-timeout metrics-per-host
metrics-per-undefined-host monitor-max-batch-size post-shutdown-grace-period profiler-address profiler-port profiling
publish-service publish-status-address report-node-internal-ip-address report-status-classes shutdown-grace-period
size-buckets ssl-passthrough-proxy-port status-port status-update-interval stream-port sync-period sync-rate-limit
tcp-services-configmap time-buckets udp-services-configmap update-status update-status-on-shutdown validating-webhook
validating-webhook-certificate validating-webhook-key watch-ingress-without-class watch-namespace
watch-namespace-selector`

// apply applies flags that are given once.
func apply(base settings.Config, given map[string]string) (flags.Settings, []report.Problem) {
	all := flags.Given{}
	for name, value := range given {
		all[name] = []string{value}
	}
	return flags.Apply(base, all)
}

// TestEveryFlagIsThere checks that the table has every flag of ingress-nginx, so that no flag prevents the start.
func TestEveryFlagIsThere(t *testing.T) {
	names := strings.Fields(known)
	if len(names) != 71 {
		t.Errorf("the list has %d names; --version is the 72nd, and is a matter of the command", len(names))
	}
	for _, name := range names {
		if flags.Table.Find(name) == nil {
			t.Errorf("--%s is missing", name)
		}
	}
}

// TestRows checks that every row has the texts for the documentation, and an example that works.
func TestRows(t *testing.T) {
	seen := map[string]bool{}
	for i := range flags.Table {
		row := &flags.Table[i]
		if seen[row.Name] {
			t.Errorf("%s is given twice", row.Name)
		}
		seen[row.Name] = true
		if row.Values == "" || row.Default+row.Ignored == "" || row.Doc+row.Ignored == "" ||
			strings.ContainsAny(row.Doc+row.Ignored, "\n|") {
			t.Errorf("%s cannot be printed", row.Name)
		}
		given := map[string]string{row.Name: row.Example}
		if strings.HasPrefix(row.Name, "validating-webhook") {
			// The three flags need each other.
			given = map[string]string{"validating-webhook": ":1", "validating-webhook-certificate": "a",
				"validating-webhook-key": "b"}
			given[row.Name] = row.Example
		}
		_, problems := apply(settings.Config{}, given)
		if warned := len(problems) > 0; warned != (row.Ignored != "") {
			t.Errorf("--%s=%s: problems are %v", row.Name, row.Example, problems)
		}
	}
}

// TestWithoutFlags checks that the defaults without flags are those of ingress-nginx.
func TestWithoutFlags(t *testing.T) {
	want := settings.Config{
		Health: ":10254", HealthMetrics: true, HealthReady: true, AutoHTTPS: settings.AutoHTTPSOff,
		ElectionID: "k8singress-ingress-controller-leader", ElectionFallback: "ingress-controller-leader",
		ElectionTTL: settings.Duration(30 * time.Second), PublishNodes: settings.PublishNodesExternal,
		Source: &settings.Source{Kubernetes: new(settings.Kubernetes)}, NginxMetrics: new(settings.NginxMetrics),
	}
	got, problems := apply(settings.Config{}, nil)
	if diff := cmp.Diff(want, got.Config); diff != "" || len(problems) > 0 {
		t.Errorf("problems %v, -want +got:\n%s", problems, diff)
	}
}

// TestCommandLine checks the options that result from the flags that the Helm chart of ingress-nginx sets, and from
// some more flags.
func TestCommandLine(t *testing.T) {
	got, problems := apply(settings.Config{Health: "127.0.0.1:9999", AutoHTTPS: settings.AutoHTTPSAll},
		map[string]string{
			"publish-service": "ingress-nginx/ingress-nginx-controller", "election-id": "ingress-nginx-leader",
			"controller-class": "k8s.io/ingress-nginx",
			"ingress-class":    "nginx", "ingress-class-by-name": "true", "disable-leader-election": "true",
			"configmap": "ingress-nginx/ingress-nginx-controller", "tcp-services-configmap": "ingress-nginx/tcp",
			"http-port": "8080", "https-port": "8443", "healthz-port": "10255", "health-check-path": "/alive",
			"enable-metrics":          "false",
			"default-ssl-certificate": "a/b", "default-backend-service": "a/default", "watch-namespace": "shop",
			"watch-ingress-without-class": "true",
			"disable-svc-external-name":   "true", "shutdown-grace-period": "10", "election-ttl": "1m",
			"enable-ssl-passthrough": "true", "v": "5",
		})
	name := func(namespace, name string) ir.Name { return ir.Name{Namespace: namespace, Name: name} }
	want := settings.Config{
		Health: "127.0.0.1:10255", HealthPath: "/alive", HealthReady: true, AutoHTTPS: settings.AutoHTTPSAll,
		ElectionID: "k8singress-ingress-nginx-leader", ElectionFallback: "ingress-nginx-leader",
		Election:    settings.ElectionOff,
		ElectionTTL: settings.Duration(time.Minute), ShutdownDelay: settings.Duration(10 * time.Second),
		SSLPassthrough: true,
		PublishService: name("ingress-nginx", "ingress-nginx-controller"),
		ConfigMap:      name("ingress-nginx", "ingress-nginx-controller"),
		TCPServices:    name("ingress-nginx", "tcp"), DefaultCertificate: name("a", "b"),
		DefaultBackend: ir.ServicePort{Service: name("a", "default")},
		ControllerName: "k8s.io/ingress-nginx", IngressClass: "nginx", HTTP: []string{":8080"},
		HTTPS:              []string{":8443"},
		IngressClassByName: true, WatchIngressWithoutClass: true, ExternalNames: settings.ExternalNamesOff,
		Source: &settings.Source{Kubernetes: &settings.Kubernetes{Namespaces: []string{"shop"}}},
	}
	if diff := cmp.Diff(want, got.Config); diff != "" || len(problems) > 0 || !got.Debug {
		t.Errorf("problems %v, -want +got:\n%s", problems, diff)
	}
}

// TestNoStatus checks that update-status=false turns the status off, and that the Service of publish-service is still
// an option. The controller needs it, because no endpoint may have the addresses of its own Service.
func TestNoStatus(t *testing.T) {
	got, _ := apply(settings.Config{}, map[string]string{"publish-service": "a/b", "update-status": "false"})
	if got.Config.Status != settings.StatusOff || got.Config.PublishService.IsZero() {
		t.Errorf("the options are %+v", got.Config)
	}
}

// TestNodes checks that, if no flag sets another address, the status contains the addresses of nodes, as in
// ingress-nginx.
func TestNodes(t *testing.T) {
	internal := "report-node-internal-ip-address"
	for want, given := range map[string]map[string]string{
		settings.PublishNodesInternal: {internal: "true"}, settings.PublishNodesExternal: {internal: "false"},
		"": {internal: "true", "publish-status-address": "192.0.2.1"},
	} {
		if got, problems := apply(settings.Config{}, given); got.Config.PublishNodes != want ||
			len(problems) > 0 {
			t.Errorf("%v: publish_nodes %q, problems %v", given, got.Config.PublishNodes, problems)
		}
	}
	got, _ := apply(settings.Config{}, map[string]string{internal: "true", "update-status": "false"})
	if got.Config.PublishNodes != "" {
		t.Errorf("without a status: publish_nodes %q", got.Config.PublishNodes)
	}
}

// TestRefused checks that an unsupported value of a flag causes an error, which prevents the start.
func TestRefused(t *testing.T) {
	for _, c := range []struct{ name, value, message string }{
		{"configmap", "no-namespace", "is not namespace/name"},
		{"http-port", "http", "is not a port"},
		{"http-port", "65536", "is not a port"},
		{"enable-metrics", "perhaps", "is neither true nor false"},
		{"shutdown-grace-period", "-1", "is not a number of seconds"},
		{"election-ttl", "30", "is not a duration"},
		{"health-check-path", "healthz", "is not a path"},
		{"health-check-path", "/{env.HOME}", "is not a path"},
		{"election-ttl", "1s", "at least 5s"},
		{"annotations-prefix", "example.com", "may restrict access"},
		{"enable-ssl-chain-completion", "true", "tls.crt"},
		{"apiserver-host", "https://192.0.2.1", "--kubeconfig"},
		{"time-buckets", "1,x", "is not a number"},
		{"size-buckets", "10,1", "in ascending order"},
		{"bucket-factor", "-1", "above 1"},
		{"max-buckets", "-1", "is not a number of buckets"},
		{"report-status-classes", "$(POD_NAMESPACE)", "has not replaced"},
	} {
		before, _ := apply(settings.Config{}, nil)
		got, problems := apply(settings.Config{}, map[string]string{c.name: c.value})
		if len(problems) != 1 || problems[0].Severity != report.Error ||
			!strings.Contains(problems[0].Message, c.message) {
			t.Errorf("--%s=%s: problems are %v", c.name, c.value, problems)
		}
		if diff := cmp.Diff(before.Config, got.Config); diff != "" {
			t.Errorf("--%s=%s changes the options:\n%s", c.name, c.value, diff)
		}
	}
	_, problems := apply(settings.Config{},
		map[string]string{"publish-service": "a/b", "publish-status-address": "192.0.2.1"})
	if len(problems) != 1 || problems[0].Severity != report.Error || problems[0].Field != "--publish-status-address" {
		t.Errorf("two addresses: problems are %v", problems)
	}
}

// TestNginxMetrics checks the flags about the metrics with the names of ingress-nginx.
func TestNginxMetrics(t *testing.T) {
	base := settings.Config{NginxMetrics: &settings.NginxMetrics{MaxLabelSets: 7}}
	got, problems := apply(base, map[string]string{
		"metrics-per-host": "true", "metrics-per-undefined-host": "true", "report-status-classes": "true",
		"time-buckets": "0.1,1,+Inf", "length-buckets": " 100 ", "size-buckets": "1e3,1e6", "bucket-factor": "1.1",
		"max-buckets": "50", "exclude-socket-metrics": "nginx_ingress_controller_bytes_sent,requests,bytes_sent",
	})
	want := &settings.NginxMetrics{
		UndefinedHosts: true, StatusClasses: true, TimeBuckets: []float64{0.1, 1}, LengthBuckets: []float64{100},
		SizeBuckets: []float64{1e3, 1e6}, BucketFactor: 1.1, MaxBuckets: 50, MaxLabelSets: 7,
		Exclude: []string{"bytes_sent", "requests"},
	}
	if diff := cmp.Diff(want, got.Config.NginxMetrics); diff != "" || len(problems) > 0 {
		t.Errorf("problems %v, -want +got:\n%s", problems, diff)
	}
	if base.NginxMetrics.StatusClasses {
		t.Error("the flags changed the options of the Caddyfile")
	}
	for _, given := range []map[string]string{
		{"exclude-socket-metrics": "nginx_ingress_controller_success,requests"}, {"max-buckets": "0"},
	} {
		if _, problems := apply(settings.Config{}, given); len(problems) != 1 ||
			problems[0].Severity != report.Warning {
			t.Errorf("%v: the problems are %v, want a warning", given, problems)
		}
	}
	without := map[string]string{"metrics-per-host": "false"}
	if got, problems := apply(settings.Config{}, without); !got.Config.NginxMetrics.WithoutHost ||
		len(problems) > 0 {
		t.Errorf("%v: %+v, problems %v", without, got.Config.NginxMetrics, problems)
	}
	without["metrics-per-undefined-host"] = "true"
	if _, problems := apply(settings.Config{}, without); len(problems) != 1 ||
		problems[0].Severity != report.Error {
		t.Errorf("%v: the problems are %v, want an error", without, problems)
	}
	for _, off := range []settings.Config{
		{NginxMetrics: &settings.NginxMetrics{Off: true}}, {},
	} {
		given := map[string]string{}
		if off.NginxMetrics == nil {
			given["enable-metrics"] = "false"
		}
		if got, _ := apply(off, given); got.Config.NginxMetrics.On() {
			t.Errorf("with %v and %v, the metrics are on", off.NginxMetrics, given)
		}
	}
}

// FuzzApply checks that a rejected value changes nothing, and that no value causes a panic.
func FuzzApply(f *testing.F) {
	for i := range flags.Table {
		f.Add(flags.Table[i].Name, flags.Table[i].Example)
	}
	f.Add("election-id", "{env.HOME}")
	f.Fuzz(func(t *testing.T, name, value string) {
		without, _ := apply(settings.Config{}, nil)
		got, problems := apply(settings.Config{}, map[string]string{name: value})
		refused := slices.ContainsFunc(problems, func(p report.Problem) bool { return p.Severity == report.Error })
		if refused && !cmp.Equal(without.Config, got.Config) {
			t.Errorf("--%s=%q is refused, and changes the options:\n%s", name, value,
				cmp.Diff(without.Config, got.Config))
		}
	})
}

// TestWebhook checks which flags start the webhook, and that they replace the address and the certificate of a
// Caddyfile.
func TestWebhook(t *testing.T) {
	const address, certificate, key = "validating-webhook", "validating-webhook-certificate", "validating-webhook-key"
	own := &settings.AdmissionWebhook{Listen: ":9443", Configuration: "admission"}
	for name, c := range map[string]struct {
		base  *settings.AdmissionWebhook
		given map[string]string
		want  *settings.AdmissionWebhook
	}{
		"as in the chart of ingress-nginx": {nil,
			map[string]string{address: ":8443", certificate: "/certificates/cert", key: "/certificates/key"},
			&settings.AdmissionWebhook{Listen: ":8443", Certificate: "/certificates/cert", Key: "/certificates/key"}},
		"a Caddyfile alone": {own, nil, own},
		"files of the flags": {own, map[string]string{address: ":8443", certificate: "a", key: "b"},
			&settings.AdmissionWebhook{Listen: ":8443", Certificate: "a", Key: "b"}},
		"files of the Caddyfile": {own, map[string]string{address: "[::1]:8443", certificate: "", key: ""},
			&settings.AdmissionWebhook{Listen: "[::1]:8443", Configuration: "admission"}},
	} {
		t.Run(name, func(t *testing.T) {
			got, problems := apply(settings.Config{AdmissionWebhook: c.base}, c.given)
			if diff := cmp.Diff(c.want, got.Config.AdmissionWebhook); diff != "" || len(problems) > 0 {
				t.Errorf("problems %v, -want +got:\n%s", problems, diff)
			}
		})
	}
	for name, c := range map[string]struct {
		base     *settings.AdmissionWebhook
		given    map[string]string
		severity report.Severity
		says     []string
	}{
		"files alone": {nil, map[string]string{certificate: "a", key: "b"}, report.Warning,
			[]string{"add --validating-webhook=:8443, or remove", "add --validating-webhook=:8443, or remove"}},
		"an empty address": {nil, map[string]string{address: "", key: "b"}, report.Warning,
			[]string{"has no effect without --validating-webhook, which"}},
		"a certificate for the Caddyfile": {own, map[string]string{certificate: "a"}, report.Warning,
			[]string{"has no effect without --validating-webhook, which"}},
		"an address alone": {nil, map[string]string{address: ":8443"}, report.Error,
			[]string{"needs --validating-webhook-certificate and --validating-webhook-key: add them"}},
		"a certificate alone": {nil, map[string]string{address: ":8443", certificate: "a"}, report.Error,
			[]string{"needs --validating-webhook-key: add it, with the file of the private key"}},
		"a key alone": {own, map[string]string{address: ":8443", certificate: "", key: "b"}, report.Error,
			[]string{"needs --validating-webhook-certificate: add it, with the file of the certificate"}},
	} {
		_, problems := apply(settings.Config{AdmissionWebhook: c.base}, c.given)
		if len(problems) != len(c.says) {
			t.Fatalf("%s: %v", name, problems)
		}
		for i, p := range problems {
			if p.Severity != c.severity || !strings.Contains(p.Message, c.says[i]) {
				t.Errorf("%s: %v", name, p)
			}
		}
	}
	for _, bad := range []string{"8443", ":0", ":65536", "$(POD_IP)", "$(POD_IP):https"} {
		if _, problems := apply(settings.Config{}, map[string]string{address: bad}); len(problems) != 1 ||
			problems[0].Severity != report.Error {
			t.Errorf("--%s=%s: problems are %v", address, bad, problems)
		}
	}
}
