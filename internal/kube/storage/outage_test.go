package storage

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caddyserver/certmagic"

	"github.com/k8singress/k8singress/internal/tests/fixture"
)

// TestLostWatch checks that the storage has the changes that were made while its watch was interrupted after the next
// list.
func TestLostWatch(t *testing.T) {
	w := newSimulated(t)
	writer, other := w.start(t), w.start(t)
	store(t, writer, "stays", "1", "goes", "1", "changes", "1")
	fixture.Holds(t, "the news", func() bool { return has(t, other, "changes") == "1" })
	if err := writer.Lock(t.Context(), "issue_cert_a.example"); err != nil {
		t.Fatal(err)
	}
	fixture.Holds(t, "the lock", func() bool { return other.wants("a.example") })

	release := w.api.hold()
	store(t, writer, "changes", "2", "comes", "2")
	if err := errors.Join(writer.Delete(t.Context(), "goes"),
		writer.Unlock(t.Context(), "issue_cert_a.example")); err != nil {
		t.Fatal(err)
	}
	w.api.cut()
	release()
	fixture.Holds(t, "the news", func() bool {
		got := has(t, other, "stays") + has(t, other, "goes") + has(t, other, "changes") + has(t, other, "comes")
		return got == "122" && !other.wants("a.example")
	})
	writer.awaitOwnWrites(t)
}

// TestOutage checks that values can be read while the API server is unavailable, and that a write waits until it is
// available again.
func TestOutage(t *testing.T) {
	w := newSimulated(t)
	p := w.start(t)
	store(t, p, "a", "1")
	if !p.Exists(t.Context(), "a") {
		t.Fatal("it is not there")
	}
	p.link.cut(true)
	written := make(chan error)
	go func() { written <- p.Store(t.Context(), "b", []byte("2")) }()
	fixture.Holds(t, "an attempt", func() bool { return p.link.count("POST") > 0 })
	if got := has(t, p, "a") + has(t, p, "b"); got != "1" {
		t.Errorf("read %q", got)
	}
	p.link.cut(false)
	if err := fixture.Receive(t, "the end of writing", written); err != nil || has(t, p, "b") != "2" {
		t.Errorf("b is %q, %v", has(t, p, "b"), err)
	}
}

// TestStartWithoutAPIServer checks that a reader waits until its context ends if the API server is unavailable at the
// start, and gets the value when it is available again.
func TestStartWithoutAPIServer(t *testing.T) {
	w := newSimulated(t)
	store(t, w.start(t), "a", "1")
	p := w.startWith(t, &link{broken: true})
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := p.Load(ctx, "a"); !errors.Is(err, context.DeadlineExceeded) || isAbsent(err) {
		t.Errorf("Load: %v", err)
	}
	fixture.Holds(t, "a warning",
		func() bool { return p.log.FilterMessageSnippet("cannot read the secrets of the storage").Len() == 1 })
	p.link.cut(false)
	if got := has(t, p, "a"); got != "1" {
		t.Errorf("a is %q", got)
	}
}

// TestLostResponsesToWrites checks that a write succeeds if the API server has processed it, but the response was lost.
func TestLostResponsesToWrites(t *testing.T) {
	w := newSimulated(t)
	p := w.start(t)
	var n atomic.Int32
	w.api.lose(func(r *http.Request) bool { return strings.Contains(r.URL.Path, "/secrets") && n.Add(1)%5 == 1 })
	store(t, p, key, "1", crt, "2", key, "3")
	if got := has(t, p, key) + has(t, p, crt); got != "32" {
		t.Errorf("the site has %q", got)
	}
	if err := p.Delete(t.Context(), certmagic.StorageKeys.CertsPrefix(issuer)); err != nil || len(w.secrets(t)) > 0 {
		t.Errorf("error %v, Secrets %v", err, w.secrets(t))
	}
	if got := has(t, p, key) + has(t, p, crt); got != "" {
		t.Errorf("the site has %q", got)
	}
}

// TestLockWaitsForPreviousWrites checks that the next holder of a lock reads the writes of the previous holder, even if
// watch events are late.
func TestLockWaitsForPreviousWrites(t *testing.T) {
	w := newSimulated(t)
	first, second, third := w.start(t), w.start(t), w.start(t)
	for _, p := range []*process{second, third} {
		fixture.Receive(t, "all Secrets", p.secrets.synced)
		fixture.Receive(t, "all Leases", p.leases.informer.HasSyncedChecker().Done())
	}
	if err := first.Lock(t.Context(), "x"); err != nil {
		t.Fatal(err)
	}
	release := w.api.hold()
	store(t, first, "a", "1")
	if err := first.Unlock(t.Context(), "x"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := second.Lock(ctx, "x"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the lock without the news: %v", err)
	}
	var group sync.WaitGroup
	for _, p := range []*process{second, third} {
		group.Go(func() {
			if err := p.Lock(t.Context(), "x"); err != nil {
				t.Error(err)
				return
			}
			if got := has(t, p, "a"); got != "1" {
				t.Errorf("a is %q", got)
			}
			if err := p.Unlock(t.Context(), "x"); err != nil {
				t.Error(err)
			}
		})
	}
	release()
	group.Wait()
}

// TestOldLeases checks that a released Lease counts as expired after its duration and can be deleted, and that a held
// Lease does not expire.
func TestOldLeases(t *testing.T) {
	w := newSimulated(t)
	p, other := w.start(t), w.start(t)
	for _, name := range []string{"released", "held"} {
		if err := p.Lock(t.Context(), name); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.Unlock(t.Context(), "released"); err != nil {
		t.Fatal(err)
	}
	fixture.Holds(t, "an old Lease", func() bool { return len(other.leases.expired(short.Duration)) > 0 })
	old := other.leases.expired(short.Duration)
	if len(old) != 1 || old[0].Annotations[lockAnnotation] != "released" {
		t.Fatalf("old are %v", old)
	}
	if err := other.sweeper.Delete(t.Context(), old[0].Name, exactly(old[0])); err != nil ||
		len(w.leases(t)) != 1 {
		t.Errorf("error %v, %d Leases", err, len(w.leases(t)))
	}
	if err := p.Unlock(t.Context(), "held"); err != nil {
		t.Error(err)
	}
}

// TestManyCertificates checks that storing a certificate takes three requests, and reading it none.
func TestManyCertificates(t *testing.T) {
	w := newSimulated(t)
	p := w.start(t)
	if p.Exists(t.Context(), "a") {
		t.Fatal("it is there")
	}
	p.link.count("")
	const sites = 200
	for i := range sites {
		host := fmt.Sprintf("host-%d.example", i)
		keys := certmagic.StorageKeys
		store(t, p, keys.SitePrivateKey(issuer, host), "1", keys.SiteCert(issuer, host), "2",
			keys.SiteMeta(issuer, host), "3")
	}
	if n := p.link.count(""); n != 3*sites {
		t.Errorf("%d requests to write", n)
	}
	list, err := p.List(t.Context(), "certificates", true)
	if err != nil || len(list) != 1+4*sites {
		t.Errorf("%d keys, %v", len(list), err)
	}
	for _, key := range list {
		if _, err := p.Stat(t.Context(), key); err != nil {
			t.Error(err)
		}
	}
	if n := p.link.count(""); n > 0 {
		t.Errorf("%d requests to read", n)
	}
}

// TestMissingNamespace checks that a missing namespace causes an error at once.
func TestMissingNamespace(t *testing.T) {
	w := newWorld(t)
	if w.api != nil {
		t.Skip("only a real API server has namespaces")
	}
	p := w.start(t)
	p.api = w.admin.CoreV1().Secrets("no-such-namespace")
	if err := p.Store(t.Context(), "a", nil); err == nil ||
		!strings.Contains(err.Error(), `namespaces "no-such-namespace" not found`) {
		t.Errorf("Store: %v", err)
	}
}
