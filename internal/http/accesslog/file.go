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

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/process/panics"
)

const (
	// maxWaiting is the maximum total size, in bytes, of the lines that wait to be written to one file.
	maxWaiting = 1 << 20
	// batchDelay is how long lines are collected before they are written, so that a busy file needs only few writes.
	batchDelay = 5 * time.Millisecond
	// fullBatch is the size, in bytes, at which the waiting lines are written without waiting for the rest of
	// batchDelay.
	fullBatch = 64 << 10
	// maxFlush is the maximum time that Flush waits for files that are slow to accept data.
	maxFlush = time.Second
	// checkInterval is the interval at which open files are checked for log rotation.
	checkInterval = time.Second
)

// Files holds the open log files. Files stay open when a configuration reload replaces the Logs that write to them.
type Files struct {
	mu   sync.Mutex
	open map[string]*File
	log  *zap.Logger
	// dropped is the number of lines that were dropped instead of written to their file.
	dropped atomic.Uint64
	// Collector exports the number of dropped lines as a metric.
	prometheus.Collector
}

// NewFiles returns a Files without open files. Errors when opening or writing files are logged to log.
func NewFiles(log *zap.Logger) *Files {
	f := &Files{open: map[string]*File{}, log: log}
	f.Collector = prometheus.NewCounterFunc(prometheus.CounterOpts{
		Name: "k8singress_access_log_dropped_lines_total",
		Help: "The number of access log lines that were dropped because they could not be written to their file " +
			"in time.",
	}, func() float64 { return float64(f.dropped.Load()) })
	return f
}

// Open returns the File for a log path, and creates the File if necessary. path is as in ir.AccessLog: the path of a
// file, or the address of a syslog server. The paths that the ingress-nginx image uses for standard output and standard
// error also work.
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

// Flush waits until all lines are written, but no longer than maxFlush.
func (f *Files) Flush() {
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(maxFlush); f.writing() && time.Now().Before(end); {
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

// File is a log file. It accepts lines from any goroutine, and writes them in its own goroutine.
type File struct {
	files *Files
	path  string
	// full wakes the writing goroutine when the waiting lines have reached the size fullBatch.
	full chan struct{}

	mu      sync.Mutex
	waiting []byte
	// writing is true while a goroutine writes to the file. Only this goroutine may access the fields below.
	writing bool
	lines   []byte
	out     io.Writer
	file    *os.File
	looked  time.Time
	failed  bool
}

// write appends a line to the waiting lines. The line is dropped if the size of all waiting lines would exceed
// maxWaiting.
func (f *File) write(line []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.waiting)+len(line) > maxWaiting {
		f.files.dropped.Add(1)
		return
	}
	f.waiting = append(f.waiting, line...)
	if len(f.waiting) >= fullBatch {
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

// run writes all waiting lines in one call, and repeats this until no lines are waiting.
func (f *File) run() {
	for f.gather(); f.take(); f.gather() {
		err := f.put(f.lines)
		if err != nil {
			f.files.dropped.Add(uint64(bytes.Count(f.lines, []byte{'\n'})))
			if !f.failed {
				f.files.log.Error("cannot write the access log; lines are dropped", zap.String("path", f.path),
					zap.Error(err))
			}
		}
		f.failed = err != nil
	}
}

// gather waits until the size of the waiting lines reaches fullBatch, but no longer than batchDelay.
func (f *File) gather() {
	select {
	case <-time.After(batchDelay):
	case <-f.full:
	}
}

// take moves the waiting lines to f.lines. If no lines are waiting, it returns false, and the calling goroutine must
// end. The next call of write then starts a new goroutine.
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

// reopen opens the file if it is not open. If the path refers to another file, as after log rotation, it opens this
// file instead.
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
	if f.file != nil && time.Since(f.looked) < checkInterval {
		return nil
	}
	f.looked = time.Now()
	if f.file != nil {
		if f.isThere() {
			return nil
		}
		_ = f.file.Close() // All data has been written, so an error does not matter.
		f.file = nil
	}
	file, err := os.OpenFile(f.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o640)
	if err != nil {
		return fmt.Errorf("opening the file: %w", err)
	}
	if info, err := file.Stat(); err == nil && info.IsDir() {
		return errors.Join(errors.New("it is a directory"), file.Close())
	}
	f.file, f.out = file, file
	return nil
}

// isThere reports whether the path still refers to the open file.
func (f *File) isThere() bool {
	named, err := os.Stat(f.path)
	if err != nil {
		return false
	}
	own, err := f.file.Stat()
	return err == nil && os.SameFile(named, own)
}
