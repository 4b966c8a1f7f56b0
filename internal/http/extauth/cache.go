package extauth

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/k8singress/k8singress/internal/http/message"
	"github.com/k8singress/k8singress/internal/process/budget"
)

const (
	// entryBytes is the approximate memory, in bytes, of a cached response without its header fields. fieldBytes is the
	// approximate memory of a header field without its name and value.
	entryBytes, fieldBytes = 384, 48
)

// Key is a cache key. Requests with the same Key get the same response from the authentication service, unless the
// response depends on header fields (Vary).
type Key struct {
	// Namespace is the namespace of the Ingress. The memory of the cached response counts towards the limit of this
	// namespace.
	Namespace string
	// Digest is a hash of everything else that a cached response depends on: the settings of the external
	// authentication, the route, the host and the configured cache key.
	Digest [32]byte
}

// Cache caches the responses of authentication services. Its memory is divided among the namespaces: a namespace that
// has used up its share evicts its own least recently used responses. Cache is safe for concurrent use.
type Cache struct {
	// room is the memory budget for cached responses, in bytes. The memory that a response takes is an estimate.
	room *budget.Budget
	now  func() time.Time

	mu      sync.Mutex
	entries map[Key]*list.Element
	// used lists the cached responses of each namespace, with the most recently used response first.
	used map[string]*list.List
	// pending holds the requests to authentication services that are in flight.
	pending map[Key]*pendingCall
}

// entry is a cached response of an authentication service.
type entry struct {
	key     Key
	verdict *Verdict
	until   time.Time
	bytes   int
	// varied holds the request header fields that the response's Vary header lists, with their values in the original
	// request.
	varied message.Fields
}

// pendingCall is a request to an authentication service that is in flight. Other client requests with the same key wait
// for its response.
type pendingCall struct {
	done chan struct{}
	// kept is the cached response. It is nil if the response must not be cached.
	kept *entry
}

// maxWait is how long a request waits for the response to an identical request in flight, as in nginx. Without this
// limit, there could be a deadlock: the authentication service may itself send a request through this controller, which
// would wait for the first request.
const maxWait = 5 * time.Second

// maxVaried is the maximum number of request header fields that a cached response may depend on (Vary).
const maxVaried = 16

// NewCache returns an empty cache.
func NewCache() *Cache { return newCache(budget.AuthCache.Limit(), time.Now) }

func newCache(limit int64, now func() time.Time) *Cache {
	return &Cache{
		room: budget.New(limit), now: now, entries: map[Key]*list.Element{}, used: map[string]*list.List{},
		pending: map[Key]*pendingCall{},
	}
}

// Get returns the cached response for a key and the header fields of a request, or nil if no response is cached for
// them.
func (c *Cache) Get(key Key, of message.Fields) *Verdict {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.get(key, of)
}

func (c *Cache) get(key Key, of message.Fields) *Verdict {
	element := c.entries[key]
	if element == nil {
		return nil
	}
	e := element.Value.(*entry) //nolint:forcetypeassert // There is nothing else in the list.
	if !c.now().Before(e.until) {
		c.drop(element)
		return nil
	}
	if !e.isFor(of) {
		return nil
	}
	c.used[key.Namespace].MoveToFront(element)
	return e.verdict
}

// isFor reports whether a cached response may be used for a request with the given header fields. This requires that
// each header field that is listed in the response's Vary header has the same value as in the original request.
func (e *entry) isFor(of message.Fields) bool {
	for i := range e.varied {
		if value, _ := of.Joined(e.varied[i].Name); value != e.varied[i].Value {
			return false
		}
	}
	return true
}

func (c *Cache) drop(element *list.Element) {
	e := element.Value.(*entry) //nolint:forcetypeassert // There is nothing else in the list.
	delete(c.entries, e.key)
	used := c.used[e.key.Namespace]
	if used.Remove(element); used.Len() == 0 {
		delete(c.used, e.key.Namespace)
	}
	c.share(e.key.Namespace).Give(int64(e.bytes))
}

// share returns the share of a namespace in the memory budget of the cache.
func (c *Cache) share(namespace string) *budget.Share { return c.room.Share(namespace, "") }

// put adds a response to the cache. If the namespace has used up its memory, put evicts other responses of the
// namespace. A response that is too large on its own is not added.
func (c *Cache) put(e *entry) {
	if old := c.entries[e.key]; old != nil {
		c.drop(old)
	}
	share := c.share(e.key.Namespace)
	for !share.Take(int64(e.bytes)) {
		used := c.used[e.key.Namespace]
		if used == nil {
			return
		}
		c.drop(used.Back())
	}
	if c.used[e.key.Namespace] == nil {
		c.used[e.key.Namespace] = list.New()
	}
	c.entries[e.key] = c.used[e.key.Namespace].PushFront(e)
}

// errWaited is returned by await after maxWait. A request that gets this error may be waiting for itself.
var errWaited = fmt.Errorf(
	"an identical request to the authentication service got no response within %s, and this request has already "+
		"passed through this controller", maxWait)

// Request is a request to an authentication service.
type Request struct {
	Service *Service
	// Key is the cache key. Fields are the header fields of the client's request, on which the service's response may
	// depend.
	Key    Key
	Fields message.Fields
	// Again is true if the client's request has already passed through this controller.
	Again bool
}

// Fetch returns the cached response for a request. If no response is cached, it calls the authentication service. If a
// request with the same key is already in flight, Fetch waits up to 5 seconds for its response, and calls the service
// only if this response does not arrive in time or cannot be used. If q.Again is true, Fetch returns an error after 5
// seconds instead, because the request in flight may itself be waiting for this request. ctx is the context of the
// client's request.
func (c *Cache) Fetch(ctx context.Context, q Request, call func() (*Verdict, error)) (*Verdict, error) {
	s, key, of := q.Service, q.Key, q.Fields
	c.mu.Lock()
	if verdict := c.get(key, of); verdict != nil {
		c.mu.Unlock()
		return verdict, nil
	}
	if other := c.pending[key]; other != nil {
		c.mu.Unlock()
		verdict, err := other.await(ctx, of)
		switch {
		case errors.Is(err, errWaited) && !q.Again:
		case verdict != nil || err != nil:
			return verdict, err
		}
		verdict, err = call()
		if err == nil {
			c.keep(s, key, of, verdict)
		}
		return verdict, err
	}
	own := &pendingCall{done: make(chan struct{})}
	c.pending[key] = own
	c.mu.Unlock()
	// Use defer, so that own.done is closed even if call panics: other requests wait for it.
	defer func() {
		c.mu.Lock()
		delete(c.pending, key)
		c.mu.Unlock()
		close(own.done)
	}()
	verdict, err := call()
	if err == nil {
		own.kept = c.keep(s, key, of, verdict)
	}
	return verdict, err
}

// await waits for the response to a request in flight. It returns nil if the response cannot be used for another
// request with the given header fields, or errWaited if there is no response within maxWait.
func (a *pendingCall) await(ctx context.Context, of message.Fields) (*Verdict, error) {
	enough := time.NewTimer(maxWait)
	defer enough.Stop()
	select {
	case <-a.done:
		if a.kept != nil && a.kept.isFor(of) {
			return a.kept.verdict, nil
		}
	case <-enough.C:
		return nil, errWaited
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	return nil, nil
}

// keep adds a response to the cache and returns the new entry. It returns nil if the response must not be cached.
func (c *Cache) keep(s *Service, key Key, of message.Fields, verdict *Verdict) *entry {
	now := c.now()
	lifetime := min(s.lifetime(verdict, now), maxLifetime)
	if lifetime <= 0 {
		return nil
	}
	e := newEntry(s, key, of, verdict)
	e.until = now.Add(lifetime)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.put(e)
	return e
}

// newEntry returns a new cache entry for a response. It copies all strings, because a substring of a response head
// would keep the whole head in memory.
func newEntry(s *Service, key Key, of message.Fields, verdict *Verdict) *entry {
	e := &entry{key: key, verdict: &Verdict{Status: verdict.Status}, bytes: entryBytes}
	own := func(name, value string, kind message.Kind) message.Field {
		e.bytes += fieldBytes + len(name) + len(value)
		return message.Field{Name: strings.Clone(name), Value: strings.Clone(value), Kind: kind}
	}
	for i := range verdict.Fields {
		f := &verdict.Fields[i]
		if IsChallenge(f) || (&Service{Wanted: s.Wanted, Kept: s.Kept}).Wants(f) {
			e.verdict.Fields = append(e.verdict.Fields, own(f.Name, f.Value, f.Kind))
		}
	}
	vary, _ := verdict.Fields.Joined(varyField)
	for name := range strings.SplitSeq(vary, ",") {
		if name = strings.TrimSpace(name); name != "" {
			value, _ := of.Joined(name)
			e.varied = append(e.varied, own(name, value, message.KindOf(name)))
		}
	}
	return e
}

// The response header fields that determine whether and for how long a response is cached.
const (
	varyField     = "Vary"
	controlField  = "Cache-Control"
	expiresField  = "Expires"
	expiresXField = "X-Accel-Expires"
)

const maxLifetime = 365 * 24 * time.Hour

func affectsCaching(f *message.Field) bool {
	for _, name := range [...]string{varyField, controlField, expiresField, expiresXField} {
		if f.Is(message.Other, name) {
			return true
		}
	}
	return false
}

// lifetime returns how long a response may be cached; 0 means that it must not be cached. As in nginx's proxy_cache,
// the headers of the response take precedence over the configured lifetimes. A response that sets a cookie is never
// cached, because the cookie is meant for a single client.
func (s *Service) lifetime(a *Verdict, now time.Time) time.Duration {
	vary, _ := a.Fields.Joined(varyField)
	// Do not cache the response if Vary is "*" or contains too many names. Their number is limited, because the values
	// of these header fields are compared while the cache is locked.
	if _, differs := hasWord(vary, "*"); differs || strings.Count(vary, ",") >= maxVaried {
		return 0
	}
	if a.Fields.Has(message.SetCookie) || !a.Allows() && !a.Denies() {
		return 0
	}
	if said, ok := headerLifetime(a, now); ok {
		return said
	}
	for _, l := range s.Keep {
		if l.Status == a.Status {
			return l.For
		}
	}
	return 0
}

// headerLifetime returns the lifetime that the headers of the response specify. ok is false if they do not specify a
// lifetime.
func headerLifetime(a *Verdict, now time.Time) (time.Duration, bool) {
	if text, ok := a.Fields.Joined(expiresXField); ok {
		if at, isTime := strings.CutPrefix(text, "@"); isTime {
			unix, err := strconv.ParseInt(at, 10, 64)
			return time.Unix(unix, 0).Sub(now), err == nil
		}
		return seconds(text), true
	}
	control, _ := a.Fields.Joined(controlField)
	for _, directive := range [...]string{"no-cache", "no-store", "private"} {
		if _, ok := hasWord(control, directive); ok {
			return 0, true
		}
	}
	for _, directive := range [...]string{"s-maxage", "max-age"} {
		if value, ok := hasWord(control, directive); ok {
			return seconds(value), true
		}
	}
	if text, ok := a.Fields.Joined(expiresField); ok {
		at, err := http.ParseTime(text)
		if err != nil {
			return 0, true
		}
		return at.Sub(now), true
	}
	return 0, false
}

// seconds parses a number of seconds. It returns 0 if text is not a valid number.
func seconds(text string) time.Duration {
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		return 0
	}
	return time.Duration(min(n, int(maxLifetime/time.Second))) * time.Second
}
