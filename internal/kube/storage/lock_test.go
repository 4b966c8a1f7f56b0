package storage

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/zap"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	kubeclient "github.com/k8singress/k8singress/internal/kube/client"
	"github.com/k8singress/k8singress/internal/tests/fixture"
)

func (w *world) leases(t testing.TB) []coordinationv1.Lease {
	t.Helper()
	list, err := w.admin.CoordinationV1().Leases(w.namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return list.Items
}

// TestOneHolder checks that a lock never has two holders. Many goroutines of several processes compete for it, and some
// of them give up.
func TestOneHolder(t *testing.T) {
	w := newWorld(t)
	var holders, turns atomic.Int32
	var group sync.WaitGroup
	inside := func(p *process, name string) {
		if n := holders.Add(1); n != 1 {
			t.Errorf("%d have the lock", n)
		}
		turns.Add(1)
		_ = kubeclient.Pause(t.Context(), rand.N(5*time.Millisecond))
		holders.Add(-1)
		if err := p.Unlock(t.Context(), name); err != nil {
			t.Error(err)
		}
	}
	for range 3 {
		p := w.start(t)
		for i := range 6 {
			group.Go(func() {
				for range 4 {
					switch i % 3 {
					case 0:
						ctx, cancel := context.WithTimeout(t.Context(), rand.N(100*time.Millisecond))
						if p.Lock(ctx, "x") == nil {
							inside(p, "x")
						}
						cancel()
					case 1:
						if ok, err := p.TryLock(t.Context(), "x"); err != nil {
							t.Error(err)
						} else if ok {
							inside(p, "x")
						}
					default:
						if err := p.Lock(t.Context(), "x"); err != nil {
							t.Error(err)
							return
						}
						inside(p, "x")
					}
				}
			})
		}
	}
	group.Wait()
	if turns.Load() < 3*2*4 {
		t.Errorf("%d turns", turns.Load())
	}
	if n := len(w.leases(t)); n != 1 {
		t.Errorf("%d Leases", n)
	}
}

func TestLocksOfOtherNames(t *testing.T) {
	w := newWorld(t)
	p := w.start(t)
	names := []string{"a", "A", "issue_cert_*.example", strings.Repeat("long", 2000), "\xff\xfe", ""}
	for _, name := range names {
		if err := p.Lock(t.Context(), name); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(w.leases(t)); n != len(names) {
		t.Errorf("%d Leases", n)
	}
	for _, name := range names {
		if err := p.Unlock(t.Context(), name); err != nil {
			t.Error(err)
		}
	}
	if err := p.Unlock(t.Context(), "a"); err == nil {
		t.Error("a lock that is not held was released")
	}
}

// TestLockIsRenewed checks that a lock can be held for longer than the duration of its Lease.
func TestLockIsRenewed(t *testing.T) {
	w := newWorld(t)
	holder, other := w.start(t), w.start(t)
	if err := holder.Lock(t.Context(), "x"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*short.Duration)
	defer cancel()
	if err := other.Lock(ctx, "x"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the other got: %v", err)
	}
	if err := holder.RenewLockLease(t.Context(), "x", time.Hour); err != nil {
		t.Error(err)
	}
	if err := other.RenewLockLease(t.Context(), "x", time.Hour); err == nil {
		t.Error("the other could renew it")
	}
	if err := holder.Unlock(t.Context(), "x"); err != nil {
		t.Error(err)
	}
	if ok, err := other.TryLock(t.Context(), "x"); !ok || err != nil {
		t.Errorf("the other got %v, %v", ok, err)
	}
	if err := other.Unlock(t.Context(), "x"); err != nil {
		t.Error(err)
	}
}

// TestWaiterIsWoken checks that the watch wakes a waiting process before its next poll.
func TestWaiterIsWoken(t *testing.T) {
	w := newSimulated(t)
	holder, other := w.start(t), w.start(t)
	fixture.Receive(t, "all Leases", other.leases.informer.HasSyncedChecker().Done())
	other.locks.times.Poll = time.Hour
	other.locks.times.Duration = time.Hour
	holder.locks.times.Duration = time.Hour
	if err := holder.Lock(t.Context(), "x"); err != nil {
		t.Fatal(err)
	}
	got := make(chan error)
	go func() { got <- other.Lock(t.Context(), "x") }()
	fixture.Holds(t, "the other waits", func() bool {
		other.leases.mu.Lock()
		defer other.leases.mu.Unlock()
		return other.leases.observed.Len() > 0 && len(other.leases.waiting) > 0
	})
	if err := holder.Unlock(t.Context(), "x"); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-got:
		if err != nil || other.Unlock(t.Context(), "x") != nil {
			t.Error(err)
		}
	case <-time.After(limit):
		t.Fatal("the other was not woken")
	}
}

// TestLostLock checks that a process that cannot reach the API server loses its lock to another process, and that
// Unlock then returns an error.
func TestLostLock(t *testing.T) {
	w := newWorld(t)
	holder, other := w.start(t), w.start(t)
	if err := holder.Lock(t.Context(), "x"); err != nil {
		t.Fatal(err)
	}
	holder.link.cut(true)
	renewed := w.leases(t)[0].Spec.RenewTime.Time
	if err := other.Lock(t.Context(), "x"); err != nil {
		t.Fatal(err)
	}
	if after := time.Since(renewed); after < short.Duration {
		t.Errorf("it was taken over %v after it was renewed", after)
	}
	holder.link.cut(false)
	fixture.Holds(t, "the holder notices", func() bool {
		return holder.log.FilterMessage(
			"lost a lock: another process may do the same work at the same time").Len() == 1
	})
	if err := holder.RenewLockLease(t.Context(), "x", time.Hour); !errors.Is(err, errLost) {
		t.Errorf("RenewLockLease: %v", err)
	}
	if err := holder.Unlock(t.Context(), "x"); !errors.Is(err, errLost) {
		t.Errorf("Unlock: %v", err)
	}
	if ok, err := holder.TryLock(t.Context(), "x"); ok || err != nil {
		t.Errorf("the holder got it back: %v, %v", ok, err)
	}
	if err := other.Unlock(t.Context(), "x"); err != nil {
		t.Error(err)
	}
}

// TestOutageLosesNoLock checks that a lock is not lost if the API server was unavailable for longer than the lock's
// duration and no other process has taken it.
func TestOutageLosesNoLock(t *testing.T) {
	w := newWorld(t)
	p := w.start(t)
	if err := p.Lock(t.Context(), "x"); err != nil {
		t.Fatal(err)
	}
	p.link.cut(true)
	fixture.Holds(t, "a warning", func() bool {
		return p.log.FilterMessage(
			"cannot renew a lock in time: another process may take it over").Len() == 1
	})
	p.link.cut(false)
	if err := p.RenewLockLease(t.Context(), "x", time.Hour); err != nil {
		t.Error(err)
	}
	if err := p.Unlock(t.Context(), "x"); err != nil {
		t.Error(err)
	}
}

// TestClocksDoNotMatter checks that the times in a Lease are ignored, since they come from the clock of another
// process. The Lease is free after it has not changed for its duration.
func TestClocksDoNotMatter(t *testing.T) {
	for name, offset := range map[string]time.Duration{"ahead": 24 * time.Hour, "behind": -9000 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			p := w.start(t)
			c := p.locks.claim("x")
			fresh, err := c.read(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			lease := c.taken(fresh)
			then := metav1.NewMicroTime(time.Now().Add(offset))
			lease.Spec.AcquireTime, lease.Spec.RenewTime = &then, &then
			if _, err := w.admin.CoordinationV1().Leases(w.namespace).Create(t.Context(), lease,
				metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			begun := time.Now()
			if ok, err := p.TryLock(t.Context(), "x"); ok || err != nil {
				t.Errorf("TryLock: %v, %v", ok, err)
			}
			if err := p.Lock(t.Context(), "x"); err != nil {
				t.Fatal(err)
			}
			if took := time.Since(begun); took < short.Duration || took > limit {
				t.Errorf("it took %v", took)
			}
			if err := p.Unlock(t.Context(), "x"); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestOneTakesOver checks that only one process at a time gets the lock of a dead holder if several processes wait for
// it.
func TestOneTakesOver(t *testing.T) {
	w := newWorld(t)
	dead := w.start(t)
	if err := dead.Lock(t.Context(), "x"); err != nil {
		t.Fatal(err)
	}
	dead.link.cut(true)
	var holders atomic.Int32
	var group sync.WaitGroup
	for range 5 {
		p := w.start(t)
		group.Go(func() {
			if err := p.Lock(t.Context(), "x"); err != nil {
				t.Error(err)
				return
			}
			if n := holders.Add(1); n != 1 {
				t.Errorf("%d have the lock", n)
			}
			_ = kubeclient.Pause(t.Context(), 10*time.Millisecond)
			holders.Add(-1)
			if err := p.Unlock(t.Context(), "x"); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	dead.link.cut(false)
	if err := dead.Unlock(t.Context(), "x"); !errors.Is(err, errLost) {
		t.Errorf("Unlock: %v", err)
	}
}

// TestLostResponses checks that a lock still works if the API server has acquired or released its Lease, but the
// response was lost.
func TestLostResponses(t *testing.T) {
	w := newSimulated(t)
	p := w.start(t)
	lose := func(method string) {
		var once atomic.Bool
		w.api.lose(func(r *http.Request) bool { return r.Method == method && once.CompareAndSwap(false, true) })
	}
	for _, method := range []string{http.MethodPost, http.MethodPut} {
		lose(method)
		if err := p.Lock(t.Context(), method); err != nil {
			t.Fatal(err)
		}
		lose(http.MethodPut)
		if err := p.Unlock(t.Context(), method); err != nil {
			t.Errorf("%s: %v", method, err)
		}
		other := w.start(t)
		if ok, err := other.TryLock(t.Context(), method); !ok || err != nil {
			t.Fatalf("%s: it is not free: %v", method, err)
		}
		if err := other.Unlock(t.Context(), method); err != nil {
			t.Error(err)
		}
	}
}

// holdVariable is an environment variable. If it is set, this test binary acquires a lock in the namespace that it
// names, and prints a message.
const holdVariable = "K8SINGRESS_STORAGE_HOLD"

func holdLock() {
	config := &rest.Config{Host: os.Getenv("K8SINGRESS_STORAGE_HOST"), QPS: -1}
	if path := os.Getenv(realAPI); path != "" {
		config = mustConfig(path)
	}
	s, err := newStorage(Options{Namespace: os.Getenv(holdVariable), Times: short}, config, zap.NewNop())
	if err == nil {
		err = s.Lock(context.Background(), "x")
	}
	fmt.Fprintln(os.Stdout, "locked", err)
	_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
}

// TestKilledHolder checks that the lock of a killed process can be acquired.
func TestKilledHolder(t *testing.T) {
	w := newWorld(t)
	command := exec.CommandContext(t.Context(), os.Args[0])
	command.Env = append(os.Environ(), holdVariable+"="+w.namespace, "K8SINGRESS_STORAGE_HOST="+w.config.Host)
	stdin, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	stdout, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(stdout).ReadString('\n'); line != "locked <nil>\n" {
		t.Fatalf("the other process says %q, %v", line, err)
	}
	p := w.start(t)
	ctx, cancel := context.WithTimeout(t.Context(), 2*short.Duration)
	defer cancel()
	if err := p.Lock(ctx, "x"); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("the lock was not held: %v", err)
	}
	_ = command.Process.Kill()
	_ = command.Wait()
	killed := time.Now()
	if err := p.Lock(t.Context(), "x"); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(killed); took > limit {
		t.Errorf("it took %v", took)
	}
	if err := p.Unlock(t.Context(), "x"); err != nil {
		t.Error(err)
	}
}
