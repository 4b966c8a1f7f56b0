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

	"github.com/k8singress/k8singress/internal/budget"
	"github.com/k8singress/k8singress/internal/message"
)

const (
	// entryBytes is about what an answer costs besides its fields, and fieldBytes a field besides its text.
	entryBytes, fieldBytes = 384, 48
)

// Key is what makes questions equal.
type Key struct {
	// Namespace is that of the Ingress, with which its answers count.
	Namespace string
	// Digest is of where the questions come from, and of what they ask.
	Digest [32]byte
}

// Cache keeps answers. Namespaces share its room, and each drops those of its own that were used longest ago. Its methods may be called from any
// goroutine.
type Cache struct {
	// room has about what the answers cost, in bytes.
	room *budget.Budget
	now  func() time.Time

	mu      sync.Mutex
	entries map[Key]*list.Element
	// used has the entries of each namespace, the one that was used last in front.
	used map[string]*list.List
	// asked are the questions under way.
	asked map[Key]*asking
}

// entry is an answer in the cache.
type entry struct {
	key    Key
	answer *Answer
	until  time.Time
	bytes  int
	// varied are the fields of the request that the answer depends on, with their values.
	varied message.Fields
}

// asking is a question that several requests wait for.
type asking struct {
	done chan struct{}
	// kept is nil if the answer is for nobody else.
	kept *entry
}

// longestWait is how long a request waits for the answer to an equal one, as in nginx: the auth service may be waiting for this one.
const longestWait = 5 * time.Second

// mostVaried is how many fields an answer that is kept may depend on.
const mostVaried = 16

// NewCache returns an empty cache.
func NewCache() *Cache { return newCache(budget.AuthCache.Limit(), time.Now) }

func newCache(limit int64, now func() time.Time) *Cache {
	return &Cache{
		room: budget.New(limit), now: now, entries: map[Key]*list.Element{}, used: map[string]*list.List{}, asked: map[Key]*asking{},
	}
}

// Get returns the answer that is kept for a request with some fields, or nil.
func (c *Cache) Get(key Key, of message.Fields) *Answer {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.get(key, of)
}

func (c *Cache) get(key Key, of message.Fields) *Answer {
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
	return e.answer
}

// isFor says whether the fields that the answer depends on are the same.
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

// share is what a namespace has of the room.
func (c *Cache) share(namespace string) *budget.Share { return c.room.Share(namespace, "") }

// put makes room for an entry. It leaves out one that there is no room for at all.
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

// errWaited ends a question that may be waiting for itself.
var errWaited = fmt.Errorf("an equal question has not been answered within %s, and this one has come through here before", longestWait)

// Question is what a request asks a service.
type Question struct {
	Service *Service
	// Key is equal for questions that have one answer, and Fields are those of the request, which the answer may vary by.
	Key    Key
	Fields message.Fields
	// Again is true if the request has come through this controller before.
	Again bool
}

// Fetch returns an answer to a question that Get has none for. Of equal questions one is asked at a time, and the others
// wait for its answer for 5 seconds. Then they ask themselves, except those of requests that come again: such a request may wait for
// itself, so it fails. An answer that is not kept is for its own request alone. ctx is that of the request.
func (c *Cache) Fetch(ctx context.Context, q Question, ask func() (*Answer, error)) (*Answer, error) {
	s, key, of := q.Service, q.Key, q.Fields
	c.mu.Lock()
	if answer := c.get(key, of); answer != nil {
		c.mu.Unlock()
		return answer, nil
	}
	if other := c.asked[key]; other != nil {
		c.mu.Unlock()
		answer, err := other.await(ctx, of)
		switch {
		case errors.Is(err, errWaited) && !q.Again:
		case answer != nil || err != nil:
			return answer, err
		}
		answer, err = ask()
		if err == nil {
			c.keep(s, key, of, answer)
		}
		return answer, err
	}
	own := &asking{done: make(chan struct{})}
	c.asked[key] = own
	c.mu.Unlock()
	// Also after a panic: others wait.
	defer func() {
		c.mu.Lock()
		delete(c.asked, key)
		c.mu.Unlock()
		close(own.done)
	}()
	answer, err := ask()
	if err == nil {
		own.kept = c.keep(s, key, of, answer)
	}
	return answer, err
}

// await waits for the answer to an equal question. It returns nil if the answer may not be shared, and errWaited if it does not come soon.
func (a *asking) await(ctx context.Context, of message.Fields) (*Answer, error) {
	enough := time.NewTimer(longestWait)
	defer enough.Stop()
	select {
	case <-a.done:
		if a.kept != nil && a.kept.isFor(of) {
			return a.kept.answer, nil
		}
	case <-enough.C:
		return nil, errWaited
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	return nil, nil
}

// keep keeps an answer, if that may be.
func (c *Cache) keep(s *Service, key Key, of message.Fields, answer *Answer) *entry {
	now := c.now()
	lifetime := min(s.lifetime(answer, now), mostLifetime)
	if lifetime <= 0 {
		return nil
	}
	e := newEntry(s, key, of, answer)
	e.until = now.Add(lifetime)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.put(e)
	return e
}

// newEntry copies what is kept: the strings of an answer hold all of its head.
func newEntry(s *Service, key Key, of message.Fields, answer *Answer) *entry {
	e := &entry{key: key, answer: &Answer{Status: answer.Status}, bytes: entryBytes}
	own := func(name, value string, kind message.Kind) message.Field {
		e.bytes += fieldBytes + len(name) + len(value)
		return message.Field{Name: strings.Clone(name), Value: strings.Clone(value), Kind: kind}
	}
	for i := range answer.Fields {
		f := &answer.Fields[i]
		if IsChallenge(f) || (&Service{Wanted: s.Wanted}).Wants(f) {
			e.answer.Fields = append(e.answer.Fields, own(f.Name, f.Value, f.Kind))
		}
	}
	vary, _ := answer.Fields.Joined(varyField)
	for name := range strings.SplitSeq(vary, ",") {
		if name = strings.TrimSpace(name); name != "" {
			value, _ := of.Joined(name)
			e.varied = append(e.varied, own(name, value, message.KindOf(name)))
		}
	}
	return e
}

// The fields of an answer that decide on keeping it.
const (
	varyField     = "Vary"
	controlField  = "Cache-Control"
	expiresField  = "Expires"
	expiresXField = "X-Accel-Expires"
)

const mostLifetime = 365 * 24 * time.Hour

func decidesOnKeeping(f *message.Field) bool {
	for _, name := range [...]string{varyField, controlField, expiresField, expiresXField} {
		if f.Is(message.Other, name) {
			return true
		}
	}
	return false
}

// lifetime returns for how long an answer is kept, as nginx's proxy_cache does: what the service says counts before the statuses. An
// answer with a cookie is for one client alone.
func (s *Service) lifetime(a *Answer, now time.Time) time.Duration {
	vary, _ := a.Fields.Joined(varyField)
	// What it varies by is compared while nobody else gets an answer.
	if _, differs := hasWord(vary, "*"); differs || strings.Count(vary, ",") >= mostVaried {
		return 0
	}
	if a.Fields.Has(message.SetCookie) || !a.LetsIn() && !a.Refuses() {
		return 0
	}
	if said, ok := saidLifetime(a, now); ok {
		return said
	}
	for _, l := range s.Keep {
		if l.Status == a.Status {
			return l.For
		}
	}
	return 0
}

// saidLifetime is what the service says.
func saidLifetime(a *Answer, now time.Time) (time.Duration, bool) {
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

// seconds reads a number of them. What is none is zero.
func seconds(text string) time.Duration {
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		return 0
	}
	return time.Duration(min(n, int(mostLifetime/time.Second))) * time.Second
}
