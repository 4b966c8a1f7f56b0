package featuretests

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"

	"github.com/k8singress/k8singress/internal/tests/fixture"
)

// The values of the header Accept that Prometheus sends by default, and if it reads native histograms.
const (
	acceptText = "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6," +
		"application/openmetrics-text;version=0.0.1;q=0.5,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4," +
		"text/plain;version=0.0.4;q=0.3,*/*;q=0.2"
	acceptProtobuf = "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited;" +
		"q=0.7," + acceptText
)

// scraped are families of metrics by their name.
type scraped map[string]*dto.MetricFamily

// scrape reads the metrics at an address as Prometheus does.
func (in *ingress) scrape(address, accept string) (scraped, error) {
	in.Helper()
	request, err := http.NewRequestWithContext(in.Context(), http.MethodGet, "http://"+address+"/metrics", nil)
	if err != nil {
		in.Fatal(err)
	}
	request.Header.Set("Accept", accept)
	response, err := in.admins.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the status is %d", response.StatusCode)
	}
	if !response.Uncompressed {
		in.Errorf("the response is not compressed: %v", response.Header)
	}
	return fixture.ReadMetrics(response.Body, expfmt.ResponseFormat(response.Header))
}

// of returns the metrics of ingress-nginx with a name that have the given labels, which are pairs of names and values.
func (s scraped) of(name string, labels ...string) (all []*dto.Metric) {
	for _, m := range s["nginx_ingress_controller_"+name].GetMetric() {
		has := map[string]string{}
		for _, l := range m.GetLabel() {
			has[l.GetName()] = l.GetValue()
		}
		matches := true
		for i := 0; i+1 < len(labels); i += 2 {
			matches = matches && has[labels[i]] == labels[i+1]
		}
		if matches {
			all = append(all, m)
		}
	}
	return all
}

// value returns the sum of the counters and gauges with a name and labels, or an error if there are none.
func (s scraped) value(name string, labels ...string) (sum float64, err error) {
	all := s.of(name, labels...)
	if len(all) == 0 {
		return 0, fmt.Errorf("there is no metric %s with the labels %q", name, labels)
	}
	for _, m := range all {
		sum += m.GetCounter().GetValue() + m.GetGauge().GetValue()
	}
	return sum, nil
}

// has returns an error unless the sum of the metrics with a name and labels has a value.
func (s scraped) has(want float64, name string, labels ...string) error {
	got, err := s.value(name, labels...)
	if err == nil && got != want {
		err = fmt.Errorf("%s with the labels %q is %v, want %v", name, labels, got, want)
	}
	return err
}

// TestNginxMetricsOfTheState checks the metrics with the names of ingress-nginx that describe the controller: in both
// formats, and while a change has failed. The metrics of routes are there once.
func TestNginxMetricsOfTheState(t *testing.T) {
	t.Setenv("POD_NAMESPACE", "ingress-nginx")
	t.Setenv("POD_NAME", "controller-0")
	ip, port := backend(t, "one")
	who, health, free := fixture.Certificate(t, "a.example"), fixture.Address(t), fixture.Port(t)
	holder, err := net.Listen("tcp", fixture.Address(t))
	if err != nil {
		t.Fatal(err)
	}
	_, held, _ := net.SplitHostPort(holder.Addr().String())
	secure := strings.Replace(rule("a", "a.example", "Prefix", "/", "one"), "  rules:",
		"  tls: [{hosts: [a.example], secretName: own}]\n  rules:", 1)
	manifests := class + service("one", port, ip) + secure + tlsSecret("own", who.PEM(), who.KeyPEM())
	orphan := service("none", port) + rule("b", "b.example", "Prefix", "/", "none")
	in := start(t, manifests+orphan, "tcp_services default/tcp-services", "stream_bind 127.0.0.1",
		"health "+health, "health_metrics", "nginx_metrics")
	in.expect("a.example", "/", http.StatusPermanentRedirect, "")
	constant := []string{"controller_class", "k8s.io/ingress-nginx", "controller_namespace", "ingress-nginx",
		"controller_pod", "controller-0"}
	expect := func(what string, check func(scraped) error) {
		t.Helper()
		for _, accept := range []string{acceptText, acceptProtobuf} {
			in.eventually(what, func() error {
				got, err := in.scrape(health, accept)
				if err != nil {
					return err
				}
				return check(got)
			})
		}
	}
	var hash float64
	expect("the metrics of a complete configuration", func(s scraped) error {
		hash, _ = s.value("config_hash")
		return errors.Join(
			s.has(1, "config_last_reload_successful", constant...), s.has(1, "build_info", constant...),
			s.has(0, "errors"), s.has(1, "orphan_ingress", "namespace", "default", "type", "no-endpoint"),
			s.has(0, "orphan_ingress", "ingress", "a"), s.has(0, "orphan_ingress", "type", "no-service"),
			s.has(1, "ssl_certificate_info", "host", "a.example", "secret_name", "own", "namespace", "default"),
			s.has(float64(who.Leaf.NotAfter.Unix()), "ssl_expire_time_seconds", "host", "a.example"),
			s.has(1, "nginx_process_num_procs"), positive(hash, "config_hash"), s.hasRoutes(1))
	})
	if n := strings.Count(in.metrics(), "\nk8singress_route_in_flight{"); n != 1 {
		t.Errorf("the admin API has the series of %d routes, want 1", n)
	}
	in.write("ports.yaml", tcpServices(fmt.Sprintf(`%q: "default/one:80"`, held)))
	expect("a change has failed", func(s scraped) error {
		return errors.Join(s.has(0, "config_last_reload_successful"), s.has(0, "config_hash"), s.has(1, "errors"))
	})
	if err := holder.Close(); err != nil {
		t.Fatal(err)
	}
	expect("the port is open after another attempt", func(s scraped) error {
		now, _ := s.value("config_hash")
		if now == hash {
			return errors.New("the hash has not changed")
		}
		return errors.Join(s.has(1, "config_last_reload_successful"), s.has(1, "errors"))
	})
	before, err := in.scrape(health, acceptText)
	if err != nil {
		t.Fatal(err)
	}
	count, _ := before.value("success")
	in.write("ports.yaml", tcpServices(fmt.Sprintf(`%q: "default/one:80"`, free)))
	expect("another change", func(s scraped) error { return s.has(count+1, "success") })
	in.load("manifests " + in.folder + "\nhealth " + health + "\nhealth_metrics")
	in.eventually("the metrics are gone", func() error {
		got, err := in.scrape(health, acceptProtobuf)
		if err == nil && len(got.of("build_info")) > 0 {
			err = errors.New("the option is off, and its metrics are still there")
		}
		return errors.Join(err, got.hasRoutes(1))
	})
}

// hasRoutes returns an error unless each family of the metrics of routes has the series of n routes.
func (s scraped) hasRoutes(n int) error {
	for name, each := range map[string]int{
		"requests_total": 5, "request_duration_seconds": 1, "first_byte_seconds": 1, "retries_total": 1,
		"in_flight": 1, "bytes_total": 2,
	} {
		if got := len(s["k8singress_route_"+name].GetMetric()); got != n*each {
			return fmt.Errorf("there are %d metrics k8singress_route_%s, want %d", got, name, n*each)
		}
	}
	return nil
}

func positive(value float64, name string) error {
	if value <= 0 {
		return fmt.Errorf("%s is %v", name, value)
	}
	return nil
}
