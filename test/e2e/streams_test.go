package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// streamOptions returns options that name the ConfigMaps of the test's namespace.
func (c *cluster) streamOptions() []string {
	return []string{
		"tcp_services " + c.namespace + "/tcp-services", "udp_services " + c.namespace + "/udp-services",
		"stream_bind 127.0.0.1",
	}
}

// TestTCPAndUDPPorts adds, changes and removes ports and scales their endpoints. It checks that a connection of another
// TCP port and a client of another UDP port are not affected. Echo sends back all data that it gets over TCP and UDP.
func TestTCPAndUDPPorts(t *testing.T) {
	c := newCluster(t)
	c.deploy("steady", 1)
	c.deploy("moving", 2)
	c.udpService("steady-udp", "steady")
	c.udpService("moving-udp", "moving")
	tcp, udp := c.entries("tcp-services"), c.entries("udp-services")
	tcp(map[string]string{"9201": c.to("steady:stream")})
	udp(map[string]string{"9301": c.to("steady-udp:stream")})
	c.awaitEndpoints("steady", 1, 0)
	c.awaitEndpoints("moving", 2, 0)
	caddy := c.caddy(c.options(0, c.streamOptions()...))
	kept := []*echoed{c.echoes("tcp", "9201"), c.echoes("udp", "9301")}

	// Ports are added and changed. HTTP responses show which pods a port uses.
	tcp(map[string]string{"9201": c.to("steady:stream"), "9202": c.to("moving:http")})
	udp(map[string]string{"9301": c.to("steady-udp:stream"), "9302": c.to("moving-udp:9000")})
	c.awaitPort("9202", "moving-")
	c.awaitEcho("udp", "9302")
	tcp(map[string]string{"9201": c.to("steady:stream"), "9202": c.to("steady:80")})
	c.awaitPort("9202", "steady-")
	tcp(map[string]string{"9201": c.to("steady:stream"), "9202": c.to("moving:stream")})
	c.awaitEcho("tcp", "9202")

	// Pods are added and removed while connections are open. Connections to the remaining pods stay open, and new
	// connections always find a pod. A UDP client is moved to another pod.
	udpClient := c.echoes("udp", "9302")
	moving := []*echoed{c.echoes("tcp", "9202"), c.echoes("tcp", "9202"), udpClient}
	c.scale("moving", 4)
	c.awaitEndpoints("moving", 4, 0)
	c.awaitEcho("tcp", "9202")
	checkEchoes(c, append(moving, kept...)...)
	c.scale("moving", 1)
	c.awaitEndpoints("moving", 1, 3)
	for range 20 {
		c.must(echoOnce(c.Context(), "tcp", "9202"))
		c.must(echoOnce(c.Context(), "udp", "9302"))
	}
	late := c.echoes("tcp", "9202")
	c.awaitEndpoints("moving", 1, 0)
	checkEchoes(c, late, udpClient)

	tcp(map[string]string{"9201": c.to("steady:stream")})
	udp(map[string]string{"9301": c.to("steady-udp:stream")})
	c.awaitRefused("127.0.0.1:9202")
	checkEchoes(c, append(kept, late, udpClient)...)
	udpClient.end()
	c.awaitSilent("9302")
	checkEchoes(c, kept...)
	c.checkNoReload(caddy)
}

// TestBadPorts checks that each kind of bad entry gets an Event on the ConfigMap and does not affect other entries. It
// also checks that a port which is in use opens when it becomes free.
func TestBadPorts(t *testing.T) {
	c := newCluster(t)
	c.deploy("web", 1)
	c.awaitEndpoints("web", 1, 0)
	holder, err := net.Listen("tcp", "127.0.0.1:9204")
	c.must(err)
	defer holder.Close()
	c.entries("udp-services")(nil)
	const caddyHTTP = "8080"
	c.entries("tcp-services")(map[string]string{
		"abc": c.to("web:stream"), "0": c.to("web:stream"), "65536": c.to("web:stream"), caddyHTTP: c.to("web:stream"),
		"9205": "web:9000", "9206": c.to("web:absent"), "9207": c.to("absent:80"),
		"9208": c.to("web:stream") + ":WRONG",
		"9203": c.to("web:stream"), "9204": c.to("web:http"),
	})
	caddy := c.caddy(c.options(0, c.streamOptions()...))
	kept := c.echoes("tcp", "9203")
	for _, told := range []struct{ word, reason string }{
		{"data[abc]", "InvalidEntry"}, {"data[0]", "InvalidEntry"}, {"data[65536]", "InvalidEntry"},
		{"data[9205]", "InvalidEntry"},
		{"data[9206]", "InvalidBackend"}, {"data[9207]", "ServiceNotFound"}, {"data[9208]", "InvalidEntry"},
		{"data[" + caddyHTTP + "]", "PortConflict"}, {"tcp/9204", "PortConflict"},
	} {
		c.awaitEventOn("ConfigMap", "tcp-services", told.reason, told.word)
	}
	c.must(holder.Close())
	c.awaitPort("9204", "web-")

	c.service("absent", "web")
	c.awaitPort("9207", "web-")
	checkEchoes(c, kept)
	c.checkNoReload(caddy)
}

// to returns the value of an entry for a Service of this namespace.
func (c *cluster) to(service string) string { return c.namespace + "/" + service }

// entries returns a function that creates or replaces a ConfigMap of this namespace.
func (c *cluster) entries(name string) func(map[string]string) { return c.entriesIn(c.namespace, name) }

func (c *cluster) entriesIn(namespace, name string) func(map[string]string) {
	maps := c.CoreV1().ConfigMaps(namespace)
	return func(data map[string]string) {
		c.Helper()
		object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: data}
		_, err := maps.Create(c.Context(), object, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			_, err = maps.Update(c.Context(), object, metav1.UpdateOptions{})
		}
		c.must(err)
	}
}

// udpService creates a Service with the UDP port of a Deployment's pods.
func (c *cluster) udpService(name, app string) {
	c.Helper()
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.ServiceSpec{
		Selector: map[string]string{"app": app},
		Ports: []corev1.ServicePort{{Name: "stream", Port: 9000, Protocol: corev1.ProtocolUDP,
			TargetPort: intstr.FromInt32(9000)}},
	}}
	_, err := c.CoreV1().Services(c.namespace).Create(c.Context(), service, metav1.CreateOptions{})
	c.must(err)
}

// awaitEventOn waits for exactly one Warning Event with a reason and a word in its note.
func (c *cluster) awaitEventOn(kind, name, reason, word string) {
	c.Helper()
	c.awaitEventIn(c.namespace, kind, name, reason, word)
}

func (c *cluster) awaitEventIn(namespace, kind, name, reason, word string) {
	c.Helper()
	selector := fields.Set{"involvedObject.kind": kind, "involvedObject.name": name, "reason": reason,
		"type": corev1.EventTypeWarning}
	c.await(fmt.Sprintf("an Event %s %q on %s %s", reason, word, kind, name), func() error {
		list, err := c.CoreV1().Events(namespace).List(c.Context(),
			metav1.ListOptions{FieldSelector: selector.String()})
		if err != nil {
			return err
		}
		var notes []string
		for i := range list.Items {
			notes = append(notes, list.Items[i].Message)
		}
		of := slices.DeleteFunc(slices.Clone(notes), func(note string) bool { return !strings.Contains(note, word) })
		if len(of) != 1 {
			return fmt.Errorf("there are %q", notes)
		}
		return nil
	})
}

// echoed is a TCP connection or a UDP client that exchanges messages until the test ends.
type echoed struct {
	name     string
	messages atomic.Int64
	broken   atomic.Pointer[error]
	end      func()
}

// echoes opens a connection or a client, and waits for the first message.
func (c *cluster) echoes(network, port string) *echoed {
	c.Helper()
	e := &echoed{name: network + " " + port}
	var conn net.Conn
	c.await(e.name+" echoes", func() (err error) {
		if conn, err = net.Dial(network, "127.0.0.1:"+port); err == nil {
			if err = e.send(conn); err != nil {
				_ = conn.Close()
			}
		}
		return err
	})
	ctx, cancel := context.WithCancel(c.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(pace)
		defer tick.Stop()
		for ctx.Err() == nil {
			if err := e.send(conn); err != nil {
				e.broken.Store(&err)
				return
			}
			select {
			case <-ctx.Done():
			case <-tick.C:
			}
		}
	}()
	e.end = sync.OnceFunc(func() {
		cancel()
		_ = conn.Close()
		<-ended
	})
	c.Cleanup(e.end)
	return e
}

// send sends one message and waits for it. It retries UDP, because the network of the testbed may lose datagrams while
// pods are added or removed.
func (e *echoed) send(conn net.Conn) error {
	message := fmt.Appendf(nil, "message %d\n", e.messages.Load())
	// The limit is shorter than the deadline of callers that retry: a port may still lead to its previous Service,
	// whose pods wait for more of the message.
	limit, tries := 5*time.Second, 1
	if _, datagrams := conn.(*net.UDPConn); datagrams {
		limit, tries = time.Second, 5
	}
	var err error
	for range tries {
		if err = exchange(conn, message, limit); err == nil {
			e.messages.Add(1)
			return nil
		}
	}
	return err
}

// exchange sends a message and waits until it comes back. It ignores datagrams of earlier attempts.
func exchange(conn net.Conn, message []byte, limit time.Duration) error {
	if err := conn.SetDeadline(time.Now().Add(limit)); err != nil {
		return err
	}
	if _, err := conn.Write(message); err != nil {
		return err
	}
	back := make([]byte, len(message))
	if _, datagrams := conn.(*net.UDPConn); datagrams {
		for {
			if n, err := conn.Read(back); err != nil || bytes.Equal(back[:n], message) {
				return err
			}
		}
	}
	if _, err := io.ReadFull(conn, back); err != nil {
		return err
	}
	if !bytes.Equal(back, message) {
		return fmt.Errorf("sent %q, got %q", message, back)
	}
	return nil
}

// checkEchoes fails the test if messages of a connection or client no longer come back.
func checkEchoes(c *cluster, all ...*echoed) {
	c.Helper()
	for _, e := range all {
		begin := e.messages.Load()
		c.await(e.name+" goes on", func() error {
			if err := e.broken.Load(); err != nil {
				c.Fatalf("%s broke after %d messages: %v", e.name, e.messages.Load(), *err)
			}
			if e.messages.Load() < begin+3 {
				return errors.New("no messages")
			}
			return nil
		})
	}
}

// echoOnce sends a message over a new connection.
func echoOnce(ctx context.Context, network, port string) error {
	conn, err := (&net.Dialer{Timeout: 2 * time.Second}).DialContext(ctx, network, "127.0.0.1:"+port)
	if err != nil {
		return err
	}
	defer conn.Close()
	return (&echoed{}).send(conn)
}

func (c *cluster) awaitEcho(network, port string) {
	c.Helper()
	c.await(network+" "+port+" echoes", func() error { return echoOnce(c.Context(), network, port) })
}

// awaitSilent waits until no process has a UDP port, which the kernel reports to clients.
func (c *cluster) awaitSilent(port string) {
	c.Helper()
	c.await("UDP port "+port+" is closed", func() error {
		conn, err := net.Dial("udp", "127.0.0.1:"+port)
		if err != nil {
			return err
		}
		defer conn.Close()
		err = exchange(conn, []byte("x"), 100*time.Millisecond)
		if errors.Is(err, syscall.ECONNREFUSED) {
			return nil
		}
		return fmt.Errorf("it answers: %w", err)
	})
}
