package storage

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/caddyserver/certmagic"
)

// syncTimeout limits how long a reader waits for the first list of Secrets, and how long a new holder of a lock waits
// for the writes of the previous holder. It is short because Caddy must be able to start while the API server is
// unavailable.
const syncTimeout = 15 * time.Second

// Load returns the value of a key from the cache. It sends a request to the API server only for a challenge token that
// is expected at this time.
func (s *Storage) Load(ctx context.Context, key string) ([]byte, error) {
	key, err := cleanFile(key)
	if err != nil {
		return nil, fmt.Errorf("loading from the storage: %w", err)
	}
	p := placeOf(key)
	value, ok := p.value(s.secrets.get(p.secret))
	if !ok || ctx.Err() != nil {
		if err := s.ready(ctx); err != nil {
			return nil, fmt.Errorf("loading %s: %w", key, err)
		}
		if value, ok = p.value(s.secrets.get(p.secret)); !ok {
			value, ok = s.expected(ctx, key)
		}
	}
	if !ok {
		return nil, absent("load", key)
	}
	return append([]byte{}, value...), nil
}

// Exists reports whether a key has a value or is a folder. It returns false if the Secrets cannot be read.
func (s *Storage) Exists(ctx context.Context, key string) bool {
	_, err := s.Stat(ctx, key)
	return err == nil
}

// Stat describes a key, and says whether the key has a value or is a folder. Size and modification time are only set
// for values. The modification time is from the clock of the process that wrote the value.
func (s *Storage) Stat(ctx context.Context, key string) (certmagic.KeyInfo, error) {
	clean, err := cleanKey(key)
	if err == nil {
		err = s.ready(ctx)
	}
	if err != nil {
		return certmagic.KeyInfo{}, fmt.Errorf("looking up %s: %w", key, err)
	}
	p := placeOf(clean)
	secret := s.secrets.get(p.secret)
	if value, ok := p.value(secret); ok {
		return certmagic.KeyInfo{Key: key, Modified: p.modified(secret), Size: int64(len(value)), IsTerminal: true}, nil
	}
	if clean == "" || len(s.secrets.within(clean)) > 0 {
		return certmagic.KeyInfo{Key: key}, nil
	}
	return certmagic.KeyInfo{}, absent("stat", key)
}

// List returns the keys of the values and folders in a folder. If recursive is true, it also returns the contents of
// all folders below it. It returns an error if the folder does not exist. If the key is a value and not a folder, the
// result is empty.
func (s *Storage) List(ctx context.Context, folder string, recursive bool) ([]string, error) {
	clean, err := cleanKey(folder)
	if err == nil {
		err = s.ready(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("listing %s: %w", folder, err)
	}
	found := map[string]bool{}
	for _, secret := range s.secrets.within(clean) {
		for key := range fieldsOf(secret) {
			for ; key != clean && !found[key]; key = parent(key) {
				if recursive || parent(key) == clean {
					found[key] = true
				}
			}
		}
	}
	p := placeOf(clean)
	if _, ok := p.value(s.secrets.get(p.secret)); !ok && clean != "" && len(found) == 0 {
		return nil, absent("list", folder)
	}
	return slices.Sorted(maps.Keys(found)), nil
}

// below reports whether a key is inside a folder, at any depth.
func below(key, folder string) bool { return folder == "" || strings.HasPrefix(key, folder+"/") }

func absent(operation, key string) error {
	return &fs.PathError{Op: operation, Path: key, Err: fs.ErrNotExist}
}

// ready waits until the Secrets have been listed once.
func (s *Storage) ready(ctx context.Context) error {
	patient, cancel := context.WithTimeout(ctx, syncTimeout)
	defer cancel()
	select {
	case <-s.secrets.synced:
		return ctx.Err()
	case <-patient.Done():
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return fmt.Errorf(
		"the Secrets in the namespace %s have not been read yet: check the log for errors of the API server",
		s.namespace)
}
