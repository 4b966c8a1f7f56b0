package e2e

import (
	"context"
	"errors"
	"fmt"

	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var ingressClasses = []sentence{
	{"a controller serves an Ingress by a transitive connection: controller, IngressClass, Ingress", classByName},
	{"an Ingress of another controller's class is never served", foreignClass},
	{"an Ingress of a class that is deleted is served no longer", deletedClass},
	{"for backwards compatibility controllers should still honor the annotation", annotatedClass},
	{"an Ingress without a class is assigned the default class", classByDefault},
}

// classAnnotation is the predecessor of spec.ingressClassName.
const classAnnotation = "kubernetes.io/ingress.class"

// published is the address that the controller of these tests writes to the status.
const published = "203.0.113.9"

func classByName(f *conformance) {
	f.ownClass("conformance-own", controller)
	host := f.host("own-class")
	f.rules("own-class", []route{{host, prefix, "/", "one"}}, withClass("conformance-own"))
	f.answers(answer{host, "/", "one"})
	f.awaitAddress("own-class", published)
}

func foreignClass(f *conformance) {
	f.ownClass("conformance-foreign", "example.com/another-controller")
	host, ours := f.host("foreign"), f.host("foreign-not")
	f.rules("foreign", []route{{host, prefix, "/", "one"}, {ours, prefix, "/", "one"}},
		withClass("conformance-foreign"))
	f.rules("foreign-not", []route{{ours, prefix, "/", "two"}})
	f.answers(answer{ours, "/", "two"}, answer{host, "/", nobody})
	// The controller would have written the status of the foreign Ingress earlier than this one.
	f.awaitAddress("foreign-not", published)
	ingress, err := f.NetworkingV1().Ingresses(f.namespace).Get(f.Context(), "foreign", metav1.GetOptions{})
	f.must(err)
	if len(ingress.Status.LoadBalancer.Ingress) > 0 {
		f.Errorf("the status of another controller's Ingress is %+v", ingress.Status)
	}
	if events := f.warnings("foreign"); len(events) > 0 {
		f.Errorf("Events on another controller's Ingress: %+v", events)
	}
}

func deletedClass(f *conformance) {
	f.ownClass("conformance-deleted", controller)
	host, stays := f.host("deleted-class"), f.host("deleted-class-not")
	f.rules("deleted-class", []route{{host, prefix, "/", "one"}}, withClass("conformance-deleted"))
	f.rules("deleted-class-not", []route{{stays, prefix, "/", "one"}})
	f.answers(answer{host, "/", "one"})
	f.deleteClass("conformance-deleted")
	f.answers(answer{host, "/", nobody}, answer{stays, "/", "one"})
	f.awaitReason(f.caddy, "deleted-class", "IngressClassNotFound")
	f.class("conformance-deleted", controller)
	f.answers(answer{host, "/", "one"})
}

// annotatedClass also checks an Ingress with both the annotation and the field, which is only possible by an update.
// The field takes precedence, and the owner gets a warning.
func annotatedClass(f *conformance) {
	host, foreign := f.host("annotated"), f.host("annotated-foreign")
	f.rules("annotated-foreign", []route{{foreign, prefix, "/", "one"}}, withAnnotatedClass("another"))
	f.rules("annotated", []route{{host, prefix, "/", "one"}}, withAnnotatedClass("nginx"))
	f.answers(answer{host, "/", "one"}, answer{foreign, "/", nobody})
	f.change("annotated", withClass("nginx"),
		func(i *networkingv1.Ingress) { i.Annotations[classAnnotation] = "another" })
	f.awaitReason(f.caddy, "annotated", "ClassConflict")
	f.awaitEvent("annotated")
	f.answers(answer{host, "/", "one"})
}

func withAnnotatedClass(name string) func(*networkingv1.Ingress) {
	return func(i *networkingv1.Ingress) {
		i.Spec.IngressClassName = nil
		i.Annotations = map[string]string{classAnnotation: name}
	}
}

func withoutClass(i *networkingv1.Ingress) { i.Spec.IngressClassName = nil }

func classByDefault(f *conformance) {
	host, before, barrier := f.host("default-class"), f.host("classless"), f.host("classless-not")
	f.rules("classless", []route{{before, prefix, "/", "one"}}, withoutClass)
	f.rules("classless-not", []route{{barrier, prefix, "/", "one"}})
	f.answers(answer{barrier, "/", "one"}, answer{before, "/", nobody})

	f.ownClass("conformance-default", controller, func(class *networkingv1.IngressClass) {
		class.Annotations = map[string]string{networkingv1.AnnotationIsDefaultIngressClass: "true"}
	})
	// The API server assigns the default class only after it has seen the class.
	f.await("an Ingress is assigned the default class", func() error { return f.createDefaulted(host) })
	f.answers(answer{host, "/", "one"})
}

// createDefaulted returns an error if the API server has assigned no class.
func (f *conformance) createDefaulted(host string) error {
	const name = "default-class"
	ingresses := f.NetworkingV1().Ingresses(f.namespace)
	ingress := &networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{Name: name}}
	addRoute(ingress, route{host, prefix, "/", "one"})
	ingress, err := ingresses.Create(f.Context(), ingress, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	if class := ingress.Spec.IngressClassName; class == nil || *class != "conformance-default" {
		return errors.Join(errors.New("it has no class"), ingresses.Delete(f.Context(), name, metav1.DeleteOptions{}))
	}
	f.Cleanup(func() { _ = ingresses.Delete(context.Background(), name, metav1.DeleteOptions{}) })
	return nil
}

// ownClass creates an IngressClass and deletes it when the test ends. Its name must not be used by other tests.
func (f *conformance) ownClass(name, controller string, changes ...func(*networkingv1.IngressClass)) {
	f.Helper()
	class := &networkingv1.IngressClass{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: networkingv1.IngressClassSpec{Controller: controller},
	}
	for _, change := range changes {
		change(class)
	}
	_, err := f.NetworkingV1().IngressClasses().Create(f.Context(), class, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		err = fmt.Errorf("a test before this one left it: %w", err)
	}
	f.must(err)
	f.Cleanup(func() { f.deleteClass(name) })
}
