package trust_test

import (
	"crypto/tls"
	"slices"
	"strings"
	"testing"

	"github.com/k8singress/k8singress/internal/model/document"
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/tests/fixture"
	"github.com/k8singress/k8singress/internal/tls/trust"
)

// TestClient checks that a value is created when the Secret changes, and at no other time, that there is no value while
// the Secret is invalid, and that each replaced value is reported.
func TestClient(t *testing.T) {
	s, name := trust.NewStore(), ir.Name{Namespace: "shop", Name: "ca"}
	settings := &ir.BackendTLS{Secret: name, Verify: true}
	s.Update(&document.Delta{Hosts: map[string]*document.Host{"a": {
		Routes: []*document.Route{{Destination: document.Destination{TLS: settings}}},
	}}})
	count := 0
	var replaced []int
	c := trust.NewClient(settings, s.Authority(name), func(*tls.Config) int {
		count++
		return count
	}, func(value int) { replaced = append(replaced, value) })
	expect := func(want int, wantErr string, wantReplaced ...int) {
		t.Helper()
		for range 2 {
			got, err := c.Current()
			if (err == nil) != (wantErr == "") || err != nil && !strings.Contains(err.Error(), wantErr) {
				t.Errorf("the error is %v, want %q", err, wantErr)
			}
			if got != want || !slices.Equal(replaced, wantReplaced) {
				t.Errorf("the value is %d, and %v are replaced; want %d and %v", got, replaced, want, wantReplaced)
			}
		}
	}
	expect(0, "need the Secret shop/ca: the Secret is not known")
	one := map[string][]byte{"ca.crt": fixture.Authority(t, nil, "ca").PEM()}
	s.SetSecret(name, one, true)
	expect(1, "")
	s.SetSecret(name, one, true)
	expect(1, "")
	s.SetSecret(name, map[string][]byte{"ca.crt": fixture.Authority(t, nil, "ca").PEM()}, true)
	expect(2, "", 1)
	s.SetSecret(name, nil, false)
	expect(0, "need the Secret shop/ca: the Secret does not exist", 1, 2)
	s.SetSecret(name, one, true)
	expect(3, "", 1, 2)
	c.Reset()
	expect(4, "", 1, 2, 3)
}

// TestClientWithoutSecret checks that connections without a Secret have no client certificate, and that they are never
// used to verify an endpoint.
func TestClientWithoutSecret(t *testing.T) {
	for _, verify := range []bool{false, true} {
		c := trust.NewClient(&ir.BackendTLS{Verify: verify}, nil,
			func(config *tls.Config) *tls.Config { return config }, func(*tls.Config) {})
		config, err := c.Current()
		if (err != nil) != verify || config != nil && config.GetClientCertificate != nil {
			t.Errorf("verify %t: %v, %v", verify, config, err)
		}
	}
}
