package featuretests

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"runtime/metrics"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/k8singress/k8singress/internal/tests/fixture"
)

// soakVariable is the duration of TestSoak, such as "10m"; `make soak` sets it. Without it the test takes a few
// seconds, with fewer clients.
const soakVariable = "K8SINGRESS_SOAK"

// soak is a controller, its endpoints, and the hostile clients of both.
type soak struct {
	*load
	long bool
	// careless counts the hostile actions by kind.
	careless sync.Map
	http     string
	https    string
	peak     atomic.Uint64
	configs  [][]byte
	draft    string
}

// TestSoak checks that honest clients are not affected by slow, broken and hostile clients and endpoints while objects
// and configurations change all the time. At the end no goroutine, file descriptor or memory may be left.
func TestSoak(t *testing.T) {
	long, length := false, 4*time.Second
	if text := os.Getenv(soakVariable); text != "" {
		var err error
		if length, err = time.ParseDuration(text); err != nil {
			t.Fatalf("%s: %v", soakVariable, err)
		}
		long = true
	}
	// The first run creates everything that is created once per process.
	t.Run("before", func(t *testing.T) { newSoak(t, false).goesOn(time.Second) })
	before := heldNow()
	var s *soak
	t.Run("soak", func(t *testing.T) {
		s = newSoak(t, long)
		s.goesOn(length)
	})
	if t.Failed() {
		return
	}
	fixture.Eventually(t, "what was held is given back", func() error {
		return heldNow().beyond(before)
	})
	t.Logf("before: %v; at the end: %v; at most %d MiB of objects", before, heldNow(), s.peak.Load()>>20)
	if s.peak.Load() > maxSoakBytes {
		t.Errorf("%d MiB of objects", s.peak.Load()>>20)
	}
}

// goesOn runs the soak for the given duration.
func (s *soak) goesOn(length time.Duration) {
	s.Helper()
	s.honest()
	s.hostile()
	s.repeats("a change of objects", s.changes)
	s.repeats("a load of a configuration", s.reloads)
	measured := s.measures()
	timer := time.NewTimer(length)
	defer timer.Stop()
	<-timer.C
	s.awaitEach()
	s.ends()
	<-measured
	s.careless.Range(func(kind, count any) bool {
		n := count.(*atomic.Int64).Load()
		if s.Logf("%s: %d", kind, n); n == 0 {
			s.Errorf("%s: never", kind)
		}
		return true
	})
	s.stop()
}

// newSoak starts a controller with all endpoints.
func newSoak(t *testing.T, long bool) *soak {
	t.Helper()
	manifests := class + honestManifests(t)
	for name, behave := range hostileEndpoints {
		manifests += hostileManifests(t, name, endpointThat(t, behave))
	}
	in := start(t, manifests)
	s := &soak{load: in.newLoad(), long: long, http: in.http, https: in.https, draft: t.TempDir()}
	s.configs = [][]byte{in.adapted(""), in.adapted("disable_catch_all")}
	return s
}

// pause waits for about the given time, or until the end.
func (s *soak) pause(about time.Duration) {
	timer := time.NewTimer(about/2 + rand.N(about))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-s.ctx.Done():
	}
}

// changes replaces an object. Each version has an address on which nothing listens.
func (s *soak) changes() error {
	s.pause(200 * time.Millisecond)
	name := fmt.Sprintf("changing-%d", rand.IntN(5))
	draft := filepath.Join(s.draft, name)
	text := service(name, "1", fmt.Sprintf("127.0.0.%d", 1+rand.IntN(250))) + rule(name, name+".example",
		"Prefix", "/", name)
	if err := os.WriteFile(draft, []byte(text), 0o600); err != nil {
		return err
	}
	return os.Rename(draft, filepath.Join(s.folder, name+".yaml"))
}

// reloads makes Caddy load another configuration.
func (s *soak) reloads() error {
	s.pause(300 * time.Millisecond)
	s.configs[0], s.configs[1] = s.configs[1], s.configs[0]
	return caddy.Load(s.configs[0], true)
}

// measures records the peak of the memory until the end of the load.
func (s *soak) measures() <-chan struct{} {
	done := make(chan struct{})
	go func() {
		defer close(done)
		for s.ctx.Err() == nil {
			s.peak.Store(max(s.peak.Load(), objects()))
			s.pause(100 * time.Millisecond)
		}
	}()
	return done
}

// objects returns the size of all objects on the heap that have not been collected, in bytes.
func objects() uint64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

// holding has the resources that a process must release.
type holding struct {
	goroutines, descriptors int
	bytes                   uint64
}

func heldNow() holding {
	runtime.GC()
	entries, _ := os.ReadDir("/proc/self/fd")
	return holding{runtime.NumGoroutine(), len(entries), objects()}
}

func (h holding) String() string {
	return fmt.Sprintf("%d goroutines, %d descriptors, %d MiB", h.goroutines, h.descriptors, h.bytes>>20)
}

// maxSoakBytes is the maximum memory of all objects, including those of clients and endpoints.
const maxSoakBytes = 512 << 20

// These allow for resources that do not belong to the soak: goroutines of the runtime and of libraries, and their
// caches.
const (
	spareGoroutines  = 10
	spareDescriptors = 5
	spareBytes       = 24 << 20
)

// beyond returns an error if much more is held than before.
func (h holding) beyond(before holding) error {
	if h.goroutines > before.goroutines+spareGoroutines || h.descriptors > before.descriptors+spareDescriptors ||
		h.bytes > before.bytes+spareBytes {
		return fmt.Errorf("%v; before: %v", h, before)
	}
	return nil
}

// share returns the possible number of connections out of wanted ones, because each has a file descriptor at either
// end.
func (s *soak) share(wanted int) int {
	const all, rest = 15_000, 3_000
	if !s.long {
		return wanted / 20
	}
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		s.Fatal(err)
	}
	// Go has raised the soft limit to the hard limit.
	return min(wanted, wanted*(int(min(limit.Cur, 1<<20))-rest)/(2*all))
}

// reach connects from a random loopback address, because there are more connections than ports of one address.
func reach(ctx context.Context, address string) (*net.TCPConn, error) {
	dialer := net.Dialer{Timeout: deadline, LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, byte(2+rand.IntN(250)))}}
	conn, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	return conn.(*net.TCPConn), nil
}
