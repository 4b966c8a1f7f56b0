package files

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

const (
	// largest is the maximum size of a manifest file in bytes.
	largest = 32 << 20
	// fresh is the age below which a modified file is read again even if its size and modification time have not
	// changed. File systems have coarse clocks, so two writes can have the same modification time.
	fresh = 2 * time.Second
)

var extensions = []string{".yaml", ".yml", ".json"}

// folder reads all manifest files in a folder. It caches the parsed contents of each file, so that only changed files
// are parsed again.
type folder struct {
	root  string
	files map[string]*file
	// dirs is the set of all directories that the last call of read has found, by path.
	dirs map[string]bool
}

// file is one manifest.
type file struct {
	info   fs.FileInfo
	read   time.Time
	sum    [sha256.Size]byte
	parsed *parsed
}

func newFolder(root string) *folder {
	return &folder{root: filepath.Clean(root), files: map[string]*file{}}
}

// read returns the parsed contents of all files, sorted by file name. Before it reads a directory, it calls enter with
// the path of the directory. enter can then start to watch the directory without missing a change.
func (f *folder) read(enter func(dir string)) ([]*parsed, error) {
	w := &walk{enter: enter, dirs: map[string]bool{}, entered: map[string]bool{}, found: map[string]fs.FileInfo{}}
	if err := w.root(f.root); err != nil {
		return nil, fmt.Errorf("cannot read the manifests: %w", err)
	}
	f.dirs = w.dirs
	next := make(map[string]*file, len(w.found))
	for path, info := range w.found {
		next[path] = f.load(path, info)
	}
	for _, bad := range w.failures {
		f.keep(next, bad)
	}
	f.files = next
	list := make([]*parsed, 0, len(next))
	for _, file := range next {
		list = append(list, file.parsed)
	}
	slices.SortFunc(list, func(a, b *parsed) int { return strings.Compare(a.name, b.name) })
	return list, nil
}

func (f *folder) load(path string, info fs.FileInfo) *file {
	old := f.files[path]
	if old != nil && old.unchanged(info) {
		return old
	}
	next := &file{info: info, read: time.Now()}
	data, err := readFile(path)
	if err != nil {
		next.parsed = &parsed{name: f.name(path)}
		next.parsed.fail(0, "cannot be read: "+err.Error())
	} else {
		next.sum = sha256.Sum256(data)
		if old != nil && old.sum == next.sum {
			next.parsed = old.parsed
			return next
		}
		next.parsed = parse(f.name(path), data)
	}
	if old != nil {
		next.parsed.keep(old.parsed)
	}
	return next
}

func (f *file) unchanged(info fs.FileInfo) bool {
	return f.info != nil && os.SameFile(f.info, info) && f.info.Size() == info.Size() &&
		f.info.ModTime().Equal(info.ModTime()) && f.read.Sub(info.ModTime()) > fresh
}

// keep handles a path that cannot be read: it copies the old contents of all files at or below the path to next, and
// reports the error.
func (f *folder) keep(next map[string]*file, bad failure) {
	p := &parsed{name: f.name(bad.path)}
	p.fail(0, "cannot be read: "+bad.err.Error())
	for path, old := range f.files {
		switch {
		case path == bad.path:
			p.keep(old.parsed)
		case strings.HasPrefix(path, bad.path+string(filepath.Separator)):
			next[path] = old
		}
	}
	next[bad.path] = &file{parsed: p}
}

// name returns the name of a file for messages: its path relative to the folder, with slashes.
func (f *folder) name(path string) string {
	name, err := filepath.Rel(f.root, path)
	if err != nil || name == "." {
		name = filepath.Base(path)
	}
	return filepath.ToSlash(name)
}

func readFile(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, largest+1))
	if err == nil && len(data) > largest {
		return nil, fmt.Errorf("the file is larger than %d MiB: split it", largest>>20)
	}
	return data, err
}

// walk collects the manifests below a folder. It follows symbolic links and enters each directory only once. It skips
// names that start with a dot: the files of editors and version control, and the hidden folders of a mounted ConfigMap,
// which are read through the visible symbolic links to them.
type walk struct {
	enter func(dir string)
	dirs  map[string]bool
	// entered is the set of entered directories, with symbolic links resolved.
	entered  map[string]bool
	found    map[string]fs.FileInfo
	failures []failure
}

type failure struct {
	path string
	err  error
}

func (w *walk) root(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if info.IsDir() {
		return w.dir(path)
	}
	w.dirs[filepath.Dir(path)] = true
	w.enter(filepath.Dir(path))
	w.found[path] = info
	return nil
}

func (w *walk) dir(path string) error {
	target, err := filepath.EvalSymlinks(path)
	if err != nil || w.entered[target] {
		return err
	}
	w.entered[target], w.dirs[path] = true, true
	w.enter(path)
	entries, err := os.ReadDir(path)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), ".") {
			continue
		}
		below := filepath.Join(path, entry.Name())
		if err := w.entry(below); err != nil {
			w.failures = append(w.failures, failure{below, err})
		}
	}
	return nil
}

func (w *walk) entry(path string) error {
	info, err := os.Stat(path)
	wanted := slices.Contains(extensions, filepath.Ext(path))
	switch {
	case err != nil && (!wanted || vanished(path)):
		return nil
	case err != nil:
		return err
	case info.IsDir():
		return w.dir(path)
	case wanted && info.Mode().IsRegular():
		w.found[path] = info
	}
	return nil
}

// vanished reports whether the file at path no longer exists because it was removed while the folder was read. It
// returns false for a broken symbolic link.
func vanished(path string) bool {
	_, err := os.Lstat(path)
	return errors.Is(err, fs.ErrNotExist)
}
