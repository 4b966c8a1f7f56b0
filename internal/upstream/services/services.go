// Package services lets Caddy modules use the endpoints of Services to which no Kubernetes object refers, for example
// in a site of the Caddyfile.
package services

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/process/wake"
	"github.com/k8singress/k8singress/internal/upstream/balancer"
)

// maxWait is how long Backend waits for the first look-up of the Service.
const maxWait = 5 * time.Second

// errUnread is the error of Backend if the Service has not been looked up within maxWait.
var errUnread = errors.New("the Kubernetes objects have not been read yet")

// Registry holds the Service ports that modules follow. It outlives the Caddy configurations of these modules. It is
// safe for concurrent use.
type Registry struct {
	mu    sync.Mutex
	ports map[ir.FollowedPort]*port
	// changed receives a value when ports may differ from the last result of Ports.
	changed wake.Signal
}

// port is the state of a Service port. All modules that follow the port share it.
type port struct {
	of ir.FollowedPort
	// followers is the number of modules that follow the port. Registry.mu guards it.
	followers int
	// found is nil until the port is looked up for the first time. Then read is closed.
	found atomic.Pointer[Found]
	read  chan struct{}
}

// Found is the result of looking up a Service port. Either Backend or Err is nil.
type Found struct {
	Backend *balancer.Backend
	// Err says why there is no backend, for example because the Service does not exist.
	Err error
}

// New returns an empty Registry.
func New() *Registry {
	return &Registry{ports: map[ir.FollowedPort]*port{}, changed: wake.New()}
}

// Changed returns a channel that receives a value when a port must be looked up, or is no longer followed.
func (r *Registry) Changed() <-chan struct{} { return r.changed }

// Follow returns the given port of a Service, which may not exist. From now on, its endpoints are kept up to date until
// Close is called.
func (r *Registry) Follow(of ir.FollowedPort) *Service {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.ports[of]
	if p == nil {
		p = &port{of: of, read: make(chan struct{})}
		r.ports[of] = p
		r.changed.Send()
	}
	p.followers++
	return &Service{registry: r, port: p}
}

// Ports returns the ports to look up, sorted. It forgets the ports that are not followed any more.
func (r *Registry) Ports() []ir.FollowedPort {
	r.mu.Lock()
	defer r.mu.Unlock()
	maps.DeleteFunc(r.ports, func(_ ir.FollowedPort, p *port) bool { return p.followers == 0 })
	return slices.SortedFunc(maps.Keys(r.ports), ir.FollowedPort.Compare)
}

// Update sets the result of looking up each port. find returns nil for a port that was not looked up, for example
// because it was not followed yet; such a port keeps its last result.
func (r *Registry) Update(find func(ir.FollowedPort) *Found) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for of, p := range r.ports {
		if found := find(of); found != nil && p.found.Swap(found) == nil {
			close(p.read)
		}
	}
}

// Service is a port of a Service that one module follows. It is safe for concurrent use.
type Service struct {
	registry *Registry
	port     *port
	closed   sync.Once
}

// Backend returns the backend with the current endpoints of the port. It returns an error if the Service or the port
// does not exist. The caller must call Backend for each request, because another backend is returned if the number of a
// named port changes. The backend may have no endpoints.
//
// If the Kubernetes objects are still being read, Backend waits until they are read, ctx ends, or five seconds have
// passed.
func (s *Service) Backend(ctx context.Context) (*balancer.Backend, error) {
	found := s.port.found.Load()
	if found == nil {
		if err := s.port.await(ctx); err != nil {
			return nil, fmt.Errorf("the Service %s: %w", s.port.of.ServicePort, err)
		}
		found = s.port.found.Load()
	}
	return found.Backend, found.Err
}

// await waits until the port was looked up for the first time.
func (p *port) await(ctx context.Context) error {
	timer := time.NewTimer(maxWait)
	defer timer.Stop()
	select {
	case <-p.read:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return errUnread
	}
}

// Endpoints returns the addresses of the current endpoints of the port. It returns an error if there are none.
// Otherwise it works like Backend.
func (s *Service) Endpoints(ctx context.Context) ([]ir.Endpoint, error) {
	b, err := s.Backend(ctx)
	if err != nil {
		return nil, err
	}
	all := b.Endpoints()
	if len(all) == 0 {
		return nil, fmt.Errorf("the Service %s has no ready endpoints", s.port.of.ServicePort)
	}
	return all, nil
}

// Close ends the use of the port. The endpoints of the backends that Backend has returned are no longer updated if no
// other module follows the port and no Kubernetes object refers to it.
func (s *Service) Close() {
	s.closed.Do(func() {
		s.registry.mu.Lock()
		defer s.registry.mu.Unlock()
		if s.port.followers--; s.port.followers == 0 {
			s.registry.changed.Send()
		}
	})
}
