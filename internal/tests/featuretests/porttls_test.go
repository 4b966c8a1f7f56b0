package featuretests

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/k8singress/k8singress/internal/tests/fixture"
)

// pairSecret returns a Secret "default/db" with the certificate and key of an identity.
func pairSecret(who *fixture.Identity) string {
	return tlsSecret("db", who.Secret()["tls.crt"], who.Secret()["tls.key"])
}

// overTLS sends a request to an HTTP backend over a port that terminates TLS, as a client that trusts the given
// certificate authority.
func overTLS(port, host string, authority *fixture.Identity) (string, error) {
	roots := x509.NewCertPool()
	roots.AddCert(authority.Leaf)
	dialer := tls.Dialer{NetDialer: &net.Dialer{Timeout: deadline},
		Config: &tls.Config{ServerName: host, RootCAs: roots}}
	conn, err := dialer.Dial("tcp", "127.0.0.1:"+port)
	if err != nil {
		return "", err
	}
	return askOnce(conn, "/secured")
}

// TestPortEndsTLS checks that a port serves the certificate of a Secret, switches to a new certificate without a
// reload, and forwards nothing in plain text while there is none.
func TestPortEndsTLS(t *testing.T) {
	authority := fixture.Authority(t, nil, "authority")
	named := func(host string) *fixture.Identity {
		return fixture.Identify(t, authority, &x509.Certificate{DNSNames: []string{host}})
	}
	ip, backendPort := backend(t, "one")
	port := fixture.Port(t)
	exposed := exposed("one", backendPort, ip, "tcp-ports: "+port+":http", "stream-tls-secret: db")
	in := start(t, class+exposed, servicePorts)
	if answer, err := overTLS(port, "db.example", authority); err == nil {
		t.Errorf("without a Secret it answers %q", answer)
	}
	if answer, err := tryTCP(port); err == nil {
		t.Errorf("in plain text it answers %q", answer)
	}
	in.expectProblem("Service/default/one", "SecretNotFound", "metadata.annotations[k8singress.io/stream-tls-secret]")
	reloads := in.reloads()
	shows := func(host string) {
		t.Helper()
		in.eventually("the certificate of "+host, func() error {
			answer, err := overTLS(port, host, authority)
			if err == nil && answer != "one /secured" {
				err = fmt.Errorf("it answers %q", answer)
			}
			return err
		})
	}
	in.write("secret.yaml", pairSecret(named("db.example")))
	shows("db.example")
	in.eventually("no verdict", func() error {
		if got := in.reasons("Service/default/one"); len(got) > 0 {
			return fmt.Errorf("the Service is told %v", got)
		}
		return nil
	})
	in.write("secret.yaml", pairSecret(named("next.example")))
	shows("next.example")
	in.remove("secret.yaml")
	in.eventually("the end of the certificate", func() error {
		if answer, err := overTLS(port, "next.example", authority); err == nil {
			return fmt.Errorf("it answers %q", answer)
		}
		return nil
	})
	if now := in.reloads(); now != reloads {
		t.Errorf("Caddy was made to reload: %q, then %q", reloads, now)
	}
}

// expectProblem waits until an object has exactly one problem with the given reason and field.
func (in *ingress) expectProblem(object, reason, field string) {
	in.Helper()
	in.eventually("a verdict on "+object, func() error {
		if said := in.problems(object); len(said) != 1 || said[0].Reason != reason || said[0].Field != field {
			return fmt.Errorf("it is told %+v, want %s of %s", said, reason, field)
		}
		return nil
	})
}

// TestSecretOfTheEndpointsOfAPort checks that the object that defines a port gets a warning which names the annotation
// with the invalid Secret.
func TestSecretOfTheEndpointsOfAPort(t *testing.T) {
	ip, backendPort := backend(t, "one")
	annotations := []string{"stream-backend-tls: true", "stream-backend-tls-secret: none"}
	in := start(t, class+exposed("one", backendPort, ip, append(annotations, "tcp-ports: "+fixture.Port(t)+":http")...)+
		exposed("two", backendPort, ip, annotations...), servicePorts, "tcp_services default/tcp")
	in.expectProblem("Service/default/one", "SecretNotFound",
		"metadata.annotations[k8singress.io/stream-backend-tls-secret]")
	port := fixture.Port(t)
	in.write("tcp.yaml", configMap("tcp", fmt.Sprintf("%q: default/two:80", port)))
	in.eventually("the port", func() error {
		if in.message("ConfigMap/default/tcp", "SecretNotFound") == "" {
			return fmt.Errorf("nothing is said of it")
		}
		return nil
	})
	in.expectProblem("ConfigMap/default/tcp", "SecretNotFound", "data["+port+"]")
	const annotation = "k8singress.io/stream-backend-tls-secret of Service/default/two"
	if got := in.message("ConfigMap/default/tcp", "SecretNotFound"); !strings.Contains(got, annotation) {
		t.Errorf("it is told %q", got)
	}
}
