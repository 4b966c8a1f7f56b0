package k8singress_test

import (
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/certmagic"

	"github.com/k8singress/k8singress/internal/tests/fixture"
)

// emptyCluster is an API server without objects. It counts the open watches of Secrets, and all watches so far.
type emptyCluster struct{ open, ever atomic.Int32 }

func (e *emptyCluster) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	kind, version := "SecretList", "v1"
	if strings.HasSuffix(r.URL.Path, "/leases") {
		kind, version = "LeaseList", "coordination.k8s.io/v1"
	}
	w.Header().Set("Content-Type", "application/json")
	switch query := r.URL.Query(); {
	case query.Get("sendInitialEvents") == "true":
		// Old API servers respond in this way.
		http.Error(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Invalid","code":422}`,
			http.StatusUnprocessableEntity)
	case query.Get("watch") != "true":
		fmt.Fprintf(w, `{"kind":%q,"apiVersion":%q,"metadata":{"resourceVersion":"1"},"items":[]}`, kind, version)
	default:
		w.(http.Flusher).Flush()
		if kind == "SecretList" {
			e.ever.Add(1)
			e.open.Add(1)
			defer e.open.Add(-1)
		}
		<-r.Context().Done()
	}
}

// awaitWatches waits until the given number of watches is open.
func (e *emptyCluster) awaitWatches(t *testing.T, want int32) {
	t.Helper()
	deadline := time.After(fixture.Patience)
	for e.open.Load() != want {
		select {
		case <-deadline:
			t.Fatalf("%d watches are open, want %d", e.open.Load(), want)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// TestStorageOverReloads checks that the storage is read only once while configurations use it, however often Caddy
// reloads.
func TestStorageOverReloads(t *testing.T) {
	cluster := &emptyCluster{}
	server := httptest.NewServer(cluster)
	defer server.Close()
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	text := fmt.Sprintf(
		`{"apiVersion":"v1","kind":"Config","current-context":"c","contexts":[{"name":"c","context":{"cluster":"c",
		"user":"u","namespace":"n"}}],"clusters":[{"name":"c","cluster":{"server":%q}}],
		"users":[{"name":"u","user":{}}]}`, server.URL)
	if err := os.WriteFile(kubeconfig, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		config := fmt.Sprintf(`{"admin":{"disabled":true},"storage":{"module":"kubernetes","kubeconfig":%q},
			"logging":{"logs":{"default":{"level":"ERROR"}}},"apps":{"http":{"http_port":%d}}}`, kubeconfig, 20000+i)
		if err := caddy.Load([]byte(config), true); err != nil {
			t.Fatal(err)
		}
		if _, err := certmagic.Default.Storage.Load(t.Context(), "a"); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("Load: %v", err)
		}
		if got := fmt.Sprint(certmagic.Default.Storage); got != "kubernetes:n" {
			t.Errorf("the storage calls itself %s", got)
		}
	}
	cluster.awaitWatches(t, 1)
	if err := caddy.Load([]byte(`{"admin":{"disabled":true}}`), true); err != nil {
		t.Fatal(err)
	}
	cluster.awaitWatches(t, 0)
	if n := cluster.ever.Load(); n != 1 {
		t.Errorf("there were %d watches", n)
	}
	if err := caddy.Stop(); err != nil {
		t.Error(err)
	}
}

// TestStorageOutsideOfACluster checks that the error message contains a solution.
func TestStorageOutsideOfACluster(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	err := caddy.Validate(&caddy.Config{StorageRaw: []byte(`{"module":"kubernetes"}`)})
	if err == nil || !strings.Contains(err.Error(), "set kubeconfig to connect to one") {
		t.Errorf("error %v", err)
	}
}
