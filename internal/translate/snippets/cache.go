package snippets

import "sync"

// texts are the two texts that are interpreted together: the text of an Ingress, and the text of the ConfigMap. http
// defines variables that they may contain. outside are the names of more variables, separated by spaces.
type texts struct {
	own, shared string
	http        *HTTP
	outside     string
}

// maxCached is the maximum total length in bytes of the texts in one generation of a cache.
const maxCached = 4 << 20

// cache keeps results of type R, because many Ingresses have the same few texts. It is safe for concurrent use.
type cache[R any] struct {
	mu sync.Mutex
	// recent and older are two generations of results. When recent is full, it becomes older, and the results in older
	// are forgotten, except those that were used in the meantime.
	recent, older map[texts]*R
	// bytes is the total length of the texts in recent.
	bytes int
}

func newCache[R any]() *cache[R] { return &cache[R]{recent: map[texts]*R{}} }

// The results of all texts.
var (
	locationResults = newCache[Result]()
	serverResults   = newCache[ServerResult]()
	authResults     = newCache[Result]()
)

// of returns the result of the texts. The function interpret computes it if it is not in the cache.
func (c *cache[R]) of(key texts, interpret func(texts) *R) *R {
	c.mu.Lock()
	result := c.recent[key]
	if result == nil {
		result = c.older[key]
	} else {
		c.mu.Unlock()
		return result
	}
	c.mu.Unlock()
	if result == nil {
		result = interpret(key)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.bytes += len(key.own) + len(key.shared); c.bytes > maxCached {
		c.older, c.recent, c.bytes = c.recent, map[texts]*R{}, len(key.own)+len(key.shared)
	}
	c.recent[key] = result
	return result
}
