package issuance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/caddyserver/certmagic"
	"go.uber.org/zap"
)

// Folders of what replicas tell each other.
const (
	failuresFolder = "k8singress/failures/"
	pausesFolder   = "k8singress/pauses/"
)

// failure is what the storage remembers of a host whose certificate could not be got. Changing the Ingress does not undo
// it: an authority that is asked too often refuses all orders.
type failure struct {
	// Attempts counts those in a row.
	Attempts int `json:"attempts"`
	// NotBefore is when an issuer may be asked again.
	NotBefore time.Time `json:"not_before"`
	// Reason is what the issuers say.
	Reason string `json:"reason"`
	// Issuers is the mark of the issuers that were asked. Only the administrator changes those, and a host need not wait
	// for others than they are.
	Issuers string `json:"issuers,omitempty"`
	// Limits are the times before which single issuers want to hear nothing of the host, by key.
	Limits map[string]time.Time `json:"limits,omitempty"`
}

// under is what is left of a failure for the issuers with a mark: if they are others, only what single ones have said.
func (f *failure) under(mark string) *failure {
	if f.Issuers == mark {
		return f
	}
	return &failure{Limits: f.Limits}
}

// pause is what the storage remembers of an issuer that wants to hear nothing of any host.
type pause struct {
	Until  time.Time `json:"until"`
	Reason string    `json:"reason"`
}

func failureKey(h *host) string { return failuresFolder + h.stored + ".json" }

func pauseKey(issuer string) string {
	return pausesFolder + certmagic.StorageKeys.Safe(issuer) + ".json"
}

// recall reads a value of the storage. It returns false when there is none, or none that can be read: without a
// failure, an issuer is asked once too often at worst.
func recall(ctx context.Context, s certmagic.Storage, key string, into any) (bool, error) {
	data, err := s.Load(ctx, key)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("reading %s from the storage: %w", key, err)
	}
	return json.Unmarshal(data, into) == nil, nil
}

func remember(ctx context.Context, s certmagic.Storage, key string, value any) error {
	data, err := json.Marshal(value)
	if err != nil {
		return err
	}
	if err := s.Store(ctx, key, data); err != nil {
		return fmt.Errorf("writing %s to the storage: %w", key, err)
	}
	return nil
}

const (
	// sweepEvery is how often the storage is looked through for what is of no use any more.
	sweepEvery = time.Hour
	// keepFailures is how long a failure is remembered for a host that is not wanted any more.
	keepFailures = 24 * time.Hour
	// mostFailures is how many are remembered of such hosts, those that count for longest.
	mostFailures = 1000
)

// sweep deletes the failures of hosts that are not wanted any more: a tenant who may create hosts must not fill the storage.
func (m *Manager) sweep(ctx context.Context, s *setup) {
	keys, err := s.storage.List(ctx, strings.TrimSuffix(failuresFolder, "/"), true)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		m.log.Info("looking through the storage for old failures", zap.Error(err))
	}
	var kept []keptFailure
	for _, key := range keys {
		name, ok := strings.CutSuffix(path.Base(key), ".json")
		if !ok || m.wanted(name) {
			continue
		}
		var f failure
		switch known, err := recall(ctx, s.storage, key, &f); {
		case err != nil:
		case known && time.Since(f.NotBefore) < keepFailures:
			kept = append(kept, keptFailure{key, f.NotBefore})
		default:
			m.dropFailure(ctx, s, key)
		}
	}
	slices.SortFunc(kept, func(a, b keptFailure) int { return b.notBefore.Compare(a.notBefore) })
	for _, k := range kept[min(len(kept), mostFailures):] {
		m.dropFailure(ctx, s, k.key)
	}
}

// keptFailure is one of a host that is not wanted any more.
type keptFailure struct {
	key       string
	notBefore time.Time
}

func (m *Manager) dropFailure(ctx context.Context, s *setup, key string) {
	if err := s.storage.Delete(ctx, key); err != nil {
		m.log.Info("deleting an old failure from the storage", zap.String("key", key), zap.Error(err))
	}
}

func (m *Manager) wanted(stored string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.stored[stored] != nil
}
