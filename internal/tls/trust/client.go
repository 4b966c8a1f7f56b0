package trust

import (
	"crypto/tls"
	"sync"
	"sync/atomic"

	"github.com/k8singress/k8singress/internal/model/ir"
)

// Client holds a value for TLS connections to endpoints, such as an HTTP client. The value is created from the contents
// of a Secret, and replaced when these change. Client is safe for concurrent use.
type Client[T any] struct {
	settings  ir.BackendTLS
	authority *Authority
	create    func(*tls.Config) T
	replaced  func(T)

	mu      sync.Mutex
	current atomic.Pointer[created[T]]
}

// created is a value that was created from certain contents of a Secret, or the error if these contents are invalid.
type created[T any] struct {
	contents *Contents
	value    T
	err      error
}

// NewClient returns a Client. authority holds the contents of the Secret that settings refers to, or is nil if settings
// refers to no Secret. create creates a value from a TLS configuration, to which it must add the application protocols
// (ALPN). replaced is called with each value that is no longer current. It must close the idle connections of the
// value, because they may use an outdated client certificate, or trust a server that is no longer trusted. create and
// replaced must not call the Client.
func NewClient[T any](settings *ir.BackendTLS, authority *Authority, create func(*tls.Config) T,
	replaced func(T)) *Client[T] {
	if authority == nil {
		// Without a Secret, use empty contents: no client certificate is sent, and the endpoints cannot be verified.
		authority = newAuthority(settings.Secret)
		authority.contents.Store(&Contents{trustErr: errUnknown})
	}
	return &Client[T]{settings: *settings, authority: authority, create: create, replaced: replaced}
}

// Current returns the value for the current contents of the Secret. If it returns an error, the Secret is invalid, and
// the caller must not send anything to the endpoint.
func (c *Client[T]) Current() (T, error) {
	now := c.current.Load()
	if now == nil || now.contents != c.authority.Contents() {
		now = c.renew()
	}
	return now.value, now.err
}

func (c *Client[T]) renew() *created[T] {
	c.mu.Lock()
	defer c.mu.Unlock()
	contents, old := c.authority.Contents(), c.current.Load()
	if old != nil && old.contents == contents {
		return old
	}
	now := &created[T]{contents: contents}
	config, err := contents.ClientConfig(&c.settings)
	if now.err = err; err == nil {
		now.value = c.create(config)
	}
	c.replace(old, now)
	return now
}

// Reset discards the current value, so that the next call of Current creates a new one.
func (c *Client[T]) Reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.replace(c.current.Load(), nil)
}

func (c *Client[T]) replace(old, next *created[T]) {
	c.current.Store(next)
	if old != nil && old.err == nil {
		c.replaced(old.value)
	}
}
