package e2e

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/k8singress/k8singress/test/harness"
)

// replicas are Caddy processes that share a storage in the cluster. They are behind one address that leads to all of
// them, and the authority sends its challenges to that address.
type replicas struct {
	*cluster
	all       []*harness.Caddy
	authority *harness.Pebble
	roots     *x509.CertPool
}

// orderTime is the time for one order. certmagic starts ten orders in ten seconds.
const orderTime = time.Second

func newReplicas(t *testing.T, count int, lines ...string) *replicas {
	return newReplicasWith(t, count, "", lines...)
}

// newReplicasWith starts replicas with lines of the global option k8singress, and with other global options.
func newReplicasWith(t *testing.T, count int, global string, lines ...string) *replicas {
	c := newCluster(t)
	r := &replicas{cluster: c}
	httpPort, tlsPort := r.balance(count, 8080), r.balance(count, 8443)
	authority, err := c.inside.StartPebble(c.namespace, httpPort, tlsPort)
	c.must(err)
	t.Cleanup(authority.Stop)
	r.authority = authority
	issuer, err := authority.Issuer(t.Context())
	c.must(err)
	r.roots = x509.NewCertPool()
	r.roots.AppendCertsFromPEM(issuer)
	for number := range count {
		o := c.options(number, append(lines, "acme_ca "+authority.Directory)...)
		o.Global = global + fmt.Sprintf("\tstorage kubernetes {\n\t\tnamespace %s\n\t\tkubeconfig %s\n\t}\n",
			c.namespace, c.inside.Kubeconfig())
		o.Environment = []string{"SSL_CERT_FILE=" + authority.Root}
		r.all = append(r.all, c.caddy(o))
	}
	return r
}

// balance forwards connections to the replicas in turn, like a Service. It skips replicas that do not respond. It
// returns the port that it listens on.
func (r *replicas) balance(count, first int) int {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	r.must(err)
	r.Cleanup(func() { listener.Close() })
	var turn atomic.Int64
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go forward(conn, count, first, int(turn.Add(1)))
		}
	}()
	return listener.Addr().(*net.TCPAddr).Port
}

func forward(conn net.Conn, count, first, turn int) {
	defer conn.Close()
	for n := range count {
		to, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", first+(turn+n)%count))
		if err != nil {
			continue
		}
		defer to.Close()
		go func() { _, _ = io.Copy(to, conn) }()
		_, _ = io.Copy(conn, to)
		return
	}
}

// automatic creates Ingresses with one host each, whose certificates come from the authority. It returns the hosts.
func (r *replicas) automatic(namespace string, count int) []string {
	r.Helper()
	prefix, class := networkingv1.PathTypePrefix, "nginx"
	var hosts []string
	for n := range count {
		name := fmt.Sprintf("a%d", n)
		host := name + "." + namespace + ".test"
		hosts = append(hosts, host)
		ingress := &networkingv1.Ingress{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: networkingv1.IngressSpec{
				IngressClassName: &class,
				TLS:              []networkingv1.IngressTLS{{Hosts: []string{host}}},
				Rules: []networkingv1.IngressRule{{Host: host, IngressRuleValue: networkingv1.IngressRuleValue{
					HTTP: &networkingv1.HTTPIngressRuleValue{Paths: []networkingv1.HTTPIngressPath{{
						Path: "/", PathType: &prefix,
						Backend: networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{
							Name: "web", Port: networkingv1.ServiceBackendPort{Number: 80},
						}},
					}}},
				}}},
			},
		}
		_, err := r.NetworkingV1().Ingresses(namespace).Create(r.Context(), ingress, metav1.CreateOptions{})
		r.must(err)
	}
	return hosts
}

// trusted returns an error unless all running replicas present a certificate of the authority for each host.
func (r *replicas) trusted(hosts []string) error {
	for _, caddy := range r.all {
		if !caddy.Alive() {
			continue
		}
		for n, host := range hosts {
			dialer := &net.Dialer{Timeout: deadline}
			conn, err := tls.DialWithDialer(dialer, "tcp", caddy.HTTPS, &tls.Config{ServerName: host, RootCAs: r.roots})
			if err != nil {
				return fmt.Errorf("%s, host %d of %d: %w", caddy.Name, n, len(hosts), err)
			}
			conn.Close()
		}
	}
	return nil
}

func (r *replicas) orders() map[string]int {
	r.Helper()
	taken, err := r.authority.Taken(r.Context())
	r.must(err)
	return taken.Orders
}

// leader waits for a leader and returns it.
func (r *replicas) leader() *harness.Caddy {
	r.Helper()
	var leader *harness.Caddy
	r.await("a leader", func() error {
		for _, caddy := range r.all {
			if status, err := caddy.Status(r.Context()); err == nil && status.Leader {
				leader = caddy
				return nil
			}
		}
		return fmt.Errorf("nobody leads")
	})
	return leader
}

// TestOneOrderForEachHost checks that three replicas with two hundred hosts in two namespaces (twenty with -short)
// order each certificate only once.
func TestOneOrderForEachHost(t *testing.T) {
	r := newReplicas(t, 3)
	// A namespace is limited to a hundred hosts.
	other := r.namespace + "2"
	r.createNamespace(other)
	each := 100
	if testing.Short() {
		// Only one certificate is ordered per second, so use fewer hosts in CI.
		each = 10
	}
	hosts := append(r.automatic(r.namespace, each), r.automatic(other, each)...)
	r.awaitFor(time.Duration(len(hosts))*orderTime+2*deadline, "certificates on all replicas",
		func() error { return r.trusted(hosts) })
	r.checkOrders(hosts, 0)
	for _, caddy := range r.all {
		r.checkNoReload(caddy)
	}
}

// TestAccountContact checks that the address in email is the contact of the account at the authority in acme_ca.
func TestAccountContact(t *testing.T) {
	r := newReplicas(t, 1, "email ops@example.com")
	hosts := r.automatic(r.namespace, 1)
	r.await("the certificate", func() error { return r.trusted(hosts) })
	taken, err := r.authority.Taken(t.Context())
	r.must(err)
	if want := [][]string{{"mailto:ops@example.com"}}; !reflect.DeepEqual(taken.Accounts, want) {
		t.Errorf("the contacts of the accounts are %q, want %q", taken.Accounts, want)
	}
}

// TestKilledLeaderLosesNoHost checks that all hosts get certificates after the leader was killed during its orders: for
// forty hosts after fifteen orders, or with -short for twenty after eleven.
func TestKilledLeaderLosesNoHost(t *testing.T) {
	// It waits for orders most of the time. Among the tests that run in parallel, only this one starts replicas, which
	// use the same ports and the same Lease as in other tests.
	t.Parallel()
	r := newReplicas(t, 3)
	count, before := 40, 15
	if testing.Short() {
		count, before = 20, 11
	}
	hosts := r.automatic(r.namespace, count)
	r.awaitFor(2*deadline, "some orders", func() error {
		if got := len(r.orders()); got < before {
			return fmt.Errorf("%d orders", got)
		}
		return nil
	})
	r.leader().Kill()
	r.awaitFor(time.Duration(len(hosts))*orderTime+4*deadline, "certificates on both replicas",
		func() error { return r.trusted(hosts) })
	// Ten orders can be in progress at the same time. The next leader repeats such an order, and once more if its
	// challenge was sent to the killed replica.
	r.checkOrders(hosts, 10)
}

// checkOrders checks that every host was ordered, and that at most repeated orders were made besides the first order of
// each host.
func (r *replicas) checkOrders(hosts []string, repeated int) {
	r.Helper()
	orders, again := r.orders(), []string{}
	for _, host := range hosts {
		if orders[host] == 0 {
			r.Errorf("%s was not ordered", host)
		}
		for range orders[host] - 1 {
			again = append(again, host)
		}
	}
	r.Logf("%d hosts, ordered again: %s", len(hosts), strings.Join(again, " "))
	if len(again) > repeated {
		r.Errorf("%d orders were repeated", len(again))
	}
}
