package resolver_test

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/miekg/dns"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/k8singress/k8singress/internal/tests/fixture"
	"github.com/k8singress/k8singress/internal/upstream/resolver"
)

// following is a running resolver with the addresses that it has set.
type following struct {
	*resolver.Resolver
	testing.TB
	logs *observer.ObservedLogs

	mu    sync.Mutex
	got   map[string][]string
	calls map[string]int
}

// follow runs a resolver until the test ends. Call it inside the synctest bubble whose clock it must use.
func follow(t *testing.T, resolvConf, hosts string) *following {
	t.Helper()
	core, logs := observer.New(zap.InfoLevel)
	f := &following{TB: t, logs: logs, got: map[string][]string{}, calls: map[string]int{}}
	f.Resolver = resolver.New(f.note, zap.New(core))
	f.SetFiles(file(t, resolvConf), file(t, hosts))
	f.SetOwn(func() ([]netip.Addr, error) {
		return []netip.Addr{netip.MustParseAddr("10.9.9.9"), netip.MustParseAddr("2001:db8::9")}, nil
	})
	fixture.Run(t, "the resolver", f.Run)
	return f
}

func file(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func (f *following) note(id string, addresses []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.got[id] = addresses
	f.calls[id]++
}

// lastSet returns the last addresses that were set for a backend, and how often addresses were set.
func (f *following) lastSet(id string) (addresses []string, calls int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.got[id], f.calls[id]
}

// expect waits until all goroutines are idle, and compares the addresses.
func (f *following) expect(id string, want ...string) {
	f.Helper()
	synctest.Wait()
	if got, _ := f.lastSet(id); !slices.Equal(got, want) {
		f.Errorf("%s has %q, want %q", id, got, want)
	}
}

// pass advances the clock of the bubble.
func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// bubble runs a test with a fake clock that advances when all goroutines are idle.
func bubble(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, test)
}

func usual(servers ...string) resolver.Options { return resolver.Options{Servers: servers} }

func TestEveryAddress(t *testing.T) {
	s := serve(t, "web.example. 30 A 192.0.2.2", "web.example. 30 A 192.0.2.1", "web.example. 30 A 192.0.2.2",
		"web.example. 30 AAAA 2001:db8::1")
	bubble(t, func(t *testing.T) {
		f := follow(t, "", "")
		f.Configure(usual(s.address))
		f.Follow("a/web/80", "Web.Example:8080")
		f.Follow("a/web/443", "web.example:443")
		f.Follow("b/web/80", "web.example.:80")
		f.expect("a/web/80", "192.0.2.1:8080", "192.0.2.2:8080", "[2001:db8::1]:8080")
		f.expect("a/web/443", "192.0.2.1:443", "192.0.2.2:443", "[2001:db8::1]:443")
		f.expect("b/web/80", "192.0.2.1:80", "192.0.2.2:80", "[2001:db8::1]:80")
		if state, ok := f.State("a/web/80"); !ok || state.Name != "web.example" || state.Err != nil ||
			state.Refused != nil {
			t.Errorf("the state is %+v, %v", state, ok)
		}
	})
}

func TestTTL(t *testing.T) {
	for name, c := range map[string]struct {
		ttl  int
		want time.Duration
	}{
		"as it is":  {30, 30 * time.Second},
		"too short": {0, 5 * time.Second},
		"too long":  {86400, 5 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, fmt.Sprintf("web.example. %d A 192.0.2.1", c.ttl))
			bubble(t, func(t *testing.T) {
				f := follow(t, "", "")
				f.Configure(usual(s.address))
				f.Follow("web", "web.example:80")
				f.expect("web", "192.0.2.1:80")
				s.set(fmt.Sprintf("web.example. %d A 192.0.2.2", c.ttl))
				pass(c.want - time.Second)
				f.expect("web", "192.0.2.1:80")
				pass(time.Second)
				f.expect("web", "192.0.2.2:80")
				if _, calls := f.lastSet("web"); calls != 2 {
					t.Errorf("it was told %d times", calls)
				}
				pass(c.want)
				if _, calls := f.lastSet("web"); calls != 2 || s.times("web.example. A udp") != 3 {
					t.Errorf("it was told %d times after %d questions; nothing has changed", calls,
						s.times("web.example. A udp"))
				}
			})
		})
	}
}

// TestAliases checks that the lowest TTL in a chain of aliases is used, whether or not the server follows the chain.
func TestAliases(t *testing.T) {
	s := serve(t, "web.example. 60 CNAME one.example.", "one.example. 20 CNAME two.example.",
		"two.example. 60 A 192.0.2.1",
		"whole.example. 60 CNAME two.example.", "round.example. 60 CNAME around.example.",
		"around.example. 60 CNAME round.example.")
	bubble(t, func(t *testing.T) {
		f := follow(t, "", "")
		f.Configure(usual(s.address))
		f.Follow("web", "web.example:80")
		f.Follow("round", "round.example:80")
		f.expect("web", "192.0.2.1:80")
		f.expect("round")
		if state, _ := f.State("round"); state.Err == nil || !strings.Contains(state.Err.Error(), "aliases") {
			t.Errorf("round: %v", state.Err)
		}
		s.set("web.example. 60 A 192.0.2.2")
		pass(20 * time.Second)
		f.expect("web", "192.0.2.2:80")
	})
}

func TestFailureKeepsTheLastAddresses(t *testing.T) {
	for name, rcode := range map[string]int{"no such name": dns.RcodeNameError,
		"the server fails": dns.RcodeServerFailure} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, "web.example. 10 A 192.0.2.1")
			bubble(t, func(t *testing.T) {
				f := follow(t, "options attempts:1", "")
				f.Configure(usual(s.address))
				f.Follow("web", "web.example:80")
				synctest.Wait()
				s.fail(rcode)
				// At 10, 15, 25, 45, 85, 145 and 205 s.
				pass(206 * time.Second)
				f.expect("web", "192.0.2.1:80")
				if got := s.times("web.example. A udp"); got != 8 {
					t.Errorf("it was asked for %d times", got)
				}
				if state, _ := f.State("web"); state.Err == nil {
					t.Error("the state has no error")
				}
				if n := f.logs.FilterMessageSnippet("failed").Len(); n != 1 {
					t.Errorf("the log tells %d times", n)
				}
				s.set("web.example. 10 A 192.0.2.2")
				pass(time.Minute)
				f.expect("web", "192.0.2.2:80")
				if state, _ := f.State("web"); state.Err != nil {
					t.Error(state.Err)
				}
			})
		})
	}
}

func TestNoResponseAtFirst(t *testing.T) {
	s := serve(t)
	bubble(t, func(t *testing.T) {
		f := follow(t, "", "")
		f.Configure(usual(s.address))
		f.Follow("web", "web.example:80")
		f.expect("web")
		if _, calls := f.lastSet("web"); calls != 1 {
			t.Errorf("told %d times that there is nothing", calls)
		}
		s.set("web.example. 10 A 192.0.2.1")
		pass(5 * time.Second)
		f.expect("web", "192.0.2.1:80")
	})
}

// TestOneFamily checks that the addresses of one family are used if the query for the other one fails.
func TestOneFamily(t *testing.T) {
	s := serve(t, "six.example. 10 AAAA 2001:db8::1", "four.example. 10 A 192.0.2.1", "text.example. 10 TXT hello")
	bubble(t, func(t *testing.T) {
		f := follow(t, "", "")
		f.Configure(usual(s.address))
		f.Follow("six", "six.example:80")
		f.Follow("four", "four.example:80")
		f.Follow("text", "text.example:80")
		f.expect("six", "[2001:db8::1]:80")
		f.expect("four", "192.0.2.1:80")
		f.expect("text")
		if state, _ := f.State("text"); state.Err == nil || !strings.Contains(state.Err.Error(), "but has no address") {
			t.Errorf("text: %v", state.Err)
		}
	})
}

// TestAMachineWithoutIPv6 checks that a machine without IPv6 uses IPv6 addresses only if there are no others.
func TestAMachineWithoutIPv6(t *testing.T) {
	s := serve(t, "web.example. 10 AAAA 2001:db8::1", "web.example. 10 A 192.0.2.1", "six.example. 10 AAAA 2001:db8::1")
	bubble(t, func(t *testing.T) {
		f := follow(t, "", "")
		f.SetOwn(func() ([]netip.Addr, error) {
			return []netip.Addr{netip.MustParseAddr("10.9.9.9"), netip.IPv6Loopback(),
				netip.MustParseAddr("fe80::1")}, nil
		})
		f.Configure(usual(s.address))
		f.Follow("web", "web.example:80")
		f.Follow("six", "six.example:80")
		f.expect("web", "192.0.2.1:80")
		f.expect("six", "[2001:db8::1]:80")
	})
}

func TestTruncatedResponsesUseTCP(t *testing.T) {
	var records, want []string
	for i := range 200 {
		records = append(records, fmt.Sprintf("web.example. 10 A 192.0.2.%d", i))
		want = append(want, fmt.Sprintf("192.0.2.%d:80", i))
	}
	s := serve(t, records...)
	s.cut()
	bubble(t, func(t *testing.T) {
		f := follow(t, "", "")
		f.Configure(usual(s.address))
		f.Follow("web", "web.example:80")
		f.expect("web", want...)
		if s.times("web.example. A udp") != 1 || s.times("web.example. A tcp") != 1 {
			t.Error("it was not asked for by both")
		}
	})
}

func TestNamesWithoutLookup(t *testing.T) {
	s := serve(t)
	bubble(t, func(t *testing.T) {
		f := follow(t, "", "10.1.1.1 alias.example other\n10.1.1.2 alias.example # comment\ngarbage alias.example\n")
		f.Configure(resolver.Options{Servers: []string{s.address}, Access: resolver.Everything})
		for name, want := range map[string][]string{
			"192.0.2.1:80": {"192.0.2.1:80"}, "[2001:db8::1]:80": {"[2001:db8::1]:80"},
			"[::ffff:192.0.2.1]:80": {"192.0.2.1:80"},
			"alias.example:80":      {"10.1.1.1:80", "10.1.1.2:80"},
			"Alias.example.:80":     {"10.1.1.1:80", "10.1.1.2:80"},
			"localhost:80":          {"127.0.0.1:80", "[::1]:80"}, "a.localhost:80": {"127.0.0.1:80", "[::1]:80"},
			`a\.b:80`: nil, "{env.HOME}:80": nil, "a..b:80": nil, ".:80": nil, ":80": nil, "no port": nil,
			"a.example:0":     nil,
			"a.example:65536": nil, "[fe80::1%lo]:80": nil, strings.Repeat("a", 64) + ":80": nil,
		} {
			f.Follow(name, name)
			f.expect(name, want...)
			if state, ok := f.State(name); !ok || (state.Err == nil) != (want != nil) {
				t.Errorf("%s: %+v, %v", name, state, ok)
			}
		}
		pass(24 * time.Hour)
		s.mu.Lock()
		defer s.mu.Unlock()
		for question := range s.asked {
			if !strings.HasPrefix(question, "a.example.") {
				t.Errorf("%s was asked for", question)
			}
		}
	})
}

// TestSearch checks that names without enough dots are completed as in resolv.conf(5).
func TestSearch(t *testing.T) {
	s := serve(t, "db.shop.svc.cluster.local. 10 A 10.1.1.1", "db.other.shop.svc.cluster.local. 10 A 10.1.1.2",
		"api.example.com. 10 A 192.0.2.1")
	bubble(t, func(t *testing.T) {
		f := follow(t,
			"nameserver 127.0.0.9\nsearch shop.svc.cluster.local svc.cluster.local\noptions ndots:2 rotate "+
				"timeout:1 attempts:1\n", "")
		f.Configure(usual(s.address))
		f.Follow("db", "db:80")
		f.Follow("absolute", "db.:80")
		f.Follow("other", "db.other:80")
		f.Follow("api", "api.example.com:80")
		f.expect("db", "10.1.1.1:80")
		f.expect("absolute")
		f.expect("other", "10.1.1.2:80")
		f.expect("api", "192.0.2.1:80")
		if s.times("api.example.com.shop.svc.cluster.local. A udp") > 0 {
			t.Error("a name with enough dots was completed")
		}
	})
}

// TestSeveralServers checks that the next server is queried if one fails, and that the addresses stay if all fail.
func TestSeveralServers(t *testing.T) {
	bad, good := serve(t), serve(t, "web.example. 10 A 192.0.2.1")
	bad.fail(dns.RcodeRefused)
	bubble(t, func(t *testing.T) {
		f := follow(t, "options attempts:1", "")
		f.Configure(usual(bad.address, good.address))
		f.Follow("web", "web.example:80")
		f.expect("web", "192.0.2.1:80")
		good.fail(dns.RcodeServerFailure)
		pass(10 * time.Second)
		f.expect("web", "192.0.2.1:80")
		if state, _ := f.State("web"); state.Err == nil ||
			!strings.Contains(state.Err.Error(), good.address+": it returned SERVFAIL") {
			t.Errorf("the error is %v", state.Err)
		}
	})
}

// TestRebinding checks that addresses of this machine are removed from a backend. A response with only such addresses
// is not a failure.
func TestRebinding(t *testing.T) {
	s := serve(t, "web.example. 10 A 192.0.2.1")
	bubble(t, func(t *testing.T) {
		f := follow(t, "", "")
		f.Configure(usual(s.address))
		f.Follow("web", "web.example:80")
		f.expect("web", "192.0.2.1:80")
		s.set("web.example. 10 A 127.0.0.1", "web.example. 10 A 192.0.2.2", "web.example. 10 A 10.9.9.9")
		pass(10 * time.Second)
		f.expect("web", "192.0.2.2:80")
		if state, _ := f.State("web"); !slices.Equal(state.Refused,
			[]string{"10.9.9.9 (of this machine)", "127.0.0.1 (loopback)"}) {
			t.Errorf("refused are %q", state.Refused)
		}
		s.set("web.example. 10 A 169.254.169.254")
		pass(10 * time.Second)
		f.expect("web")
		if n := f.logs.FilterMessageSnippet("ignoring addresses").Len(); n != 1 {
			t.Errorf("the log tells %d times", n)
		}
		// If our own addresses are unknown, no addresses are used.
		s.set("web.example. 10 A 192.0.2.2")
		pass(10 * time.Second)
		f.expect("web", "192.0.2.2:80")
		f.SetOwn(func() ([]netip.Addr, error) { return nil, errors.New("no") })
		pass(10 * time.Second)
		f.expect("web")
	})
}

func TestOtherOptions(t *testing.T) {
	s, other := serve(t, "web.example. 300 A 127.0.0.1"), serve(t, "web.example. 300 A 127.0.0.2")
	bubble(t, func(t *testing.T) {
		f := follow(t, "", "")
		f.Follow("web", "web.example:80")
		pass(time.Minute)
		if _, calls := f.lastSet("web"); calls > 0 {
			t.Error("it is looked up before there are options")
		}
		o := usual(s.address)
		f.Configure(o)
		f.expect("web")
		o.Access = resolver.Everything
		f.Configure(o)
		f.expect("web", "127.0.0.1:80")
		o.Servers = []string{other.address}
		f.Configure(o)
		f.expect("web", "127.0.0.2:80")
		asked := other.times("web.example. A udp")
		f.Configure(o)
		f.expect("web", "127.0.0.2:80")
		if other.times("web.example. A udp") != asked {
			t.Error("the same options made it ask again")
		}
		o.Access = resolver.Nothing
		f.Configure(o)
		f.expect("web")
		f.Follow("late", "web.example:80")
		if _, calls := f.lastSet("late"); calls != 1 {
			t.Error("what a backend had before stays, though no name is looked up")
		}
		if state, _ := f.State("late"); state.Err == nil {
			t.Error("the state does not say that it is off")
		}
	})
}

func TestUnfollow(t *testing.T) {
	s := serve(t, "web.example. 10 A 192.0.2.1", "new.example. 10 A 192.0.2.9")
	bubble(t, func(t *testing.T) {
		f := follow(t, "", "")
		f.Configure(usual(s.address))
		f.Follow("one", "web.example:80")
		f.Follow("two", "web.example:81")
		synctest.Wait()
		f.Unfollow("one")
		f.Unfollow("one")
		f.Unfollow("unknown")
		s.set("web.example. 10 A 192.0.2.2", "new.example. 10 A 192.0.2.9")
		pass(10 * time.Second)
		f.expect("one", "192.0.2.1:80")
		f.expect("two", "192.0.2.2:81")
		f.Follow("two", "new.example:81")
		f.expect("two", "192.0.2.9:81")
		if _, ok := f.State("one"); ok {
			t.Error("one is still followed")
		}
		asked := s.times("web.example. A udp")
		pass(time.Minute)
		if names, queued := f.Known(); names != 1 || queued != 1 || s.times("web.example. A udp") != asked {
			t.Errorf("%d names, %d queued, and the old one was asked for %d times more", names, queued,
				s.times("web.example. A udp")-asked)
		}
	})
}

// TestManyNames checks that many names are looked up, each according to its TTL.
func TestManyNames(t *testing.T) {
	const many = 1000
	var records []string
	for i := range many {
		records = append(records, fmt.Sprintf("n%d.example. %d A 10.0.%d.%d", i, 10+i%50, i/250, i%250+1))
	}
	s := serve(t, records...)
	bubble(t, func(t *testing.T) {
		f := follow(t, "", "")
		f.Configure(usual(s.address))
		for i := range many {
			f.Follow(fmt.Sprint(i), fmt.Sprintf("n%d.example:80", i))
		}
		synctest.Wait()
		for i := range many {
			f.expect(fmt.Sprint(i), fmt.Sprintf("10.0.%d.%d:80", i/250, i%250+1))
		}
		pass(10 * time.Second)
		if got := s.times("n0.example. A udp"); got != 2 {
			t.Errorf("the first name was asked for %d times", got)
		}
		if got := s.times("n49.example. A udp"); got != 1 {
			t.Errorf("a name that holds for 59 s was asked for %d times in 10 s", got)
		}
	})
}

// TestAtTheSameTime changes names while they are looked up. It is meant for the race detector.
func TestAtTheSameTime(t *testing.T) {
	s := serve(t, "web.example. 10 A 192.0.2.1")
	f := follow(t, "", "")
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			id := fmt.Sprint(i)
			for j := range 100 {
				f.Configure(resolver.Options{Servers: []string{s.address}, Access: resolver.Access(j % 2)})
				f.Follow(id, "web.example:80")
				f.State(id)
				f.Unfollow(id)
			}
			f.Follow(id, "web.example:80")
		})
	}
	all.Wait()
	f.Configure(usual(s.address))
	fixture.Holds(t, "the addresses of the name", func() bool {
		got, _ := f.lastSet("3")
		return slices.Equal(got, []string{"192.0.2.1:80"})
	})
}

// TestEnd checks that Run ends without waiting for silent servers.
func TestEnd(t *testing.T) {
	silent, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	var end time.Time
	t.Cleanup(func() {
		if took := time.Since(end); took > 3*time.Second {
			t.Errorf("the end took %v", took)
		}
	})
	f := follow(t, "", "")
	f.Configure(usual(silent.LocalAddr().String()))
	f.Follow("web", "web.example:80")
	buffer := make([]byte, 512)
	if _, _, err := silent.ReadFrom(buffer); err != nil {
		t.Fatal(err)
	}
	end = time.Now()
}
