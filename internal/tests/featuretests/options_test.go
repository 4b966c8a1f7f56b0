package featuretests

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/k8singress/k8singress/internal/model/settings"
	"github.com/k8singress/k8singress/internal/tests/fixture"
)

// options reloads the controller with its folder and other options.
func (in *ingress) options(lines ...string) {
	in.Helper()
	in.load("manifests " + in.folder + "\n" + strings.Join(lines, "\n"))
}

// TestOptionsOfClasses checks which Ingresses are served with each option for classes.
func TestOptionsOfClasses(t *testing.T) {
	ip, port := backend(t, "one")
	const foreign = `---
apiVersion: networking.k8s.io/v1
kind: IngressClass
metadata: {name: foreign}
spec: {controller: example.com/foreign}
`
	of := func(name, class string) string {
		return strings.Replace(rule(name, name+".example", "Prefix", "/", "one"), "  ingressClassName: nginx\n", class,
			1)
	}
	in := start(t, class+foreign+service("one", port, ip)+of("own", "  ingressClassName: nginx\n")+of("none", "")+
		of("other", "  ingressClassName: foreign\n")+
		annotate(of("older", ""), "kubernetes.io/ingress.class", "foreign"))
	for _, c := range []struct {
		options []string
		served  []string
	}{
		{nil, []string{"own"}},
		{[]string{"watch_ingress_without_class"}, []string{"own", "none"}},
		{[]string{"ingress_class foreign"}, []string{"own", "older"}},
		{[]string{"ingress_class foreign", "ingress_class_by_name"}, []string{"own", "older", "other"}},
		{[]string{"controller_name example.com/foreign"}, []string{"other"}},
	} {
		in.options(c.options...)
		for _, name := range []string{"own", "none", "other", "older"} {
			if slices.Contains(c.served, name) {
				in.becomes(name+".example", "/", http.StatusOK, "one /")
			} else {
				in.becomes(name+".example", "/", http.StatusNotFound, "")
			}
		}
	}
}

// TestDisableCatchAll checks that an Ingress without a host serves no host.
func TestDisableCatchAll(t *testing.T) {
	ip, port := backend(t, "one")
	in := start(t, class+service("one", port, ip)+only("all", "one"))
	in.expect("any.example", "/", http.StatusOK, "one /")
	in.options("disable_catch_all")
	in.becomes("any.example", "/", http.StatusNotFound, "")
}

// TestHealthOptions checks the responses on the address of health, before and after the objects are read.
func TestHealthOptions(t *testing.T) {
	in := newIngress(t)
	address, manifests := fixture.Address(t), "manifests "+in.folder
	for _, c := range []struct {
		options string
		want    map[string]int
	}{
		{"source none", map[string]int{"/healthz": 200, "/readyz": 503}},
		{"source none\nhealth_ready", map[string]int{"/healthz": 503}},
		{manifests, map[string]int{"/healthz": 200, "/readyz": 200, "/alive": 404, "/metrics": 404}},
		{manifests + "\nhealth_ready", map[string]int{"/healthz": 200}},
		{manifests + "\nhealth_path /alive", map[string]int{"/healthz": 404, "/alive": 200}},
		{manifests + "\nhealth_metrics", map[string]int{"/healthz": 200, "/metrics": 200}},
	} {
		in.load("health " + address + "\n" + c.options)
		for _, path := range slices.Sorted(maps.Keys(c.want)) {
			in.eventually(c.options+" "+path, func() error {
				response, err := in.admins.Get("http://" + address + path)
				if err != nil {
					return err
				}
				if got := read(t, response).status; got != c.want[path] {
					return fmt.Errorf("the status is %d, want %d", got, c.want[path])
				}
				return nil
			})
		}
	}
}

// TestHTTP3Off checks that no client is told to use HTTP/3, and that nothing listens on its port.
func TestHTTP3Off(t *testing.T) {
	ip, port := backend(t, "one")
	in := start(t, class+service("one", port, ip)+rule("a", "a.example", "Prefix", "/", "one"))
	for _, off := range []bool{false, true} {
		if off {
			in.options("http3 off")
		}
		in.speaking(t, secure2).eventually(fmt.Sprintf("HTTP/3 off: %v", off), func() error {
			got := in.speaking(t, secure2).get("a.example", "/")
			if offers := got.header.Get("Alt-Svc") != ""; got.status != http.StatusOK || offers == off {
				return fmt.Errorf("the status is %d, and Alt-Svc is %q", got.status, got.header.Get("Alt-Svc"))
			}
			packets, err := net.ListenPacket("udp", in.https)
			if err == nil {
				_ = packets.Close()
			}
			if free := err == nil; free != off {
				return fmt.Errorf("the UDP port is free: %v", free)
			}
			return nil
		})
	}
}

// TestAccessLogOff checks that access_log off takes precedence over a log in the ConfigMap.
func TestAccessLogOff(t *testing.T) {
	ip, port := backend(t, "one")
	path := filepath.Join(t.TempDir(), "access.log")
	in := start(t, class+service("one", port, ip)+rule("a", "a.example", "Prefix", "/", "one")+
		global("access-log-path: "+path), "configmap default/global", "access_log off")
	in.expect("a.example", "/unseen", http.StatusOK, "one /unseen")
	in.options("configmap default/global", accessLogOn)
	// The lines of all requests are written in their order, so the first one would be there, too.
	in.eventually("the line of a later request", func() error {
		in.get("a.example", "/seen")
		text, err := os.ReadFile(path)
		if strings.Contains(string(text), "/unseen") {
			t.Errorf("the log is %q", text)
		}
		if err == nil && !strings.Contains(string(text), "/seen") {
			err = errors.New("it is not there")
		}
		return err
	})
}

// TestBodyFilesFull checks that a body is forwarded while it arrives if the space of body_files is used up.
func TestBodyFilesFull(t *testing.T) {
	const memory = 1 << 20
	arrived := make(chan struct{}, 1)
	in := inFront(t, func(w http.ResponseWriter, r *http.Request) {
		if _, err := r.Body.Read(make([]byte, 1)); err == nil {
			arrived <- struct{}{}
		}
		n, err := io.Copy(io.Discard, r.Body)
		fmt.Fprintf(w, "%d bytes, error %v", n+1, err)
	}, "proxy-body-size: 8m")
	in.options("body_files 1KiB")
	d := in.connect()
	d.say("PUT / HTTP/1.1\r\nHost: a.example\r\nContent-Length: %d\r\n\r\n%s", 2*memory, pattern(memory))
	await(t, "the first part of the body at the endpoint", arrived)
	d.say("%s", pattern(memory))
	if got := d.hear(http.MethodPut); got != fmt.Sprintf("200 %d bytes, error <nil>", 2*memory) {
		t.Errorf("the response is %q", got)
	}
}

// TestLimitsOfServicePorts checks the maximum values that an administrator sets for the ports of Services.
func TestLimitsOfServicePorts(t *testing.T) {
	ip, backendPort := backend(t, "one")
	first, second := fixture.Port(t), fixture.Port(t)
	in := start(t, class+exposed("one", backendPort, ip, "tcp-ports: "+first+":80, "+second+":80",
		"stream-max-connections: 10", "stream-idle-timeout: 1h"), servicePorts)
	for _, port := range []string{first, second} {
		in.overTCP(port)
		one, other := in.hold(port), in.hold(port)
		one.ask("one /held")
		_, _ = one.Close(), other.Close()
	}
	in.options(servicePorts, "service_ports_per_namespace 1")
	in.closes(second)
	in.leadsTo(first, "one /tcp")

	in.options(servicePorts, "service_max_idle_timeout 1s")
	in.overTCP(second)
	if _, err := in.hold(second).Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("an idle connection ends with %v, want EOF", err)
	}

	in.options(servicePorts, "service_max_connections 1")
	in.leadsTo(second, "one /tcp")
	in.eventually("only one connection", func() error {
		open := connect(t, "127.0.0.1:"+second)
		defer open.Close()
		if body, err := tryTCP(second); err == nil {
			return fmt.Errorf("the second connection gets %q", body)
		}
		return nil
	})
}

// TestIssuerOptions checks which hosts get a certificate from an issuer, and the type of its key.
func TestIssuerOptions(t *testing.T) {
	ip, port := backend(t, "one")
	absent := rule("absent", "absent.example", "Prefix", "/", "web")
	objects := class + tenant("a", 1, service("web", port, ip), automatic("key", "key.example")) +
		tenant("b", 1, withTLS(absent, "absent.example", "absent")) +
		tenant("c", 1, automatic("except", "except.example")) +
		tenant("d", 1, automatic("old", "old.example")) + tenant("d", 2, automatic("new", "new.example")) +
		tenant("e", 1, rule("plain", "plain.example", "Prefix", "/", "web"))
	issuer := []json.RawMessage{json.RawMessage(`{"module":"internal"}`)}
	for _, c := range []struct {
		name    string
		options settings.Config
		issued  []string
		curve   elliptic.Curve
	}{
		{"default", settings.Config{}, []string{"key", "except", "old", "new"}, elliptic.P256()},
		{"auto_https off", settings.Config{AutoHTTPS: settings.AutoHTTPSOff}, nil, nil},
		{"others", settings.Config{AutoHTTPS: settings.AutoHTTPSAll, AutoHTTPSExcept: []string{"c"},
			HostsPerNamespace: 1, ACMEOnMissingSecret: true, KeyType: "p384"},
			[]string{"key", "absent", "old", "plain"}, elliptic.P384()},
	} {
		t.Run(c.name, func(t *testing.T) {
			in := newIngress(t)
			in.write("manifests.yaml", objects)
			c.options.Issuers = issuer
			in.issuing(c.options)
			in.eventually("the certificates of all hosts", func() error {
				if n := in.metric("k8singress_acme_waiting"); n > 0 {
					return fmt.Errorf("%v hosts have none", n)
				}
				return nil
			})
			if n := in.metric(`k8singress_acme_orders_total{result="issued"}`); int(n) != len(c.issued) {
				t.Fatalf("%v certificates are issued, want %d", n, len(c.issued))
			}
			for _, name := range []string{"key", "absent", "old", "plain", "except", "new"} {
				host, want := name+".example", slices.Contains(c.issued, name)
				in.eventually(host, func() error {
					if issued := slices.Contains(in.certificate(host), host); issued != want {
						return fmt.Errorf("it has a certificate: %v", issued)
					}
					return nil
				})
			}
			if c.curve != nil && in.curve("key.example") != c.curve {
				t.Errorf("the curve of the key is %v, want %v", in.curve("key.example"), c.curve)
			}
		})
	}
}

// TestCheckHostDNS checks that a certificate is only requested for a name that resolves to the controller.
func TestCheckHostDNS(t *testing.T) {
	names := serveNames(t)
	names.set("here.example", "192.0.2.1")
	names.set("elsewhere.example", "192.0.2.9")
	in := newIngress(t)
	in.write("manifests.yaml", class+automatic("here", "here.example")+automatic("elsewhere", "elsewhere.example"))
	in.issuing(settings.Config{CheckHostDNS: true, PublishAddress: []string{"192.0.2.1"},
		Resolvers: []string{names.address}, Issuers: []json.RawMessage{json.RawMessage(`{"module":"internal"}`)}})
	in.eventually("a certificate", func() error {
		if got := in.certificate("here.example"); !slices.Contains(got, "here.example") {
			return fmt.Errorf("it is for %v", got)
		}
		return nil
	})
	in.awaitVerdict("Ingress/default/elsewhere", "ACMEFailed", "resolves to 192.0.2.9")
}

// curve returns the elliptic curve of the key in the certificate that a client of a host gets.
func (in *ingress) curve(host string) elliptic.Curve {
	in.Helper()
	conn, err := tls.Dial("tcp", in.https, &tls.Config{ServerName: host, InsecureSkipVerify: true})
	if err != nil {
		in.Fatal(err)
	}
	defer conn.Close()
	key, ok := conn.ConnectionState().PeerCertificates[0].PublicKey.(*ecdsa.PublicKey)
	if !ok {
		in.Fatalf("the key of %s is not an ECDSA key", host)
	}
	return key.Curve
}
