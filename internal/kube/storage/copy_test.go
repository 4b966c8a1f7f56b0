package storage

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/k8singress/k8singress/internal/tests/fixture"
)

// next returns another namespace of the same API server. Storages in the new namespace copy the storage of w.
func (w *world) next(t testing.TB) *world {
	t.Helper()
	to := *w
	to.from = w.namespace
	to.namespace += "-next"
	if w.api == nil {
		to.makeNamespace(t, metav1.ObjectMeta{Name: to.namespace})
	}
	return &to
}

// TestCopy checks that all values of a storage are copied to another namespace, and that the old namespace keeps them.
func TestCopy(t *testing.T) {
	w := newWorld(t)
	before := w.start(t)
	token := tokenKey("a.example")
	store(t, before, crt, "certificate", key, "private", info, "metadata")
	store(t, before, "acme/account", "ours", token, "token", "here", "old")
	stored, err := before.Stat(t.Context(), crt)
	if err != nil {
		t.Fatal(err)
	}

	next := w.next(t)
	alone := *next
	alone.from = ""
	store(t, alone.start(t), "here", "new")
	p, replica := next.start(t), next.start(t)
	for _, p := range []*process{p, replica} {
		for key, want := range map[string]string{
			crt: "certificate", key: "private", info: "metadata", "acme/account": "ours", token: "", "here": "new",
		} {
			if got := has(t, p, key); got != want {
				t.Errorf("%s is %q, want %q", key, got, want)
			}
		}
		if copied, err := p.Stat(t.Context(), crt); err != nil || !copied.Modified.Equal(stored.Modified) {
			t.Errorf("the certificate is of %v, error %v, want %v", copied.Modified, err, stored.Modified)
		}
	}
	store(t, p, crt, "renewed")
	if got := has(t, before, crt) + has(t, before, "acme/account"); got != "certificateours" {
		t.Errorf("the storage before has %q", got)
	}
}

// TestCopyIsMadeOnce checks that a value that is deleted after the copy is not copied again at the next start.
func TestCopyIsMadeOnce(t *testing.T) {
	w := newWorld(t)
	before := w.start(t)
	store(t, before, crt, "revoked", "stays", "1")
	next := w.next(t)
	p := next.start(t)
	if got := has(t, p, crt); got != "revoked" {
		t.Fatalf("the certificate is %q", got)
	}
	if err := p.Delete(t.Context(), crt); err != nil {
		t.Fatal(err)
	}
	p.stop()
	store(t, before, "later", "1")
	p = next.start(t)
	if got := has(t, p, crt) + has(t, p, "stays") + has(t, p, "later"); got != "1" {
		t.Errorf("after another start there is %q", got)
	}
}

// TestNothingIsOrderedBeforeTheCopy checks that reads and locks wait while the old namespace cannot be read. If a read
// reported a missing certificate, the certificate would be ordered again.
func TestNothingIsOrderedBeforeTheCopy(t *testing.T) {
	w := newSimulated(t)
	store(t, w.start(t), crt, "certificate")
	next := w.next(t)
	w.api.forbid(func(r *http.Request) bool {
		return strings.Contains(r.URL.Path,
			"/namespaces/"+w.namespace+"/secrets")
	})
	p := next.start(t)
	fixture.Holds(t, "a warning", func() bool {
		return p.log.FilterMessageSnippet("cannot copy the storage of another namespace").Len() == 1
	})
	const lock = "issue_cert_a.example"
	for what, ask := range map[string]func(context.Context) error{
		"the certificate":             func(ctx context.Context) error { _, err := p.Load(ctx, crt); return err },
		"the lock of an order":        func(ctx context.Context) error { return p.Lock(ctx, lock) },
		"trying the lock of an order": func(ctx context.Context) error { _, err := p.TryLock(ctx, lock); return err },
	} {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := ask(ctx); !errors.Is(err, context.DeadlineExceeded) || isAbsent(err) {
			t.Fatalf("%s: %v", what, err)
		}
	}
	w.api.forbid(nil)
	fixture.Holds(t, "the certificate", func() bool {
		value, err := p.Load(t.Context(), crt)
		return err == nil && string(value) == "certificate"
	})
	if err := errors.Join(p.Lock(t.Context(), lock), p.Unlock(t.Context(), lock)); err != nil {
		t.Error(err)
	}
}

// TestCopyOfItself checks that a storage does not copy its own namespace.
func TestCopyOfItself(t *testing.T) {
	w := newWorld(t)
	w.from = w.namespace
	store(t, w.start(t), "a", "1")
	p := w.start(t)
	if got := has(t, p, "a"); got != "1" || len(w.secrets(t)) != 1 {
		t.Errorf("a is %q, Secrets %v", got, w.secrets(t))
	}
}

// TestCopySkipsOtherSecrets checks that Secrets that do not belong to the storage are not copied.
func TestCopySkipsOtherSecrets(t *testing.T) {
	w := newWorld(t)
	store(t, w.start(t), "a", "1")
	for name, labels := range map[string]map[string]string{"stranger": nil, "misplaced": {Label: LabelValue}} {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
		if _, err := w.admin.CoreV1().Secrets(w.namespace).Create(t.Context(), secret,
			metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	next := w.next(t)
	if got := has(t, next.start(t), "a"); got != "1" {
		t.Fatalf("a is %q", got)
	}
	for _, secret := range next.secrets(t) {
		if secret.Name == "stranger" || secret.Name == "misplaced" {
			t.Errorf("%s was copied", secret.Name)
		}
	}
}
