package featuretests

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/k8singress/k8singress/internal/tests/fixture"
)

// person returns the certificate of a client.
func person(t testing.TB, issuer *fixture.Identity, name string) *fixture.Identity {
	t.Helper()
	return fixture.Identify(t, issuer, &x509.Certificate{
		Subject:     pkix.Name{CommonName: name, Organization: []string{"Shop"}},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
}

// outdated returns an expired certificate of a client.
func outdated(t testing.TB, issuer *fixture.Identity) *fixture.Identity {
	t.Helper()
	return fixture.Identify(t, issuer, &x509.Certificate{NotBefore: time.Now().Add(-2 * time.Hour),
		NotAfter: time.Now().Add(-time.Hour)})
}

// opaque returns a Secret in the namespace default. Nil data returns no Secret.
func opaque(name string, data map[string][]byte) string {
	if data == nil {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "---\napiVersion: v1\nkind: Secret\nmetadata: {name: %s}\ndata:\n", name)
	for _, key := range slices.Sorted(maps.Keys(data)) {
		fmt.Fprintf(&b, "  %s: %q\n", key, base64.StdEncoding.EncodeToString(data[key]))
	}
	return b.String()
}

func caSecret(name string, ca *fixture.Identity) string {
	return opaque(name, map[string][]byte{"ca.crt": ca.PEM()})
}

// mutualTLSIngress returns an Ingress "default/NAME" for NAME.example that requests client certificates, with more
// annotations as alternating keys and values.
func mutualTLSIngress(name, secret string, annotations ...string) string {
	return annotated(name, name+".example", "one",
		append([]string{"auth-tls-secret", "default/" + secret}, annotations...)...)
}

// showing returns a client of each protocol that connects with a server name and an identity, which may be nil.
func (in *ingress) showing(who *fixture.Identity, server string) map[string]*http.Client {
	in.Helper()
	all := map[string]*http.Client{}
	for _, version := range versions {
		if !hasTLS(version) {
			continue
		}
		config := anybody()
		if config.ServerName = server; who != nil {
			pair := who.Pair()
			// Whatever authorities the server names.
			config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
				return &pair, nil
			}
		}
		all[version] = in.clientOf(in, version, config)
	}
	return all
}

// fetch sends a request with headers such as "Name: value".
func (in *ingress) fetch(client *http.Client, url string, headers ...string) answer {
	in.Helper()
	return in.sendBy(client, url, http.MethodGet, nil, headers...)
}

// certificateEndpoint starts an endpoint that responds with the headers about the client certificate, as
// "verify|subject|issuer|certificate".
func certificateEndpoint(t testing.TB) (ip, port string) {
	t.Helper()
	return endpointOf(t, func(w http.ResponseWriter, r *http.Request) {
		var told []string
		for _, name := range []string{"Verify", "Subject-Dn", "Issuer-Dn", "Cert"} {
			told = append(told, strings.Join(r.Header.Values("Ssl-Client-"+name), "+"))
		}
		fmt.Fprint(w, strings.Join(told, "|"))
	})
}

// TestClientCertificates checks which clients get access with each value of auth-tls-verify-client, on each protocol,
// and which headers the backend gets.
func TestClientCertificates(t *testing.T) {
	ip, port := certificateEndpoint(t)
	root, other := fixture.Authority(t, nil, "root"), fixture.Authority(t, nil, "other")
	middle := fixture.Authority(t, root, "middle")
	const (
		none = "400 No required SSL certificate was sent"
		bad  = "400 The SSL certificate error"
	)
	alice := "SUCCESS|CN=alice,O=Shop|CN=root|"
	people := map[string]*fixture.Identity{
		"nobody": nil, "alice": person(t, root, "alice"), "a stranger": person(t, other, "alice"),
		"outdated":    outdated(t, root),
		"one between": person(t, middle, "bob"), "two between": person(t, fixture.Authority(t, middle, "lower"), "bob"),
	}
	manifests := class + service("one", port, ip) + caSecret("ca", root)
	wants := map[string]map[string]string{
		"on": {
			"nobody": none, "alice": alice, "a stranger": bad, "outdated": bad,
			"one between": "SUCCESS|CN=bob,O=Shop|CN=middle|", "two between": bad,
		},
		"off":      {"nobody": "NONE|||", "alice": "NONE|||", "a stranger": "NONE|||"},
		"optional": {"nobody": "NONE|||", "alice": alice, "a stranger": bad, "outdated": bad},
		"optional_no_ca": {
			"nobody": "NONE|||", "alice": alice, "outdated": bad,
			"a stranger": "FAILED:unable to verify the first certificate|CN=alice,O=Shop|CN=other|",
		},
	}
	hostOf := func(verify string) string { return "h" + strings.ReplaceAll(verify, "_", "-") }
	for verify := range wants {
		manifests += mutualTLSIngress(hostOf(verify), "ca", "auth-tls-verify-client", verify)
	}
	in := start(t, manifests)
	for verify, want := range wants {
		for who, want := range want {
			host := hostOf(verify) + ".example"
			for protocol, client := range in.showing(people[who], host) {
				t.Run(verify+", "+who+", "+protocol, func(t *testing.T) {
					got := in.fetch(client, "https://"+host+"/", "Ssl-Client-Verify: SUCCESS",
						"ssl-client-subject-dn: CN=root",
						"SSL-CLIENT-ISSUER-DN: CN=root", "Ssl-Client-Cert: x", "Ssl-Client-Other: x")
					if strings.HasPrefix(want, "400") {
						if got.status != http.StatusBadRequest ||
							!strings.Contains(got.body, "<title>"+want+"</title>") {
							t.Errorf("%d %q, want %q", got.status, got.body, want)
						}
					} else if got.status != http.StatusOK || got.body != want {
						t.Errorf("%d %q, want %q", got.status, got.body, want)
					}
				})
			}
		}
	}
}

// TestClientCertificateOptions checks the effects of the other annotations.
func TestClientCertificateOptions(t *testing.T) {
	ip, port := certificateEndpoint(t)
	root := fixture.Authority(t, nil, "root")
	alice, bob, gone := person(t, root, "alice"), person(t, root, "bob"), person(t, root, "gone")
	deep := person(t, fixture.Authority(t, fixture.Authority(t, root, "one"), "two"), "deep")
	listed := opaque("listed", map[string][]byte{"ca.crt": root.PEM(),
		"ca.crl": root.Revoking(t, time.Now().Add(time.Hour), gone)})
	in := start(t, class+service("one", port, ip)+caSecret("ca", root)+listed+
		mutualTLSIngress("page", "ca", "auth-tls-error-page", "https://example.com/no?a=b")+
		mutualTLSIngress("pass", "ca", "auth-tls-pass-certificate-to-upstream", "true")+
		mutualTLSIngress("match", "ca", "auth-tls-match-cn", "CN=(alice|carol),")+
		mutualTLSIngress("any", "ca", "auth-tls-match-cn", "CN=alice", "auth-tls-verify-client", "optional")+
		mutualTLSIngress("deep", "ca", "auth-tls-verify-depth", "2")+
		mutualTLSIngress("shallow", "ca", "auth-tls-verify-depth", "0")+
		mutualTLSIngress("listed", "listed"))
	for _, test := range []struct {
		host   string
		who    *fixture.Identity
		status int
		body   string
	}{
		{"page", nil, http.StatusFound, ""},
		{"page", alice, http.StatusOK, ""},
		{"match", alice, http.StatusOK, ""},
		{"match", bob, http.StatusForbidden, "client certificate unauthorized"},
		{"match", nil, http.StatusBadRequest, ""},
		{"any", alice, http.StatusOK, ""},
		{"any", nil, http.StatusForbidden, "client certificate unauthorized"},
		{"deep", deep, http.StatusOK, ""},
		{"shallow", deep, http.StatusBadRequest, ""},
		{"shallow", alice, http.StatusOK, ""},
		{"listed", alice, http.StatusOK, ""},
		{"listed", gone, http.StatusBadRequest, ""},
	} {
		got := in.fetch(in.showing(test.who, test.host+".example")[secure2], "https://"+test.host+".example/")
		if got.status != test.status || test.body != "" && got.body != test.body {
			t.Errorf("%s: %d %q, want %d %q", test.host, got.status, got.body, test.status, test.body)
		}
		if location := got.header.Get("Location"); test.status == http.StatusFound &&
			location != "https://example.com/no?a=b" {
			t.Errorf("%s: sent to %q", test.host, location)
		}
	}
	got := in.fetch(in.showing(alice, "pass.example")[secure1], "https://pass.example/").body
	want := strings.NewReplacer("+", "%2B", "/", "%2F", "=", "%3D", "\n", "%0A", " ",
		"%20").Replace(string(alice.PEM()))
	if !strings.HasSuffix(got, "|"+want) {
		t.Errorf("the backend is handed %q, want %q", got, want)
	}
}

// TestUnusableAuthority checks that a host rejects all clients while its certificate authority is unusable, and that
// this is reported.
func TestUnusableAuthority(t *testing.T) {
	ip, port := certificateEndpoint(t)
	root := fixture.Authority(t, nil, "root")
	old := root.Revoking(t, time.Now().Add(-time.Hour))
	in := start(t, class+service("one", port, ip)+caSecret("ca", root)+
		mutualTLSIngress("missing", "missing")+
		mutualTLSIngress("without", "without")+opaque("without", map[string][]byte{"tls.crt": root.PEM()})+
		mutualTLSIngress("garbage", "garbage", "auth-tls-verify-client", "optional")+opaque("garbage",
		map[string][]byte{"ca.crt": []byte("garbage")})+
		mutualTLSIngress("list", "list")+opaque("list", map[string][]byte{"ca.crt": root.PEM(), "ca.crl": old})+
		mutualTLSIngress("regex", "ca", "auth-tls-match-cn", "(")+
		mutualTLSIngress("other", "ca")+
		strings.Replace(mutualTLSIngress("elsewhere", "ca"), "default/ca", "kube-system/ca", 1)+
		strings.Replace(mutualTLSIngress("nowhere", "ca"), "default/ca", "ca", 1))
	for host, want := range map[string]struct {
		status int
		reason string
	}{
		"missing":   {http.StatusForbidden, "SecretNotFound"},
		"without":   {http.StatusForbidden, "InvalidCA"},
		"garbage":   {http.StatusForbidden, "InvalidCA"},
		"list":      {http.StatusBadRequest, "RevocationListExpired"},
		"regex":     {http.StatusForbidden, "InvalidAnnotation"},
		"elsewhere": {http.StatusForbidden, "InvalidAnnotation"},
		"nowhere":   {http.StatusForbidden, "InvalidAnnotation"},
		"other":     {http.StatusOK, ""},
	} {
		for protocol, client := range in.showing(person(t, root, "alice"), host+".example") {
			if got := in.fetch(client, "https://"+host+".example/"); got.status != want.status {
				t.Errorf("%s, %s: %d %q, want %d", host, protocol, got.status, got.body, want.status)
			}
		}
		if got := strings.Join(in.reasons("Ingress/default/"+host), " "); got != want.reason {
			t.Errorf("%s: reasons are %q, want %q", host, got, want.reason)
		}
	}
	in.write("mended.yaml", caSecret("missing", root))
	client := in.showing(person(t, root, "alice"), "missing.example")[secure1]
	in.eventually("the Secret counts", func() error {
		if got := in.fetch(client, "https://missing.example/"); got.status != http.StatusOK {
			return fmt.Errorf("%d %q", got.status, got.body)
		}
		return nil
	})
}

// TestMisdirected checks that clients cannot avoid the certificate check by a connection for another host.
func TestMisdirected(t *testing.T) {
	ip, port := certificateEndpoint(t)
	root := fixture.Authority(t, nil, "root")
	in := start(t, class+service("one", port, ip)+caSecret("ca", root)+mutualTLSIngress("a", "ca")+
		rule("open", "open.example", "Prefix", "/", "one")+
		strings.Replace(mutualTLSIngress("w", "ca", "auth-tls-verify-client", "optional"), "w.example",
			"*.w.example", 1)+
		rule("plain", "*.plain.example", "Prefix", "/", "one")+rule("all", "", "Prefix", "/", "one"))
	alice := person(t, root, "alice")
	for _, test := range []struct {
		server, host string
		status       int
	}{
		{"open.example", "a.example", http.StatusMisdirectedRequest},
		{"a.example", "open.example", http.StatusMisdirectedRequest},
		{"nobody.example", "a.example", http.StatusMisdirectedRequest},
		{"a.example", "nobody.example", http.StatusMisdirectedRequest},
		{"", "a.example", http.StatusMisdirectedRequest},
		{"", "x.w.example", http.StatusMisdirectedRequest},
		{"x.plain.example", "x.w.example", http.StatusMisdirectedRequest},
		{"x.w.example", "y.w.example", http.StatusMisdirectedRequest},
		{"w.example", "x.w.example", http.StatusMisdirectedRequest},
		{"a.example", "a.example", http.StatusOK},
		{"A.Example", "a.example", http.StatusOK},
		{"a.example", "A.EXAMPLE", http.StatusOK},
		{"a.example", "a.example.", http.StatusOK},
		{"a.example", "a.example:8443", http.StatusOK},
		{"X.W.example", "x.w.example.:443", http.StatusOK},
		{"open.example", "A.example", http.StatusMisdirectedRequest},
		{"open.example", "a.example.:443", http.StatusMisdirectedRequest},
		{"open.example", "x.plain.example", http.StatusOK},
		{"", "nobody.example", http.StatusOK},
		{"", "", http.StatusOK},
	} {
		for protocol, client := range in.showing(alice, test.server) {
			host := test.host
			if host == "" {
				host = in.https
			}
			if got := in.fetch(client, "https://"+in.https+"/", "Host: "+host); got.status != test.status {
				t.Errorf("%s: %d for the host %q by a connection for %q, want %d", protocol, got.status, test.host,
					test.server, test.status)
			}
		}
	}
}
