package featuretests

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// underLoad sends requests to hosts repeatedly, until the test calls stop, which fails the test if a request failed.
func (in *ingress) underLoad(hosts ...string) (stop func()) {
	ctx, cancel := context.WithCancel(in.Context())
	var running sync.WaitGroup
	var asked atomic.Int32
	failures := make(chan error, 1)
	for _, host := range hosts {
		client := &http.Client{Timeout: deadline, Transport: &http.Transport{}}
		running.Go(func() {
			defer client.CloseIdleConnections()
			for ctx.Err() == nil {
				asked.Add(1)
				if err := in.once(client, host); err != nil {
					select {
					case failures <- err:
					default:
					}
				}
			}
		})
	}
	return func() {
		in.Helper()
		cancel()
		running.Wait()
		close(failures)
		if err, n := <-failures, asked.Load(); err != nil || n == 0 {
			in.Errorf("a request of %d failed: %v", n, err)
		}
	}
}

// once sends a request, and returns why it failed. It is safe for concurrent use.
func (in *ingress) once(client *http.Client, host string) error {
	request, err := http.NewRequestWithContext(in.Context(), http.MethodGet, "http://"+in.http+"/", nil)
	if err != nil {
		return err
	}
	request.Host = host
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if text, err := io.ReadAll(response.Body); err != nil || response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %d %q: %w", host, response.StatusCode, text,
			errors.Join(err, errors.New("that is no answer")))
	}
	return nil
}

// survivors are three Services, with a broken endpoint, sessions, and round robin, and the objects that change beside
// them.
type survivors struct {
	failing, sticky, turns *fleet
	// more are additional annotations of all Ingresses.
	more []string
	// endpoints is the number of endpoints of the first two.
	endpoints int
	unrelated string
}

func (s *survivors) manifests() string {
	return class + service("failing", s.failing.port, s.failing.ips(0, s.endpoints)...) +
		service("sticky", s.sticky.port, s.sticky.ips(0, s.endpoints)...) +
		service("turns", s.turns.port, s.turns.ips(0, 3)...) +
		annotated("failing", "failing.example", "failing", s.more...) +
		annotated("sticky", "shop.example", "sticky",
			append([]string{"affinity", "cookie", "affinity-mode", "persistent"}, s.more...)...) +
		annotated("turns", "turns.example", "turns", s.more...) + s.unrelated
}

// TestStateSurvives checks that sessions, ejected endpoints and the turns of balancing survive the change of any
// object, and that no request fails. Another Caddyfile does not reset them either.
func TestStateSurvives(t *testing.T) {
	s := &survivors{failing: newFleet(t, 4, nil), sticky: newFleet(t, 4, nil), turns: newFleet(t, 3, nil), endpoints: 3}
	in := start(t, s.manifests())
	bad := s.failing.ip(1)
	s.failing.broken(bad)
	began := time.Now()
	for range 12 {
		in.expect("failing.example", "/", http.StatusOK, "")
	}
	visitors := in.visitors(12)
	turn := in.get("turns.example", "/").body
	check := func(what string) {
		t.Helper()
		for _, v := range visitors {
			if now, set := in.visit(v); now != v.home || set {
				t.Errorf("%s changed, and a client of %s is sent to %s", what, v.home, now)
			}
		}
		next := in.get("turns.example", "/").body
		if want := s.turns.after(turn); next != want {
			t.Errorf("%s changed, and after %s comes %s, want %s", what, turn, next, want)
		}
		turn = next
	}

	stop := in.underLoad("failing.example", "shop.example")
	s.unrelated = rule("more", "more.example", "Prefix", "/", "sticky")
	in.changes(s.manifests())
	check("an unrelated Ingress")
	s.more = []string{"proxy-body-size", "8m"}
	in.changes(s.manifests())
	check("annotations of the Ingresses")
	s.more = []string{"k8singress.io/slow-start", "1"}
	in.changes(s.manifests())
	check("their balancing")
	s.endpoints = 4
	in.write("manifests.yaml", s.manifests())
	in.eventually("the new endpoint", func() error {
		in.visitors(1)
		if s.sticky.asked[s.sticky.ip(3)].Load() == 0 {
			return errors.New("it is not asked")
		}
		return nil
	})
	check("the endpoints")
	generation := in.status().Generation
	in.load("manifests " + in.folder + "\ndisable_catch_all")
	in.newer(generation)
	check("an option")
	stop()
	for range 12 {
		in.expect("failing.example", "/", http.StatusOK, "")
	}
	if n := int(s.failing.asked[bad].Load()); n < 3 || n > 3+trials(began) {
		t.Errorf("the ejected endpoint was tried %d times within %s", n, time.Since(began))
	}
}

// changes writes manifests, and waits until they are in effect.
func (in *ingress) changes(manifests string) {
	in.Helper()
	generation := in.status().Generation
	in.write("manifests.yaml", manifests)
	in.newer(generation)
}

func (in *ingress) newer(generation int) {
	in.Helper()
	in.eventually("another generation", func() error {
		if now := in.status().Generation; now <= generation {
			return fmt.Errorf("it is %d", now)
		}
		return nil
	})
}

// after returns the endpoint that is next after one of three.
func (f *fleet) after(ip string) string {
	for i := range 3 {
		if f.ip(i) == ip {
			return f.ip((i + 1) % 3)
		}
	}
	return "nobody"
}

// TestConfigMapChanges checks that the ConfigMap is watched, and can be created and deleted, without a reload of
// Caddy. Each class has its own.
func TestConfigMapChanges(t *testing.T) {
	f := newFleet(t, 1, nil)
	const classes = class + `---
apiVersion: networking.k8s.io/v1
kind: IngressClass
metadata: {name: small}
spec:
  controller: k8s.io/ingress-nginx
  parameters: {kind: ConfigMap, name: small, namespace: default, scope: Namespace}
`
	web := service("web", f.port, f.ip(0)) + annotated("web", "shop.example", "web") +
		annotated("own", "own.example", "web", "proxy-body-size", "9") +
		strings.Replace(annotated("small", "small.example", "web"), "ingressClassName: nginx",
			"ingressClassName: small", 1)
	in := start(t, classes+web, "configmap default/all")
	loads := in.reloads()
	stop := in.underLoad("shop.example", "own.example")
	for _, c := range []struct {
		all, small string
		// The maximum body sizes by host. 0 is not checked.
		shop, own, class int
	}{
		{"", "", 1 << 20, 9, 0},
		{"", `proxy-body-size: "5"`, 1 << 20, 9, 5},
		{`proxy-body-size: "7"`, `proxy-body-size: "5"`, 7, 9, 5},
		{`proxy-body-size: "6"`, `proxy-body-size: nonsense`, 6, 9, 6},
		{`proxy-body-size: nonsense`, `proxy-buffering: "on"`, 1 << 20, 9, 1 << 20},
		{`proxy-body-size: "8"`, "", 8, 9, 0},
		{"", "", 1 << 20, 9, 0},
		{`proxy-body-size: "7"`, `proxy-body-size: "5"`, 7, 9, 5},
	} {
		manifests := classes + web
		if c.all != "" {
			manifests += configMap("all", c.all)
		}
		if c.small != "" {
			manifests += configMap("small", c.small)
		}
		in.write("manifests.yaml", manifests)
		in.eventually("the ConfigMaps", func() error {
			return errors.Join(in.takes("shop.example", c.shop), in.takes("own.example", c.own),
				in.takes("small.example", c.class))
		})
	}
	stop()
	if now := in.reloads(); now != loads {
		t.Errorf("%s loads, and %s before", now, loads)
	}
}

// takes returns an error unless most is the maximum body size of a host. 0 is not checked.
func (in *ingress) takes(host string, most int) error {
	in.Helper()
	if most == 0 {
		return nil
	}
	for size, want := range map[int]int{most: http.StatusOK, most + 1: http.StatusRequestEntityTooLarge} {
		if got := in.as("", http.MethodPost, host, "/", strings.Repeat("x", size)); got.status != want {
			return fmt.Errorf("%d bytes for %s: %d, want %d", size, host, got.status, want)
		}
	}
	return nil
}
