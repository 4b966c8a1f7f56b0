package trust_test

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/k8singress/k8singress/internal/model/document"
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/tests/fixture"
	"github.com/k8singress/k8singress/internal/tls/trust"
)

// greet performs a handshake with a server that has a certificate, and returns the client's result.
func greet(t *testing.T, config *tls.Config, server *tls.Config) (tls.ConnectionState, error) {
	t.Helper()
	listener, err := tls.Listen("tcp", "127.0.0.1:0", server)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	go func() {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		_ = conn.(*tls.Conn).Handshake()
	}()
	socket, err := net.DialTimeout("tcp", listener.Addr().String(), fixture.Patience)
	if err != nil {
		t.Fatal(err)
	}
	conn := tls.Client(socket, config)
	defer conn.Close()
	err = conn.Handshake()
	return conn.ConnectionState(), err
}

// asServer returns a server configuration for TLS 1.2, in which a client learns at once whether its session was
// resumed.
func asServer(i *fixture.Identity) *tls.Config {
	return &tls.Config{Certificates: []tls.Certificate{i.Pair()}, MaxVersion: tls.VersionTLS12}
}

func TestServerNames(t *testing.T) {
	ca := fixture.Authority(t, nil, "ca")
	limited := fixture.Identify(t, nil, &x509.Certificate{
		Subject: pkix.Name{CommonName: "limited"}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage:            x509.KeyUsageCertSign,
		PermittedDNSDomains: []string{"inside"}, PermittedDNSDomainsCritical: true,
	})
	address := &x509.Certificate{IPAddresses: []net.IP{net.IPv4(192, 0, 2, 1)}}
	named := func(names ...string) *x509.Certificate {
		return &x509.Certificate{Subject: pkix.Name{CommonName: "common.inside"}, DNSNames: names}
	}
	for _, test := range []struct {
		what     string
		issuer   *fixture.Identity
		template *x509.Certificate
		name     string
		want     string
	}{
		{"a name", ca, named("web.inside"), "web.inside", ""},
		{"in capitals", ca, named("web.inside"), "WEB.inside.", ""},
		{"a wildcard", ca, named("*.inside"), "web.inside", ""},
		{"a label more", ca, named("*.inside"), "a.web.inside", "is for"},
		{"common name", ca, named(), "common.inside", ""},
		{"common name beside others", ca, named("web.inside"), "common.inside",
			`is for "web.inside", not for "common.inside"`},
		{"an address", ca, address, "192.0.2.1", ""},
		{"another address", ca, address, "192.0.2.2", "is for"},
		{"an address in a common name", ca, &x509.Certificate{Subject: pkix.Name{CommonName: "192.0.2.1"}},
			"192.0.2.1", "is for"},
		{"within limits", limited, named("web.inside"), "web.inside", ""},
		{"outside of limits", limited, named("web.outside"), "web.outside", "rejected"},
		{"common name and limits", limited, named(), "common.inside", "limited to certain names"},
	} {
		t.Run(test.what, func(t *testing.T) {
			contents := trust.ReadContents(map[string][]byte{"ca.crt": test.issuer.PEM()})
			config, err := contents.ClientConfig(&ir.BackendTLS{Verify: true, Name: test.name, Depth: 1})
			if err != nil {
				t.Fatal(err)
			}
			_, err = greet(t, config, asServer(fixture.Identify(t, test.issuer, test.template)))
			switch {
			case test.want == "" && err != nil:
				t.Error(err)
			case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)):
				t.Errorf("error is %v", err)
			}
		})
	}
}

// TestBrokenAuthorityOfServers checks that the error is about ca.crt, as in the verdict on the object, and not about
// the pair, which is not needed.
func TestBrokenAuthorityOfServers(t *testing.T) {
	contents := trust.ReadContents(map[string][]byte{"ca.crt": []byte("garbage")})
	_, err := contents.ClientConfig(&ir.BackendTLS{Verify: true})
	if err == nil || !strings.Contains(err.Error(), "ca.crt has no certificate") {
		t.Errorf("%v, want what is the matter with ca.crt", err)
	}
}

// TestSessionsBelongToContents checks that TLS sessions are resumed with the same Contents, and not with others.
func TestSessionsBelongToContents(t *testing.T) {
	ca := fixture.Authority(t, nil, "ca")
	server := asServer(fixture.Identify(t, ca, &x509.Certificate{DNSNames: []string{"web"}}))
	data := map[string][]byte{"ca.crt": ca.PEM()}
	how := &ir.BackendTLS{Verify: true, Name: "web", SendName: true}
	for round := range 2 {
		config, err := trust.ReadContents(data).ClientConfig(how)
		if err != nil {
			t.Fatal(err)
		}
		for time := range 2 {
			state, err := greet(t, config, server)
			if err != nil || state.DidResume != (time == 1) {
				t.Errorf("round %d, handshake %d: resumed %v, error %v", round, time, state.DidResume, err)
			}
		}
	}
}

// TestSecretsOfPorts checks that the message names the annotation with the Secret, whichever object defines the port.
func TestSecretsOfPorts(t *testing.T) {
	port := func(origin string) *document.Port {
		return &document.Port{
			Origin: ir.ParseRef(origin), StreamBackends: document.StreamBackends{Backend: "shop/db/5432"},
			TLS:        &ir.StreamTLS{Secret: ir.Name{Namespace: "shop", Name: "pair"}},
			BackendTLS: &ir.BackendTLS{Secret: ir.Name{Namespace: "shop", Name: "ca"}, Verify: true},
		}
	}
	s := trust.NewStore()
	s.Update(&document.Delta{Ports: map[string]*document.Port{
		"tcp/5432": port("Service/shop/db"), "tcp/5433": port("Service/shop/db"),
		"tcp/9000": port("ConfigMap/ingress/tcp-services"),
	}})
	s.SetSecret(ir.Name{Namespace: "shop", Name: "pair"}, nil, false)
	s.SetSecret(ir.Name{Namespace: "shop", Name: "ca"}, nil, false)
	const ours = "Service/shop/db metadata.annotations[k8singress.io/"
	expectProblems(t, s,
		"error SecretNotFound ConfigMap/ingress/tcp-services data[9000]: Secret shop/ca does not exist: every "+
			"connection is closed for port tcp/9000 (k8singress.io/stream-backend-tls-secret of Service/shop/db) "+
			"until it does",
		"error SecretNotFound "+ours+
			"stream-backend-tls-secret]: Secret shop/ca does not exist: every connection is closed for "+
			"port tcp/5432, port tcp/5433 until it does",
		"error SecretNotFound ConfigMap/ingress/tcp-services data[9000]: Secret shop/pair does not exist: every TLS "+
			"handshake fails for port tcp/9000 (k8singress.io/stream-tls-secret of Service/shop/db) until it does",
		"error SecretNotFound "+ours+
			"stream-tls-secret]: Secret shop/pair does not exist: every TLS handshake fails for "+
			"port tcp/5432, port tcp/5433 until it does")
}

// TestOneUserWithSeveralSecrets checks a host whose routes have different Secrets.
func TestOneUserWithSeveralSecrets(t *testing.T) {
	s := trust.NewStore()
	host := func(secrets ...string) *document.Delta {
		h := &document.Host{}
		for _, name := range secrets {
			for range 2 {
				h.Routes = append(h.Routes, &document.Route{
					Origin: "Ingress/shop/" + name,
					Destination: document.Destination{
						TLS: &ir.BackendTLS{Secret: ir.Name{Namespace: "shop", Name: name}, Verify: true},
					},
				})
			}
		}
		return &document.Delta{Hosts: map[string]*document.Host{"a": h}}
	}
	if got := fmt.Sprint(s.Update(host("one", "two"))); got != "[shop/one shop/two]" {
		t.Errorf("added are %s", got)
	}
	one := s.Authority(ir.Name{Namespace: "shop", Name: "one"})
	if got := fmt.Sprint(s.Update(host("one", "three"))); got != "[shop/three]" {
		t.Errorf("added are %s", got)
	}
	if s.Authority(ir.Name{Namespace: "shop", Name: "one"}) != one {
		t.Error("who is referred to all the time is another one now")
	}
	s.SetSecret(ir.Name{Namespace: "shop", Name: "one"}, nil, false)
	s.SetSecret(ir.Name{Namespace: "shop", Name: "two"}, nil, false)
	s.SetSecret(ir.Name{Namespace: "shop", Name: "three"},
		map[string][]byte{"ca.crt": fixture.Authority(t, nil, "ca").PEM()}, true)
	expectProblems(t, s,
		"error SecretNotFound Ingress/shop/one metadata.annotations[nginx.ingress.kubernetes.io/proxy-ssl-secret]: "+
			"Secret shop/one does not exist: every request gets 502 for a until it does")
	s.Update(&document.Delta{Hosts: map[string]*document.Host{"a": nil}})
	expectProblems(t, s)
}
