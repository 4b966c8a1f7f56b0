package main

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"sigs.k8s.io/yaml"
)

// TestAnnotatedObjects checks that Kubernetes accepts the objects, and that each group of annotations has an Ingress
// with all of its lines.
func TestAnnotatedObjects(t *testing.T) {
	const counted = 500
	text, err := annotatedObjects("127.0.0.1:9")
	if err != nil {
		t.Fatal(err)
	}
	text += strings.ReplaceAll(snippetObjects(), "app-0000", "app-0090")
	text += fmt.Sprintf(compresses, gzipLevel) + canaryOf(canaries, 50, "127.0.0.1:9") +
		fmt.Sprintf(ingress, counted, hostName(counted), 1, countsEverybody) + "---\n" + fmt.Sprintf(changing, 1, eight)
	lines := map[string]int{}
	for one := range strings.SplitSeq(text, "---\n") {
		var object any = new(map[string]any)
		switch {
		case strings.Contains(one, "kind: Ingress\n"):
			object = new(networkingv1.Ingress)
		case strings.Contains(one, "kind: ConfigMap\n"):
			object = new(corev1.ConfigMap)
		case strings.Contains(one, "kind: Secret\n"):
			object = new(corev1.Secret)
		}
		if err := yaml.UnmarshalStrict([]byte(one), object); err != nil {
			t.Errorf("%v in %s", err, one)
		}
		if ingress, ok := object.(*networkingv1.Ingress); ok {
			lines[ingress.Spec.Rules[0].Host] = len(ingress.Annotations)
		}
	}
	want := map[string]int{hostName(canaries): 2, hostName(counted): 2, changingHost: 8}
	for i, each := range annotationsOf("127.0.0.1:9") {
		want[hostName(firstAnnotated+i)] = len(each.lines)
	}
	for i := range measuredSnippets {
		want[fmt.Sprintf("app-0090%d.bench.test", firstAnnotated+i)] = 1
	}
	for host, n := range want {
		if lines[host] != n {
			t.Errorf("the Ingress of %s has %d annotations, want %d", host, lines[host], n)
		}
	}
}

// TestAddressesTakeTurns checks that no address is used twice before all have been used, and that a server can parse
// them.
func TestAddressesTakeTurns(t *testing.T) {
	a := &addresses{}
	request := load{header: forwardedFor + "100.100.100\r\nOrigin: x"}.request("a.test")
	seen := map[netip.Addr]bool{}
	for range manyAddresses {
		a.next(request)
		line := request[bytes.Index(request, []byte("X-Forwarded-For: ")):]
		line = line[:bytes.Index(line, []byte("\r\n"))]
		seen[netip.MustParseAddr(strings.TrimPrefix(string(line), "X-Forwarded-For: "))] = true
	}
	if len(seen) != manyAddresses {
		t.Errorf("there are %d addresses", len(seen))
	}
	read, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(request)))
	if err != nil || read.Host != "a.test" || read.Header.Get("Origin") != "x" {
		t.Errorf("the request is %+v, error %v", read, err)
	}
	(*addresses)(nil).next(request)
}

// TestCompressedResponsesAreCompared checks that uncompressed responses and responses with other texts are rejected.
func TestCompressedResponsesAreCompared(t *testing.T) {
	for name, c := range map[string]struct {
		text, coding string
		ok           bool
	}{
		"the backend's": {longText, "gzip", true}, "another text": {longText[1:] + "?", "gzip", false},
		"no coding": {longText, "", false},
	} {
		var body bytes.Buffer
		w := gzip.NewWriter(&body)
		if _, err := w.Write([]byte(c.text)); err != nil || w.Close() != nil {
			t.Fatal(err)
		}
		answer := fmt.Sprintf(
			"HTTP/1.1 200 OK\r\nContent-Encoding: %s\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n",
			c.coding, body.Len(), body.String())
		l := load{compressed: true, body: longText}
		if err := l.read(bufio.NewReader(strings.NewReader(answer))); (err == nil) != c.ok {
			t.Errorf("%s: error %v", name, err)
		}
		if n := body.Len(); n < textAnswer/5 || n > textAnswer/2 {
			t.Errorf("the text compresses to %d bytes, unlike prose", n)
		}
	}
}

func TestEncodingConfigIsCaddys(t *testing.T) {
	isCaddys(t, encodingConfig(&contestant{admin: "127.0.0.1:0", http: "127.0.0.1:0"}, "127.0.0.1:9"))
}

// TestRejectedAnnotationsAreReported checks that an annotation that the controller rejects is an error, because the
// measurement would be wrong.
func TestRejectedAnnotationsAreReported(t *testing.T) {
	const said = `[{"object":{"kind":%q,"namespace":"bench","name":"a"},"accepted":true,"problems":[` +
		`{"severity":"info","reason":"NoEndpoints","message":"no endpoint"},` +
		`{"severity":"warning","reason":"InvalidAnnotation","message":"no number"}]}]`
	if err := refusedIn(fmt.Sprintf(said, "Ingress")); err == nil || !strings.Contains(err.Error(), "no number") {
		t.Errorf("a problem gives %v", err)
	}
	if err := refusedIn(fmt.Sprintf(said, "ConfigMap")); err != nil {
		t.Error(err)
	}
}

// TestMetrics checks that a metric is found by its whole name, and that a missing metric is an error.
func TestMetrics(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, "# HELP a\na_sum 1.5\na_sum_of 7\nb 2\n")
	}))
	defer server.Close()
	c := &contestant{admin: server.Listener.Addr().String()}
	if got, err := c.metrics(t.Context(), "a_sum", "b"); err != nil || len(got) != 2 || got[0] != 1.5 || got[1] != 2 {
		t.Errorf("got %v, error %v", got, err)
	}
	if _, err := c.metrics(t.Context(), "a"); err == nil {
		t.Error("a metric that is not there is no error")
	}
}

// TestAnnotationBars checks that each bar is missed if its value is too slow, too large or too long.
func TestAnnotationBars(t *testing.T) {
	slow, fast := []figures{{perSecond: 50, p99: 3}}, []figures{{perSecond: 100, p99: 2}}
	m := &many{options: options{hosts: []int{1, 10}}, processor: series{{1}, {1}}, heap: series{{2}, {1}},
		changed: []float64{6e6}}
	m.full.add(0, 3*float64(time.Second))
	l := &limited{rounds: [2][]figures{slow, fast}, grown: 17 << 20}
	w, p := &weighed{failed: 1}, &price{rounds: [2][]figures{slow, fast}}
	bars := slices.Concat(m.timeBars(), []bar{m.heapBar()}, l.bars(), w.bars(p))
	for _, b := range append(bars, (&prices{all: []*price{{minimum: 0.6, rounds: p.rounds}}}).bars()...) {
		if b.Met != "no" {
			t.Errorf("%+v", b)
		}
	}
}
