package authority_test

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"maps"
	"net"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/k8singress/k8singress/internal/tests/fixture"
	"github.com/k8singress/k8singress/internal/tls/authority"
	"github.com/k8singress/k8singress/internal/tls/secret"
)

// begin is the time of the first certificates. Certificates have no fractions of a second.
var begin = time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)

const (
	name = "edge-admission.ingress.svc"
	day  = 24 * time.Hour
)

type files = map[string][]byte

// TestFirst makes certificates from nothing, and connects with them.
func TestFirst(t *testing.T) {
	made, again := next(t, nil, begin)
	shakeHands(t, made, made, begin)
	shakeHands(t, made, made, begin.Add(-time.Minute))
	if want := begin.Add(-time.Hour + 2*(90*day+time.Hour)/3); !again.Equal(want) {
		t.Errorf("the next renewal is at %v, want %v", again, want)
	}
	if same, at := next(t, made, again.Add(-time.Second)); !reflect.DeepEqual(same, made) || !at.Equal(again) {
		t.Error("the files have changed before the renewal")
	}
	renewed, _ := next(t, made, again)
	if !bytes.Equal(renewed[authority.Bundle], made[authority.Bundle]) {
		t.Error("the renewal of the serving certificate changes the authority")
	}
	if bytes.Equal(renewed[secret.PrivateKey], made[secret.PrivateKey]) {
		t.Error("the serving certificate is not renewed")
	}
}

// TestYears renews the certificates for 39 years, as a leader does. A client whose bundle, and a server whose
// certificate, is up to an hour old can connect at any time.
func TestYears(t *testing.T) {
	var history []files
	var times []time.Time
	current, at := next(t, nil, begin)
	for now := begin; now.Before(begin.Add(39 * 365 * day)); {
		history, times = append(history, current), append(times, now)
		for i := len(history) - 1; i >= 0; i-- {
			shakeHands(t, history[i], current, now)
			shakeHands(t, current, history[i], now)
			if now.Sub(times[i]) >= time.Hour-time.Minute {
				break
			}
		}
		if !at.After(now) {
			t.Fatalf("at %v, the next renewal is at %v", now, at)
		}
		now = at
		current, at = next(t, current, now)
	}
	authorities := map[string]bool{}
	for _, f := range history {
		list := certificates(t, f[authority.Bundle])
		if len(list) > 3 {
			t.Fatalf("the bundle has %d authorities", len(list))
		}
		authorities[list[0].Subject.String()] = true
	}
	// An authority is renewed after two thirds of ten years.
	if len(authorities) != 6 {
		t.Errorf("there were %d authorities in 39 years: %v", len(authorities), slices.Collect(maps.Keys(authorities)))
	}
}

// TestRepair loses or spoils one file of a Secret, and checks that clients can connect afterwards.
func TestRepair(t *testing.T) {
	good, _ := next(t, nil, begin)
	other, _ := next(t, nil, begin)
	foreign := fixture.Certificate(t, name)
	for _, c := range []struct {
		name  string
		spoil func(files)
		// keeps reports whether clients with the old bundle still connect.
		keeps bool
	}{
		{"nothing", func(files) {}, true},
		{"serving certificate", func(f files) { delete(f, secret.CertificateKey) }, true},
		{"serving key", func(f files) { f[secret.PrivateKey] = []byte("none") }, true},
		{"serving key of another", func(f files) { f[secret.PrivateKey] = other[secret.PrivateKey] }, true},
		{"serving certificate of another authority", func(f files) { maps.Copy(f, foreign.Secret()) }, true},
		{"authority's key", func(f files) { delete(f, authority.AuthorityKey) }, true},
		{"another key of the authority",
			func(f files) { f[authority.AuthorityKey] = other[authority.AuthorityKey] }, true},
		{"bundle", func(f files) { f[authority.Bundle] = []byte("-----BEGIN") }, false},
		{"bundle of another", func(f files) { f[authority.Bundle] = other[authority.Bundle] }, false},
		{"bundle of a certificate", func(f files) { f[authority.Bundle] = foreign.PEM() }, false},
		{"everything", func(f files) { clear(f) }, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			spoiled := maps.Clone(good)
			c.spoil(spoiled)
			before := maps.Clone(spoiled)
			made, _ := next(t, spoiled, begin.Add(time.Hour))
			if !reflect.DeepEqual(spoiled, before) {
				t.Error("Next has changed its argument")
			}
			shakeHands(t, made, made, begin.Add(time.Hour))
			if c.keeps {
				shakeHands(t, good, made, begin.Add(time.Hour))
			}
			if same, _ := next(t, made, begin.Add(time.Hour)); !reflect.DeepEqual(same, made) {
				t.Error("the repaired files need another change")
			}
		})
	}
}

// TestNames checks that another name of the server gives another certificate, from the same authority.
func TestNames(t *testing.T) {
	made, _ := next(t, nil, begin)
	more, _, err := authority.Next(made, []string{"other.ingress.svc", name, name}, begin)
	if err != nil {
		t.Fatal(err)
	}
	shakeHands(t, made, more, begin)
	if got := certificates(t, more[secret.CertificateKey])[0].DNSNames; !slices.Equal(got,
		[]string{name, "other.ingress.svc"}) {
		t.Errorf("the certificate has the names %q", got)
	}
	if same, _, _ := authority.Next(more, []string{"other.ingress.svc", name}, begin); !reflect.DeepEqual(same, more) {
		t.Error("the order of the names changes the files")
	}
}

// TestClocks checks that a leader whose clock is behind keeps the certificates of a leader whose clock is ahead.
func TestClocks(t *testing.T) {
	made, _ := next(t, nil, begin.Add(5*day))
	if same, _ := next(t, made, begin); !reflect.DeepEqual(same, made) {
		t.Error("the certificates from the future are replaced")
	}
	more, _, err := authority.Next(made, []string{"other"}, begin)
	if err != nil {
		t.Fatal(err)
	}
	if same, _, _ := authority.Next(more, []string{"other"}, begin); !reflect.DeepEqual(same, more) {
		t.Error("a certificate of an authority from the future is replaced each time")
	}
}

// TestOtherFiles checks that files of other programs are kept.
func TestOtherFiles(t *testing.T) {
	if made, _ := next(t, files{"note": []byte("mine")}, begin); string(made["note"]) != "mine" {
		t.Errorf("the files are %v", slices.Sorted(maps.Keys(made)))
	}
}

// TestJoin checks which authorities of another bundle stay trusted.
func TestJoin(t *testing.T) {
	made, _ := next(t, nil, begin)
	old, _ := next(t, nil, begin)
	ours := made[authority.Bundle]
	valid := func(name string) []byte {
		return fixture.Identify(t, nil, &x509.Certificate{Subject: pkix.Name{CommonName: name}, IsCA: true,
			BasicConstraintsValid: true, NotBefore: begin, NotAfter: begin.Add(day)}).PEM()
	}
	job, cluster, third := valid("nil1"), valid("cluster"), valid("third")
	join := func(parts ...[]byte) []byte { return bytes.Join(parts, nil) }
	for _, c := range []struct {
		name          string
		current, want []byte
	}{
		{"nothing", nil, ours},
		{"our own", ours, ours},
		{"an old authority of ours", old[authority.Bundle], ours},
		{"the Job of ingress-nginx", job, join(ours, job)},
		{"the result", join(ours, job), join(ours, job)},
		{"several", join(job, old[authority.Bundle], job, cluster, third), join(ours, job, cluster)},
		{"no PEM", []byte("none"), ours},
		{"half a certificate", join(job, fixture.PEM("CERTIFICATE", []byte("half"))), ours},
		{"no authority", fixture.Certificate(t, name).PEM(), ours},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := authority.Join(ours, c.current, begin.Add(time.Hour)); !bytes.Equal(got, c.want) {
				t.Errorf("the bundle is\n%s\nwant\n%s", got, c.want)
			}
		})
	}
	if got := authority.Join(ours, job, begin.Add(2*day)); !bytes.Equal(got, ours) {
		t.Error("an expired authority is kept")
	}
}

// FuzzJoin checks that the authorities of the Secret stay first, and that a second call changes nothing.
func FuzzJoin(f *testing.F) {
	made, _ := next(f, nil, begin)
	ours := made[authority.Bundle]
	f.Add(ours)
	f.Add(fixture.Authority(f, nil, "other").PEM())
	f.Fuzz(func(t *testing.T, current []byte) {
		joined := authority.Join(ours, current, begin)
		if !bytes.HasPrefix(joined, ours) || !bytes.Equal(authority.Join(ours, joined, begin), joined) {
			t.Errorf("the bundle is\n%s", joined)
		}
	})
}

// FuzzNext checks that clients can connect with the result, whatever the Secret contains.
func FuzzNext(f *testing.F) {
	good, _ := next(f, nil, begin)
	f.Add(good[authority.Bundle], good[authority.AuthorityKey], good[secret.CertificateKey], good[secret.PrivateKey])
	f.Add([]byte(nil), []byte("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----"), []byte{0}, []byte{0})
	f.Fuzz(func(t *testing.T, bundle, key, certificate, private []byte) {
		made, at := next(t, files{authority.Bundle: bundle, authority.AuthorityKey: key,
			secret.CertificateKey: certificate, secret.PrivateKey: private}, begin)
		if !at.After(begin) {
			t.Errorf("the next renewal is at %v", at)
		}
		shakeHands(t, made, made, begin)
		if same, _ := next(t, made, begin); !reflect.DeepEqual(same, made) {
			t.Error("the files need another change")
		}
	})
}

func next(t testing.TB, f files, now time.Time) (files, time.Time) {
	t.Helper()
	made, at, err := authority.Next(f, []string{name}, now)
	if err != nil {
		t.Fatal(err)
	}
	return made, at
}

func certificates(t testing.TB, data []byte) []*x509.Certificate {
	t.Helper()
	all, err := secret.ParseCertificates("file", data)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// shakeHands connects a client with the bundle of one Secret to a server with the certificate of another.
func shakeHands(t testing.TB, client, server files, now time.Time) {
	t.Helper()
	pair, err := tls.X509KeyPair(server[secret.CertificateKey], server[secret.PrivateKey])
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(client[authority.Bundle])
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	clock := func() time.Time { return now }
	go func() {
		// The client reports a failed handshake.
		_ = tls.Server(b, &tls.Config{Certificates: []tls.Certificate{pair}, Time: clock}).HandshakeContext(t.Context())
		_ = b.Close()
	}()
	if err := tls.Client(a, &tls.Config{RootCAs: roots, ServerName: name, Time: clock}).Handshake(); err != nil {
		t.Fatalf("at %v: %v", now, err)
	}
}
