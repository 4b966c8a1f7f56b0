package kubestorage

import (
	"context"
	"path"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/caddyserver/certmagic"
	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/flowcontrol"
)

const (
	// issuing begins the names of certmagic's locks for hosts that get a certificate.
	issuing = "issue_cert_"
	// liveGets is how many tokens per second are looked up at the API server, for all hosts together, liveBurst how many
	// at once, and again how soon one host's is looked up once more.
	liveGets, liveBurst = 20, 40
	again               = 200 * time.Millisecond
	// remembered is how many hosts that is known of; the hosts that get a certificate at one time are fewer.
	remembered = 1000
)

// challengeHost takes the host out of a key like acme/ISSUER/challenge_tokens/HOST.json.
func challengeHost(key string) (string, bool) {
	folder, file := path.Split(key)
	host, isJSON := strings.CutSuffix(file, ".json")
	return host, isJSON && strings.HasSuffix(folder, "/challenge_tokens/")
}

// SetWanted says of which hosts, besides those that a lock is held for, tokens of challenges are expected. The function
// is called for every challenge that is not known, and must be quick. The host is in the form that it has in keys, as
// certmagic.StorageKeys.Safe makes it.
func (s *Storage) SetWanted(wanted func(host string) bool) { s.live.wanted.Store(&wanted) }

// expected looks up a token at the API server, if there is reason to believe that another process has written it this
// very moment. Anybody can send requests with made up challenges, and these cost no request to the API server.
func (s *Storage) expected(ctx context.Context, key string) (item, bool) {
	host, ok := challengeHost(key)
	if !ok || !s.wants(host) {
		return item{}, false
	}
	// Others may wait for the same answer, and must not lose it when this request ends.
	detached := context.WithoutCancel(ctx)
	done := s.live.once(key, func() {
		ctx, cancel := context.WithTimeout(detached, answerTime)
		defer cancel()
		if _, err := s.found(s.api.Get(ctx, placeOf(key).secret, metav1.GetOptions{})); err != nil {
			s.log.Warn("cannot look up the token of a challenge", zap.String("key", key), zap.Error(err))
		}
	})
	select {
	case <-done:
	case <-ctx.Done():
	}
	return s.index.item(key)
}

func (s *Storage) wants(host string) bool {
	if wanted := s.live.wanted.Load(); wanted != nil && (*wanted)(host) {
		return true
	}
	return s.table.issues(host)
}

// issued is the host in the name of a lock, as it is in keys.
func issued(lock string) (string, bool) {
	name, ok := strings.CutPrefix(lock, issuing)
	return certmagic.StorageKeys.Safe(name), ok
}

// live limits the look-ups at the API server.
type live struct {
	wanted  atomic.Pointer[func(host string) bool]
	limiter flowcontrol.PassiveRateLimiter

	mu   sync.Mutex
	last map[string]*lookup
}

// lookup is one that runs, or the last one.
type lookup struct {
	begun time.Time
	done  chan struct{}
}

func newLive() *live {
	return &live{limiter: flowcontrol.NewTokenBucketPassiveRateLimiter(liveGets, liveBurst), last: map[string]*lookup{}}
}

// never is what once returns when nothing is to be waited for.
var never = func() chan struct{} {
	closed := make(chan struct{})
	close(closed)
	return closed
}()

// once calls a function for a key, unless one runs, or has begun a moment ago. The channel is closed when it has ended.
func (l *live) once(key string, look func()) <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	if last := l.last[key]; last != nil && (time.Since(last.begun) < again || !last.ended()) {
		return last.done
	}
	if !l.limiter.TryAccept() {
		return never
	}
	if len(l.last) >= remembered {
		clear(l.last)
	}
	next := &lookup{begun: time.Now(), done: make(chan struct{})}
	l.last[key] = next
	go func() {
		defer close(next.done)
		look()
	}()
	return next.done
}

func (l *lookup) ended() bool {
	select {
	case <-l.done:
		return true
	default:
		return false
	}
}
