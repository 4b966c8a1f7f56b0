package proxy

import (
	"bytes"
	"errors"
	"io"
	"sync"

	"github.com/k8singress/k8singress/internal/process/budget"
	"github.com/k8singress/k8singress/internal/process/panics"
)

// responseBuffer buffers a response so that a slow client does not occupy the connection to the endpoint. Data that
// does not fit into memory is written to an unnamed temporary file. If the file is full or there is no file, the
// response is not read further until the client has accepted data.
type responseBuffer struct {
	// namespace is the namespace of the backend. The memory and the file count towards the limits of this namespace.
	namespace string

	mu      sync.Mutex
	changed *sync.Cond
	// memory buffers up to maxMemory bytes of the response; further bytes are written to file. maxMemory bytes are
	// reserved in quota, the namespace's share of the memory budget. If the budget was exhausted, maxMemory is 0, and
	// all bytes are written to file. If there is no file either, memory holds one part of the response at a time.
	memory    bytes.Buffer
	maxMemory int
	quota     *budget.Share
	file      *spool
	// full is true if no more data can be written to the file, or if the file could not be created.
	full bool
	// written and read are the offsets of the next write to the file and of the next read from it.
	written, read int64
	// err is the error that ended the reading of the response. It is io.EOF if the response was read completely, and
	// nil while the response is being read.
	err    error
	closed bool
}

const (
	// maxResponseMemory is the maximum number of bytes of a response that are buffered in memory.
	maxResponseMemory = 64 << 10
	// maxResponseFile is the maximum size of the file of a response, in bytes. It is nginx's default for
	// proxy_max_temp_file_size.
	maxResponseFile = 1 << 30
)

// newResponseBuffer returns a responseBuffer and starts a goroutine that fills it with the response from source, until
// the end of the response or an error. namespace is the namespace of the backend. The caller must call close.
func newResponseBuffer(namespace string, source io.Reader) *responseBuffer {
	r := &responseBuffer{namespace: namespace, quota: bodyMemory().Share(namespace, "")}
	if r.quota.Take(maxResponseMemory) {
		r.maxMemory = maxResponseMemory
	}
	r.changed = sync.NewCond(&r.mu)
	panics.Go("proxy/answer", func() { r.fill(source) }, func() { r.setEnd(errPanicked) })
	return r
}

func (r *responseBuffer) fill(source io.Reader) {
	buffer := large.Get()
	err := r.fillWith(buffer.Bytes(), source)
	buffer.Release()
	r.setEnd(err)
}

func (r *responseBuffer) fillWith(buffer []byte, source io.Reader) error {
	for {
		n, err := source.Read(buffer)
		if stored := r.store(buffer[:n]); stored != nil {
			err = stored
		}
		if err != nil {
			return err
		}
	}
}

// store buffers a part of the response in r.memory or r.file. It waits while both are full. It returns an error if the
// responseBuffer is closed.
func (r *responseBuffer) store(piece []byte) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for len(piece) > 0 && !r.closed {
		switch {
		case r.written == 0 && (r.memory.Len()+len(piece) <= r.maxMemory || r.memory.Len() == 0 && !r.hasFile()):
			r.memory.Write(piece)
			piece = nil
		case r.hasFile() && r.written+int64(len(piece)) <= maxResponseFile:
			n, err := r.file.WriteAt(piece, r.written)
			r.written += int64(n)
			piece, r.full = piece[n:], err != nil
		default:
			r.changed.Wait()
		}
	}
	r.changed.Broadcast()
	if r.closed {
		return io.ErrClosedPipe
	}
	return nil
}

func (r *responseBuffer) hasFile() bool {
	if r.file == nil && !r.full {
		var err error
		r.file, err = newSpool(r.namespace)
		r.full = err != nil
	}
	return !r.full
}

func (r *responseBuffer) setEnd(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.err = err
	r.changed.Broadcast()
}

// Read returns the next part of the buffered response. It waits until there is data.
func (r *responseBuffer) Read(b []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for {
		switch {
		case r.memory.Len() > 0:
			n, err := r.memory.Read(b)
			r.changed.Broadcast()
			return n, err
		case r.read < r.written:
			n, err := r.file.ReadAt(b[:min(int64(len(b)), r.written-r.read)], r.read)
			if r.read += int64(n); r.read == r.written {
				// All data in the file has been read, so the file can be filled from its start again.
				r.read, r.written, r.full = 0, 0, false
			}
			r.changed.Broadcast()
			if errors.Is(err, io.EOF) {
				err = nil
			}
			return n, err
		case r.err != nil:
			return 0, r.err
		}
		r.changed.Wait()
	}
}

// close releases the memory and the file, with the data that they contain. If the response is still being read from the
// endpoint, close calls stop to interrupt this, and waits until the read has ended.
func (r *responseBuffer) close(stop func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	r.changed.Broadcast()
	for r.err == nil {
		r.mu.Unlock()
		stop()
		r.mu.Lock()
		if r.err == nil {
			r.changed.Wait()
		}
	}
	r.quota.Give(int64(r.maxMemory))
	if r.file != nil {
		_ = r.file.Close()
	}
}
