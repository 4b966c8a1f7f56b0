package ir_test

import (
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/k8singress/k8singress/internal/model/ir"
)

func TestHeaderOfHSTS(t *testing.T) {
	for want, h := range map[string]ir.HSTS{
		"max-age=31536000; includeSubDomains":   {},
		"":                                      {Off: true, MaxAge: 1, Preload: true},
		"max-age=60":                            {MaxAge: 60, ExcludeSubdomains: true},
		"max-age=0; includeSubDomains; preload": {MaxAge: -1, Preload: true},
		"max-age=31536000; preload":             {ExcludeSubdomains: true, Preload: true},
	} {
		if got := h.Header(); got != want {
			t.Errorf("%+v is %q, want %q", h, got, want)
		}
	}
}

// TestTLSPolicies checks which policies share one of Caddy's connection policies, and which allow HTTP/2.
func TestTLSPolicies(t *testing.T) {
	const secure, cbc = "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA"
	for name, c := range map[string]struct {
		policy   ir.TLSPolicy
		versions string
		http2    bool
	}{
		"default":               {ir.TLSPolicy{}, "tls1.2+tls1.3", true},
		"TLS 1.2":               {ir.TLSPolicy{Version: ir.TLS12}, "tls1.2", true},
		"only CBC":              {ir.TLSPolicy{Ciphers: []string{cbc}}, "tls1.2+tls1.3", false},
		"only CBC, TLS 1.2":     {ir.TLSPolicy{Version: ir.TLS12, Ciphers: []string{cbc}}, "tls1.2", false},
		"CBC among others":      {ir.TLSPolicy{Ciphers: []string{cbc, secure}}, "tls1.2+tls1.3", true},
		"only CBC, but TLS 1.3": {ir.TLSPolicy{Version: ir.TLS13, Ciphers: []string{cbc}}, "tls1.3", true},
	} {
		if got := c.policy.Versions(); got != c.versions {
			t.Errorf("%s: the versions are %q, want %q", name, got, c.versions)
		}
		if got := c.policy.TakesHTTP2(); got != c.http2 {
			t.Errorf("%s: HTTP/2 %t, want %t", name, got, c.http2)
		}
	}
}

// TestDefaultsOfProxies checks the documented defaults, and that explicit values stay.
func TestDefaultsOfProxies(t *testing.T) {
	attempts := func(connect, read, write time.Duration, tries int, on ...ir.RetryOn) ir.Attempts {
		return ir.Attempts{Connect: connect, Read: read, Write: write, Tries: tries, On: on}
	}
	explicit := ir.Proxy{
		Attempts:   attempts(time.Second, 2*time.Second, 3*time.Second, 4),
		Forwarding: ir.Forwarding{MaxBody: ir.NoLimit},
	}
	explicit.On = []ir.RetryOn{} // No retries.
	for _, c := range []struct{ proxy, want ir.Proxy }{
		{ir.Proxy{}, ir.Proxy{
			Attempts:   attempts(5*time.Second, time.Minute, time.Minute, 3, ir.RetryOnError, ir.RetryOnTimeout),
			Forwarding: ir.Forwarding{MaxBody: 1 << 20},
		}},
		{explicit, explicit},
	} {
		if diff := gocmp.Diff(c.want, c.proxy.WithDefaults()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}

func TestDefaultsOfCollectors(t *testing.T) {
	explicit := ir.Collector{
		Host: "otel", Port: 1, Queue: 2, Batch: 3, Delay: 4, Service: "edge", Sampler: ir.SampleRatio, Ratio: -1,
		OwnChoice: true,
	}
	for _, c := range []struct{ collector, want ir.Collector }{
		{ir.Collector{}, ir.Collector{
			Port: 4317, Queue: 2048, Batch: 512, Delay: 5 * time.Second, Service: "nginx",
			Sampler: ir.SampleAll, Ratio: 0.01,
		}},
		{explicit, explicit},
	} {
		if got := c.collector.WithDefaults(); got != c.want {
			t.Errorf("%+v has the defaults %+v, want %+v", c.collector, got, c.want)
		}
	}
}

func TestProtocolWithout(t *testing.T) {
	for protocol, want := range map[ir.Protocol]string{
		ir.TCP: "connections are closed", ir.UDP: "datagrams are dropped",
	} {
		if got := protocol.Without(); got != want {
			t.Errorf("without a backend, %s: %q, want %q", protocol, got, want)
		}
	}
}
