package e2e

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/k8singress/k8singress/test/harness"
)

// rule is a rule in charts/k8singress/files/rights. rights are the rules of one size, by place and by option.
type (
	rule struct {
		rbacv1.PolicyRule `json:",inline"`
		ResourceNamesFrom string `json:"resourceNamesFrom"`
	}
	rights map[string]map[string][]rule
)

// owner is the setting of a controller with few rights: a watched namespace, and the controller's own namespace.
type owner struct {
	*cluster
	own string
	// tls is the certificate of the Ingress secure. unnamed is the certificate for names without an Ingress.
	tls, unnamed keyPair
}

func newOwner(t *testing.T) *owner {
	c := newCluster(t)
	o := &owner{cluster: c, own: c.namespace + "-own", tls: c.newPair(c.host("secure")),
		unnamed: c.newPair(c.host("default"))}
	object := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: o.own}}
	_, err := c.CoreV1().Namespaces().Create(t.Context(), object, metav1.CreateOptions{})
	c.must(err)
	t.Cleanup(func() {
		if err := c.CoreV1().Namespaces().Delete(context.Background(), o.own, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	c.deploy("web", 1)
	c.secret("tls", o.tls)
	c.ingress("plain", "web")
	c.ingress("secure", "web", withTLS("tls"), func(i *networkingv1.Ingress) { i.Annotations = nil })
	c.ingress("bad", "absent")
	c.awaitEndpoints("web", 1, 0)
	mine := *c
	mine.namespace = o.own
	mine.secret("default-tls", o.unnamed)
	for name, data := range map[string]map[string]string{
		"options": {"http-redirect-code": "301"}, "tcp": {"5432": c.to("web:http"), "5433": "no-port"},
	} {
		_, err := c.CoreV1().ConfigMaps(o.own).Create(t.Context(), &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: name}, Data: data,
		}, metav1.CreateOptions{})
		c.must(err)
	}
	return o
}

// inTest returns the same owner for a subtest.
func (o *owner) inTest(t *testing.T) *owner {
	inner := *o
	inner.cluster = o.in(t)
	return &inner
}

// read returns the rights of a size without the rights of the storage, which have their own tests.
func (o *owner) read(size string) rights {
	o.Helper()
	r := o.readFile("../../charts/k8singress/files/rights/" + size + ".yaml")
	delete(r, "storage")
	delete(r["own"], "storage_copy")
	return r
}

func (o *owner) readFile(path string) rights {
	o.Helper()
	text, err := os.ReadFile(path)
	o.must(err)
	r := rights{}
	o.must(yaml.UnmarshalStrict(text, &r))
	return r
}

// ruleNames returns the object names for the rules of a place that need them. The controller's own namespace is not
// watched, so it is also the namespace of the objects that options name.
func (o *owner) ruleNames(place, from string) []string {
	return map[string]map[string][]string{
		"cluster": {"admission_webhook": {o.own}},
		"watched": {"secrets": {"tls"}},
		"own": {"publish_service": {"edge"}, "election_id": {"edge-leader"}, "nginx": {"ingress-nginx-leader"},
			"admission_secret": {o.own + "-authority"}},
		"named": {"configmaps": {"options", "tcp"}, "services": {"edge"}, "secrets": {"default-tls"}},
	}[place][from]
}

// grant gives rights to a user named after the test, and waits until they are in effect.
func (o *owner) grant(r rights) (user string) {
	o.Helper()
	user = strings.ToLower(strings.NewReplacer("/", "-", "_", "-", "#", "-").Replace(o.Name()))
	subjects := []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}}
	for place, parts := range r {
		name, namespace := metav1.ObjectMeta{Name: user + "-" + place}, o.own
		rules := []rbacv1.PolicyRule{{APIGroups: []string{"marker.test"}, Resources: []string{place},
			Verbs: []string{"get"}}}
		for _, part := range parts {
			for _, rule := range part {
				if len(rule.Verbs) == 0 {
					continue
				}
				names := o.ruleNames(place, rule.ResourceNamesFrom)
				if rule.ResourceNamesFrom != "" && len(names) == 0 {
					// Without names, a rule would allow all objects.
					o.Fatalf("the test has no names for %s of %s", rule.ResourceNamesFrom, place)
				}
				rule.ResourceNames = append(rule.ResourceNames, names...)
				rules = append(rules, rule.PolicyRule)
			}
		}
		switch place {
		case "cluster":
			namespace = ""
			o.grantEverywhere(name, rules, subjects)
		case "watched":
			namespace = o.namespace
			fallthrough
		default:
			ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name.Name}
			_, err := o.RbacV1().Roles(namespace).Create(o.Context(), &rbacv1.Role{ObjectMeta: name, Rules: rules},
				metav1.CreateOptions{})
			o.must(err)
			_, err = o.RbacV1().RoleBindings(namespace).Create(o.Context(),
				&rbacv1.RoleBinding{ObjectMeta: name, Subjects: subjects, RoleRef: ref}, metav1.CreateOptions{})
			o.must(err)
		}
		o.awaitGranted(user, namespace, place)
	}
	return user
}

// grantEverywhere creates a ClusterRole and deletes it when the test ends.
func (o *owner) grantEverywhere(name metav1.ObjectMeta, rules []rbacv1.PolicyRule, subjects []rbacv1.Subject) {
	o.Helper()
	ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name.Name}
	_, err := o.RbacV1().ClusterRoles().Create(o.Context(), &rbacv1.ClusterRole{ObjectMeta: name, Rules: rules},
		metav1.CreateOptions{})
	o.must(err)
	_, err = o.RbacV1().ClusterRoleBindings().Create(o.Context(),
		&rbacv1.ClusterRoleBinding{ObjectMeta: name, Subjects: subjects, RoleRef: ref}, metav1.CreateOptions{})
	o.must(err)
	o.Cleanup(func() {
		ctx := context.Background()
		if err := errors.Join(o.RbacV1().ClusterRoles().Delete(ctx, name.Name, metav1.DeleteOptions{}),
			o.RbacV1().ClusterRoleBindings().Delete(ctx, name.Name, metav1.DeleteOptions{})); err != nil {
			o.Error(err)
		}
	})
}

// awaitGranted waits until the marker rule of a role is in effect.
func (o *owner) awaitGranted(user, namespace, place string) {
	o.Helper()
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: user, ResourceAttributes: &authorizationv1.ResourceAttributes{
			Group: "marker.test", Resource: place, Verb: "get", Namespace: namespace,
		},
	}}
	o.await("the rights of "+user+" in "+place, func() error {
		answer, err := o.AuthorizationV1().SubjectAccessReviews().Create(o.Context(), review, metav1.CreateOptions{})
		if err == nil && !answer.Status.Allowed {
			err = errors.New("they are not known")
		}
		return err
	})
}

// as returns the options of a controller that uses the rights of a user and runs in the namespace own.
func (o *owner) as(user string, lines ...string) harness.Options {
	o.Helper()
	config, err := clientcmd.LoadFromFile(o.inside.Kubeconfig())
	o.must(err)
	for _, each := range config.AuthInfos {
		each.Impersonate = user
	}
	for _, at := range config.Contexts {
		at.Namespace = o.own
	}
	path := filepath.Join(o.TempDir(), "kubeconfig")
	o.must(clientcmd.WriteToFile(*config, path))
	options := o.options(0, lines...)
	options.Name = user
	for i, line := range options.Lines {
		if strings.HasPrefix(line, "kubeconfig ") {
			options.Lines[i] = "kubeconfig " + path
		}
	}
	return options
}

// serving returns options that need all rights of a size, except those for the storage and for publish_nodes.
func (o *owner) serving(size, user, address string) harness.Options {
	o.Helper()
	lines := []string{
		"configmap " + o.own + "/options", "default_certificate " + o.own + "/default-tls",
		"tcp_services " + o.own + "/tcp", "stream_bind 127.0.0.1",
		"publish_service " + o.own + "/edge", "publish_ports", "election_id edge-leader",
		"admission_webhook 127.0.0.1:8445 {\n\t\t\town " + o.own + "\n\t\t}",
	}
	switch size {
	case "cluster":
		lines = append(lines, "namespace_selector kubernetes.io/metadata.name="+o.namespace)
	case "least":
		lines = append(lines, "secrets referenced")
		fallthrough
	default:
		lines = append(lines, "namespaces "+o.namespace)
	}
	o.freshService(address)
	o.freshWebhook()
	return o.as(user, lines...)
}

// freshWebhook creates the ValidatingWebhookConfiguration and the empty Secret of its authority again. So the
// controller has to make certificates and write caBundle. The webhook has no rules, so the API server never calls it.
func (o *owner) freshWebhook() {
	o.Helper()
	o.deleteWebhook(o.Context())
	_, err := o.CoreV1().Secrets(o.own).Create(o.Context(),
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: o.own + "-authority"}}, metav1.CreateOptions{})
	o.must(err)
	_, err = o.AdmissionregistrationV1().ValidatingWebhookConfigurations().Create(o.Context(),
		&admissionv1.ValidatingWebhookConfiguration{
			ObjectMeta: metav1.ObjectMeta{Name: o.own},
			Webhooks: []admissionv1.ValidatingWebhook{{
				Name: "validate.nginx.ingress.kubernetes.io", AdmissionReviewVersions: []string{"v1"},
				SideEffects: ptr.To(admissionv1.SideEffectClassNone),
				ClientConfig: admissionv1.WebhookClientConfig{
					Service: &admissionv1.ServiceReference{Namespace: o.own, Name: "edge"}},
			}},
		}, metav1.CreateOptions{})
	o.must(err)
	o.Cleanup(func() { o.deleteWebhook(context.Background()) })
}

// deleteWebhook deletes what freshWebhook has created, if it exists.
func (o *owner) deleteWebhook(ctx context.Context) {
	o.Helper()
	for _, err := range []error{
		o.CoreV1().Secrets(o.own).Delete(ctx, o.own+"-authority", metav1.DeleteOptions{}),
		o.AdmissionregistrationV1().ValidatingWebhookConfigurations().Delete(ctx, o.own, metav1.DeleteOptions{}),
	} {
		if !apierrors.IsNotFound(err) {
			o.must(err)
		}
	}
}

// freshService creates the Service of the controller again and deletes its Lease. So the controller has to write the
// ports, publish the address and create the Lease.
func (o *owner) freshService(address string) {
	o.Helper()
	if err := o.CoordinationV1().Leases(o.own).Delete(o.Context(), "edge-leader",
		metav1.DeleteOptions{}); !apierrors.IsNotFound(err) {
		o.must(err)
	}
	services := o.CoreV1().Services(o.own)
	if err := services.Delete(o.Context(), "edge", metav1.DeleteOptions{}); !apierrors.IsNotFound(err) {
		o.must(err)
	}
	_, err := services.Create(o.Context(), &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "edge"},
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeNodePort, ExternalIPs: []string{address},
			Ports: []corev1.ServicePort{{Name: "http", Port: 80}},
		},
	}, metav1.CreateOptions{})
	o.must(err)
}

// refused returns the requests that the API server has denied to a controller, in the form "list services".
func refused(caddy *harness.Caddy) []string { return refusedIn(caddy.Log()) }

// refusedIn is like refused for the text of a log.
func refusedIn(log string) []string {
	var all []string
	log = strings.ReplaceAll(log, `\"`, `"`)
	if strings.Contains(log, "publish_ports cannot change this Service") {
		all = append(all, "patch services")
	}
	for says, asked := range map[string]string{
		"RBAC does not allow to read the ValidatingWebhookConfiguration": "get validatingwebhookconfigurations",
		"RBAC does not allow to write caBundle":                          "patch validatingwebhookconfigurations",
		"RBAC does not allow to read the Secret":                         "get secrets",
		"RBAC does not allow to write the Secret":                        "update secrets",
	} {
		if strings.Contains(log, says) {
			all = append(all, asked)
		}
	}
	for part := range strings.SplitSeq(log, `" cannot `) {
		verb, rest, ok := strings.Cut(part, ` resource "`)
		resource, _, _ := strings.Cut(rest, `"`)
		if ok && !strings.Contains(verb, " ") {
			all = append(all, verb+" "+resource)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// TestRights runs a controller with exactly the rights of each size, and checks that everything works, except that
// classes are identified by their names if there is no ClusterRole. Then it removes each verb of each rule in turn and
// checks that the controller misses it, so that unnecessary rights are found.
func TestRights(t *testing.T) {
	o := newOwner(t)
	number := 0
	address := func() string {
		number++
		return fmt.Sprintf("203.0.113.%d", number)
	}
	for _, size := range []string{"cluster", "namespaces", "least"} {
		t.Run(size, func(t *testing.T) {
			o.inTest(t).works(size, address())
			for place, parts := range o.read(size) {
				for part, rules := range parts {
					for i, rule := range rules {
						for _, verb := range rule.Verbs {
							if unnoticed(size, lack{place, part, i, verb}, rule) {
								continue
							}
							t.Run(fmt.Sprintf("without-%s-%s-%d-%s", place, part, i, verb), func(t *testing.T) {
								o.inTest(t).without(size, lack{place, part, i, verb}, address())
							})
						}
					}
				}
			}
		})
	}
}

// unnoticed reports whether a controller does not need a verb of a rule with this API server, or in this size.
func unnoticed(size string, l lack, r rule) bool {
	if l.part == "admission_webhook" && size != "least" {
		// The rules are the same in all sizes. With the size cluster, the ClusterRole allows to watch Secrets as well.
		return true
	}
	// This API server sends lists through watches, so informers do not use the verb list. With older API servers, they
	// do. Secrets that Ingresses name are listed.
	return l.verb == "list" && (size != "least" || l.place == "own" || r.Resources[0] != "secrets")
}

// works checks the behavior that users see with all rights of a size.
func (o *owner) works(size, address string) {
	o.Helper()
	caddy := o.caddy(o.serving(size, o.grant(o.read(size)), address))
	o.awaitCode(caddy, o.host("plain"), "/", http.StatusOK, "web-")
	o.awaitCode(caddy, o.host("secure"), "/", http.StatusMovedPermanently, "")
	o.awaitSerial(caddy, o.host("secure"), o.tls)
	o.awaitSerial(caddy, "unknown.test", o.unnamed)
	o.awaitAddress("plain", address)
	o.awaitEvent("bad")
	o.await("the port of the Service", func() error {
		service, err := o.CoreV1().Services(o.own).Get(o.Context(), "edge", metav1.GetOptions{})
		if err == nil && len(service.Spec.Ports) != 2 {
			err = fmt.Errorf("its ports are %v", service.Spec.Ports)
		}
		return err
	})
	o.awaitWebhook(o.own)
	for _, asked := range refused(caddy) {
		if size == "cluster" || !strings.HasSuffix(asked, " ingressclasses") {
			o.Errorf("the rights lack: %s", asked)
		}
	}
	caddy.Stop()
}

// lack is a verb of one rule that is removed.
type lack struct {
	place, part string
	index       int
	verb        string
}

// unseen lists rights whose absence is not logged.
var unseen = map[string]string{
	"get pods": "TestPublishedPorts has it, in a pod: the list of its ports is compared with those that are open",
}

// spared lists the kinds without which a controller becomes ready.
var spared = []string{"nodes", "pods"}

// without removes a verb, and checks that the log names what the API server has denied. If the controller may not read
// a kind, it does not become ready, except for Secrets that are read by name. Without other rights, it serves requests.
func (o *owner) without(size string, l lack, address string) {
	o.Helper()
	all := o.read(size)
	rule := &all[l.place][l.part][l.index]
	if why := unseen[l.verb+" "+rule.Resources[0]]; why != "" {
		o.Skip(why)
	}
	rule.Verbs = slices.DeleteFunc(slices.Clone(rule.Verbs), func(v string) bool { return v == l.verb })
	if rule.Resources[0] == "events" && l.place != "watched" {
		// The controller's own namespace is also the namespace of named objects, and both places contain this rule.
		for _, twin := range []string{"own", "named"} {
			for i := range all[twin]["always"] {
				if other := &all[twin]["always"][i]; other.Resources[0] == "events" {
					other.Verbs = rule.Verbs
				}
			}
		}
	}
	options := o.serving(size, o.grant(all), address)
	if l.part == "publish_nodes" {
		options.Lines = append(options.Lines, "publish_nodes internal")
	}
	caddy := o.start(options)
	for _, resource := range rule.Resources {
		o.await("it lacks "+l.verb+" "+resource, func() error {
			if missed := refused(caddy); !slices.Contains(missed, l.verb+" "+resource) {
				return fmt.Errorf("refused are %v", missed)
			}
			return nil
		})
	}
	o.checkServes(caddy, size, l, rule.Resources[0])
	caddy.Stop()
}

// checkServes checks the behavior of a controller without a right.
func (o *owner) checkServes(caddy *harness.Caddy, size string, l lack, resource string) {
	o.Helper()
	needed := l.part != "admission_webhook" && (size != "least" || resource != "secrets") &&
		!slices.Contains(spared, resource)
	if needed && (l.verb == "list" || l.verb == "watch") {
		return
	}
	o.await("it serves", func() error {
		r, err := once(o.Context(), caddy.HTTP, "http://"+o.host("plain")+"/")
		if err == nil && r.code != http.StatusOK {
			err = fmt.Errorf("answered %d", r.code)
		}
		return err
	})
}

// TestRightsOfIngressNginx checks that the service account of ingress-nginx has enough rights for routes, the status,
// Events and the Lease. Without a Service, the status has the addresses of the pods' nodes, as in ingress-nginx.
func TestRightsOfIngressNginx(t *testing.T) {
	o := newOwner(t)
	mine := *o.cluster
	mine.namespace = o.own
	mine.deploy("edge", 1)
	mine.awaitEndpoints("edge", 1, 0)
	pods, err := o.CoreV1().Pods(o.own).List(t.Context(), metav1.ListOptions{LabelSelector: "app=edge"})
	o.must(err)
	pod := pods.Items[0]
	node, err := o.CoreV1().Nodes().Get(t.Context(), pod.Spec.NodeName, metav1.GetOptions{})
	o.must(err)
	options := o.as(o.grant(o.readFile("testdata/ingress-nginx-rights.yaml")),
		"publish_nodes internal", "http3 off", "election_id k8singress-ingress-nginx-leader",
		"election_fallback ingress-nginx-leader")
	options.Environment = []string{"POD_NAME=" + pod.Name, "POD_NAMESPACE=" + o.own}
	caddy := o.caddy(options)
	o.awaitCode(caddy, o.host("plain"), "/", http.StatusOK, "web-")
	o.awaitAddress("plain", node.Status.Addresses[0].Address)
	o.awaitEvent("bad")
	lease, err := o.CoordinationV1().Leases(o.own).Get(t.Context(), "ingress-nginx-leader", metav1.GetOptions{})
	if err != nil || lease.Spec.HolderIdentity == nil || *lease.Spec.HolderIdentity == "" {
		t.Errorf("the Lease is %v, error %v", lease, err)
	}
	want := []string{"create events", "get leases", "patch ingresses/status"}
	for _, asked := range refused(caddy) {
		if !slices.Contains(want, asked) {
			t.Errorf("the rights lack: %s", asked)
		}
	}
	o.checkWithoutHTTP3(caddy)
}

// checkWithoutHTTP3 fails the test if a process listens on UDP at the HTTPS address, or if responses announce HTTP/3.
func (o *owner) checkWithoutHTTP3(caddy *harness.Caddy) {
	o.Helper()
	socket, err := net.ListenPacket("udp", caddy.HTTPS)
	o.must(err)
	o.must(socket.Close())
	r, err := once(o.Context(), caddy.HTTPS, "https://"+o.host("secure")+"/", o.tls)
	o.must(err)
	if told := r.header.Get("Alt-Svc"); r.code != http.StatusOK || told != "" {
		o.Errorf("the answer is %d, with Alt-Svc %q", r.code, told)
	}
}
