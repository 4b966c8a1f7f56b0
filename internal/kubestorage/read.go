package kubestorage

import (
	"context"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/caddyserver/certmagic"
)

// patience is how long a reader waits for the first list of Secrets. An API server that is away when Caddy starts must
// not keep it from starting for ever.
const patience = 15 * time.Second

// Load returns the value of a key. It asks the API server nothing, but for tokens of challenges that are expected now.
func (s *Storage) Load(ctx context.Context, key string) ([]byte, error) {
	key, err := cleanFile(key)
	if err != nil {
		return nil, fmt.Errorf("loading from the storage: %w", err)
	}
	if found, ok := s.index.item(key); ok && ctx.Err() == nil {
		return append([]byte{}, found.value...), nil
	}
	if err := s.ready(ctx); err != nil {
		return nil, fmt.Errorf("loading %s: %w", key, err)
	}
	found, ok := s.index.item(key)
	if !ok {
		found, ok = s.expected(ctx, key)
	}
	if !ok {
		return nil, absent("load", key)
	}
	return append([]byte{}, found.value...), nil
}

// Exists says whether a key has a value, or is a folder of others. It is false if that cannot be found out.
func (s *Storage) Exists(ctx context.Context, key string) bool {
	_, err := s.Stat(ctx, key)
	return err == nil
}

// Stat tells a value from a folder. Size and time are those of a value; the time is by the clock of who wrote it.
func (s *Storage) Stat(ctx context.Context, key string) (certmagic.KeyInfo, error) {
	clean, err := cleanKey(key)
	if err == nil {
		err = s.ready(ctx)
	}
	if err != nil {
		return certmagic.KeyInfo{}, fmt.Errorf("looking up %s: %w", key, err)
	}
	if found, ok := s.index.item(clean); ok {
		return certmagic.KeyInfo{Key: key, Modified: found.modified, Size: int64(len(found.value)), IsTerminal: true}, nil
	}
	if clean == "" || s.index.folder(clean) {
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
	l := listing{folder: clean, recursive: recursive}
	s.index.below(clean, l.add)
	if _, ok := s.index.item(clean); !ok && clean != "" && l.keys == nil {
		return nil, absent("list", folder)
	}
	slices.Sort(l.keys)
	// A key may be a value and a folder.
	return slices.Compact(l.keys), nil
}

// listing collects keys, and the folders above them, each once.
type listing struct {
	folder    string
	recursive bool
	keys      []string
	// last is the folder of the key before.
	last string
}

func (l *listing) add(key string) (skip string) {
	rest := strings.TrimPrefix(key[len(l.folder):], "/")
	if first, _, deeper := strings.Cut(rest, "/"); deeper && !l.recursive {
		child := path.Join(l.folder, first)
		l.keys = append(l.keys, child)
		// The character behind a slash: no key below child is as great.
		return child + "0"
	}
	l.folders(path.Dir(key))
	l.keys = append(l.keys, key)
	return ""
}

// folders adds those between the listed one and a key's, unless the key before was below them too.
func (l *listing) folders(of string) {
	before := l.last
	l.last = of
	for ; of != l.folder && of != "." && of != before && !strings.HasPrefix(before, of+"/"); of = path.Dir(of) {
		l.keys = append(l.keys, of)
	}
}

func absent(operation, key string) error {
	return &fs.PathError{Op: operation, Path: key, Err: fs.ErrNotExist}
}

// ready waits until the Secrets have been listed once.
func (s *Storage) ready(ctx context.Context) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	select {
	case <-s.secrets.synced:
		return nil
	default:
	}
	patient, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	select {
	case <-s.secrets.synced:
		return nil
	case <-patient.Done():
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return fmt.Errorf("the Secrets in namespace %s have not been read yet: "+
			"the log says what is the matter with the API server", s.namespace)
	}
}
