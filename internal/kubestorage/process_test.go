package kubestorage

import (
	"context"
	"errors"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/k8singress/k8singress/internal/fixture"
)

// realAPI names a kubeconfig: then the tests that can, use a real API server.
const realAPI = "K8SINGRESS_STORAGE_KUBECONFIG"

// limit is how long a test waits for anything.
const limit = fixture.Patience

func TestMain(m *testing.M) {
	if os.Getenv(holdVariable) != "" {
		holdLock()
		return
	}
	if os.Getenv(realAPI) != "" {
		// Connections to it stay open for the next client.
		os.Exit(m.Run())
	}
	goleak.VerifyTestMain(m)
}

// world is a namespace of an API server.
type world struct {
	config    *rest.Config
	namespace string
	admin     kubernetes.Interface
	// api is nil if it is a real one.
	api *apiServer
}

// newWorld uses a real API server if there is one.
func newWorld(t testing.TB) *world {
	t.Helper()
	path := os.Getenv(realAPI)
	if path == "" {
		return newPretended(t)
	}
	w := &world{config: mustConfig(path)}
	w.connect(t)
	made, err := w.admin.CoreV1().Namespaces().Create(t.Context(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "storage-"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	w.namespace = made.Name
	return w
}

// newPretended is for tests of what a real API server would not do when it is asked to.
func newPretended(t testing.TB) *world {
	t.Helper()
	api := startAPIServer(t)
	w := &world{config: &rest.Config{Host: api.http.URL, QPS: -1}, namespace: "k8singress", api: api}
	w.config.ContentType = "application/vnd.kubernetes.protobuf"
	w.connect(t)
	return w
}

func mustConfig(path string) *rest.Config {
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		panic(err)
	}
	config.QPS = -1
	return config
}

func (w *world) connect(t testing.TB) {
	t.Helper()
	var err error
	if w.admin, err = kubernetes.NewForConfig(w.config); err != nil {
		t.Fatal(err)
	}
}

func (w *world) secrets(t testing.TB) []corev1.Secret {
	t.Helper()
	list, err := w.admin.CoreV1().Secrets(w.namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return list.Items
}

// process is what a process has: a storage, with a link of its own to the API server.
type process struct {
	*Storage
	link *link
	log  *observer.ObservedLogs
	stop func()
}

// short are times with which a test need not wait long.
var short = Times{Duration: 2 * time.Second, Renew: 250 * time.Millisecond, Poll: 200 * time.Millisecond}

func (w *world) start(t testing.TB) *process {
	t.Helper()
	return w.startWith(t, &link{})
}

// startWith has a link that may be broken from the beginning.
func (w *world) startWith(t testing.TB, l *link) *process {
	t.Helper()
	core, log := observer.New(zap.InfoLevel)
	p := &process{link: l, log: log}
	config := rest.CopyConfig(w.config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		p.link.next = next
		return p.link
	})
	s, err := newStorage(Options{Namespace: w.namespace, Times: short}, config, zap.New(core))
	if err != nil {
		t.Fatal(err)
	}
	p.Storage = s
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { s.Run(ctx) })
	p.stop = sync.OnceFunc(func() {
		cancel()
		running.Wait()
	})
	t.Cleanup(p.stop)
	return p
}

// awaitOwnWrites waits until the watch has shown all writes and deletions of the process.
func (p *process) awaitOwnWrites(t testing.TB) {
	t.Helper()
	fixture.Holds(t, "the news", func() bool {
		p.secrets.mu.Lock()
		defer p.secrets.mu.Unlock()
		return len(p.secrets.gone) == 0 && p.secrets.shown(p.secrets.wrote)
	})
}

// link counts requests, and can be broken.
type link struct {
	next http.RoundTripper

	mu       sync.Mutex
	broken   bool
	requests []string
}

func (l *link) RoundTrip(r *http.Request) (*http.Response, error) {
	l.mu.Lock()
	broken := l.broken
	if r.URL.Query().Get("watch") != "true" {
		l.requests = append(l.requests, r.Method+" "+r.URL.Path)
	}
	l.mu.Unlock()
	if broken {
		return nil, errors.New("the link is broken")
	}
	return l.next.RoundTrip(r)
}

func (l *link) cut(broken bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.broken = broken
}

// count is the number of requests since the last call, of those whose method and path have a part.
func (l *link) count(part string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	for _, r := range l.requests {
		if strings.Contains(r, part) {
			n++
		}
	}
	l.requests = nil
	return n
}

func store(t testing.TB, s *process, pairs ...string) {
	t.Helper()
	for i := 0; i < len(pairs); i += 2 {
		if err := s.Store(t.Context(), pairs[i], []byte(pairs[i+1])); err != nil {
			t.Fatal(err)
		}
	}
}

// has says what a key has: the empty string is an absent one.
func has(t testing.TB, s *process, key string) string {
	t.Helper()
	value, err := s.Load(t.Context(), key)
	if isAbsent(err) {
		return ""
	}
	if err != nil {
		t.Fatal(err)
	}
	return string(value)
}
