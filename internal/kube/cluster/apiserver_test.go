package cluster

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/k8singress/k8singress/internal/model/kinds"
)

// apiServer serves list and watch requests over HTTP in JSON and protobuf, as an API server does.
type apiServer struct {
	http *httptest.Server

	mu       sync.Mutex
	version  int
	objects  map[string]kinds.Object
	history  []event
	oldest   int
	changed  chan struct{}
	held     map[string]chan struct{}
	refused  map[string]bool
	requests []*http.Request
}

type event struct {
	version int
	kind    string
	change  watch.EventType
	object  kinds.Object
}

func newAPIServer(t testing.TB) *apiServer {
	s := &apiServer{
		objects: map[string]kinds.Object{}, changed: make(chan struct{}),
		held: map[string]chan struct{}{}, refused: map[string]bool{},
	}
	s.http = httptest.NewUnstartedServer(s)
	t.Cleanup(func() {
		s.http.CloseClientConnections()
		s.http.Close()
	})
	return s
}

func startAPIServer(t testing.TB) *apiServer {
	s := newAPIServer(t)
	s.http.Start()
	return s
}

// kubeconfig writes a kubeconfig file for the server.
func (s *apiServer) kubeconfig(t testing.TB) string {
	return writeKubeconfig(t, s.http.Listener.Addr().String())
}

func writeKubeconfig(t testing.TB, address string) string {
	path := filepath.Join(t.TempDir(), "kubeconfig")
	text := fmt.Sprintf(`apiVersion: v1
kind: Config
current-context: test
contexts: [{name: test, context: {cluster: test, user: test, namespace: ingress}}]
clusters: [{name: test, cluster: {server: "http://%s"}}]
users: [{name: test, user: {token: secret}}]
`, address)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func id(kind string, o kinds.Object) string {
	return kind + "/" + o.GetNamespace() + "/" + o.GetName()
}

func (s *apiServer) set(list ...kinds.Object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, o := range list {
		s.version++
		o = o.DeepCopyObject().(kinds.Object)
		kind := kindOf(o)
		change := watch.Added
		if _, ok := s.objects[id(kind, o)]; ok {
			change = watch.Modified
		}
		o.SetUID(types.UID(id(kind, o)))
		o.SetResourceVersion(strconv.Itoa(s.version))
		s.objects[id(kind, o)] = o
		s.history = append(s.history, event{s.version, kind, change, o})
	}
	s.announce()
}

func (s *apiServer) remove(o kinds.Object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version++
	kind := kindOf(o)
	gone := s.objects[id(kind, o)].DeepCopyObject().(kinds.Object)
	gone.SetResourceVersion(strconv.Itoa(s.version))
	delete(s.objects, id(kind, o))
	s.history = append(s.history, event{s.version, kind, watch.Deleted, gone})
	s.announce()
}

// vanish removes an object without a watch event: it also deletes the history and closes all watches.
func (s *apiServer) vanish(o kinds.Object) {
	s.remove(o)
	s.mu.Lock()
	s.history, s.oldest = nil, s.version
	s.mu.Unlock()
	s.http.CloseClientConnections()
}

func (s *apiServer) announce() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// hold delays the responses to all requests for a resource until the returned function is called.
func (s *apiServer) hold(resource string) (release func()) {
	gate := make(chan struct{})
	s.mu.Lock()
	s.held[resource] = gate
	s.mu.Unlock()
	return sync.OnceFunc(func() { close(gate) })
}

func (s *apiServer) refuseClasses(refuse bool) { s.refuse("ingressclasses", refuse) }

func (s *apiServer) refuse(resource string, refuse bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refused[resource] = refuse
}

func (s *apiServer) seen(match func(*http.Request) bool) []*http.Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(func(yield func(*http.Request) bool) {
		for _, r := range s.requests {
			if match(r) && !yield(r) {
				return
			}
		}
	})
}

func kindOf(o runtime.Object) string {
	gvks, _, err := scheme.Scheme.ObjectKinds(o)
	if err != nil {
		panic(err)
	}
	return gvks[0].Kind
}

func (s *apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	resource, namespace := parts[len(parts)-1], ""
	if i := slices.Index(parts, "namespaces"); i >= 0 && i+1 < len(parts) {
		namespace = parts[i+1]
	}
	s.mu.Lock()
	s.requests = append(s.requests, r)
	gate, refused := s.held[resource], s.refused[resource]
	s.mu.Unlock()
	if gate != nil {
		select {
		case <-gate:
		case <-r.Context().Done():
			return
		}
	}
	i := slices.IndexFunc(kinds.All, func(k kinds.Kind) bool { return k.Resource == resource })
	selector, err := fields.ParseSelector(r.URL.Query().Get("fieldSelector"))
	if i < 0 || err != nil {
		http.Error(w, "bad request", http.StatusBadRequest)
		return
	}
	a := &answer{kind: kinds.All[i], namespace: namespace, selector: selector, w: w, r: r}
	a.negotiate()
	switch {
	case refused:
		a.status(apierrors.NewForbidden(a.kind.GroupVersion.WithResource(resource).GroupResource(), "", nil).Status())
	case r.URL.Query().Get("watch") == "true":
		s.watch(a)
	default:
		s.list(a)
	}
}

// answer is one response, in the encoding that the client requested.
type answer struct {
	kind      kinds.Kind
	namespace string
	selector  fields.Selector
	w         http.ResponseWriter
	r         *http.Request
	info      runtime.SerializerInfo
}

func (a *answer) negotiate() {
	accept, _, _ := strings.Cut(a.r.Header.Get("Accept"), ",")
	accept, _, _ = strings.Cut(accept, ";")
	a.info, _ = runtime.SerializerInfoForMediaType(scheme.Codecs.SupportedMediaTypes(), accept)
	a.w.Header().Set("Content-Type", a.info.MediaType)
}

func (a *answer) wants(o kinds.Object) bool {
	set := fields.Set{"metadata.name": o.GetName(), "metadata.namespace": o.GetNamespace()}
	if secret, ok := o.(*corev1.Secret); ok {
		set["type"] = string(secret.Type)
	}
	return (a.namespace == "" || a.namespace == o.GetNamespace()) && a.selector.Matches(set)
}

func (a *answer) encode(o runtime.Object) []byte {
	var b bytes.Buffer
	if err := scheme.Codecs.EncoderForVersion(a.info.Serializer, a.kind.GroupVersion).Encode(o, &b); err != nil {
		panic(err)
	}
	return b.Bytes()
}

func (a *answer) status(status metav1.Status) {
	a.w.WriteHeader(int(status.Code))
	_, _ = a.w.Write(a.encode(&status))
}

func (s *apiServer) selected(a *answer) (list []runtime.Object, version int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, o := range s.objects {
		if strings.HasPrefix(name, a.kind.Name+"/") && a.wants(o) {
			list = append(list, o)
		}
	}
	return list, s.version
}

func (s *apiServer) list(a *answer) {
	objects, version := s.selected(a)
	list := a.kind.NewList()
	if err := meta.SetList(list, objects); err != nil {
		panic(err)
	}
	list.(metav1.ListInterface).SetResourceVersion(strconv.Itoa(version))
	_, _ = a.w.Write(a.encode(list))
}

func (s *apiServer) watch(a *answer) {
	query := a.r.URL.Query()
	from, _ := strconv.Atoi(query.Get("resourceVersion"))
	a.w.Header().Set("Content-Type", a.info.MediaType+";stream=watch")
	if query.Get("sendInitialEvents") == "true" {
		objects, version := s.selected(a)
		for _, o := range objects {
			a.send(watch.Added, o)
		}
		a.bookmark(version)
		from = version
	}
	a.w.(http.Flusher).Flush()
	s.follow(a, from)
}

func (a *answer) bookmark(version int) {
	o := a.kind.New()
	o.SetResourceVersion(strconv.Itoa(version))
	o.SetAnnotations(map[string]string{metav1.InitialEventsAnnotationKey: "true"})
	a.send(watch.Bookmark, o)
}

func (a *answer) send(change watch.EventType, o runtime.Object) {
	raw := &metav1.WatchEvent{Type: string(change), Object: runtime.RawExtension{Raw: a.encode(o)}}
	frames := a.info.StreamSerializer.Framer.NewFrameWriter(a.w)
	encoder := scheme.Codecs.EncoderForVersion(a.info.StreamSerializer.Serializer, a.kind.GroupVersion)
	_ = encoder.Encode(raw, frames)
}

func (s *apiServer) follow(a *answer, from int) {
	for {
		s.mu.Lock()
		changed, expired := s.changed, from < s.oldest
		events := slices.Clone(s.history)
		s.mu.Unlock()
		if expired {
			status := apierrors.NewResourceExpired("too old").Status()
			a.send(watch.Error, &status)
			return
		}
		for _, e := range events {
			if e.version > from && e.kind == a.kind.Name && a.wants(e.object) {
				a.send(e.change, e.object)
			}
			from = max(from, e.version)
		}
		a.w.(http.Flusher).Flush()
		select {
		case <-changed:
		case <-a.r.Context().Done():
			return
		}
	}
}
