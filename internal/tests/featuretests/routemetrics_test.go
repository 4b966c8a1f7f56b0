package featuretests

import (
	"fmt"
	"net/http"
	"testing"
)

// TestCaddyMetrics checks that Caddy's HTTP metrics count each request once, whether the controller or Caddy's HTTP
// server handles it, and that clients cannot create labels.
func TestCaddyMetrics(t *testing.T) {
	ip, port := backend(t, "one")
	in := newIngress(t)
	in.write("manifests.yaml", class+service("web", port, ip)+rule("web", "shop.example", "Prefix", "/", "web")+
		rule("wild", "*.wild.example", "Prefix", "/", "web"))
	in.loadCaddyfile(fmt.Sprintf("{\nadmin %s\nmetrics {\nper_host\n}\nk8singress {\nhttp %s\nhttps %s\nh2c\n"+
		"manifests %s\n}\n}\n", in.admin, in.http, in.https, in.folder))
	in.awaitReady()
	want := map[string]float64{}
	count := func(server, host string, status int) {
		want[fmt.Sprintf("requests_total{handler=%q,host=%q,server=%q}", "k8singress", host, server)]++
		of := fmt.Sprintf("{code=\"%d\",handler=%q,host=%q,method=\"GET\",server=%q}", status, "k8singress", host,
			server)
		want["request_duration_seconds_count"+of]++
		switch {
		case status == http.StatusOK:
			want["response_duration_seconds_count"+of]++
			want["response_size_bytes_sum"+of] += float64(len("one /"))
		case server == "by_caddy":
			// The controller sends the response, and Caddy gets no error.
			want["response_duration_seconds_count"+of]++
		default:
			want[fmt.Sprintf("request_errors_total{handler=%q,host=%q,server=%q}", "k8singress", host, server)]++
		}
	}
	for _, version := range versions {
		by := in.speaking(t, version)
		server, host := "k8singress_http", "shop.example"
		if hasTLS(version) {
			server = "k8singress_https"
		}
		if version == byCaddy {
			// Caddy does not know the hosts of Ingresses.
			server, host = "by_caddy", "_other"
		}
		by.expect("shop.example", "/", http.StatusOK, "one /")
		count(server, host, http.StatusOK)
		by.expect("a.wild.example", "/", http.StatusOK, "one /")
		count(server, "_other", http.StatusOK)
		by.expect("random.example", "/", http.StatusNotFound, "")
		count(server, "_other", http.StatusNotFound)
	}
	for name, value := range want {
		in.eventually(name, func() error {
			if got := in.metric("caddy_http_" + name); got != value {
				return fmt.Errorf("it is %v, want %v", got, value)
			}
			return nil
		})
	}
}
