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

// Storage folders of the data that replicas share.
const (
	failuresFolder = "k8singress/failures/"
	pausesFolder   = "k8singress/pauses/"
)

// failure is the stored record of a failed attempt to get a certificate for a host. Changing the Ingress does not
// delete it, because an authority that gets too many orders rejects all of them.
type failure struct {
	// Attempts is the number of consecutive failed attempts.
	Attempts int `json:"attempts"`
	// NotBefore is the earliest time of the next attempt.
	NotBefore time.Time `json:"not_before"`
	// Reason is the error text of the issuers.
	Reason string `json:"reason"`
	// Issuers is the mark of the issuers that failed. Only the administrator changes the issuers, and a host need not
	// wait for issuers that were replaced.
	Issuers string `json:"issuers,omitempty"`
	// Limits maps the key of an issuer to the time before which it accepts no orders for the host.
	Limits map[string]time.Time `json:"limits,omitempty"`
}

// under returns the part of a failure that applies to the issuers with a mark. If the mark differs, only the limits of
// individual issuers apply.
func (f *failure) under(mark string) *failure {
	if f.Issuers == mark {
		return f
	}
	return &failure{Limits: f.Limits}
}

// pause is the stored record of an issuer that accepts no orders for any host until a given time.
type pause struct {
	Until  time.Time `json:"until"`
	Reason string    `json:"reason"`
}

func failureKey(h *host) string { return failuresFolder + h.stored + ".json" }

func pauseKey(issuer string) string {
	return pausesFolder + certmagic.StorageKeys.Safe(issuer) + ".json"
}

// recall reads a value from the storage. It returns false if the value does not exist or is invalid. This is
// acceptable: without a stored failure, an issuer gets at most one extra order.
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
	// sweepEvery is the interval between two searches for obsolete data in the storage.
	sweepEvery = time.Hour
	// keepFailures is how long the failure of an unwanted host is kept after its NotBefore.
	keepFailures = 24 * time.Hour
	// maxFailures is the maximum number of failures of unwanted hosts to keep: those with the latest NotBefore.
	maxFailures = 1000
)

// sweep deletes old failures of hosts that are no longer wanted, so that a tenant who creates many hosts cannot fill
// the storage.
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
	for _, k := range kept[min(len(kept), maxFailures):] {
		m.dropFailure(ctx, s, k.key)
	}
}

// keptFailure is the failure of a host that is no longer wanted.
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
