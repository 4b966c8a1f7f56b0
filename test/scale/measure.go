package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/k8singress/k8singress/test/harness"
)

const (
	// publishAddress is the address that Caddy writes to the status of each Ingress.
	publishAddress = "203.0.113.7"
	// All Services use the first backend, except the Service named otherBackend.
	firstBackend, otherBackend = "first", "other"

	readyTimeout  = 3 * time.Minute
	statusTimeout = 6 * time.Minute
	changeTimeout = 30 * time.Second
)

// measure creates the objects and measures all figures.
func measure(ctx context.Context, cluster *harness.Cluster, o options) (*figures, error) {
	client, err := cluster.Client()
	if err != nil {
		return nil, err
	}
	if err := ownBlock(); err != nil {
		return nil, fmt.Errorf("giving this machine %s: %w", block, err)
	}
	w := &world{cluster: cluster, client: client, endpoints: o.endpoints, ports: map[string]int32{}}
	for _, name := range []string{firstBackend, otherBackend} {
		listener, err := w.serve(name)
		if err != nil {
			return nil, fmt.Errorf("the backend %s: %w", name, err)
		}
		defer listener.Close()
	}
	f := &figures{}
	begin := time.Now()
	if err := w.create(ctx, o); err != nil {
		return nil, err
	}
	f.created = time.Since(begin)
	fmt.Fprintf(os.Stderr, "objects created after %v\n", f.created.Round(time.Millisecond))
	for i := range o.starts {
		if err := w.start(ctx, cluster, o, f, i == o.starts-1); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// serve starts a backend that responds with its name.
func (w *world) serve(name string) (net.Listener, error) {
	listener, err := net.Listen("tcp4", ":0")
	if err != nil {
		return nil, err
	}
	w.ports[name] = int32(listener.Addr().(*net.TCPAddr).Port)
	go func() {
		_ = http.Serve(listener, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, name)
		}))
	}()
	return listener, nil
}

// start starts Caddy once. With the first start, it measures the status of all Ingresses. With the last start, it
// measures changes.
func (w *world) start(ctx context.Context, cluster *harness.Cluster, o options, f *figures, last bool) error {
	var lines []string
	if o.status {
		lines = append(lines, "publish_address "+publishAddress)
	}
	caddy, err := cluster.StartCaddy(cluster.NewOptions("scale", 0, lines...))
	if err != nil {
		return err
	}
	defer caddy.Stop()
	if err := w.started(ctx, caddy, o, f); err != nil {
		return fmt.Errorf("%w; the end of Caddy's log:\n%s", err, tail(caddy.Log()))
	}
	if !last {
		return nil
	}
	if err := o.profile(ctx, caddy, "heap?gc=1", "heap-ready"); err != nil {
		return err
	}
	for _, step := range []func(context.Context, *harness.Caddy, options, *figures) error{w.change,
		w.disturb, w.churn} {
		if err := step(ctx, caddy, o, f); err != nil {
			return fmt.Errorf("%w; the end of Caddy's log:\n%s", err, tail(caddy.Log()))
		}
	}
	return o.profile(ctx, caddy, "heap?gc=1", "heap-end")
}

func tail(log string) string { return log[max(0, len(log)-4000):] }

func (w *world) started(ctx context.Context, caddy *harness.Caddy, o options, f *figures) error {
	limited, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	if err := caddy.AwaitReady(limited); err != nil {
		return err
	}
	f.ready = append(f.ready, time.Since(caddy.Started))
	rss, err := caddy.Memory("VmRSS")
	if err != nil {
		return err
	}
	f.memory = append(f.memory, rss)
	if f.peak, err = caddy.Memory("VmHWM"); err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "ready after %v with %s\n", f.ready[len(f.ready)-1].Round(time.Millisecond), megabytes(rss))
	if err := w.check(ctx, caddy, o); err != nil {
		return err
	}
	if o.status && f.status == 0 {
		f.status, err = w.awaitStatus(ctx, o)
	}
	return err
}

// check checks that the first and the last host work, and the last one over TLS, if there are Secrets.
func (w *world) check(ctx context.Context, caddy *harness.Caddy, o options) error {
	client := w.newClient(caddy)
	urls := []string{"http://" + hostOf(0) + "/", "http://" + hostOf(o.ingresses-1) + "/"}
	if o.secrets > 0 {
		urls = append(urls, "https://"+hostOf(o.secrets-1)+"/")
	}
	for _, url := range urls {
		body, err := ask(ctx, client, url)
		if err != nil {
			return err
		}
		if body != firstBackend {
			return fmt.Errorf("%s answered %q", url, body)
		}
	}
	return nil
}

// newClient returns a client that uses one connection to Caddy for all hosts, if possible.
func (w *world) newClient(caddy *harness.Caddy) *http.Client {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(w.pair[corev1.TLSCertKey])
	dial := func(ctx context.Context, network, address string) (net.Conn, error) {
		if _, port, _ := net.SplitHostPort(address); port == "443" {
			address = caddy.HTTPS
		} else {
			address = caddy.HTTP
		}
		return new(net.Dialer).DialContext(ctx, network, address)
	}
	return &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{
		DialContext: dial, TLSClientConfig: &tls.Config{RootCAs: roots},
	}}
}

// ask returns the response body, or the status if it is not 200.
func ask(ctx context.Context, client *http.Client, url string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	response, err := client.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if response.StatusCode != http.StatusOK {
		return response.Status, err
	}
	return string(body), err
}

// awaitStatus waits until all Ingresses have their address, and returns the duration. It returns 0 after a timeout.
func (w *world) awaitStatus(ctx context.Context, o options) (time.Duration, error) {
	begin := time.Now()
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	for time.Since(begin) < statusTimeout {
		list, err := w.client.NetworkingV1().Ingresses(namespace).List(ctx, metav1.ListOptions{ResourceVersion: "0"})
		if err != nil {
			return 0, err
		}
		written := 0
		for i := range list.Items {
			written += len(list.Items[i].Status.LoadBalancer.Ingress)
		}
		if written >= o.ingresses {
			return time.Since(begin), nil
		}
		select {
		case <-ctx.Done():
			return 0, ctx.Err()
		case <-tick.C:
		}
	}
	fmt.Fprintf(os.Stderr, "the status of all Ingresses was not written within %v\n", statusTimeout)
	return 0, nil
}

// change measures changes: in turn, a new Ingress, and another Service for an existing Ingress. The time starts before
// the write and ends with the first response that shows the change.
func (w *world) change(ctx context.Context, caddy *harness.Caddy, o options, f *figures) error {
	client := w.newClient(caddy)
	for i := range o.changes {
		c := w.addition(o.ingresses + i)
		if i%2 == 1 {
			c = w.patch(o.ingresses - 1 - i/2)
		}
		begin := time.Now()
		if err := c.write(ctx); err != nil {
			return fmt.Errorf("change %d: %w", i, err)
		}
		f.writes = append(f.writes, time.Since(begin))
		if err := c.awaitServed(ctx, client); err != nil {
			return fmt.Errorf("change %d: %w", i, err)
		}
		f.changes = append(f.changes, time.Since(begin))
	}
	var err error
	f.memoryAfter, err = caddy.Memory("VmRSS")
	return err
}

// change is a write, and the response that shows that the change is in effect.
type change struct {
	write     func(context.Context) error
	url, body string
}

// addition returns the change that creates an Ingress for the first Service.
func (w *world) addition(i int) change {
	return change{
		write: func(ctx context.Context) error { return w.createIngress(ctx, i, nameOf(0), false) },
		url:   "http://" + hostOf(i) + "/", body: firstBackend,
	}
}

// patch returns the change of an Ingress to the other backend.
func (w *world) patch(i int) change {
	const patch = `[{"op":"replace","path":"/spec/rules/0/http/paths/0/backend/service/name","value":"` +
		otherBackend + `"}]`
	return change{
		write: func(ctx context.Context) error {
			ingresses := w.client.NetworkingV1().Ingresses(namespace)
			_, err := ingresses.Patch(ctx, nameOf(i), types.JSONPatchType, []byte(patch), metav1.PatchOptions{})
			return err
		},
		url: "http://" + hostOf(i) + "/", body: otherBackend,
	}
}

func (c change) awaitServed(ctx context.Context, client *http.Client) error {
	ctx, cancel := context.WithTimeout(ctx, changeTimeout)
	defer cancel()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		body, err := ask(ctx, client, c.url)
		if err == nil && body == c.body {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s answered %q, %w", c.url, body, errors.Join(err, ctx.Err()))
		case <-tick.C:
		}
	}
}
