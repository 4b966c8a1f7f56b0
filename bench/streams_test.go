package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	_ "github.com/mholt/caddy-l4/modules/l4proxy"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/k8singress/k8singress/internal/tests/fixture"
)

const short = 100 * time.Millisecond

func newStreamBackend(t *testing.T) *streamBackend {
	t.Helper()
	b, err := startStreamBackend()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.stop)
	return b
}

func TestBulk(t *testing.T) {
	b := newStreamBackend(t)
	got, err := bulk{address: b.tcpAddress(), streams: 2, duration: short}.run(t.Context(), b, nil)
	if err != nil || got.perSecond < segment {
		t.Errorf("%+v, error %v", got, err)
	}
}

// TestBulkOfAnIdleProxy checks that data is not attributed to a process that has used no processor time.
func TestBulkOfAnIdleProxy(t *testing.T) {
	b := newStreamBackend(t)
	p, err := startProcess(t.TempDir(), program{"sleep", []string{"60"}, syscall.SIGKILL})
	if err != nil {
		t.Fatal(err)
	}
	defer p.stop()
	if err := p.pause(); err != nil {
		t.Fatal(err)
	}
	awaitIdle(t, p)
	if got, err := (bulk{address: b.tcpAddress(), streams: 1, duration: short}).run(t.Context(), b, p); err == nil {
		t.Errorf("no error, and %+v", got)
	}
}

// awaitIdle waits until a process has started and is idle.
func awaitIdle(t *testing.T, p *process) {
	t.Helper()
	before := time.Duration(-1)
	tick := time.NewTicker(short / 2)
	defer tick.Stop()
	for range tick.C {
		spent, err := p.processorTime()
		if err != nil {
			t.Fatal(err)
		}
		if spent == before {
			return
		}
		before = spent
	}
}

func TestProcessorTimeOfChildren(t *testing.T) {
	p, err := startProcess(t.TempDir(), program{"sh", []string{"-c", "trap 'kill $!' TERM; while :; do :; done & wait"},
		syscall.SIGTERM})
	if err != nil {
		t.Fatal(err)
	}
	defer p.stop()
	fixture.Eventually(t, "the processor time of a busy child", func() error {
		spent, err := p.processorTime()
		if err == nil && spent <= short/5 {
			err = fmt.Errorf("it is %v", spent)
		}
		return err
	})
}

func TestOneByte(t *testing.T) {
	if err := oneByte(newStreamBackend(t).tcpAddress()); err != nil {
		t.Error(err)
	}
	for name, answer := range map[string]string{"another": "x", "more": "bb", "none": ""} {
		if oneByte(answerWith(t, answer)) == nil {
			t.Errorf("%s is no error", name)
		}
	}
}

func TestDatagrams(t *testing.T) {
	b := newStreamBackend(t)
	for _, load := range datagramLoads {
		if err := takeTrains(b.udp, load.trains); err != nil {
			t.Fatal(err)
		}
		got, err := datagrams{load, b.udpAddress(), b, 4, 0, short}.run(t.Context(), nil)
		if err != nil || got.perSecond == 0 {
			t.Errorf("%s: %+v, error %v", load, got, err)
		}
	}
}

// answerDatagrams starts a server that changes each datagram and sends it back. It drops a datagram if the result is
// empty.
func answerDatagrams(t *testing.T, change func([]byte) []byte) (address string) {
	t.Helper()
	socket, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { socket.Close() })
	go func() {
		buffer := make([]byte, 2<<10)
		for {
			n, from, err := socket.ReadFrom(buffer)
			if err != nil {
				return
			}
			if data := change(buffer[:n]); len(data) > 0 {
				_, _ = socket.WriteTo(data, from)
			}
		}
	}()
	return socket.LocalAddr().String()
}

func TestLostDatagrams(t *testing.T) {
	address := answerDatagrams(t, func([]byte) []byte { return nil })
	got, err := datagrams{datagramLoad{64, 3, false}, address, nil, 1, 0, 3 * lostAfter / 2}.run(t.Context(), nil)
	if err != nil || got.perSecond != 0 || got.lost == 0 || got.lost%3 != 0 {
		t.Errorf("%+v, error %v", got, err)
	}
}

func TestTruncatedDatagrams(t *testing.T) {
	address := answerDatagrams(t, func(b []byte) []byte { return b[:len(b)-1] })
	for _, trains := range []bool{false, true} {
		if got, err := (datagrams{datagramLoad{64, 3, trains}, address, nil, 1, 0, lostAfter}).run(t.Context(),
			nil); err == nil {
			t.Errorf("no error, and %+v", got)
		}
	}
}

// TestOtherRelays checks that nginx and haproxy, if they are installed, forward the measured data.
func TestOtherRelays(t *testing.T) {
	b := newStreamBackend(t)
	o := options{connections: 2, duration: short}
	starts := map[string]startRelay{nginxStreamMissing: startNginxRelay, haproxyMissing: startHAProxyRelay}
	for missing, start := range starts {
		t.Run(strings.Fields(missing)[0], func(t *testing.T) {
			r, err := start(t.Context(), site{folder: t.TempDir()}, b)
			if r == nil && err == nil {
				t.Skip(missing)
			}
			defer r.stop()
			if err != nil {
				t.Fatal(err)
			}
			if err := r.measureRelay(t.Context(), o, b); err != nil || r.throughput[0].perSecond == 0 ||
				r.connects[0].perSecond == 0 {
				t.Errorf("%+v %+v, error %v", r.throughput, r.connects, err)
			}
			if r.udp != "" && r.datagrams[0][0].perSecond == 0 {
				t.Errorf("datagrams %+v, %d lost", r.datagrams, r.lost)
			}
		})
	}
}

func TestStockConfigIsCaddys(t *testing.T) {
	isCaddys(t, stockConfig("127.0.0.1:0", map[string]string{"udp/127.0.0.1:1": "udp/127.0.0.1:2"}))
}

func TestStreamManifests(t *testing.T) {
	b := newStreamBackend(t)
	found := map[string]map[string]string{}
	for document := range strings.SplitSeq(streamManifests(b, []string{"127.0.0.1:1", "127.0.0.1:2"},
		[]string{"127.0.0.1:3"}), "---\n") {
		var m corev1.ConfigMap
		if strings.Contains(document, "kind: ConfigMap\n") {
			if err := yaml.UnmarshalStrict([]byte(document), &m); err != nil {
				t.Fatal(err)
			}
			found[m.Name] = m.Data
		}
	}
	if len(found["tcp"]) != 2 || found["tcp"]["2"] != "bench/app:tcp" || len(found["udp"]) != 1 ||
		found["udp"]["3"] != "bench/app:udp" {
		t.Errorf("the ports are %v", found)
	}
}

func TestRowsAndBarsOfRelays(t *testing.T) {
	of := func(name string, each float64) *relay {
		rounds := []figures{{perSecond: each * 1e9}}
		return &relay{contestant: &contestant{name: name}, udp: "some", throughput: rounds, economy: rounds,
			connects:  rounds,
			datagrams: slices.Repeat([][]figures{rounds}, len(datagramLoads)),
			thrift:    slices.Repeat([][]figures{rounds}, len(datagramLoads))}
	}
	r := &relays{ours: of("k8singress", 2), stock: of("caddy-l4", 1), none: of("no proxy", 3),
		haproxy: of("haproxy", 4)}
	r.haproxy.udp = ""
	var text strings.Builder
	if err := r.write(options{rounds: 1}, &text); err != nil {
		t.Fatal(err)
	}
	if err := writeBars(&text, r.bars()); err != nil {
		t.Fatal(err)
	}
	if strings.Count(text.String(), "| haproxy |") != 1 {
		t.Error("haproxy has a row for datagrams")
	}
	for _, want := range []string{
		"| k8singress | 16.0 Gbit/s | 0.50 | 2,000,000,000 | 0.0 ms |",
		"| haproxy | 32.0 Gbit/s | 0.25 | 4,000,000,000 | 0.0 ms |",
		"| k8singress | " + strings.Repeat("2,000,000,000 | 0.0 µs | ", 4) + "0 |",
		"| processor time of bulk TCP, against stock caddy-l4 | at most 0.60 | 0.50 (median of 1 rounds, 0.50 to " +
			"0.50) | yes |",
		"| bulk TCP, against haproxy | at least 0.95 | 0.50 (median of 1 rounds, 0.50 to 0.50) | no |",
		"| UDP, 1,400 bytes, against nginx | at least 0.80 | " + nginxStreamMissing + " | not measured |",
	} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("there is no %q in:\n%s", want, text.String())
		}
	}
}

func TestExchange(t *testing.T) {
	b := newStreamBackend(t)
	s := &switchboard{addresses: []string{b.tcpAddress(), b.tcpAddress()}}
	if err := s.change(t.Context(), 0); err != nil || s.exchanged.failed != 0 || len(s.bars()) != 2 {
		t.Errorf("%+v, error %v", s.exchanged, err)
	}
	err := exchange(t.Context(), answerWith(t, "\x00\x00\x00\x00\x00\x00\x00\x02"), &tally{})
	if err == nil || !strings.Contains(err.Error(), "came back") {
		t.Errorf("another number is answered: %v", err)
	}
}

func TestBarsOfPorts(t *testing.T) {
	s := &switchboard{added: []time.Duration{1, portLimit, portLimit}, removed: []time.Duration{1}}
	s.exchanged = &tally{latencies: make([]time.Duration, 3)}
	if got := s.bars(); got[0].Met != "no" || got[1].Met != "yes" {
		t.Errorf("%+v", got)
	}
	s.added = []time.Duration{1}
	s.exchanged.fail(io.EOF)
	if got := s.bars(); got[0].Met != "yes" || got[1].Met != "no" {
		t.Errorf("%+v", got)
	}
	var text strings.Builder
	if err := s.write(&text); err != nil || !strings.Contains(text.String(), "| add | 0.0 ms |") {
		t.Errorf("error %v in:\n%s", err, text.String())
	}
}

func TestWithAndWithout(t *testing.T) {
	const document = `{"apps":{"k8singress":{"live":{"ports":{"tcp/2":{}, "tcp/1":{}}}}, "http":{}}}`
	with, without, err := withAndWithout([]byte(document), "tcp/2")
	if err != nil || string(without) != `{"apps":{"http":{},"k8singress":{"live":{"ports":{"tcp/1":{}}}}}}` ||
		string(with) != `{"apps":{"http":{},"k8singress":{"live":{"ports":{"tcp/1":{},"tcp/2":{}}}}}}` {
		t.Errorf("%s and %s, error %v", with, without, err)
	}
	if _, _, err := withAndWithout([]byte(document), "tcp/3"); err == nil {
		t.Error("a port that is not there is no error")
	}
}

func TestFreeAddresses(t *testing.T) {
	all, err := freeAddresses(3)
	if err != nil || len(all) != 3 || all[0] == all[1] {
		t.Errorf("%v, error %v", all, err)
	}
}

func TestWithoutWrapper(t *testing.T) {
	var config object
	const text = `{"apps":{"k8singress":{},"http":{"servers":{"a":{
		"listener_wrappers":[{"wrapper":"k8singress"},{"wrapper":"tls"}]}}}}}`
	if err := json.Unmarshal([]byte(text), &config); err != nil {
		t.Fatal(err)
	}
	withoutWrapper(config)
	got, err := json.Marshal(config)
	if err != nil || string(got) != `{"apps":{"http":{"servers":{"a":{}}},"k8singress":{"admin":"off"}}}` {
		t.Errorf("%s, error %v", got, err)
	}
}

func TestBarsOfFronts(t *testing.T) {
	of := func(name string, each float64) *front {
		rounds := []figures{{perSecond: each}}
		return &front{&contestant{name: name, first: rounds}, rounds}
	}
	f := &fronts{with: of("with", 97), without: of("without", 100)}
	if got := f.bars(); got[0].Met != "no" {
		t.Errorf("%+v", got)
	}
	var text strings.Builder
	if err := f.write(options{rounds: 1}, &text); err != nil ||
		!strings.Contains(text.String(), "| with | 97 | 0.97 | 0.0 ms | 97 | 0.97 |") {
		t.Errorf("error %v in:\n%s", err, text.String())
	}
}

func TestStreamsLeftOut(t *testing.T) {
	var text strings.Builder
	bars, err := compareStreams(t.Context(), options{noStreams: true}, filepath.Join(t.TempDir(), "none"), &text)
	if err != nil || len(bars) != 1 || bars[0].Measured != "left out" || text.Len() > 0 {
		t.Errorf("%+v %q, error %v", bars, text.String(), err)
	}
}
