package extauth

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/k8singress/k8singress/internal/http/message"
	"github.com/k8singress/k8singress/internal/tests/fixture"
)

// TestLifetime checks which responses are cached, and how long.
func TestLifetime(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	s := &Service{Keep: []Lifetime{{200, time.Minute}, {401, time.Second}}}
	for _, c := range []struct {
		status int
		name   string
		value  string
		want   time.Duration
	}{
		{200, "X-None", "", time.Minute}, {401, "X-None", "", time.Second}, {403, "X-None", "", 0},
		{500, "X-None", "", 0},
		{200, "Set-Cookie", "a=b", 0}, {200, "Vary", "Cookie, *", 0}, {200, "Vary", "Cookie", time.Minute},
		{200, "Cache-Control", "public, max-age=7", 7 * time.Second},
		{403, "cache-control", "max-age=7", 7 * time.Second},
		{500, "Cache-Control", "max-age=7", 0}, {200, "Cache-Control", "max-age=7, s-maxage=8", 8 * time.Second},
		{200, "Cache-Control", "no-store", 0}, {200, "Cache-Control", "PRIVATE", 0},
		{200, "Cache-Control", "max-age=x", 0},
		{200, "X-Accel-Expires", "3", 3 * time.Second}, {200, "X-Accel-Expires", "0", 0},
		{200, "X-Accel-Expires", "@1700000009", 9 * time.Second},
		{200, "Expires", "0", 0}, {200, "Expires",
			now.Add(time.Hour).UTC().Format("Mon, 02 Jan 2006 15:04:05 GMT"), time.Hour},
	} {
		a := &Verdict{Status: c.status, Fields: message.Fields{message.NewField(c.name, c.value)}}
		if got := s.lifetime(a, now); got != c.want {
			t.Errorf("%d with %s: %s is kept for %s, want %s", c.status, c.name, c.value, got, c.want)
		}
	}
}

var (
	minutely = &Service{Keep: []Lifetime{{200, time.Minute}}}
	errAsked = errors.New("asked")
)

func answers(fields ...message.Field) func() (*Verdict, error) {
	return func() (*Verdict, error) { return &Verdict{Status: 200, Fields: fields}, nil }
}

// TestCacheForgets checks that the cache drops expired entries, and the least recently used ones if it is full.
func TestCacheForgets(t *testing.T) {
	now := time.Unix(0, 0)
	// A single namespace may use four sevenths of the cache.
	c := newCache(4*entryBytes, func() time.Time { return now })
	for i := range byte(3) {
		if _, err := c.Fetch(t.Context(), Request{minutely, key(i), nil, false}, answers()); err != nil {
			t.Fatal(err)
		}
		c.Get(key(0), nil)
	}
	if c.Get(key(0), nil) == nil || c.Get(key(1), nil) != nil || c.Get(key(2), nil) == nil ||
		c.room.Used() != 2*entryBytes {
		t.Errorf("kept are %v, with %d bytes", c.entries, c.room.Used())
	}
	now = now.Add(time.Minute)
	if c.Get(key(0), nil) != nil || c.Get(key(2), nil) != nil || c.room.Used() != 0 || len(c.entries)+len(c.used) != 0 {
		t.Errorf("kept are %v, with %d bytes", c.entries, c.room.Used())
	}
}

// key returns the i-th key of a namespace.
func key(i byte) Key { return Key{"a", [32]byte{i}} }

// TestTenant22CachedResponses checks that the cached responses of one namespace do not push out those that another
// namespace has cached.
func TestTenant22CachedResponses(t *testing.T) {
	c := newCache(100*entryBytes, time.Now)
	keep := func(key Key) {
		if _, err := c.Fetch(t.Context(), Request{minutely, key, nil, false}, answers()); err != nil {
			t.Fatal(err)
		}
	}
	keep(key(1))
	for i := range 1000 {
		keep(Key{"b", [32]byte{byte(i), byte(i >> 8)}})
	}
	if c.Get(key(1), nil) == nil {
		t.Error("the answer of another namespace is gone")
	}
	for i := range byte(10) {
		keep(key(i))
	}
	for i := range byte(10) {
		if c.Get(key(i), nil) == nil {
			t.Error("there is no room for another namespace")
		}
	}
	if n := len(c.entries); n > 100 || n < 50 {
		t.Errorf("%d entries are kept", n)
	}
}

// TestCacheVaries checks that the cache honors the Vary field of the service.
func TestCacheVaries(t *testing.T) {
	c := NewCache()
	cookie := func(value string) message.Fields { return message.Fields{message.Cookie.Field(value)} }
	if _, err := c.Fetch(t.Context(), Request{minutely, Key{}, cookie("a"), false},
		answers(message.NewField("Vary", "Cookie"))); err != nil {
		t.Fatal(err)
	}
	if c.Get(Key{}, cookie("a")) == nil || c.Get(Key{}, cookie("b")) != nil {
		t.Error("the answer is for another cookie")
	}
}

// TestEqualRequestsAreSentOnce checks that equal requests are sent to the service once, unless the response cannot be
// shared.
func TestEqualRequestsAreSentOnce(t *testing.T) {
	for _, c := range []struct {
		answer []message.Field
		want   int32
	}{{nil, 1}, {[]message.Field{message.SetCookie.Field("a=b")}, 8}} {
		cache, asked, free := NewCache(), atomic.Int32{}, make(chan struct{})
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				_, err := cache.Fetch(t.Context(), Request{minutely, Key{}, nil, false}, func() (*Verdict, error) {
					asked.Add(1)
					<-free
					return answers(c.answer...)()
				})
				if err != nil {
					t.Error(err)
				}
			})
		}
		fixture.Eventually(t, "the first question", func() error {
			if asked.Load() == 0 {
				return errAsked
			}
			return nil
		})
		close(free)
		all.Wait()
		if got := asked.Load(); got != c.want && (c.want == 1 || got == 0) {
			t.Errorf("asked %d times, want %d", got, c.want)
		}
	}
}

// TestWaitEndsWithTheContext checks that a request stops waiting for an equal request when its context ends.
func TestWaitEndsWithTheContext(t *testing.T) {
	cache, asked, free := NewCache(), make(chan struct{}), make(chan struct{})
	var first sync.WaitGroup
	first.Go(func() {
		_, _ = cache.Fetch(t.Context(), Request{minutely, Key{}, nil, false}, func() (*Verdict, error) {
			close(asked)
			<-free
			return nil, errAsked
		})
	})
	<-asked
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := cache.Fetch(ctx, Request{minutely, Key{}, nil, false}, answers()); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	close(free)
	first.Wait()
}

// TestWaitIsLimited checks that a request does not wait long for an equal one, because the service may be waiting
// for this request.
func TestWaitIsLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cache, depth := NewCache(), 0
		var ask func() (*Verdict, error)
		ask = func() (*Verdict, error) {
			if depth++; depth == 3 {
				return answers()()
			}
			return cache.Fetch(t.Context(), Request{minutely, Key{}, nil, false}, ask)
		}
		began := time.Now()
		if _, err := ask(); err != nil || time.Since(began) > 2*maxWait {
			t.Errorf("%v after %s", err, time.Since(began))
		}
		if cache.Get(Key{}, nil) == nil {
			t.Error("the answer is not kept")
		}
	})
}

// TestRequestWaitingForItselfEnds checks that a request that has passed through this controller before waits for an
// equal one, like any other request, and fails after maxWait. A client gains nothing if it forges the CDN-Loop
// field.
func TestRequestWaitingForItselfEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cache, asked := NewCache(), 0
		var ask func() (*Verdict, error)
		ask = func() (*Verdict, error) {
			asked++
			return cache.Fetch(t.Context(), Request{minutely, Key{}, nil, true}, ask)
		}
		began := time.Now()
		_, err := cache.Fetch(t.Context(), Request{minutely, Key{}, nil, false}, ask)
		if took := time.Since(began); !errors.Is(err, errWaited) || asked != 1 || took != maxWait {
			t.Errorf("%v after %s and %d questions", err, took, asked)
		}
	})
}

// TestForgedMarkWaits checks that only one of many equal requests is sent to the service, even if the clients claim
// that they have passed through here before.
func TestForgedMarkWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cache, asked := NewCache(), 0
		for range 10 {
			go func() {
				_, _ = cache.Fetch(t.Context(), Request{minutely, Key{}, nil, true}, func() (*Verdict, error) {
					asked++
					<-time.After(time.Second)
					return answers()()
				})
			}()
		}
		<-time.After(2 * time.Second)
		if asked != 1 {
			t.Errorf("the service is asked %d times", asked)
		}
	})
}

func BenchmarkGet(b *testing.B) {
	c := NewCache()
	if _, err := c.Fetch(b.Context(), Request{minutely, Key{}, nil, false}, answers()); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if c.Get(Key{}, nil) == nil {
			b.Fatal("it is not kept")
		}
	}
}
