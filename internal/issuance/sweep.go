package issuance

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"strings"
	"time"

	"go.uber.org/zap"
)

const (
	// sweepEvery is how often the storage is looked through for what is of no use any more.
	sweepEvery = time.Hour
	// keepFailures is how long a failure is remembered for a host that is not wanted any more.
	keepFailures = 24 * time.Hour
)

// sweep deletes the failures of hosts that are not wanted any more: a tenant who may create hosts must not fill the storage.
func (m *Manager) sweep(ctx context.Context, s *setup) {
	keys, err := s.storage.List(ctx, strings.TrimSuffix(failuresFolder, "/"), true)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		m.log.Info("looking through the storage for old failures", zap.Error(err))
	}
	for _, key := range keys {
		name, ok := strings.CutSuffix(path.Base(key), ".json")
		if !ok || m.wanted(name) {
			continue
		}
		var f failure
		if known, err := recall(ctx, s.storage, key, &f); err != nil || known && time.Since(f.NotBefore) < keepFailures {
			continue
		}
		if err := s.storage.Delete(ctx, key); err != nil {
			m.log.Info("deleting an old failure from the storage", zap.String("key", key), zap.Error(err))
		}
	}
}

func (m *Manager) wanted(stored string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.stored[stored] != nil
}
