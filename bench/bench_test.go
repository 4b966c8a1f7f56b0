package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	_ "github.com/caddyserver/caddy/v2/modules/standard"
	networkingv1 "k8s.io/api/networking/v1"
	"sigs.k8s.io/yaml"

	"github.com/k8singress/k8singress/internal/model/document"
	"github.com/k8singress/k8singress/internal/tests/fixture"
)

func TestLoad(t *testing.T) {
	b, err := startBackend()
	if err != nil {
		t.Fatal(err)
	}
	defer b.stop()
	l := load{address: b.address, hosts: []string{"a.test"}, body: answerBody, connections: 2,
		duration: 50 * time.Millisecond}
	fixture.Eventually(t, "figures", func() error {
		// On a busy machine, a short load may get no response at all.
		l.duration *= 2
		f, err := l.run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if f.perSecond == 0 || f.p50 == 0 || f.p99 < f.p50 {
			return fmt.Errorf("they are %+v", f)
		}
		return nil
	})
}

func TestLoadRejectsOtherResponses(t *testing.T) {
	for name, answer := range map[string]string{
		"status": "HTTP/1.1 404 Not Found\r\nContent-Length: 3\r\n\r\nno\n",
		"body":   "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
		"other":  "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nno\n",
		"length": "HTTP/1.1 200 OK\r\n\r\n",
		"none":   "",
	} {
		t.Run(name, func(t *testing.T) {
			address := answerWith(t, answer)
			l := load{address: address, hosts: []string{"a.test"}, body: answerBody, connections: 1,
				duration: time.Second}
			if f, err := l.run(t.Context()); err == nil {
				t.Errorf("no error, and figures %+v", f)
			}
		})
	}
}

// TestChunksAreCompared checks that a body in chunks is read to its end, and compared.
func TestChunksAreCompared(t *testing.T) {
	const head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
	for answer, ok := range map[string]bool{
		"2\r\nok\r\n1\r\n\n\r\n0\r\n\r\n": true, "3\r\nok\n\r\n0\r\n\r\n": true, "3\r\nno\n\r\n0\r\n\r\n": false,
		"2\r\nok\r\n0\r\n\r\n": false, "4\r\nok\n\n\r\n0\r\n\r\n": false, "x\r\n": false, "3\r\nok\n": false,
	} {
		reader := bufio.NewReader(strings.NewReader(head + answer))
		if err := readAnswer(reader, answerBody); (err == nil) != ok || ok && reader.Buffered() > 0 {
			t.Errorf("%q: error %v, %d bytes left", answer, err, reader.Buffered())
		}
	}
}

// answerWith starts a server that responds to one request and closes the connection.
func answerWith(t *testing.T, text string) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go func() {
		connection, err := listener.Accept()
		if err != nil {
			return
		}
		defer connection.Close()
		if _, err := connection.Read(make([]byte, 1<<10)); err == nil {
			_, _ = io.WriteString(connection, text)
		}
	}()
	return listener.Addr().String()
}

func TestQuantile(t *testing.T) {
	hundred := make([]time.Duration, 100)
	for i := range hundred {
		hundred[i] = time.Duration(i + 1)
	}
	for _, c := range []struct {
		sorted []time.Duration
		share  float64
		want   time.Duration
	}{
		{hundred, 0.50, 50}, {hundred, 0.99, 99}, {hundred, 1, 100}, {hundred[:50], 0.99, 50}, {hundred[:1], 0.50, 1},
		{nil, 0.99, 0},
	} {
		if got := quantile(c.sorted, c.share); got != c.want {
			t.Errorf("quantile %v of %d values is %d, want %d", c.share, len(c.sorted), got, c.want)
		}
	}
}

func TestMedianOfRounds(t *testing.T) {
	rounds := []figures{{100, 1, 30, 5}, {300, 3, 10, 4}, {200, 2, 20, 9}}
	if got, want := medianOf(rounds), (figures{200, 2, 20, 5}); got != want {
		t.Errorf("median is %v, want %v", got, want)
	}
	if got, want := medianOf(rounds[:2]), (figures{200, 2, 20, 4}); got != want {
		t.Errorf("median is %v, want %v", got, want)
	}
}

func TestRatioIsRoundByRound(t *testing.T) {
	slow, fast, same := figures{perSecond: 100}, figures{perSecond: 1000}, figures{perSecond: 500}
	if got := ratio([]figures{slow, fast, same}, []figures{slow, fast, slow}); got != 1 {
		t.Errorf("ratio is %v, want 1: two of three rounds are alike", got)
	}
}

func TestPlainConfigIsCaddys(t *testing.T) {
	isCaddys(t, plainConfig("127.0.0.1:0", "127.0.0.1:0", 3, "127.0.0.1:9"))
}

// isCaddys checks that Caddy accepts a configuration.
func isCaddys(t *testing.T, made any) {
	t.Helper()
	data, err := json.Marshal(made)
	if err != nil {
		t.Fatal(err)
	}
	var config caddy.Config
	if err := json.Unmarshal(data, &config); err != nil {
		t.Fatal(err)
	}
	if err := caddy.Validate(&config); err != nil {
		t.Error(err)
	}
}

func TestManifestsAreIngresses(t *testing.T) {
	for name, shared := range map[string]bool{"a Service for each": false, "one Service for all": true} {
		t.Run(name, func(t *testing.T) {
			folder := filepath.Join(t.TempDir(), "manifests")
			a := applications{hosts: perFile + 1, endpoints: manyEndpoints, backend: "127.0.0.1:9", shared: shared}
			if err := writeManifests(folder, a); err != nil {
				t.Fatal(err)
			}
			if err := writeWhole(folder, changingFile, fmt.Sprintf(changing, 7, a.annotations.of(7))); err != nil {
				t.Fatal(err)
			}
			paths, services := readManifests(t, folder)
			if len(paths) != perFile+2 || paths[hostName(1)] != "/" || paths[hostName(perFile+1)] != "/" ||
				paths[changingHost] != "/change-7" {
				t.Errorf("%d hosts, the changing one with path %q", len(paths), paths[changingHost])
			}
			want := perFile + 1
			if shared {
				want = 1
			}
			if len(services) != want || !services["app-00001"] {
				t.Errorf("the Ingresses name %d Services, want %d", len(services), want)
			}
		})
	}
}

// readManifests returns the path of each host, and the names of all Services.
func readManifests(t *testing.T, folder string) (paths map[string]string, services map[string]bool) {
	t.Helper()
	paths, services = map[string]string{}, map[string]bool{}
	files, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for one := range strings.SplitSeq(string(text), "---\n") {
			var ingress networkingv1.Ingress
			if !strings.Contains(one, "kind: Ingress\n") {
				continue
			}
			if err := yaml.UnmarshalStrict([]byte(one), &ingress); err != nil {
				t.Fatal(err)
			}
			rule := ingress.Spec.Rules[0]
			if ingress.Name != "changing" && rule.Host != ingress.Name+".bench.test" {
				t.Errorf("Ingress %q has host %q", ingress.Name, rule.Host)
			}
			paths[rule.Host] = rule.HTTP.Paths[0].Path
			services[rule.HTTP.Paths[0].Backend.Service.Name] = true
		}
	}
	return paths, services
}

func TestEndedProcessIsReported(t *testing.T) {
	p, err := startProcess(t.TempDir(), program{"sh", []string{"-c", "echo this is broken >&2; exit 1"},
		syscall.SIGKILL})
	if err != nil {
		t.Fatal(err)
	}
	defer p.stop()
	c := contestant{admin: "127.0.0.1:1"}
	if err := p.await(t.Context(), c.ready); err == nil || !strings.Contains(err.Error(), "this is broken") {
		t.Errorf("error is %v, want the log's words in it", err)
	}
}

func TestParse(t *testing.T) {
	o, err := parse([]string{"-hosts", "100,1"})
	if err != nil || len(o.hosts) != 2 || o.hosts[0] != 1 {
		t.Errorf("hosts are %v, error %v", o.hosts, err)
	}
	for _, wrong := range []string{
		"-hosts=0", "-hosts=x", "-rounds=0", "-connections=0", "-changes=0", "-http -annotations",
		"-annotations -tenants", "-annotations -snippets", "-streams -no-streams",
	} {
		if _, err := parse(strings.Fields(wrong)); err == nil {
			t.Errorf("%s is no error", wrong)
		}
	}
}

func TestLoadCountsFailures(t *testing.T) {
	address := answerWith(t, "HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n")
	l := load{address: address, hosts: []string{"a.test"}, body: answerBody, connections: 1, duration: time.Second}
	if got := l.count(t.Context()); got.failed != 1 || got.first == nil || !strings.Contains(got.first.Error(), "502") {
		t.Errorf("%d failures, the first %v", got.failed, got.first)
	}
}

func TestLoadKeepsItsPace(t *testing.T) {
	b, err := startBackend()
	if err != nil {
		t.Fatal(err)
	}
	defer b.stop()
	arguments := []string{"-address", b.address, "-hosts", "a.test,b.test", "-rate", "200", "-connections", "4",
		"-duration", "500ms"}
	fixture.Eventually(t, "200 requests a second for half a second", func() error {
		var out strings.Builder
		if err := runLoad(t.Context(), arguments, &out); err != nil {
			t.Fatal(err)
		}
		var s sum
		if err := json.Unmarshal([]byte(out.String()), &s); err != nil {
			t.Fatal(err)
		}
		switch {
		case s.Requests > 150 || s.Failed > 0:
			t.Fatalf("they are %+v", s)
		case s.Requests < 20 || s.P99 == 0:
			// On a busy machine, fewer requests may have got a response.
			return fmt.Errorf("they are %+v", s)
		}
		return nil
	})
}

func TestLoadCommandRefuses(t *testing.T) {
	for _, wrong := range []string{"-hosts=a", "-address=a:1", "-address=a:1 -hosts=a -connections=0",
		"-address=a:1 -hosts=a -rate=-1"} {
		if err := runLoad(t.Context(), strings.Fields(wrong), io.Discard); err == nil {
			t.Errorf("%s is no error", wrong)
		}
	}
}

func TestBars(t *testing.T) {
	slow, fast := []figures{{perSecond: 96}, {perSecond: 94}, {perSecond: 96}},
		[]figures{{perSecond: 100}, {perSecond: 100}, {perSecond: 100}}
	ours, plain := &contestant{first: slow, last: slow}, &contestant{first: fast, last: fast}
	f := &field{pairs: []pair{{1, plain, ours}}, many: ours}
	var text strings.Builder
	if err := writeBars(&text, f.bars()); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"| at least 1.00 | 0.96 (median of 3 rounds, 0.94 to 0.96) | no |",
		"| 1,000 endpoints against 1 | at least 0.95 | 1.00 (median of 3 rounds, 1.00 to 1.00) | yes |",
	} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("there is no %q in:\n%s", want, text.String())
		}
	}
}

func TestQuickKeepsExplicitFlags(t *testing.T) {
	o, err := parse([]string{"-quick", "-rounds", "2", "-scale", "-ingresses 100"})
	if err != nil || o.rounds != 2 || o.duration != time.Second ||
		strings.Join(o.scale, " ") != "-quick -ingresses 100" {
		t.Errorf("options are %+v, error %v", o, err)
	}
}

func TestSeriesAreComparedRoundByRound(t *testing.T) {
	s := &series{}
	for round, both := range [][2]float64{{90, 100}, {990, 1000}, {100, 100}} {
		if err := inTurn(round, func(side int) error { s.add(side, both[side]); return nil }); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		got  bar
		want string
	}{
		{s.atLeast("x", 0.98), "at least 0.98: yes"}, {s.atLeast("x", 1), "at least 1.00: no"},
		{s.atMost("x", 1.3), "at most 1.30: yes"}, {s.swapped().atMost("x", 1), "at most 1.00: no"},
	} {
		if got := c.got.Bar + ": " + c.got.Met; got != c.want {
			t.Errorf("%s, want %s: %s", got, c.want, c.got.Measured)
		}
	}
	if first, second := s.median(0), s.median(1); first != 100 || second != 100 || s.ratio() != 0.99 {
		t.Errorf("medians are %v and %v, their ratio %v", first, second, s.ratio())
	}
}

// TestNoSideIsAlwaysTheSecond checks that the order of the sides alternates between rounds. The second side always runs
// on a warmed-up machine.
func TestNoSideIsAlwaysTheSecond(t *testing.T) {
	var order []int
	for round := range 2 {
		_ = inTurn(round, func(side int) error { order = append(order, side); return nil })
	}
	if !slices.Equal(order, []int{0, 1, 1, 0}) {
		t.Errorf("the order is %v", order)
	}
}

func TestCandidatesComeBeforeTheRoute(t *testing.T) {
	text := `{"apps":{"k8singress":{"live":{"hosts":{"` + hostName(1) +
		`":{"routes":[{"type":"prefix","path":"/","backend":"b"}]}}}}}}`
	made, err := withCandidates([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	var whole struct {
		Apps struct{ K8singress struct{ Live document.Live } }
	}
	if err := json.Unmarshal(made, &whole); err != nil {
		t.Fatal(err)
	}
	routes := whole.Apps.K8singress.Live.Hosts[hostName(1)].Routes
	if len(routes) != candidates+1 || routes[candidates].Match != nil {
		t.Fatalf("there are %d routes", len(routes))
	}
	last := routes[candidates-1]
	if last.Path != "/" || last.Backend != "b" || last.Match.Headers[0].Value != strconv.Itoa(candidates) {
		t.Errorf("the last candidate is %+v", last)
	}
	if _, err := withCandidates([]byte(`{}`)); err == nil {
		t.Error("a document without the host is no error")
	}
}
