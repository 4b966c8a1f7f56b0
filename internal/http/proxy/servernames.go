package proxy

import (
	"errors"
	"net/http"
	"sync"

	"github.com/k8singress/k8singress/internal/http/exchange"
	"github.com/k8singress/k8singress/internal/http/message"
	"github.com/k8singress/k8singress/internal/model/nginx"
	"github.com/k8singress/k8singress/internal/tls/trust"
)

const (
	// maxServerNames is the maximum number of names in one generation of serverNames. Each name uses about 10 KiB of
	// memory, besides its idle connections.
	maxServerNames = 128
	// maxServerName is the maximum length of a server name in bytes, as in OpenSSL.
	maxServerName = 255
)

// errServerName means that the server name is too long after its variables have been expanded.
var errServerName = errors.New("the server name for the endpoint, which contains variables, is longer than 255 bytes")

// serverNames holds the clients of a Secured whose server name contains variables. Each name has its own client, so
// that a connection that was verified for one name is never used for another name. nginx does not separate them. It is
// safe for concurrent use.
type serverNames struct {
	template  *nginx.Template
	newClient func(name string) *trust.Client[*tlsClient]

	mu sync.Mutex
	// recent and older are two generations of clients. When recent is full, it becomes older, and the clients in older
	// are reset, which closes their idle connections. Clients may choose the names, so their number must be limited.
	recent, older map[string]*trust.Client[*tlsClient]
}

// of returns the client for a request.
func (s *serverNames) of(x *exchange.Exchange) (*trust.Client[*tlsClient], error) {
	text, ok := s.template.ExpandWithin(maxServerName, x.Variable)
	if !ok {
		return nil, exchange.Fail(http.StatusInternalServerError, errServerName)
	}
	// Like nginx, remove a port, because the name may come from the Host header.
	return s.named(message.Hostname(text)), nil
}

// named returns the client for a name, and creates it if necessary.
func (s *serverNames) named(name string) *trust.Client[*tlsClient] {
	s.mu.Lock()
	client := s.recent[name]
	if client != nil {
		s.mu.Unlock()
		return client
	}
	if client = s.older[name]; client == nil {
		client = s.newClient(name)
	}
	delete(s.older, name)
	var dropped map[string]*trust.Client[*tlsClient]
	if len(s.recent) >= maxServerNames {
		dropped, s.older, s.recent = s.older, s.recent, nil
	}
	if s.recent == nil {
		s.recent = map[string]*trust.Client[*tlsClient]{}
	}
	s.recent[name] = client
	s.mu.Unlock()
	resetAll(dropped)
	return client
}

// reset drops all clients.
func (s *serverNames) reset() {
	s.mu.Lock()
	recent, older := s.recent, s.older
	s.recent, s.older = nil, nil
	s.mu.Unlock()
	resetAll(recent)
	resetAll(older)
}

func resetAll(clients map[string]*trust.Client[*tlsClient]) {
	for _, client := range clients {
		client.Reset()
	}
}
