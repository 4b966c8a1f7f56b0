package webhook_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest"
	"go.uber.org/zap/zaptest/observer"
	admissionv1 "k8s.io/api/admission/v1"
	networkingv1 "k8s.io/api/networking/v1"

	"github.com/k8singress/k8singress/internal/control/webhook"
	"github.com/k8singress/k8singress/internal/model/settings"
	"github.com/k8singress/k8singress/internal/model/snapshot"
	"github.com/k8singress/k8singress/internal/tests/fixture"
	"github.com/k8singress/k8singress/internal/translate"
)

// running is a webhook with a certificate, and a client that trusts the certificate.
type running struct {
	testing.TB
	*http.Client
	handler   *webhook.Handler
	server    *webhook.Server
	address   string
	authority *fixture.Identity
	// leaving is the result of the function that the handler calls.
	leaving bool
	// warnings has the warnings and errors in the log of the handler.
	warnings *observer.ObservedLogs
}

// source is a webhook.Source that returns the result of the function.
type source func() (*tls.Certificate, error)

func (s source) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) { return s() }

// start starts a webhook that listens until the test ends.
func start(t testing.TB) *running {
	r := &running{TB: t, address: fixture.Address(t), authority: fixture.Authority(t, nil, "authority")}
	core, warnings := observer.New(zap.WarnLevel)
	r.warnings = warnings
	r.handler = webhook.NewHandler(func() bool { return r.leaving }, zaptest.NewLogger(t,
		zaptest.WrapOptions(zap.WrapCore(func(c zapcore.Core) zapcore.Core { return zapcore.NewTee(c, core) }))))
	r.server = webhook.NewServer(r.handler, zaptest.NewLogger(t))
	roots := x509.NewCertPool()
	roots.AddCert(r.authority.Leaf)
	transport := &http.Transport{MaxIdleConnsPerHost: 16,
		TLSClientConfig: &tls.Config{RootCAs: roots, ServerName: "webhook.example"}}
	t.Cleanup(transport.CloseIdleConnections)
	r.Client = &http.Client{Transport: transport, Timeout: 20 * time.Second}
	leaf := r.leaf("webhook.example").Pair()
	r.server.Configure(r.address, source(func() (*tls.Certificate, error) { return &leaf, nil }))
	r.handler.SetView(view())
	ctx, cancel := context.WithCancel(t.Context())
	var group sync.WaitGroup
	group.Go(func() { r.server.Run(ctx) })
	t.Cleanup(func() {
		cancel()
		group.Wait()
	})
	r.listens()
	return r
}

func (r *running) leaf(name string) *fixture.Identity {
	return fixture.Identify(r, r.authority, &x509.Certificate{DNSNames: []string{name}})
}

func (r *running) listens() {
	r.Helper()
	fixture.Eventually(r, "the webhook listens", func() error {
		c, err := net.Dial("tcp", r.address)
		if err != nil {
			return err
		}
		return c.Close()
	})
}

// view returns a view of a cluster that only has the class nginx.
func view() *translate.View {
	class := &networkingv1.IngressClass{}
	class.Name, class.Spec.Controller = "nginx", settings.DefaultControllerName
	store := snapshot.NewStore()
	store.Set(class)
	o := translate.Options{Views: true}
	o.Ingress.ControllerName, o.Ingress.ClassName = settings.DefaultControllerName, "nginx"
	s, t := store.Take(), translate.New()
	t.Translate(s, o)
	return t.View(s)
}

// review returns an AdmissionReview that creates an Ingress with the given annotations, which are JSON.
func review(annotations string) string {
	return `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u-1",` +
		`"kind":{"group":"networking.k8s.io","version":"v1","kind":"Ingress"},"operation":"CREATE",` +
		`"namespace":"shop","name":"web","object":{"apiVersion":"networking.k8s.io/v1","kind":"Ingress",` +
		`"metadata":{"namespace":"shop","name":"web","annotations":` + annotations + `},` +
		`"spec":{"ingressClassName":"nginx","rules":[{"host":"a.example","http":{"paths":[{"path":"/",` +
		`"pathType":"Prefix","backend":{"service":{"name":"web","port":{"number":80}}}}]}}]}}}}`
}

const path = "/networking/v1/ingresses"

// post sends a review and returns the status and the body of the response.
func (r *running) post(path string, body io.Reader) (int, []byte) {
	r.Helper()
	response, err := r.Post("https://"+r.address+path, "application/json", body)
	if err != nil {
		r.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		r.Fatal(err)
	}
	return response.StatusCode, text
}

// answer sends a review that must get a decision.
func (r *running) answer(body string) *admissionv1.AdmissionResponse {
	r.Helper()
	status, text := r.post(path, strings.NewReader(body))
	var got admissionv1.AdmissionReview
	if err := json.Unmarshal(text, &got); status != http.StatusOK || err != nil || got.Response == nil ||
		got.APIVersion != "admission.k8s.io/v1" || got.Kind != "AdmissionReview" || got.Response.UID != "u-1" {
		r.Fatalf("%d: %s", status, text)
	}
	return got.Response
}

func TestAnswers(t *testing.T) {
	r := start(t)
	if a := r.answer(review("{}")); !a.Allowed || len(a.Warnings) != 1 ||
		!strings.Contains(a.Warnings[0], "the Service shop/web does not exist") {
		t.Errorf("allowed: %+v", a)
	}
	a := r.answer(review(`{"nginx.ingress.kubernetes.io/limit-rps":"many"}`))
	if a.Allowed || a.Result.Code != 400 || !strings.Contains(a.Result.Message, `"many" is not a number`) {
		t.Errorf("refused: %+v", a)
	}
	deletion := strings.Replace(review("null"), "CREATE", "DELETE", 1)
	deletion = deletion[:strings.Index(deletion, `"object"`)] + `"object":null}}`
	if a := r.answer(deletion); !a.Allowed {
		t.Errorf("a deletion: %+v", a)
	}
	if c := r.handler.Counts(); c.Allowed != 2 || c.Refused != 1 || c.Failed != 0 || c.Last.Total == 0 {
		t.Errorf("the counts are %+v", c)
	}
}

// TestBadInput checks the responses to requests that no API server sends, or that are attacks.
func TestBadInput(t *testing.T) {
	r := start(t)
	good := review("{}")
	with := func(old, replacement string) string { return strings.Replace(good, old, replacement, 1) }
	const onlyReviews = "accepts only an AdmissionReview"
	for name, c := range map[string]struct {
		path, body string
		status     int
		text       string
	}{
		"another path":   {"/", good, 404, path},
		"empty":          {path, "", 400, "not JSON"},
		"half":           {path, good[:len(good)/2], 400, "not JSON"},
		"a list":         {path, "[]", 400, onlyReviews},
		"null":           {path, "null", 400, onlyReviews},
		"v1beta1":        {path, with("k8s.io/v1", "k8s.io/v1beta1"), 400, "set admissionReviewVersions to [v1]"},
		"another object": {path, with(`"AdmissionReview"`, `"Ingress"`), 400, onlyReviews},
		"another kind":   {path, with(`"kind":"Ingress"}`, `"kind":"Pod"}`), 400, `is about a "Pod"`},
		"an old version": {path, with(`"version":"v1"`, `"version":"v1beta1"`), 400, "matchPolicy"},
		"no request":     {path, `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"}`, 400, "no request"},
		"no uid":         {path, with("u-1", ""), 400, "uid"},
		"no object":      {path, with(`"object"`, `"other"`), 400, "no object"},
		"wrong type": {path, with(`"host":"a.example"`, `"host":7`), 400,
			"host has a value of a wrong type, number"},
		"an annotation":  {path, review(`{"a":7}`), 400, "metadata.annotations"},
		"the core group": {path, with(`"group":"networking.k8s.io"`, `"group":""`), 400, `"Ingress" of "v1", but`},
		"nested 10,000":  {path, with("80", strings.Repeat("[", 10_000)), 400, "nested deeper"},
		"many values":    {path, with("80", "["+strings.Repeat("{},", 1<<20)+"{}]"), 413, "more than 300000 values"},
		"annotations": {
			path, review(`{"a":"` + strings.Repeat("x", 256<<10) + `"}`), 400, "more than 262144 bytes",
		},
		"just too large": {path, strings.Repeat(" ", 9<<20+1), 413, "larger than 9 MiB"},
		"HTML in names":  {path, strings.ReplaceAll(good, "Ingress", "<script>"), 400, "<script>"},
	} {
		t.Run(name, func(t *testing.T) {
			if status, text := r.post(c.path, strings.NewReader(c.body)); status != c.status ||
				!strings.Contains(string(text), c.text) || len(text) > 1024 {
				t.Errorf("%d: %.2000s", status, text)
			}
		})
	}
	response, err := r.Get("https://" + r.address + path)
	if err != nil {
		t.Fatal(err)
	}
	if response.Body.Close(); response.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("GET: %v", response)
	}
	if a := r.answer(good); !a.Allowed {
		t.Errorf("afterwards: %+v", a)
	}
}

// TestLargeBodies sends bodies of 100 MB, with and without their length (CVE-2026-24514).
func TestLargeBodies(t *testing.T) {
	r := start(t)
	body := func() io.Reader { return io.LimitReader(blank{}, 100<<20) }
	for name, reader := range map[string]io.Reader{"with its length": &sized{body(), 100 << 20}, "chunked": body()} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://"+r.address+path, reader)
		if err != nil {
			t.Fatal(err)
		}
		if s, ok := reader.(*sized); ok {
			request.ContentLength = s.size
		}
		response, err := r.Do(request)
		if err != nil {
			// The server has closed the connection while the client was still sending.
			t.Logf("%s: %v", name, err)
			continue
		}
		_ = response.Body.Close()
		// On a slow machine, the first 9 MiB of a body without a length take longer than a review may.
		late := request.ContentLength <= 0 && response.StatusCode == http.StatusServiceUnavailable
		if response.StatusCode != http.StatusRequestEntityTooLarge && !late {
			t.Errorf("%s: the status is %d", name, response.StatusCode)
		}
	}
	r.answer(review("{}"))
	// A body within the limit is read completely, even if its size is unknown.
	status, text := r.post(path, chunked(review("{}")+strings.Repeat(" ", 2<<20)))
	if status != http.StatusOK {
		t.Errorf("a large body without its length: %d: %s", status, text)
	}
}

// chunked returns a body whose length the client does not know.
func chunked(text string) io.Reader { return io.MultiReader(strings.NewReader(text)) }

type sized struct {
	io.Reader
	size int64
}

type blank struct{}

func (blank) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	return len(p), nil
}

// occupied starts as many reviews as there may be at a time. Their bodies are incomplete: the missing part is returned,
// with the writers that take it, and a channel that receives the status of each review.
func (r *running) occupied() (rest string, writers []*io.PipeWriter, statuses chan int) {
	r.Helper()
	body := review("{}")
	// On a slow machine the first reviews may end before the last ones begin. The connections are open at the next try.
	fixture.Eventually(r, "429", func() error {
		writers, statuses = r.begin(10, body[:10], int64(len(body)))
		if status, _ := r.post(path, strings.NewReader(body)); status != http.StatusTooManyRequests {
			for _, w := range writers {
				_ = w.Close()
			}
			return fmt.Errorf("the status is %d", status)
		}
		return nil
	})
	return body[10:], writers, statuses
}

// begin starts n reviews, and sends the beginning of their bodies, which have the given size.
func (r *running) begin(n int, text string, size int64) (writers []*io.PipeWriter, statuses chan int) {
	statuses = make(chan int, n)
	for range n {
		reader, writer := io.Pipe()
		writers = append(writers, writer)
		request, err := http.NewRequest(http.MethodPost, "https://"+r.address+path, reader)
		if err != nil {
			r.Fatal(err)
		}
		request.ContentLength = size
		go func() {
			response, err := r.Do(request)
			if err != nil {
				statuses <- 0
				return
			}
			_ = response.Body.Close()
			statuses <- response.StatusCode
		}()
	}
	for _, w := range writers {
		if _, err := io.WriteString(w, text); err != nil {
			// The review has ended before its body was sent, so the next request does not get 429.
			continue
		}
	}
	return writers, statuses
}

// TestTooMany checks that the eleventh review at a time gets 429, and that slow ones end after a second. A refused
// request whose body does not arrive does not occupy its connection for longer either.
func TestTooMany(t *testing.T) {
	r := start(t)
	refused, err := r.dial("/", 1000)
	if err != nil {
		t.Fatal(err)
	}
	defer refused.Close()
	_, writers, statuses := r.occupied()
	for range writers {
		if status := fixture.Receive(t, "a status", statuses); status != http.StatusRequestTimeout {
			t.Errorf("the status of a slow review is %d", status)
		}
	}
	for _, w := range writers {
		_ = w.Close()
	}
	if err := refused.SetReadDeadline(time.Now().Add(fixture.Patience)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, refused); err != nil {
		t.Errorf("the connection of a refused request stays open: %v", err)
	}
	if n := r.count("no_answer"); n != 0 || r.count("invalid") < 10 || r.warnings.Len() > 0 {
		t.Errorf("bodies that do not arrive count as %v failures of the webhook: %v", n, r.warnings.All())
	}
	r.answer(review("{}"))
}

// TestTooManyLarge checks that large reviews take few places, so that others are answered meanwhile, even if the size
// of their bodies is unknown.
func TestTooManyLarge(t *testing.T) {
	r := start(t)
	large := review(`{"a":"` + strings.Repeat("x", 2<<20) + `"}`)
	fixture.Eventually(t, "429", func() error {
		writers, statuses := r.begin(2, large[:10], int64(len(large)))
		status, _ := r.post(path, strings.NewReader(large))
		r.answer(review("{}"))
		if status, text := r.post(path, chunked(review("{}"))); status != http.StatusOK {
			t.Errorf("a small review without its length: %d: %s", status, text)
		}
		for _, w := range writers {
			_ = w.CloseWithError(io.ErrUnexpectedEOF)
			fixture.Receive(t, "the end of a review", statuses)
		}
		if status != http.StatusTooManyRequests {
			return fmt.Errorf("the status is %d", status)
		}
		return nil
	})
}

// TestNotReady checks that there is no decision before the objects have been read, and that the log says so, once.
func TestNotReady(t *testing.T) {
	r := start(t)
	r.handler.SetView(nil)
	for range 3 {
		if status, text := r.post(path, strings.NewReader(review("{}"))); status != 503 {
			t.Errorf("%d: %s", status, text)
		}
	}
	const early = "the Ingresses have not been read yet"
	if all := r.warnings.All(); len(all) != 1 || all[0].ContextMap()["error"] != early {
		t.Errorf("the warnings are %v", all)
	}
	if n := r.count("no_answer"); n != 3 {
		t.Errorf("%v reviews got no answer", n)
	}
}

// count returns the number of reviews with a result.
func (r *running) count(result string) float64 {
	r.Helper()
	var m dto.Metric
	if err := r.handler.Collector().(*prometheus.CounterVec).WithLabelValues(result).Write(&m); err != nil {
		r.Fatal(err)
	}
	return m.GetCounter().GetValue()
}

// TestAddressChanges checks that the server moves to another address, and that reviews in progress are completed.
func TestAddressChanges(t *testing.T) {
	r := start(t)
	rest, writers, statuses := r.occupied()
	leaf := r.leaf("webhook.example").Pair()
	r.server.Configure(fixture.Address(t), source(func() (*tls.Certificate, error) { return &leaf, nil }))
	for _, w := range writers {
		_, _ = io.WriteString(w, rest)
		_ = w.Close()
	}
	for range writers {
		// On a slow machine, a review may take more than a second. But each gets an answer.
		if got := fixture.Receive(t, "a review in progress", statuses); got != http.StatusOK && got != 503 {
			t.Errorf("the status is %d", got)
		}
	}
	fixture.Eventually(t, "the old address is closed", func() error {
		if c, err := net.Dial("tcp", r.address); err == nil {
			return fmt.Errorf("it is open, %w", c.Close())
		}
		return nil
	})
}

// TestLeaving checks that the API server is asked to close its connections while the process shuts down.
func TestLeaving(t *testing.T) {
	r := start(t)
	r.leaving = true
	response, err := r.Post("https://"+r.address+path, "application/json", strings.NewReader(review("{}")))
	if err != nil {
		t.Fatal(err)
	}
	if response.Body.Close(); !response.Close || response.StatusCode != http.StatusOK {
		t.Errorf("%+v", response)
	}
}

// BenchmarkMemory sends 100 reviews of 9 MiB at once. It prints the largest growth of the heap.
func BenchmarkMemory(b *testing.B) {
	bodies := map[string]string{
		"one value": review(`{"a":"` + strings.Repeat("x", 9<<20-1000) + `"}`),
		"paths":     paths(),
		"rules":     rules(),
	}
	for name, body := range bodies {
		b.Run(name, func(b *testing.B) {
			r := start(b)
			for b.Loop() {
				b.ReportMetric(r.flood(body, 100), "MiB")
			}
		})
	}
}

// rules returns a review whose Ingress has as many hosts as the limits allow.
func rules() string {
	list := make([]string, 0, 70_000)
	for i := range 70_000 {
		list = append(list, fmt.Sprintf(`{"host":"h%d.example","http":{"paths":[]}}`, i))
	}
	return strings.Replace(review("{}"), `"rules":[`, `"rules":[`+strings.Join(list, ",")+",", 1)
}

// paths returns a review whose Ingress has as many paths as the limits allow.
func paths() string {
	const backend = `"backend":{"service":{"name":"web","port":{"number":80}}}`
	list := make([]string, 0, 36_000)
	for i := range 36_000 {
		list = append(list, fmt.Sprintf(`{"path":"/%d","pathType":"Prefix",%s}`, i, backend))
	}
	return strings.Replace(review("{}"), `"paths":[`, `"paths":[`+strings.Join(list, ",")+",", 1)
}

// flood sends n reviews at once, and returns the growth of the heap in MiB.
func (r *running) flood(body string, n int) float64 {
	runtime.GC()
	var before, now runtime.MemStats
	runtime.ReadMemStats(&before)
	var group sync.WaitGroup
	results := make([]int, n)
	for i := range n {
		group.Go(func() {
			response, err := r.Post("https://"+r.address+path, "application/json", strings.NewReader(body))
			if err == nil {
				results[i] = response.StatusCode
				_ = response.Body.Close()
			}
		})
	}
	done, most := make(chan struct{}), uint64(0)
	go func() {
		group.Wait()
		close(done)
	}()
	for running := true; running; {
		select {
		case <-done:
			running = false
		case <-time.After(5 * time.Millisecond):
			runtime.ReadMemStats(&now)
			most = max(most, now.HeapInuse)
		}
	}
	counts := map[int]int{}
	for _, status := range results {
		counts[status]++
	}
	r.Logf("the responses are %v", counts)
	return (float64(most) - float64(before.HeapInuse)) / (1 << 20)
}
