package files

import (
	"context"
	"time"

	"github.com/fsnotify/fsnotify"
	"go.uber.org/zap"
)

// pace holds the delays between a change of the files and the next time that the folder is read.
type pace struct {
	// quiet is the time without changes after which the files are read. patience limits the total delay after the first
	// change. With these delays, many writes in a short time, for example by a git checkout, cause only one read.
	quiet, patience time.Duration
	// poll is the interval at which the folder is read even if no change was reported. Polling is necessary because
	// symbolic links may point to files that are not watched.
	poll time.Duration
	// retry is the poll interval while the folder cannot be read.
	retry time.Duration
}

var defaultPace = pace{
	quiet: 100 * time.Millisecond, patience: time.Second, poll: 10 * time.Second, retry: 2 * time.Second,
}

// watcher waits for changes in directories. It polls if the operating system does not report changes.
type watcher struct {
	notify *fsnotify.Watcher
	events <-chan fsnotify.Event
	errors <-chan error
	failed bool
	log    *zap.Logger
}

func newWatcher(log *zap.Logger) *watcher {
	w := &watcher{log: log}
	notify, err := fsnotify.NewWatcher()
	if err != nil {
		w.complain(err)
		return w
	}
	w.notify, w.events, w.errors = notify, notify.Events, notify.Errors
	return w
}

func (w *watcher) close() {
	if w.notify != nil {
		_ = w.notify.Close()
	}
}

// add starts watching a directory. It must be called again if the directory was replaced with another one, and may be
// called again at any time.
func (w *watcher) add(dir string) {
	if w.notify == nil {
		return
	}
	if err := w.notify.Add(dir); err != nil {
		w.complain(err)
	}
}

func (w *watcher) keepOnly(dirs map[string]bool) {
	if w.notify == nil {
		return
	}
	for _, dir := range w.notify.WatchList() {
		if !dirs[dir] {
			_ = w.notify.Remove(dir)
		}
	}
}

func (w *watcher) complain(err error) {
	if !w.failed {
		w.log.Warn("cannot watch the manifests for changes: reading them every few seconds instead", zap.Error(err))
	}
	w.failed = true
}

// wait waits until the folder should be read again. failed means that the last read has failed. It returns false if the
// context ends.
func (w *watcher) wait(ctx context.Context, p pace, failed bool) bool {
	interval := p.poll
	if failed {
		interval = p.retry
	}
	poll := time.NewTimer(interval)
	defer poll.Stop()
	for {
		select {
		case <-ctx.Done():
			return false
		case <-poll.C:
			return true
		case err := <-w.errors:
			w.complain(err)
			return w.waitQuiet(ctx, p)
		case event := <-w.events:
			if event.Op != fsnotify.Chmod {
				return w.waitQuiet(ctx, p)
			}
		}
	}
}

func (w *watcher) waitQuiet(ctx context.Context, p pace) bool {
	latest := time.NewTimer(p.patience)
	defer latest.Stop()
	quiet := time.NewTimer(p.quiet)
	defer quiet.Stop()
	for {
		select {
		case <-ctx.Done():
			return false
		case <-latest.C:
			return true
		case <-quiet.C:
			return true
		case <-w.events:
			quiet.Reset(p.quiet)
		}
	}
}
