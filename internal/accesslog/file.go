package accesslog

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/k8singress/k8singress/internal/ir"
	"github.com/k8singress/k8singress/internal/panics"
)

const (
	// mostWaiting is how many bytes of lines wait for the file at most.
	mostWaiting = 1 << 20
	// gather is how long lines wait for others, so that a busy file has few writes, and no goroutine for each line.
	gather = 5 * time.Millisecond
	// enough is how many bytes of lines do not wait for others.
	enough = 64 << 10
	// mostFlush is how long Flush waits for files that take nothing.
	mostFlush = time.Second
	// lookAgain is how often a file is looked for by its name: whoever rotates logs has renamed it.
	lookAgain = time.Second
)

// Files are the open files of logs. They outlive the logs that write to them.
type Files struct {
	mu   sync.Mutex
	open map[string]*File
	log  *zap.Logger
	// dropped counts lines that were not written.
	dropped atomic.Uint64
	// Collector has their number.
	prometheus.Collector
}

// NewFiles returns none. What goes wrong with a file is said to log.
func NewFiles(log *zap.Logger) *Files {
	f := &Files{open: map[string]*File{}, log: log}
	f.Collector = prometheus.NewCounterFunc(prometheus.CounterOpts{
		Name: "k8singress_access_log_dropped_lines_total", Help: "How many lines of the access log were dropped, because their file took none.",
	}, func() float64 { return float64(f.dropped.Load()) })
	return f
}

// Open returns the file of a path, as an ir.AccessLog has it, which is made if there is none. The standard output and the standard error
// have the paths that they have in the image of ingress-nginx.
func (f *Files) Open(path string) *File {
	f.mu.Lock()
	defer f.mu.Unlock()
	if file := f.open[path]; file != nil {
		return file
	}
	file := &File{files: f, path: path, full: make(chan struct{}, 1)}
	f.open[path] = file
	return file
}

// Flush waits until the lines that have come are written, but not for long.
func (f *Files) Flush() {
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(mostFlush); f.writing() && time.Now().Before(end); {
		<-tick.C
	}
}

func (f *Files) writing() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, file := range f.open {
		if file.isWriting() {
			return true
		}
	}
	return false
}

// File takes lines from any goroutine, and writes them in another one.
type File struct {
	files *Files
	path  string
	// full says that there are enough lines to write.
	full chan struct{}

	mu      sync.Mutex
	waiting []byte
	// writing says that there is a goroutine that writes. What follows belongs to it.
	writing bool
	lines   []byte
	out     io.Writer
	file    *os.File
	looked  time.Time
	failed  bool
}

// write takes a line, or drops it.
func (f *File) write(line []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.waiting)+len(line) > mostWaiting {
		f.files.dropped.Add(1)
		return
	}
	f.waiting = append(f.waiting, line...)
	if len(f.waiting) >= enough {
		select {
		case f.full <- struct{}{}:
		default:
		}
	}
	if !f.writing {
		f.writing = true
		panics.Loop("accesslog/file", f.run)
	}
}

func (f *File) isWriting() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.writing
}

// run writes what has come, all of it at once, until nothing more comes.
func (f *File) run() {
	for f.gather(); f.take(); f.gather() {
		err := f.put(f.lines)
		if err != nil {
			f.files.dropped.Add(uint64(bytes.Count(f.lines, []byte{'\n'})))
			if !f.failed {
				f.files.log.Error("cannot write the access log: lines are dropped", zap.String("path", f.path), zap.Error(err))
			}
		}
		f.failed = err != nil
	}
}

// gather waits for more lines, but not for long, and not where there are enough.
func (f *File) gather() {
	select {
	case <-time.After(gather):
	case <-f.full:
	}
}

// take makes lines of what waits. It returns false where there is nothing; another goroutine may write then.
func (f *File) take() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lines, f.waiting = f.waiting, f.lines[:0]
	f.writing = len(f.lines) > 0
	return f.writing
}

func (f *File) put(lines []byte) error {
	if err := f.reopen(); err != nil {
		return err
	}
	_, err := f.out.Write(lines)
	return err
}

// reopen opens the file, and opens it again where another one has its name by now.
func (f *File) reopen() error {
	switch f.path {
	case "", ir.LogStdout, "/dev/stdout":
		f.out = os.Stdout
		return nil
	case "/var/log/nginx/error.log", "/dev/stderr":
		f.out = os.Stderr
		return nil
	}
	if server, ok := strings.CutPrefix(f.path, ir.Syslog); ok {
		if f.out == nil {
			f.out = newSyslog(server)
		}
		return nil
	}
	if f.file != nil && time.Since(f.looked) < lookAgain {
		return nil
	}
	f.looked = time.Now()
	if f.file != nil {
		if f.isThere() {
			return nil
		}
		_ = f.file.Close() // All of it has been written.
		f.file = nil
	}
	file, err := os.OpenFile(f.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o640)
	if err != nil {
		return fmt.Errorf("opening it: %w", err)
	}
	if info, err := file.Stat(); err == nil && info.IsDir() {
		return errors.Join(errors.New("it is a folder"), file.Close())
	}
	f.file, f.out = file, file
	return nil
}

// isThere says whether the file still has its name.
func (f *File) isThere() bool {
	named, err := os.Stat(f.path)
	if err != nil {
		return false
	}
	own, err := f.file.Stat()
	return err == nil && os.SameFile(named, own)
}
