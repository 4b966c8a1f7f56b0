package storage

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/scheme"
)

type object interface {
	runtime.Object
	metav1.Object
}

// apiServer stores Secrets and Leases as an API server does, with versions, conflicts, preconditions, lists and
// watches.
type apiServer struct {
	http *httptest.Server

	mu      sync.Mutex
	version int
	objects map[string]object
	history []event
	oldest  int
	changed chan struct{}
	// held delays watch events until it is closed.
	held chan struct{}
	// lost is called for each write, and reports whether the client gets no response. Nil means that no response is
	// lost.
	lost func(r *http.Request) bool
	// forbidden reports whether a request is rejected with 403. Nil allows all requests.
	forbidden func(r *http.Request) bool
}

type event struct {
	version  int
	resource string
	change   watch.EventType
	object   object
}

func startAPIServer(t testing.TB) *apiServer {
	s := &apiServer{version: 1, objects: map[string]object{}, changed: make(chan struct{}),
		lost: func(*http.Request) bool { return false }}
	s.http = httptest.NewServer(s)
	t.Cleanup(func() {
		s.http.CloseClientConnections()
		s.http.Close()
	})
	return s
}

// hold delays all watch events until release is called.
func (s *apiServer) hold() (release func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	held := make(chan struct{})
	s.held = held
	return sync.OnceFunc(func() {
		s.mu.Lock()
		s.held = nil
		s.mu.Unlock()
		close(held)
	})
}

// lose drops the responses to the writes for which which returns true.
func (s *apiServer) lose(which func(*http.Request) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lost = which
}

// forbid rejects the requests for which which returns true with 403. A nil function allows all requests.
func (s *apiServer) forbid(which func(*http.Request) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forbidden = which
}

// cut ends all watches and deletes the history, so that clients cannot continue their watches and have to list again.
func (s *apiServer) cut() {
	s.mu.Lock()
	s.version++
	s.history, s.oldest = nil, s.version
	s.mu.Unlock()
	s.http.CloseClientConnections()
}

// request is a request with its parsed path and query.
type request struct {
	w                         http.ResponseWriter
	r                         *http.Request
	gv                        schema.GroupVersion
	resource, namespace, name string
	selector                  labels.Selector
	info                      runtime.SerializerInfo
	fresh                     func() object
	freshList                 func() runtime.Object
}

func parse(w http.ResponseWriter, r *http.Request) *request {
	q := &request{w: w, r: r}
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	at := slices.Index(parts, "namespaces")
	q.namespace, q.resource = parts[at+1], parts[at+2]
	if len(parts) > at+3 {
		q.name = parts[at+3]
	}
	q.selector, _ = labels.Parse(r.URL.Query().Get("labelSelector"))
	accept, _, _ := strings.Cut(r.Header.Get("Accept"), ",")
	accept, _, _ = strings.Cut(accept, ";")
	q.info, _ = runtime.SerializerInfoForMediaType(scheme.Codecs.SupportedMediaTypes(), accept)
	if q.info.Serializer == nil {
		q.info, _ = runtime.SerializerInfoForMediaType(scheme.Codecs.SupportedMediaTypes(), "application/json")
	}
	w.Header().Set("Content-Type", q.info.MediaType)
	q.gv, q.fresh, q.freshList = corev1.SchemeGroupVersion, func() object { return &corev1.Secret{} },
		func() runtime.Object { return &corev1.SecretList{} }
	if q.resource == "leases" {
		q.gv, q.fresh, q.freshList = coordinationv1.SchemeGroupVersion,
			func() object { return &coordinationv1.Lease{} },
			func() runtime.Object { return &coordinationv1.LeaseList{} }
	}
	return q
}

func (s *apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	q := parse(w, r)
	query := r.URL.Query()
	s.mu.Lock()
	forbidden := s.forbidden != nil && s.forbidden(r)
	s.mu.Unlock()
	switch {
	case forbidden:
		q.answer(nil, apierrors.NewForbidden(q.group(), q.name, nil))
	case r.Method == http.MethodGet && query.Get("watch") == "true":
		s.watch(q)
	case r.Method == http.MethodGet && q.name == "":
		s.list(q)
	default:
		body, _ := io.ReadAll(r.Body)
		s.mu.Lock()
		answer, err := s.one(q, body)
		lost := r.Method != http.MethodGet && s.lost(r)
		s.mu.Unlock()
		if lost {
			panic(http.ErrAbortHandler)
		}
		q.answer(answer, err)
	}
}

func (q *request) answer(o runtime.Object, err error) {
	if err != nil {
		status := err.(apierrors.APIStatus).Status()
		q.w.WriteHeader(int(status.Code))
		o = &status
	}
	_, _ = q.w.Write(q.encode(o))
}

func (q *request) encode(o runtime.Object) []byte {
	var b bytes.Buffer
	if err := scheme.Codecs.EncoderForVersion(q.info.Serializer, q.gv).Encode(o.DeepCopyObject(), &b); err != nil {
		panic(err)
	}
	return b.Bytes()
}

func (q *request) group() schema.GroupResource {
	return schema.GroupResource{Group: q.gv.Group, Resource: q.resource}
}

func (q *request) id(name string) string { return q.resource + "/" + q.namespace + "/" + name }

// one handles a request for a single object.
func (s *apiServer) one(q *request, body []byte) (runtime.Object, error) {
	known := s.objects[q.id(q.name)]
	if known == nil && q.name != "" {
		return nil, apierrors.NewNotFound(q.group(), q.name)
	}
	switch q.r.Method {
	case http.MethodPost:
		return s.create(q, q.decode(body))
	case http.MethodPut:
		return s.update(q, known, q.decode(body))
	case http.MethodDelete:
		return s.delete(q, known, body)
	}
	return known, nil
}

func (q *request) decode(body []byte) object {
	o, _, err := scheme.Codecs.UniversalDeserializer().Decode(body, nil, nil)
	if err != nil {
		panic(err)
	}
	return o.(object)
}

func (s *apiServer) create(q *request, o object) (runtime.Object, error) {
	if s.objects[q.id(o.GetName())] != nil {
		return nil, apierrors.NewAlreadyExists(q.group(), o.GetName())
	}
	o.SetNamespace(q.namespace)
	o.SetUID(types.UID("uid-" + strconv.Itoa(s.version+1)))
	o.SetCreationTimestamp(metav1.Now())
	return s.put(q, o, watch.Added)
}

func (s *apiServer) update(q *request, known, o object) (runtime.Object, error) {
	if v := o.GetResourceVersion(); v != "" && v != known.GetResourceVersion() || o.GetUID() != "" &&
		o.GetUID() != known.GetUID() {
		return nil, apierrors.NewConflict(q.group(), o.GetName(), nil)
	}
	o.SetUID(known.GetUID())
	return s.put(q, o, watch.Modified)
}

func (s *apiServer) put(q *request, o object, change watch.EventType) (runtime.Object, error) {
	if err := valid(o); err != "" {
		return nil, apierrors.NewBadRequest(err)
	}
	s.version++
	o.SetResourceVersion(strconv.Itoa(s.version))
	s.objects[q.id(o.GetName())] = o
	s.announce(event{s.version, q.resource, change, o})
	return o, nil
}

// valid validates an object as an API server does, as far as these tests need it. It returns an error message, or ""
// for a valid object.
func valid(o object) string {
	if errs := validation.IsDNS1123Subdomain(o.GetName()); len(errs) > 0 {
		return errs[0]
	}
	for name := range o.GetAnnotations() {
		if errs := validation.IsQualifiedName(strings.ToLower(name)); len(errs) > 0 {
			return errs[0]
		}
	}
	secret, ok := o.(*corev1.Secret)
	if !ok {
		return ""
	}
	size := 0
	for name, data := range secret.Data {
		size += len(data)
		if errs := validation.IsConfigMapKey(name); len(errs) > 0 {
			return errs[0]
		}
	}
	_, crt := secret.Data["tls.crt"]
	_, key := secret.Data["tls.key"]
	if size > corev1.MaxSecretSize || secret.Type == corev1.SecretTypeTLS && (!crt || !key) {
		return "too large, or a field is missing"
	}
	return ""
}

func (s *apiServer) delete(q *request, known object, body []byte) (runtime.Object, error) {
	var options metav1.DeleteOptions
	if len(body) > 0 && body[0] == '{' {
		if err := json.Unmarshal(body, &options); err != nil {
			panic(err)
		}
	} else if decoded, _, err := scheme.Codecs.UniversalDeserializer().Decode(body, nil, &options); err == nil {
		options = *decoded.(*metav1.DeleteOptions)
	} else if len(body) > 0 {
		panic(err)
	}
	if p := options.Preconditions; p != nil &&
		(*p.UID != known.GetUID() || *p.ResourceVersion != known.GetResourceVersion()) {
		return nil, apierrors.NewConflict(q.group(), q.name, nil)
	}
	s.version++
	gone := known.DeepCopyObject().(object)
	gone.SetResourceVersion(strconv.Itoa(s.version))
	delete(s.objects, q.id(q.name))
	s.announce(event{s.version, q.resource, watch.Deleted, gone})
	return &metav1.Status{Status: metav1.StatusSuccess}, nil
}

func (s *apiServer) announce(e event) {
	s.history = append(s.history, e)
	close(s.changed)
	s.changed = make(chan struct{})
}

func (s *apiServer) selected(q *request) (list []runtime.Object, version int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, o := range s.objects {
		if strings.HasPrefix(id, q.id("")) && q.selector.Matches(labels.Set(o.GetLabels())) {
			list = append(list, o)
		}
	}
	return list, s.version
}

func (s *apiServer) list(q *request) {
	objects, version := s.selected(q)
	list := q.freshList()
	if err := meta.SetList(list, objects); err != nil {
		panic(err)
	}
	list.(metav1.ListInterface).SetResourceVersion(strconv.Itoa(version))
	q.answer(list, nil)
}

func (s *apiServer) watch(q *request) {
	query := q.r.URL.Query()
	from, _ := strconv.Atoi(query.Get("resourceVersion"))
	q.w.Header().Set("Content-Type", q.info.MediaType+";stream=watch")
	if query.Get("sendInitialEvents") == "true" {
		objects, version := s.selected(q)
		for _, o := range objects {
			q.send(watch.Added, o)
		}
		end := q.fresh()
		end.SetResourceVersion(strconv.Itoa(version))
		end.SetAnnotations(map[string]string{metav1.InitialEventsAnnotationKey: "true"})
		q.send(watch.Bookmark, end)
		from = version
	}
	q.w.(http.Flusher).Flush()
	s.follow(q, from)
}

func (q *request) send(change watch.EventType, o runtime.Object) {
	raw := &metav1.WatchEvent{Type: string(change), Object: runtime.RawExtension{Raw: q.encode(o)}}
	frames := q.info.StreamSerializer.Framer.NewFrameWriter(q.w)
	_ = scheme.Codecs.EncoderForVersion(q.info.StreamSerializer.Serializer, q.gv).Encode(raw, frames)
}

// selects reports whether a watch request covers an event: the resource, the namespace and the labels match.
func (q *request) selects(e event) bool {
	here := e.resource == q.resource && e.object.GetNamespace() == q.namespace
	return here && q.selector.Matches(labels.Set(e.object.GetLabels()))
}

func (s *apiServer) follow(q *request, from int) {
	for {
		s.mu.Lock()
		changed, held, expired := s.changed, s.held, from < s.oldest
		events := slices.Clone(s.history)
		s.mu.Unlock()
		if held != nil {
			select {
			case <-held:
				continue
			case <-q.r.Context().Done():
				return
			}
		}
		if expired {
			status := apierrors.NewResourceExpired("too old").Status()
			q.send(watch.Error, &status)
			return
		}
		for _, e := range events {
			if e.version > from && q.selects(e) {
				q.send(e.change, e.object)
			}
			from = max(from, e.version)
		}
		q.w.(http.Flusher).Flush()
		select {
		case <-changed:
		case <-q.r.Context().Done():
			return
		}
	}
}
