package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/k8singress/k8singress/test/harness"
)

const (
	// deadline is the time limit for steps that usually take a second or two.
	deadline = 30 * time.Second
	// controller is the controller in the spec of the class nginx and of all other classes of ingress-nginx.
	controller = "k8s.io/ingress-nginx"
)

// cluster holds a client, the namespace of a test, and the processes that the test starts.
type cluster struct {
	*testing.T
	kubernetes.Interface
	inside    *harness.Cluster
	namespace string
}

// newCluster creates a namespace named after the test, and the class nginx. The namespace is deleted when the test
// ends.
func newCluster(t *testing.T) *cluster {
	inside, _ := harness.Inside()
	client, err := inside.Client()
	if err != nil {
		t.Fatal(err)
	}
	c := &cluster{T: t, Interface: client, inside: inside, namespace: strings.ToLower(t.Name())}
	c.createNamespace(c.namespace)
	c.class("nginx", controller)
	c.await("default service account", func() error {
		_, err := client.CoreV1().ServiceAccounts(c.namespace).Get(t.Context(), "default", metav1.GetOptions{})
		return err
	})
	return c
}

// createNamespace creates a namespace until the test ends. Kubernetes deletes the objects of a namespace later, but its
// Ingresses are deleted at once: the controllers of the next test would order certificates for them first.
func (c *cluster) createNamespace(name string) {
	c.Helper()
	object := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	_, err := c.CoreV1().Namespaces().Create(c.Context(), object, metav1.CreateOptions{})
	c.must(err)
	c.Cleanup(func() {
		ctx := context.Background()
		err := c.NetworkingV1().Ingresses(name).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{})
		if err := errors.Join(err, c.CoreV1().Namespaces().Delete(ctx, name, metav1.DeleteOptions{})); err != nil {
			c.Error(err)
		}
	})
}

func (c *cluster) must(err error) {
	c.Helper()
	if err != nil {
		c.Fatal(err)
	}
}

// in returns the same cluster for a subtest.
func (c *cluster) in(t *testing.T) *cluster {
	inner := *c
	inner.T = t
	return &inner
}

// host returns a host name that no other test uses.
func (c *cluster) host(name string) string { return name + "." + c.namespace + ".test" }

// await waits until condition returns nil. It fails the test after the deadline.
func (c *cluster) await(what string, condition func() error) {
	c.Helper()
	c.awaitFor(deadline, what, condition)
}

func (c *cluster) awaitFor(limit time.Duration, what string, condition func() error) {
	c.Helper()
	begin := time.Now()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for ; ; <-tick.C {
		err := condition()
		if err == nil {
			c.Logf("%s after %v", what, time.Since(begin).Round(time.Millisecond))
			return
		}
		if time.Since(begin) > limit {
			c.Fatalf("%s: after %v: %v", what, limit, err)
		}
	}
}

// class creates an IngressClass if it does not exist.
func (c *cluster) class(name, controller string) {
	c.Helper()
	class := &networkingv1.IngressClass{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: networkingv1.IngressClassSpec{Controller: controller},
	}
	_, err := c.NetworkingV1().IngressClasses().Create(c.Context(), class, metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) {
		c.must(err)
	}
}

// deleteClass deletes a class if it exists. It does not use the context of the test, since it also runs after the test.
func (c *cluster) deleteClass(name string) {
	c.Helper()
	err := c.NetworkingV1().IngressClasses().Delete(context.Background(), name, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		c.Error(err)
	}
}

// caddy starts a process and waits until it is ready. The process is stopped when the test ends.
func (c *cluster) caddy(o harness.Options) *harness.Caddy {
	c.Helper()
	caddy := c.start(o)
	ctx, cancel := context.WithTimeout(c.Context(), deadline)
	defer cancel()
	c.must(caddy.AwaitReady(ctx))
	c.Logf("Caddy %s ready after %v", o.Name, time.Since(caddy.Started).Round(time.Millisecond))
	return caddy
}

// start starts a process without waiting. If the test fails, the log of the process is printed.
func (c *cluster) start(o harness.Options) *harness.Caddy {
	c.Helper()
	caddy, err := c.inside.StartCaddy(o)
	c.must(err)
	c.Cleanup(func() {
		caddy.Stop()
		log := caddy.Log()
		if c.Failed() {
			c.Logf("log of Caddy %s, its end:\n%s", o.Name, log[max(0, len(log)-8000):])
		}
		for _, sign := range []string{"DATA RACE", "panic: ", "http: panic"} {
			if i := strings.Index(log, sign); i >= 0 {
				c.Errorf("Caddy %s: %s", o.Name, log[i:min(len(log), i+4000)])
			}
		}
	})
	return caddy
}

// options returns the usual options. number distinguishes the processes of one test.
func (c *cluster) options(number int, lines ...string) harness.Options {
	return c.inside.NewOptions(fmt.Sprintf("%s-%d", c.namespace, number), number, lines...)
}

// awaitReason waits for a verdict with the given reason on an Ingress of this namespace.
func (c *cluster) awaitReason(caddy *harness.Caddy, ingress, reason string) harness.Problem {
	c.Helper()
	var problem harness.Problem
	c.await(fmt.Sprintf("reason %s of Ingress %s", reason, ingress), func() error {
		verdicts, err := caddy.Verdicts(c.Context())
		if err != nil {
			return err
		}
		i := slices.IndexFunc(verdicts, func(v harness.Verdict) bool {
			return v.Object.Kind == "Ingress" && v.Object.Namespace == c.namespace && v.Object.Name == ingress
		})
		if i < 0 {
			return fmt.Errorf("no verdict on it, of %d", len(verdicts))
		}
		j := slices.IndexFunc(verdicts[i].Problems, func(p harness.Problem) bool { return p.Reason == reason })
		if j < 0 {
			return fmt.Errorf("its problems are %+v", verdicts[i].Problems)
		}
		problem = verdicts[i].Problems[j]
		return nil
	})
	return problem
}

// checkNoReload fails the test if Caddy has reloaded its configuration.
func (c *cluster) checkNoReload(caddy *harness.Caddy) {
	c.Helper()
	reloads, err := caddy.Metric(c.Context(), "k8singress_config_reloads_total")
	c.must(err)
	if reloads != 0 {
		c.Errorf("k8singress_config_reloads_total is %v", reloads)
	}
}
