package kubestorage

import (
	"context"
	"path"
	"strings"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sync/singleflight"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilcache "k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/client-go/util/flowcontrol"
)

const (
	// issuing begins the names of certmagic's locks for hosts that get a certificate.
	issuing = "issue_cert_"
	// lookupsPerSecond is how many tokens per second are looked up at the API server, for all hosts together, and
	// lookupBurst how many at once. lookupInterval is how soon the token of one host is looked up once more.
	lookupsPerSecond, lookupBurst = 20, 40
	lookupInterval                = 200 * time.Millisecond
	// recentLookups is how many hosts lookupInterval is kept for; the hosts that get a certificate at one time are fewer.
	recentLookups = 1000
)

// challengeHost returns the host in a key like acme/ISSUER/challenge_tokens/HOST.json.
func challengeHost(key string) (string, bool) {
	folder, file := path.Split(key)
	host, isJSON := strings.CutSuffix(file, ".json")
	return host, isJSON && strings.HasSuffix(folder, "/challenge_tokens/")
}

// SetWanted names the hosts for which tokens of challenges are expected, besides those that a lock is held for. The function
// is called for every challenge that is not known, and must be quick. The host is in the form that it has in keys, as
// certmagic.StorageKeys.Safe makes it.
func (s *Storage) SetWanted(wanted func(host string) bool) { s.lookups.wanted.Store(&wanted) }

// lookups limits the requests for tokens.
type lookups struct {
	wanted  atomic.Pointer[func(host string) bool]
	limiter flowcontrol.PassiveRateLimiter
	recent  *utilcache.LRUExpireCache
	running singleflight.Group
}

func newLookups() *lookups {
	return &lookups{
		limiter: flowcontrol.NewTokenBucketPassiveRateLimiter(lookupsPerSecond, lookupBurst),
		recent:  utilcache.NewLRUExpireCache(recentLookups),
	}
}

// allow returns whether a key may be looked up now, and counts it.
func (l *lookups) allow(key string) bool {
	_, recently := l.recent.Get(key)
	if recently || !l.limiter.TryAccept() {
		return false
	}
	l.recent.Add(key, nil, lookupInterval)
	return true
}

// expected looks up a token at the API server, if there is reason to believe that another process has written it this
// very moment. Any client can send requests with made up challenges, and these cost no request to the API server.
func (s *Storage) expected(ctx context.Context, key string) ([]byte, bool) {
	host, ok := challengeHost(key)
	if !ok || !s.wants(host) {
		return nil, false
	}
	p := placeOf(key)
	// Other requests wait for the same answer, and must not lose it when this one ends.
	detached := context.WithoutCancel(ctx)
	done := s.lookups.running.DoChan(key, func() (any, error) {
		if s.lookups.allow(key) {
			s.lookUp(detached, key, p.secret)
		}
		return nil, nil
	})
	select {
	case <-done:
	case <-ctx.Done():
	}
	return p.value(s.secrets.get(p.secret))
}

func (s *Storage) lookUp(ctx context.Context, key, name string) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	secret, err := s.api.Get(ctx, name, metav1.GetOptions{})
	if err == nil {
		err = s.secrets.onRead(secret)
	}
	if err != nil && !apierrors.IsNotFound(err) {
		s.log.Warn("cannot read the token of an ACME challenge", zap.String("key", key), zap.Error(err))
	}
}

func (s *Storage) wants(host string) bool {
	if wanted := s.lookups.wanted.Load(); wanted != nil && (*wanted)(host) {
		return true
	}
	return s.leases.issues(host)
}
