package featuretests

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/k8singress/k8singress/internal/tests/fixture"
)

// observed returns an error unless the histograms or summaries with a name and labels have this number of observations.
func (s scraped) observed(want uint64, name string, labels ...string) error {
	got := uint64(0)
	for _, m := range s.of(name, labels...) {
		got += m.GetHistogram().GetSampleCount() + m.GetSummary().GetSampleCount()
	}
	if got != want {
		return fmt.Errorf("%s with the labels %q has %d observations, want %d", name, labels, got, want)
	}
	return nil
}

// TestNginxMetricsOfRequests sends requests to a host, its canary, a wildcard and an unknown host, and compares them
// with the metrics that have the names of ingress-nginx.
func TestNginxMetricsOfRequests(t *testing.T) {
	in, manifests := canaryOf(t, nil, []string{"canary-by-header", "X-Canary"})
	in.write("manifests.yaml", manifests("canary-by-header", "X-Canary")+
		rule("wild", "*.wild.example", "Prefix", "/", "web"))
	in.becomes("ready.wild.example", "/", http.StatusOK, "web /")
	health := fixture.Address(t)
	load := func(options ...string) {
		t.Helper()
		in.options(append(options, "health "+health, "health_metrics")...)
		in.eventually("no request is counted yet", func() error {
			s, err := in.scrape(health, acceptText)
			if err == nil {
				err = s.has(1, "config_last_reload_successful")
			}
			return err
		})
	}
	send := func() {
		t.Helper()
		for range 20 {
			in.askWith(in.client, "/", "X-Canary", "never")
		}
		for range 10 {
			in.askWith(in.client, "/", "X-Canary", "always")
		}
		for i := range 5 {
			in.get(fmt.Sprintf("%d.wild.example", i), "/")
			in.get(fmt.Sprintf("%d.unknown.example", i), "/")
		}
		in.sendBy(in.client, in.origin("shop.example")+"/", "PROPFIND", nil)
	}
	load("nginx_metrics")
	send()
	main := []string{"namespace", "default", "ingress", "main", "service", "web", "host", "shop.example", "path", "/"}
	of := func(more ...string) []string { return append(main[:len(main):len(main)], more...) }
	for _, accept := range []string{acceptText, acceptProtobuf} {
		in.eventually("the counters", func() error {
			s, err := in.scrape(health, accept)
			if err != nil {
				return err
			}
			return errors.Join(
				s.has(36, "requests"),
				s.has(20, "requests", of("canary", "", "method", "GET", "status", "200")...),
				s.has(1, "requests", of("canary", "", "method", "OTHER", "status", "200")...),
				s.has(10, "requests", of("canary", "default-next-80", "method", "GET", "status", "200")...),
				s.has(5, "requests", "host", "*.wild.example", "ingress", "wild"),
				s.observed(36, "request_duration_seconds"), s.observed(36, "response_duration_seconds"),
				s.observed(36, "header_duration_seconds"), s.observed(36, "connect_duration_seconds"),
				s.observed(36, "request_size"), s.observed(36, "response_size"), s.observed(36, "bytes_sent"),
				s.observed(10, "ingress_upstream_latency_seconds", "ingress", "main", "canary", "default-next-80"))
		})
	}
	load("nginx_metrics {\nundefined_hosts\nstatus_classes\nexclude bytes_sent\nmax_label_sets 2\n}")
	send()
	in.eventually("the counters with other options", func() error {
		s, err := in.scrape(health, acceptText)
		if err != nil {
			return err
		}
		return errors.Join(s.has(41, "requests"), s.has(5, "requests", "host", "_", "status", "4xx"),
			s.has(11, "requests", "path", "_other", "method", "_other"), s.observed(0, "bytes_sent"))
	})
	if got := in.metrics(); !strings.Contains(got, "\nk8singress_nginx_metrics_limited_total 11\n") {
		t.Error("the requests without their path and method are not counted")
	}
	in.write("manifests.yaml", class)
	in.eventually("the label sets end with their routes", func() error {
		s, err := in.scrape(health, acceptText)
		if err == nil && len(s.of("requests", "ingress", "main")) > 0 {
			err = errors.New("the Ingress is deleted, and its metrics are still there")
		}
		return err
	})
}
