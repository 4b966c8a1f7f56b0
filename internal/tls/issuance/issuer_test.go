package issuance

import (
	"context"
	"crypto/x509"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddytls"
	"github.com/caddyserver/certmagic"
	"go.uber.org/zap/zaptest"
)

// TestIssuerOfOneOrder checks that the issuer for one order has its own log, and uses the ports on which this process
// listens.
func TestIssuerOfOneOrder(t *testing.T) {
	ctx, err := caddy.ProvisionContext(&caddy.Config{})
	if err != nil {
		t.Fatal(err)
	}
	m := New(zaptest.NewLogger(t))
	s, err := newSetup(ctx, Options{Issuers: nil, HTTP: []string{"127.0.0.1:8080"}, HTTPS: []string{":8443"}}, m)
	if err != nil {
		t.Fatal(err)
	}
	defer s.release()
	i := s.issuers[0]
	if i.name() != "acme-v02.api.letsencrypt.org" || i.wildcards() {
		t.Errorf("the issuer is %s, and issues for wildcards: %v", i.name(), i.wildcards())
	}
	one := i.once(m.log).(*certmagic.ACMEIssuer)
	if one.ListenHost != "127.0.0.1" || one.AltHTTPPort != 8080 || one.AltTLSALPNPort != 8443 || one.Email == "" {
		t.Errorf("one order has %+v", one)
	}
}

// TestUnknownCaddy checks that the module is used as it is, and never prompts for an address, if certmagic's issuer is
// not found in this version of Caddy.
func TestUnknownCaddy(t *testing.T) {
	module := new(prompting)
	i := &issuer{Issuer: module, module: &caddytls.ACMEIssuer{CA: "https://ca.example/directory"}}
	one := i.once(zaptest.NewLogger(t))
	if err := one.(certmagic.PreChecker).PreCheck(t.Context(), []string{"a.example"}, true); err != nil ||
		module.prompted || !module.checked {
		t.Errorf("error %v, the name is checked: %v, there is a prompt: %v", err, module.checked, module.prompted)
	}
	if i.name() != "ca.example" || i.wildcards() {
		t.Errorf("the issuer is %s, and issues for wildcards: %v", i.name(), i.wildcards())
	}
}

// prompting is an issuer that would prompt for an e-mail address.
type prompting struct {
	certmagic.Issuer
	checked, prompted bool
}

func (p *prompting) PreCheck(_ context.Context, _ []string, interactive bool) error {
	p.checked, p.prompted = true, interactive
	return nil
}

func TestListening(t *testing.T) {
	for _, c := range []struct {
		http, https []string
		want        listening
	}{
		{[]string{":80"}, []string{":443"}, listening{"", 80, 443}},
		{[]string{"0.0.0.0:80", ":81"}, []string{"[::]:443"}, listening{"", 80, 443}},
		{[]string{"unix//run/http", "192.0.2.1:80"}, []string{"192.0.2.1:443"}, listening{"192.0.2.1", 80, 443}},
		{[]string{":80"}, []string{"192.0.2.1:443"}, listening{"192.0.2.1", 80, 443}},
		{[]string{"192.0.2.1:80"}, []string{":443"}, listening{"192.0.2.1", 80, 443}},
		{[]string{"192.0.2.1:80"}, []string{"192.0.2.2:443"}, listening{"192.0.2.1", 80, 0}},
		{[]string{}, []string{"192.0.2.2:443"}, listening{"192.0.2.2", 0, 443}},
		{[]string{"unix//run/http"}, nil, listening{"", 0, 0}},
	} {
		if got := listeningAt(Options{HTTP: c.http, HTTPS: c.https}); got != c.want {
			t.Errorf("%v and %v: %+v, want %+v", c.http, c.https, got, c.want)
		}
	}
	i := certmagic.ACMEIssuer{AltHTTPPort: 8888}
	listening{"", 80, 0}.configure(&i)
	if i.AltHTTPPort != 8888 || i.DisableHTTPChallenge || !i.DisableTLSALPNChallenge {
		t.Errorf("what the administrator says is changed: %+v", i)
	}
}

func TestTimeOfRenewal(t *testing.T) {
	now := time.Now()
	day := 24 * time.Hour
	leaf := func(from, until time.Duration) *x509.Certificate {
		return &x509.Certificate{NotBefore: now.Add(from), NotAfter: now.Add(until)}
	}
	meta := func(start string) []byte {
		return []byte(`{"issuer_data":{"renewal_info":{"suggestedWindow":{"start":"` + start +
			`","end":"2100-01-01T00:00:00Z"}}}}`)
	}
	for name, c := range map[string]struct {
		leaf    *x509.Certificate
		meta    []byte
		want    time.Time
		options Options
	}{
		"a third is left":     {leaf(0, 90*day), nil, now.Add(60 * day), Options{}},
		"garbage beside it":   {leaf(0, 90*day), []byte("garbage"), now.Add(60 * day), Options{}},
		"the clock is behind": {leaf(day, 91*day), nil, now.Add(61 * day), Options{}},
		"it has expired":      {leaf(-91*day, -day), nil, now.Add(-31 * day), Options{}},
		"minutes":             {leaf(0, 6*time.Minute), nil, now.Add(time.Minute), Options{}},
		"the authority wants it now": {leaf(0, 90*day), meta("2001-01-01T00:00:00Z"),
			time.Date(2000, 12, 31, 23, 59, 0, 0, time.UTC), Options{}},
		"it wants it too late": {leaf(0, 100*day), meta("2099-01-01T00:00:00Z"), now.Add(95 * day), Options{}},
		"half is left":         {leaf(0, 90*day), nil, now.Add(45 * day), Options{RenewalRatio: .5}},
		"checks each day":      {leaf(0, 6*day), nil, now.Add(day), Options{RenewInterval: day}},
		"the authority wants it, with checks each hour": {leaf(0, 90*day), meta("2001-01-01T00:00:00Z"),
			time.Date(2000, 12, 31, 23, 0, 0, 0, time.UTC), Options{RenewInterval: time.Hour}},
		"checks all the time": {leaf(0, 6*time.Minute), nil, now.Add(time.Minute),
			Options{RenewInterval: time.Nanosecond}},
	} {
		if got := scheduleOf(c.options).of(c.leaf, c.meta); got.at.Sub(c.want).Abs() > time.Second {
			t.Errorf("%s: %v, want %v", name, got.at, c.want)
		}
	}
}
