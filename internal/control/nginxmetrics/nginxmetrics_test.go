package nginxmetrics_test

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"flag"
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/k8singress/k8singress/internal/control/engine"
	"github.com/k8singress/k8singress/internal/control/nginxmetrics"
	"github.com/k8singress/k8singress/internal/control/webhook"
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/process/exposition"
	"github.com/k8singress/k8singress/internal/process/procstat"
	"github.com/k8singress/k8singress/internal/tests/fixture"
	"github.com/k8singress/k8singress/internal/tls/certs"
)

var update = flag.Bool("update", false, "rewrite the expected metrics")

// state returns a state in which everything is present.
func state() *nginxmetrics.State {
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(100), NotAfter: time.Unix(1900000000, 0), PublicKeyAlgorithm: x509.ECDSA,
		Issuer: pkix.Name{CommonName: "Example \"CA\"", Organization: []string{"Example", "More"}, SerialNumber: "ab"},
	}
	bare := &x509.Certificate{SerialNumber: big.NewInt(7), NotAfter: time.Unix(1, 0)}
	return &nginxmetrics.State{
		Class: "k8s.io/ingress-nginx", Namespace: "ingress-nginx", Pod: "controller-0", Release: "v1.0.0", Build: "abc",
		Applied: engine.Applied{
			Succeeded: 3, Failed: 1, Complete: true, Since: time.Unix(1700000000, 0), Hash: 1 << 40,
		},
		Lease: "ingress-nginx-leader", Leader: true,
		Orphans: []engine.Orphan{
			{Ingress: ir.Ref{Kind: "Ingress", Namespace: "shop", Name: "web"}},
			{Ingress: ir.Ref{Kind: "Ingress", Namespace: "shop", Name: "gone"}, NoService: true, NoEndpoint: true},
		},
		Certificates: slices.Values([]certs.Use{
			{Host: "shop.example", Namespace: "shop", Secret: "tls", Leaf: leaf},
			{Namespace: "default", Secret: "fallback", Leaf: bare},
		}),
		Connections: nginxmetrics.Connections{
			Active: 5, Writing: 2, Waiting: 3, Accepted: 20, Handled: 19, Requests: 100,
		},
		Reviews: &webhook.Counts{
			Allowed: 8, Refused: 2, Failed: 1,
			Last: webhook.Last{Ingresses: 40, Reviewed: 2 * time.Millisecond, Total: 3 * time.Millisecond},
		},
		Process: &procstat.Stat{
			CPU: 1500 * time.Millisecond, Resident: 1 << 20, Virtual: 1 << 30, Start: time.Unix(1700000001, 0),
			HasIO: true, ReadBytes: 4096, WrittenBytes: 8192,
		},
	}
}

func text(t *testing.T, s *nginxmetrics.State) string {
	t.Helper()
	var b strings.Builder
	w := exposition.New(&b, expfmt.NewFormat(expfmt.TypeTextPlain))
	s.Write(w)
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	if _, err := parser.TextToMetricFamilies(strings.NewReader(b.String())); err != nil {
		t.Fatalf("the text cannot be parsed: %v", err)
	}
	return b.String()
}

// TestWrite checks all names and labels.
func TestWrite(t *testing.T) {
	fixture.Generated(t, "testdata/metrics.txt", text(t, state()), *update)
}

// TestLabels checks that each name has the labels of ingress-nginx v1.15.1, without values. check_success and
// check_errors lack namespace and ingress, because clients choose these names.
func TestLabels(t *testing.T) {
	const constant = "controller_class controller_namespace controller_pod"
	want := map[string]string{
		"build_info":                     constant + " build release repository",
		"config_hash":                    constant,
		"config_last_reload_successful":  constant,
		"success":                        constant,
		"errors":                         constant,
		"leader_election_status":         constant + " name",
		"orphan_ingress":                 constant + " namespace ingress type",
		"ssl_expire_time_seconds":        "class host namespace secret_name",
		"check_success":                  constant,
		"check_errors":                   constant,
		"admission_tested_ingresses":     constant,
		"admission_tested_duration":      constant,
		"admission_render_ingresses":     constant,
		"admission_render_duration":      constant,
		"admission_roundtrip_duration":   constant,
		"admission_config_size":          constant,
		"nginx_process_connections":      constant + " state",
		"nginx_process_requests_total":   constant,
		"nginx_process_read_bytes_total": constant,
		"ssl_certificate_info": "class host identifier issuer_common_name issuer_organization namespace " +
			"public_key_algorithm secret_name serial_number",
		"config_last_reload_successful_timestamp_seconds": constant,
		"nginx_process_connections_total":                 constant + " state",
		"nginx_process_num_procs":                         constant,
		"nginx_process_cpu_seconds_total":                 constant,
		"nginx_process_oldest_start_time_seconds":         constant,
		"nginx_process_resident_memory_bytes":             constant,
		"nginx_process_virtual_memory_bytes":              constant,
		"nginx_process_write_bytes_total":                 constant,
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(text(t, state())))
	if err != nil {
		t.Fatal(err)
	}
	for name, labels := range want {
		f := families["nginx_ingress_controller_"+name]
		if f == nil {
			t.Errorf("%s is missing", name)
			continue
		}
		var got []string
		for _, l := range f.GetMetric()[0].GetLabel() {
			got = append(got, l.GetName())
		}
		wanted := strings.Fields(labels)
		slices.Sort(got)
		if slices.Sort(wanted); !slices.Equal(got, wanted) {
			t.Errorf("%s has the labels %v, want %v", name, got, wanted)
		}
		delete(families, "nginx_ingress_controller_"+name)
	}
	for name := range families {
		t.Errorf("ingress-nginx has no metric %s", name)
	}
}

// TestAbsent checks the metrics of a replica that does not lead, before its first change, on a system without figures,
// without the admission webhook.
func TestAbsent(t *testing.T) {
	s := state()
	s.Applied, s.Leader, s.Process, s.Reviews = engine.Applied{Hash: 5}, false, nil, nil
	got := text(t, s)
	for line, want := range map[string]bool{
		"_leader_election_status{": true, "_config_last_reload_successful{": true, "_ssl_certificate_info{": true,
		"_ssl_expire_time_seconds": false, "_nginx_process_cpu": false,
		"_check_": false, "_admission_": false,
	} {
		if has := strings.Contains(got, line); has != want {
			t.Errorf("the metrics contain %s: %v", line, has)
		}
	}
	for _, name := range []string{"config_hash", "config_last_reload_successful", "leader_election_status"} {
		for line := range strings.Lines(got) {
			if strings.HasPrefix(line, "nginx_ingress_controller_"+name+"{") && !strings.HasSuffix(line, "} 0\n") {
				t.Errorf("%s is not 0: %s", name, line)
			}
		}
	}
}

// TestHostileNames checks that names of objects and of issuers stay values of labels.
func TestHostileNames(t *testing.T) {
	s := state()
	hostile := strings.Repeat("<b>\"}\n\\\xff", 31) + "x"
	leaf := &x509.Certificate{SerialNumber: big.NewInt(1), Issuer: pkix.Name{CommonName: hostile}}
	s.Certificates = slices.Values([]certs.Use{{Host: hostile, Secret: hostile, Leaf: leaf}})
	s.Orphans[0].Ingress.Name, s.Pod = hostile, hostile
	text(t, s)
}

// TestLongNamesInCertificates checks that the certificate of one tenant cannot make the metrics large: they repeat its
// issuer and its serial number for each host.
func TestLongNamesInCertificates(t *testing.T) {
	const size, hosts = 500_000, 100
	long := strings.Repeat("x", size)
	leaf := &x509.Certificate{
		SerialNumber: new(big.Int).Lsh(big.NewInt(1), size),
		Issuer:       pkix.Name{CommonName: long, Organization: []string{long}, SerialNumber: long},
	}
	s := state()
	s.Certificates = slices.Values(slices.Repeat([]certs.Use{{Host: "a.example", Secret: "tls", Leaf: leaf}}, hosts))
	if got := len(text(t, s)); got > hosts*2500 {
		t.Errorf("the metrics have %d bytes for %d hosts", got, hosts)
	}
}
