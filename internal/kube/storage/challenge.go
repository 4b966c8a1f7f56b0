package storage

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
	// issuing is the prefix of the names of certmagic's locks for obtaining certificates.
	issuing = "issue_cert_"
	// lookupsPerSecond is the maximum rate at which challenge tokens are requested from the API server, for all hosts
	// together, and lookupBurst is the maximum burst. lookupInterval is the minimum time between two requests for the
	// same host.
	lookupsPerSecond, lookupBurst = 20, 40
	lookupInterval                = 200 * time.Millisecond
	// recentLookups is the maximum number of hosts for which the last look-up is remembered. It is larger than the
	// number of hosts that obtain a certificate at the same time.
	recentLookups = 1000
)

// challengeHost returns the host in the key of a challenge token, such as acme/ISSUER/challenge_tokens/HOST.json. It
// returns false for other keys.
func challengeHost(key string) (string, bool) {
	folder, file := path.Split(key)
	host, isJSON := strings.CutSuffix(file, ".json")
	return host, isJSON && strings.HasSuffix(folder, "/challenge_tokens/")
}

// SetWanted sets a function that reports whether a challenge token is expected for a host. If so, a token that is not
// in the cache is requested from the API server. A token is also expected while any process holds the lock for
// obtaining a certificate for the host. The function is called for every unknown challenge and must be fast. Its
// argument is the host in the form that certmagic.StorageKeys.Safe returns.
func (s *Storage) SetWanted(wanted func(host string) bool) { s.lookups.wanted.Store(&wanted) }

// lookups limits how often challenge tokens are requested from the API server.
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

// allow reports whether a challenge token may be requested from the API server now. If so, it counts the request
// towards the limits.
func (l *lookups) allow(key string) bool {
	_, recently := l.recent.Get(key)
	if recently || !l.limiter.TryAccept() {
		return false
	}
	l.recent.Add(key, nil, lookupInterval)
	return true
}

// expected returns the challenge token of a host from the API server, if a token is expected for the host. The token
// may be missing in the cache because another process has just written it. For challenges that a client has invented,
// expected sends no request.
func (s *Storage) expected(ctx context.Context, key string) ([]byte, bool) {
	host, ok := challengeHost(key)
	if !ok || !s.wants(host) {
		return nil, false
	}
	p := placeOf(key)
	// Concurrent calls for the same key share one request, so the request must not be canceled with the context of this
	// call.
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
