package issuance

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/k8singress/k8singress/internal/process/panics"
)

// requestsFolder is a folder in the storage with one file for each name for which a replica requests a certificate on
// demand. Only the leader orders certificates, so the other replicas store a request. The leader deletes the request
// when it has ordered the certificate, or has refused to.
const requestsFolder = "k8singress/on_demand/"

// request is the content of a request.
type request struct {
	Since time.Time `json:"since"`
}

func requestKey(name string) string { return requestsFolder + name + ".json" }

// handOver requests a certificate on demand from the leader, if this replica is not the leader. found is the host's
// certificate in the storage, or nil. The first call stores the request. Later calls return a failure if the leader has
// deleted the request without ordering a certificate. The first result is found, or a newer certificate.
func (m *Manager) handOver(ctx context.Context, s *setup, h *host, found *issued) (*issued, *failure) {
	d := h.demand
	m.mu.Lock()
	wanted, handedOver := d.pending && !m.leads, d.handedOver
	m.mu.Unlock()
	key := requestKey(d.name)
	if !wanted || found.isFresh(time.Now()) || handedOver && s.storage.Exists(ctx, key) {
		return found, nil
	}
	if !handedOver {
		err := remember(ctx, s.storage, key, request{Since: time.Now()})
		m.logStorageError(err, h)
		m.mu.Lock()
		d.handedOver = err == nil
		m.mu.Unlock()
		return found, nil
	}
	// Read the certificate again: the leader may have stored it before it deleted the request.
	newer, err := s.load(ctx, h)
	if err != nil || newer.isFresh(time.Now()) {
		return newer, nil
	}
	why := &failure{}
	if known, err := recall(ctx, s.storage, failureKey(h), why); err != nil || !known ||
		!time.Now().Before(why.NotBefore) {
		why = &failure{Reason: "the replica that orders certificates has refused the name",
			NotBefore: time.Now().Add(m.retry)}
	}
	return found, why
}

// awaitsLeader reports whether this replica has requested a certificate from the leader. d may be nil.
func (d *demand) awaitsLeader() bool { return d != nil && d.pending && d.handedOver }

// answerRequest deletes the request for a name, if this replica is the leader and nothing remains to be done for it.
func (m *Manager) answerRequest(ctx context.Context, s *setup, d *demand) {
	m.mu.Lock()
	drop := d != nil && d.requested && !d.pending
	if drop {
		d.requested = false
	}
	m.mu.Unlock()
	if drop {
		m.deleteRequest(ctx, s, requestKey(d.name))
	}
}

func (m *Manager) deleteRequest(ctx context.Context, s *setup, key string) {
	if err := s.storage.Delete(ctx, key); err != nil && !errors.Is(err, fs.ErrNotExist) {
		m.log.Info("deleting a request for a certificate from the storage", zap.String("key", key), zap.Error(err))
	}
}

// beginRequests starts a search for requests of other replicas, if this replica is the leader. A storage that notifies
// the manager of changes is searched when a request was stored, and otherwise only now and then.
func (m *Manager) beginRequests(ctx context.Context, running *panics.Group, now time.Time) {
	s := m.setup
	interval := tick
	if s.notifies {
		interval = time.Minute
	}
	if !m.leads || s.permission == nil || m.searching || !m.requestsChanged && now.Sub(m.searched) < interval {
		return
	}
	m.searching, m.searched, m.requestsChanged = true, now, false
	s.acquire()
	running.Go("issuance/requests", func() {
		defer m.kick.Send()
		defer s.release()
		defer func() {
			m.mu.Lock()
			m.searching = false
			m.mu.Unlock()
		}()
		m.takeRequests(ctx, s)
	})
}

func (m *Manager) takeRequests(ctx context.Context, s *setup) {
	ctx, cancel := context.WithTimeout(ctx, storagePatience)
	defer cancel()
	keys, err := s.storage.List(ctx, strings.TrimSuffix(requestsFolder, "/"), true)
	if err != nil && !errors.Is(err, fs.ErrNotExist) && ctx.Err() == nil {
		m.log.Info("looking through the storage for requests for certificates", zap.Error(err))
	}
	for _, key := range keys {
		if name, ok := strings.CutSuffix(path.Base(key), ".json"); ok && !m.takeRequest(name) {
			m.deleteRequest(ctx, s, key)
		}
	}
}

// takeRequest orders the certificate that another replica has requested, in the same way as for a handshake of this
// replica. It returns false if the request must be deleted, because no certificate is ordered.
func (m *Manager) takeRequest(name string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.leads {
		return true
	}
	d, full := m.demand(name, time.Now())
	if d != nil {
		d.requested = true
	}
	return d != nil || full
}
