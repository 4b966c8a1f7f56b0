package e2e

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var tlsTermination = []sentence{
	{"hosts are multiplexed on one port according to the hostname specified through the SNI TLS extension",
		serverNames},
	{"the SNI host is used for termination and the value of the Host header is used for routing", nameAndHost},
	{"a wildcard host is served with the certificate of its Secret", wildcardCertificate},
	{"a Secret that is missing leaves all else alone, and counts when it appears", missingSecret},
	{"if hosts is left unspecified, it defaults to the hosts of the rules", tlsWithoutHosts},
}

func serverNames(f *conformance) {
	a, b := f.host("sni-a"), f.host("sni-b")
	pairA, pairB := f.newPair(a), f.newPair(b)
	f.secret("sni-a", pairA)
	f.secret("sni-b", pairB)
	f.rules("sni", []route{{a, prefix, "/", "one"}, {b, prefix, "/", "two"}}, withSecret("sni-a", a),
		withSecret("sni-b", b))
	f.answersTLS(a, "one", pairA)
	f.answersTLS(b, "two", pairB)
	f.checkShown(a, pairA)
	f.checkShown(strings.ToUpper(b), pairB)
	for _, name := range []string{f.host("sni-c"), "sub." + a, ""} {
		if shown, err := f.shown(name); err == nil && (shown == leaf(pairA) || shown == leaf(pairB)) {
			f.Errorf("the name %q is shown the certificate of another host", name)
		}
	}
}

func nameAndHost(f *conformance) {
	a, b := f.host("front"), f.host("behind")
	pair := f.newPair(a)
	f.secret("front", pair)
	f.rules("front", []route{{a, prefix, "/", "one"}, {b, prefix, "/", "two"}}, withSecret("front", a))
	f.answersTLS(a, "one", pair)
	request, err := http.NewRequestWithContext(f.Context(), http.MethodGet, "https://"+a+"/", nil)
	f.must(err)
	request.Host = b
	r, err := send(newTransport(f.caddy.HTTPS, pair), request)
	f.must(err)
	if r.code != http.StatusOK || !strings.HasPrefix(r.pod, "two-") {
		f.Errorf("answered %d by pod %q", r.code, r.pod)
	}
}

func wildcardCertificate(f *conformance) {
	host := f.host("wild-tls")
	pair := f.newPair("*." + host)
	f.secret("wild-tls", pair)
	f.rules("wild-tls", []route{{"*." + host, prefix, "/", "one"}}, withSecret("wild-tls", "*."+host))
	f.answersTLS("bar."+host, "one", pair)
	f.answersTLS("foo."+host, "one", pair)
	for _, name := range []string{host, "baz.bar." + host} {
		if shown, err := f.shown(name); err == nil && shown == leaf(pair) {
			f.Errorf("the name %q is shown the certificate of the wildcard", name)
		}
	}
}

func missingSecret(f *conformance) {
	host, other := f.host("late"), f.host("late-other")
	pair, otherPair := f.newPair(host), f.newPair(other)
	f.secret("late-other", otherPair)
	f.rules("late", []route{{host, prefix, "/", "one"}, {other, prefix, "/", "two"}},
		withSecret("late-missing", host), withSecret("late-other", other))
	f.answersTLS(other, "two", otherPair)
	f.answers(answer{host, "/", "one"})
	f.awaitReason(f.caddy, "late", "SecretNotFound")
	if r, err := once(f.Context(), f.caddy.HTTPS, "https://"+host+"/", otherPair); err == nil {
		f.Errorf("a certificate of another host was good enough: %d", r.code)
	}
	f.secret("late-missing", pair)
	f.answersTLS(host, "one", pair)
	f.checkShown(other, otherPair)
}

func tlsWithoutHosts(f *conformance) {
	host := f.host("hosts-of-rules")
	pair := f.newPair(host)
	f.secret("hosts-of-rules", pair)
	f.rules("hosts-of-rules", []route{{host, prefix, "/", "one"}}, withSecret("hosts-of-rules"))
	f.answersTLS(host, "one", pair)
}

func withSecret(name string, hosts ...string) func(*networkingv1.Ingress) {
	return func(i *networkingv1.Ingress) {
		i.Spec.TLS = append(i.Spec.TLS, networkingv1.IngressTLS{Hosts: hosts, SecretName: name})
		metav1.SetMetaDataAnnotation(&i.ObjectMeta, sslRedirect, "false")
	}
}

// answersTLS waits until a Service responds over HTTPS with a certificate that pair verifies.
func (f *conformance) answersTLS(host, service string, pair keyPair) {
	f.Helper()
	f.await("HTTPS of "+host, func() error {
		r, err := once(f.Context(), f.caddy.HTTPS, "https://"+host+"/", pair)
		if err == nil && (r.code != http.StatusOK || !strings.HasPrefix(r.pod, service+"-")) {
			return fmt.Errorf("answered %d by pod %q", r.code, r.pod)
		}
		return err
	})
}

func (f *conformance) checkShown(name string, pair keyPair) {
	f.Helper()
	shown, err := f.shown(name)
	f.must(err)
	if shown != leaf(pair) {
		f.Errorf("the name %q is shown another certificate than that of its Secret", name)
	}
}

// shown returns the certificate that the server presents for a server name, without verifying it.
func (f *conformance) shown(name string) (string, error) {
	conn, err := tls.Dial("tcp", f.caddy.HTTPS, &tls.Config{ServerName: name, InsecureSkipVerify: true})
	if err != nil {
		return "", err
	}
	defer conn.Close()
	all := conn.ConnectionState().PeerCertificates
	if len(all) == 0 {
		return "", errors.New("no certificate was shown")
	}
	return serial(all[0]), nil
}

func leaf(pair keyPair) string {
	block, _ := pem.Decode(pair.certificate)
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return err.Error()
	}
	return serial(certificate)
}

func serial(certificate *x509.Certificate) string { return certificate.SerialNumber.String() }
