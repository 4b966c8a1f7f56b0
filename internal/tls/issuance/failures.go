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

// The storage folders with data that all replicas share.
const (
	failuresFolder = "k8singress/failures/"
	pausesFolder   = "k8singress/pauses/"
)

// failure is the record of failed attempts to get a certificate for a host, which is kept in the storage. It is kept
// even if the Ingress is changed: otherwise each change would cause another order, and a certificate authority that
// gets too many orders rejects all of them.
type failure struct {
	// Attempts is the number of consecutive failed attempts.
	Attempts int `json:"attempts"`
	// NotBefore is the earliest time of the next attempt.
	NotBefore time.Time `json:"not_before"`
	// Reason contains the error messages of the issuers.
	Reason string `json:"reason"`
	// Issuers identifies the issuers that failed, and their configuration (see setup.mark). If the administrator
	// configures other issuers, the host does not have to wait until NotBefore.
	Issuers string `json:"issuers,omitempty"`
	// Limits maps the key of an issuer to the end of the issuer's rate limit for this host. Until then, the issuer
	// accepts no orders for the host.
	Limits map[string]time.Time `json:"limits,omitempty"`
}

// f.under(mark) returns the part of the failure f that still applies. mark identifies the issuers that are configured
// now. If these issuers have caused the failure, all of f applies. Otherwise only Limits applies, because each rate
// limit belongs to a single issuer.
func (f *failure) under(mark string) *failure {
	if f.Issuers == mark {
		return f
	}
	return &failure{Limits: f.Limits}
}

// pause is the stored record of an issuer's rate limit for all hosts: until the time Until, the issuer accepts no
// orders.
type pause struct {
	Until  time.Time `json:"until"`
	Reason string    `json:"reason"`
}

func failureKey(h *host) string { return failuresFolder + h.stored + ".json" }

func pauseKey(issuer string) string {
	return pausesFolder + certmagic.StorageKeys.Safe(issuer) + ".json"
}

// recall reads a value from the storage and decodes it. It returns false if the value does not exist or cannot be
// decoded. Callers may then continue without the value: if the record of a failure is lost, an issuer gets at most one
// extra order.
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
	// sweepEvery is the interval at which the storage is searched for old failure records of removed hosts.
	sweepEvery = time.Hour
	// keepFailures is how long the failure record of a removed host is kept after NotBefore, the earliest time of the
	// next attempt.
	keepFailures = 24 * time.Hour
	// maxFailures is the maximum number of failure records of removed hosts to keep. If there are more, the records
	// with the earliest NotBefore are deleted.
	maxFailures = 1000
)

// sweep deletes old failure records of hosts that no longer need a certificate. Otherwise a tenant who creates many
// hosts could fill the storage.
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

// keptFailure is a failure record of a host that no longer needs a certificate. sweep keeps it for a while.
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
	return m.stored.Has(stored)
}
