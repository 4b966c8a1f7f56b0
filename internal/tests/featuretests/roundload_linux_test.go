package featuretests

import (
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/k8singress/k8singress/internal/tests/fixture"
)

// Each response of the endpoints has this size, and slow responses take this time.
const (
	responseSize = 1000
	slowness     = 30 * time.Millisecond
)

// roundLoad sends requests in rounds. Prometheus, which reads the metrics at the address gate, sees the metrics between
// two rounds, and one more round each time. So all rates are exactly one round per second, however busy the machine is.
type roundLoad struct {
	*ingress
	health, gate string
	secure       *http.Client
	expires      time.Time
	// turn lets Prometheus read the metrics once. Then there is a value in done.
	turn, done chan struct{}
	// durations are the durations of the requests for main in the last rounds, in ascending order.
	durations [][]time.Duration
	// bytes are the bytes of the requests in one round, and ofMain are the ones for main.
	bytes, ofMain int
}

func newRoundLoad(t *testing.T) *roundLoad {
	t.Helper()
	body := strings.Repeat("x", responseSize)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/slow":
			<-time.After(slowness)
		case "/missing":
			w.WriteHeader(http.StatusNotFound)
		case "/failing":
			w.WriteHeader(http.StatusInternalServerError)
		}
		_, _ = io.WriteString(w, body)
	}))
	t.Cleanup(server.Close)
	ip, port, _ := strings.Cut(strings.TrimPrefix(server.URL, "http://"), ":")
	who := fixture.Certificate(t, "safe.example")
	secure := strings.Replace(rule("secure", "safe.example", "Prefix", "/", "web"), "  rules:",
		"  tls: [{hosts: [safe.example], secretName: own}]\n  rules:", 1)
	l := &roundLoad{health: fixture.Address(t), expires: who.Leaf.NotAfter,
		turn: make(chan struct{}), done: make(chan struct{})}
	l.ingress = start(t, class+service("web", port, ip)+service("next", port, ip)+secure+
		rule("main", "shop.example", "Prefix", "/", "web")+tlsSecret("own", who.PEM(), who.KeyPEM())+
		annotated("canary", "shop.example", "next", "canary", "true", "canary-by-header", "X-Canary"),
		"health "+l.health, "health_metrics", "nginx_metrics")
	l.secure = l.clientOf(t, secure1, anybody())
	gate := httptest.NewServer(http.HandlerFunc(l.scraped))
	t.Cleanup(gate.Close)
	l.gate = gate.Listener.Addr().String()
	return l
}

// scraped passes the metrics on when it is Prometheus's turn.
func (l *roundLoad) scraped(w http.ResponseWriter, r *http.Request) {
	select {
	case <-l.turn:
	case <-r.Context().Done():
		return
	}
	defer func() { l.done <- struct{}{} }()
	request, err := http.NewRequestWithContext(r.Context(), http.MethodGet, "http://"+l.health+"/metrics", nil)
	if err != nil {
		return
	}
	request.Header.Set("Accept", r.Header.Get("Accept"))
	response, err := l.admins.Do(request)
	if err != nil {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	defer response.Body.Close()
	w.Header().Set("Content-Type", response.Header.Get("Content-Type"))
	_, _ = io.Copy(w, response.Body)
}

// round waits until Prometheus has read the metrics, and sends one round: 20 requests with responses of 1000 bytes. Of
// these, 18 are for the Ingress main (16 GET, 5 of them slow, 2 POST), 2 of them have the status 404, and 2 the status
// 500. 2 of the 18 go to the canary, which responds to one of them with 500.
func (l *roundLoad) round() {
	l.Helper()
	select {
	case l.turn <- struct{}{}:
		<-l.done
	case <-time.After(deadline):
		l.Fatal("Prometheus does not read the metrics")
	}
	l.bytes, l.ofMain = 0, 0
	var durations []time.Duration
	for path, count := range map[string]int{"/": 6, "/slow": 5, "/missing": 2, "/failing": 1} {
		for range count {
			durations = append(durations, l.request(l.client, http.MethodGet, "http://shop.example"+path, ""))
		}
	}
	for _, path := range []string{"/", "/failing"} {
		durations = append(durations,
			l.request(l.client, http.MethodGet, "http://shop.example"+path, "", "X-Canary", "always"),
			l.request(l.client, http.MethodPost, "http://shop.example/", strings.Repeat("x", 100)))
	}
	l.ofMain = l.bytes
	for range 2 {
		l.request(l.secure, http.MethodGet, "https://safe.example/", "")
	}
	slices.Sort(durations)
	l.durations = append(l.durations, durations)
}

func (l *roundLoad) request(client *http.Client, method, url, body string, header ...string) time.Duration {
	l.Helper()
	request, err := http.NewRequestWithContext(l.Context(), method, url, strings.NewReader(body))
	if err != nil {
		l.Fatal(err)
	}
	if len(header) == 2 {
		request.Header.Set(header[0], header[1])
	}
	if sent, err := httputil.DumpRequestOut(request, true); err == nil {
		// The clients of the tests do not send the last field of the header.
		l.bytes += len(sent) - len("Accept-Encoding: gzip\r\n")
	}
	begin := time.Now()
	response, err := client.Do(request)
	if err != nil {
		l.Fatal(err)
	}
	if n, err := io.Copy(io.Discard, response.Body); err != nil || n != responseSize {
		l.Fatalf("%s %s responds with %d bytes, error %v", method, url, n, err)
	}
	_ = response.Body.Close()
	return time.Since(begin)
}

// ask evaluates queries for a part of a second, and returns the ones that it has not evaluated, and then the ones
// without the expected result.
func (l *roundLoad) ask(pending []*query, failed map[*query]error) (left []*query) {
	l.Helper()
	measured := l.measured()
	end := time.Now().Add(400 * time.Millisecond)
	for i, q := range pending {
		if time.Now().After(end) {
			return append(slices.Clone(pending[i:]), left...)
		}
		if err := q.check(measured); err != nil {
			failed[q] = err
			left = append(left, q)
		}
	}
	return left
}

var resident = regexp.MustCompile(`(?m)^VmRSS:\s+(\d+) kB$`)

// measured returns the values that the expressions must have.
func (l *roundLoad) measured() map[string]span {
	l.Helper()
	text, err := os.ReadFile("/proc/self/status")
	match := resident.FindSubmatch(text)
	if err != nil || match == nil {
		l.Fatalf("no resident memory in %s, error %v", text, err)
	}
	memory, err := strconv.ParseFloat(string(match[1]), 64)
	if err != nil {
		l.Fatal(err)
	}
	// The range of the expressions has this number of rounds at most.
	last := l.durations[max(0, len(l.durations)-queryRounds-2):]
	total, slow := 0., slowness.Seconds()
	for _, durations := range last {
		sum := 0.
		for _, d := range durations {
			sum += d.Seconds()
		}
		total = max(total, sum)
	}
	left := time.Until(l.expires).Seconds()
	all := map[string]span{
		"request bytes": about(float64(l.bytes)), "request bytes of main": about(float64(l.ofMain)),
		"memory":     {1024 * memory / 2, 1024 * memory * 2},
		"processors": {0.001, float64(runtime.GOMAXPROCS(0))},
		// The value is from the last time that Prometheus has read the metrics.
		"validity of the certificate": {left - 10, left + 10},
		"seconds of a round":          {5 * slow, total},
		"mean duration":               {5 * slow / 18, total / 18},
		"milliseconds to connect":     {0, 1000 * total / 18},
		"nothing happens":             {math.NaN(), math.NaN()},
	}
	for name, q := range map[string]float64{"p50": 0.5, "p80": 0.8, "p90": 0.9, "p95": 0.95, "p99": 0.99} {
		all[name] = quantile(last, q)
	}
	return all
}

// quantile returns the bounds of the buckets in which a quantile of the durations may be. More than 20 % of the
// requests are slow. Clients see longer durations than the controller.
func quantile(rounds [][]time.Duration, q float64) span {
	bounds := []float64{0, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10}
	longest := time.Duration(0)
	for _, durations := range rounds {
		n := len(durations)
		longest = max(longest, durations[min(n-1, int(math.Ceil(q*float64(n)))+1)])
	}
	s := span{0, 10}
	for i, bound := range bounds {
		if q >= 0.8 && bound < slowness.Seconds() {
			s.low = bound
		}
		if i > 0 && bounds[i-1] < longest.Seconds() {
			s.high = bound
		}
	}
	return s
}
