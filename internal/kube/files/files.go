// Package files serves a folder of Kubernetes manifests as if it were a cluster: it reads all objects whose kinds the
// controller supports, watches the files, and keeps a snapshot.Store up to date.
package files

import (
	"context"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/report"
	"github.com/k8singress/k8singress/internal/model/snapshot"
)

// Load reads a folder of manifests, or a single file, once. It returns the objects, and the problems of files and
// objects. It returns an error only if the folder itself cannot be read.
func Load(dir string) (*snapshot.Snapshot, []*report.Verdict, error) {
	list, err := newFolder(dir).read(func(string) {})
	if err != nil {
		return nil, nil, err
	}
	m, store := new(merger), snapshot.NewStore()
	store.Apply(m.merge(list))
	return store.Take(), m.verdicts(), nil
}

// Files watches a folder of manifests, and keeps a snapshot.Store with the objects of the folder up to date.
type Files struct {
	folder   *folder
	merger   *merger
	store    *snapshot.Store
	verdicts atomic.Pointer[[]*report.Verdict]
	synced   chan struct{}
	once     sync.Once
	pace     pace
	log      *zap.Logger
	// heard is when the folder was last read, in nanoseconds since 1970, or zero.
	heard atomic.Int64
	// failure is the error message if the folder cannot be read, otherwise "".
	failure string
}

// New returns a Files for a folder of manifests or a single file. Nothing is read before Run.
func New(dir string, log *zap.Logger) *Files {
	return &Files{
		folder: newFolder(dir), merger: new(merger), store: snapshot.NewStore(), synced: make(chan struct{}),
		pace: defaultPace, log: log,
	}
}

// Store returns the store with the objects of the folder. It is incomplete until the channel of Synced is closed.
func (f *Files) Store() *snapshot.Store { return f.store }

// Synced returns a channel that is closed when the folder has been read once.
func (f *Files) Synced() <-chan struct{} { return f.synced }

// Verdicts returns the problems of files and objects, sorted by report.Compare. When the problems change, the reader of
// the store is notified, even if no object has changed.
func (f *Files) Verdicts() []*report.Verdict {
	if v := f.verdicts.Load(); v != nil {
		return *v
	}
	return nil
}

// Heard returns when the folder was last read, with the key "manifests". The result is empty before the first time.
func (f *Files) Heard() map[string]time.Time {
	if at := f.heard.Load(); at != 0 {
		return map[string]time.Time{"manifests": time.Unix(0, at)}
	}
	return nil
}

// Run watches the folder until the context ends. If a file cannot be read, for example because it is being edited, the
// objects that were last read from it are kept. Run must be called only once.
func (f *Files) Run(ctx context.Context) {
	w := newWatcher(f.log)
	defer w.close()
	for {
		failed := !f.refresh(w)
		if !w.wait(ctx, f.pace, failed) {
			return
		}
	}
}

// refresh updates the store to the state of the folder. It reports whether the folder could be read.
func (f *Files) refresh(w *watcher) bool {
	list, err := f.folder.read(w.add)
	if err != nil {
		f.logFailure(err)
		f.setVerdicts([]*report.Verdict{{Object: fileRef("."), Problems: []report.Problem{{
			Severity: report.Error, Reason: report.InvalidManifest,
			Message: err.Error() + "; the objects that were read last stay in use",
		}}}})
		return false
	}
	f.heard.Store(time.Now().UnixNano())
	f.logRecovery()
	w.keepOnly(f.folder.dirs)
	if set, gone := f.merger.merge(list); len(set)+len(gone) > 0 {
		f.store.Apply(set, gone)
	}
	f.setVerdicts(f.merger.verdicts())
	f.once.Do(func() { close(f.synced) })
	return true
}

// logFailure logs why the folder cannot be read, unless it has just logged the same reason. Once the folder has been
// read for the first time, it logs nothing, because Verdicts then reports the reason.
func (f *Files) logFailure(err error) {
	before := f.failure
	f.failure = err.Error()
	select {
	case <-f.synced:
	default:
		if f.failure != before {
			f.log.Warn(f.failure+"; every request gets 503 until the manifests can be read. Retrying every few seconds",
				zap.String("manifests", f.folder.root))
		}
	}
}

func (f *Files) logRecovery() {
	if f.failure != "" {
		f.log.Info("the manifests can be read now", zap.String("manifests", f.folder.root))
	}
	f.failure = ""
}

func (f *Files) setVerdicts(verdicts []*report.Verdict) {
	if reflect.DeepEqual(f.Verdicts(), verdicts) {
		return
	}
	f.verdicts.Store(&verdicts)
	f.store.Wake()
}

// fileRef returns the reference under which the problems of a file are reported, as if the file were an object of the
// kind File.
func fileRef(name string) ir.Ref { return ir.Ref{Kind: "File", Name: name} }
