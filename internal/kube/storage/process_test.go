package storage

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

	"github.com/k8singress/k8singress/internal/tests/fixture"
)

// realAPI is an environment variable with the path of a kubeconfig. If it is set, tests use the API server of that
// kubeconfig where possible.
const realAPI = "K8SINGRESS_STORAGE_KUBECONFIG"

// limit is how long a test waits for a condition.
const limit = fixture.Patience

func TestMain(m *testing.M) {
	if os.Getenv(holdVariable) != "" {
		holdLock()
		return
	}
	if os.Getenv(realAPI) != "" {
		// Connections to the real API server stay open for the next client, so goroutines are not checked.
		os.Exit(m.Run())
	}
	goleak.VerifyTestMain(m)
}

// world is a namespace of an API server.
type world struct {
	config    *rest.Config
	namespace string
	// from is the namespace that storages copy, if it is not empty.
	from  string
	admin kubernetes.Interface
	// api is nil if a real API server is used.
	api *apiServer
}

// newWorld returns a new namespace, on the real API server if realAPI is set, and otherwise on a simulated API server.
func newWorld(t testing.TB) *world {
	t.Helper()
	path := os.Getenv(realAPI)
	if path == "" {
		return newSimulated(t)
	}
	w := &world{config: mustConfig(path)}
	w.connect(t)
	w.namespace = w.makeNamespace(t, metav1.ObjectMeta{GenerateName: "storage-"})
	return w
}

// makeNamespace creates a namespace and returns its name. The namespace is deleted at the end of the test.
func (w *world) makeNamespace(t testing.TB, name metav1.ObjectMeta) string {
	t.Helper()
	object := &corev1.Namespace{ObjectMeta: name}
	made, err := w.admin.CoreV1().Namespaces().Create(t.Context(), object, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return made.Name
}

// newSimulated returns a new namespace on a simulated API server. It is for tests in which the API server has to
// misbehave.
func newSimulated(t testing.TB) *world {
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

// process simulates a process: it has a storage with its own link to the API server.
type process struct {
	*Storage
	link *link
	log  *observer.ObservedLogs
	stop func()
}

// short holds short times of locks, which keep tests fast.
var short = Times{Duration: 2 * time.Second, Renew: 250 * time.Millisecond, Poll: 200 * time.Millisecond}

func (w *world) start(t testing.TB) *process {
	t.Helper()
	return w.startWith(t, &link{})
}

// startWith starts a process that uses a link, which may already be broken.
func (w *world) startWith(t testing.TB, l *link) *process {
	t.Helper()
	core, log := observer.New(zap.InfoLevel)
	p := &process{link: l, log: log}
	config := rest.CopyConfig(w.config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		p.link.next = next
		return p.link
	})
	s, err := newStorage(Options{Namespace: w.namespace, CopyFrom: w.from, Times: short}, config, zap.New(core))
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

// awaitOwnWrites waits until the watch has reported all writes and deletions of the process.
func (p *process) awaitOwnWrites(t testing.TB) {
	t.Helper()
	fixture.Holds(t, "the news", func() bool {
		p.secrets.mu.Lock()
		defer p.secrets.mu.Unlock()
		return p.secrets.gone.Len() == 0 && p.secrets.shown(p.secrets.wrote)
	})
}

// link is the connection of a process to the API server. It counts requests, and a test can break it.
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

// count returns the number of requests since the last call whose method and path contain part.
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

// has returns the value of a key, or "" if the key is absent.
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
