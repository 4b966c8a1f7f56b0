package kubestorage

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

// syncTimeout is how long a reader waits for the first list of Secrets, and a new holder of a lock for the watch events of
// the writes before. An API server that is away when Caddy starts must
// not keep it from starting for ever.
const syncTimeout = 15 * time.Second

// Load returns the value of a key. It asks the API server nothing, but for tokens of challenges that are expected now.
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

// Exists returns whether a key has a value, or is a folder of others. It is false if that cannot be found out.
func (s *Storage) Exists(ctx context.Context, key string) bool {
	_, err := s.Stat(ctx, key)
	return err == nil
}

// Stat tells a value from a folder. Size and time are those of a value; the time is by the clock of the process that wrote
// it.
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

// List returns what a folder has, values and folders; with recursive, also what these have, and so on. A folder that is
// not there is an error; one that is a value has nothing.
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

// below returns whether a key is below a folder, at any depth.
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
	return fmt.Errorf("the Secrets in namespace %s have not been read yet: see the log for errors of the API server", s.namespace)
}
