package e2e

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/k8singress/k8singress/test/harness"
)

// limited creates an account with the rights of deploy/cluster except the rights on Secrets. It returns the options of
// a Caddy with this account.
func (c *cluster) limited(lines ...string) harness.Options {
	c.Helper()
	role, err := c.RbacV1().ClusterRoles().Get(c.Context(), "k8singress", metav1.GetOptions{})
	c.must(err)
	rules := slices.DeleteFunc(role.DeepCopy().Rules,
		func(r rbacv1.PolicyRule) bool { return slices.Equal(r.Resources, []string{"secrets"}) })
	name := metav1.ObjectMeta{Name: c.namespace}
	_, err = c.RbacV1().ClusterRoles().Create(c.Context(), &rbacv1.ClusterRole{ObjectMeta: name, Rules: rules},
		metav1.CreateOptions{})
	c.must(err)
	_, err = c.RbacV1().ClusterRoleBindings().Create(c.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: name, Subjects: c.user(),
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: c.namespace},
	}, metav1.CreateOptions{})
	c.must(err)
	c.bind(c.namespace, "secrets")
	c.bind("k8singress", "k8singress")
	config, err := clientcmd.LoadFromFile(c.inside.AccountKubeconfig())
	c.must(err)
	for _, user := range config.AuthInfos {
		user.Impersonate = c.namespace
	}
	path := filepath.Join(c.TempDir(), "kubeconfig")
	c.must(clientcmd.WriteToFile(*config, path))
	o := c.options(0, append(lines, "secrets referenced")...)
	for i, line := range o.Lines {
		if strings.HasPrefix(line, "kubeconfig ") {
			o.Lines[i] = "kubeconfig " + path
		}
	}
	return o
}

func (c *cluster) user() []rbacv1.Subject {
	return []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: c.namespace}}
}

// allow lets the account read some Secrets of the namespace by name. Without names, it may read all of them.
func (c *cluster) allow(secrets ...string) {
	c.Helper()
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "secrets"}, Rules: []rbacv1.PolicyRule{{
		APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"list", "watch"},
		ResourceNames: secrets,
	}}}
	// Update also creates the role, if it does not exist.
	_, err := c.RbacV1().Roles(c.namespace).Update(c.Context(), role, metav1.UpdateOptions{})
	c.must(err)
}

// bind binds the account to a Role.
func (c *cluster) bind(namespace, role string) {
	c.Helper()
	_, err := c.RbacV1().RoleBindings(namespace).Create(c.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: c.namespace}, Subjects: c.user(),
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role},
	}, metav1.CreateOptions{})
	c.must(err)
}

// awaitRight waits until the right to read a Secret is in effect.
func (c *cluster) awaitRight(secret string) {
	c.Helper()
	c.await("the right to read "+secret, func() error {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User: c.namespace, ResourceAttributes: &authorizationv1.ResourceAttributes{
				Namespace: c.namespace, Verb: "watch", Resource: "secrets", Name: secret,
			},
		}}
		answer, err := c.AuthorizationV1().SubjectAccessReviews().Create(c.Context(), review, metav1.CreateOptions{})
		if err == nil && !answer.Status.Allowed {
			err = errors.New(answer.Status.Reason)
		}
		return err
	})
}

// serial returns the serial number of the certificate that a host presents.
func (c *cluster) serial(caddy *harness.Caddy, host string) (string, error) {
	conn, err := tls.Dial("tcp", caddy.HTTPS, &tls.Config{ServerName: host, InsecureSkipVerify: true})
	if err != nil {
		return "", err
	}
	defer conn.Close()
	return serial(conn.ConnectionState().PeerCertificates[0]), nil
}

func (c *cluster) awaitSerial(caddy *harness.Caddy, host string, want keyPair) {
	c.Helper()
	c.await("the certificate of "+host, func() error {
		got, err := c.serial(caddy, host)
		if err == nil && got != leaf(want) {
			err = fmt.Errorf("it is %s, want %s", got, leaf(want))
		}
		return err
	})
}

// TestSecretsByName checks a controller that may read only two Secrets.
func TestSecretsByName(t *testing.T) {
	c := newCluster(t)
	c.deploy("web", 1)
	c.awaitEndpoints("web", 1, 0)
	first, denied, unnamed := c.newPair(c.host("first")), c.newPair(c.host("denied")), c.newPair(c.host("default"))
	c.secret("first", first)
	c.secret("denied", denied)
	c.secret("default-tls", unnamed)
	c.ingress("first", "web", withTLS("first"))
	c.ingress("denied", "web", withTLS("denied"))
	c.allow("first", "default-tls")
	o := c.limited("default_certificate " + c.namespace + "/default-tls")
	c.awaitRight("first")
	caddy := c.caddy(o)

	// The first handshake must succeed, because the controller was not ready before it had the Secrets.
	for host, want := range map[string]keyPair{c.host("first"): first, "unknown.test": unnamed,
		c.host("denied"): unnamed} {
		if got, err := c.serial(caddy, host); err != nil || got != leaf(want) {
			t.Errorf("%s is shown %s, error %v, want %s", host, got, err, leaf(want))
		}
	}
	problem := c.awaitReason(caddy, "denied", "SecretNotFound")
	if !strings.Contains(problem.Message, "may not read the Secret") {
		t.Errorf("the problem is %q", problem.Message)
	}
	c.awaitCode(caddy, c.host("denied"), "/", http.StatusOK, "")
	status, err := caddy.Status(t.Context())
	c.must(err)
	if status.Objects["Secret"] != 2 {
		t.Errorf("Caddy holds %d Secrets", status.Objects["Secret"])
	}

	c.allow("first", "default-tls", "denied")
	c.awaitSerial(caddy, c.host("denied"), denied)
	next := c.newPair(c.host("first"))
	c.secret("first", next)
	c.awaitSerial(caddy, c.host("first"), next)
	c.deleteIngress("denied")
	c.await("the Secret that nobody refers to is let go", func() error {
		status, err := caddy.Status(t.Context())
		if err == nil && status.Objects["Secret"] != 2 {
			err = fmt.Errorf("Caddy holds %d Secrets", status.Objects["Secret"])
		}
		return err
	})
	c.checkNoReload(caddy)
}

// TestManySecretsByName checks a controller that watches a thousand Secrets by name.
func TestManySecretsByName(t *testing.T) {
	const count = 1000
	c := newCluster(t)
	pair := c.newPair("*." + c.namespace + ".test")
	name := func(i int) string { return fmt.Sprintf("tls-%d", i) }
	var group sync.WaitGroup
	for worker := range 8 {
		group.Go(func() {
			for i := worker; i < count; i += 8 {
				c.secret(name(i), pair)
			}
		})
	}
	group.Wait()
	c.service("web", "nobody")
	c.ingress("many", "web", func(i *networkingv1.Ingress) {
		rule := i.Spec.Rules[0]
		for n := range count {
			// The namespace must have a rule for each host of a certificate.
			rule.Host = c.host(name(n))
			i.Spec.Rules = append(i.Spec.Rules, rule)
			i.Spec.TLS = append(i.Spec.TLS,
				networkingv1.IngressTLS{Hosts: []string{c.host(name(n))}, SecretName: name(n)})
		}
	})
	c.allow()
	o := c.limited()
	c.awaitRight(name(0))
	caddy := c.caddy(o)
	ready := time.Since(caddy.Started)
	if problems, err := caddy.Verdicts(t.Context()); err != nil || slices.ContainsFunc(problems, c.lacksSecret) {
		t.Errorf("a Secret was missing at the start, error %v", err)
	}
	t.Logf("ready with %d watches after %v, %d MB", count, ready.Round(time.Millisecond), c.resident(caddy))
	all := c.caddy(c.options(1))
	t.Logf("ready with one watch for all after %v, %d MB", time.Since(all.Started).Round(time.Millisecond),
		c.resident(all))
	for _, i := range []int{0, count / 2, count - 1} {
		next := c.newPair(c.host(name(i)))
		c.secret(name(i), next)
		c.awaitSerial(caddy, c.host(name(i)), next)
	}
}

// lacksSecret reports whether a verdict is about an Ingress of this namespace whose Secret is missing.
func (c *cluster) lacksSecret(v harness.Verdict) bool {
	return v.Object.Namespace == c.namespace &&
		slices.ContainsFunc(v.Problems, func(p harness.Problem) bool { return p.Reason == "SecretNotFound" })
}

// resident returns the resident memory of a process in MB.
func (c *cluster) resident(caddy *harness.Caddy) int64 {
	c.Helper()
	memory, err := caddy.Memory("VmRSS")
	c.must(err)
	return memory >> 20
}
