package proxy

import (
	"bytes"
	"errors"
	"io"
	"sync"

	"github.com/k8singress/k8singress/internal/process/budget"
	"github.com/k8singress/k8singress/internal/process/panics"
)

// elastic buffers a response so that a slow client does not hold the endpoint's connection. Data that does not fit into
// memory goes into an unnamed file. If there is no room in a file, reading from the endpoint waits.
type elastic struct {
	// namespace is the namespace of the backend. The memory and the file are charged to it.
	namespace string

	mu      sync.Mutex
	changed *sync.Cond
	// memory holds up to inMemory bytes, which are taken from room. If the budget is exhausted, inMemory is 0; memory
	// then holds one piece at a time, and only if there is no file.
	memory   bytes.Buffer
	inMemory int
	room     *budget.Share
	file     *spool
	// full means that there is no room for more data in the file, or that there is no file.
	full bool
	// written and read are the offsets of the next write to the file and of the next read from it.
	written, read int64
	// err is the result of reading the response, io.EOF at its end. It is nil while the response is being read.
	err    error
	closed bool
}

const (
	// elasticMemory is the number of bytes of a response that are buffered in memory.
	elasticMemory = 64 << 10
	// elasticFile is the maximum size of a file: nginx's proxy_max_temp_file_size.
	elasticFile = 1 << 30
)

// newElastic starts reading the response of a backend in the namespace from source, until its end or an error. The
// caller must call end.
func newElastic(namespace string, source io.Reader) *elastic {
	e := &elastic{namespace: namespace, room: bodyMemory().Share(namespace, "")}
	if e.room.Take(elasticMemory) {
		e.inMemory = elasticMemory
	}
	e.changed = sync.NewCond(&e.mu)
	panics.Go("proxy/answer", func() { e.fill(source) }, func() { e.ended(errPanicked) })
	return e
}

func (e *elastic) fill(source io.Reader) {
	buffer := large.Get()
	err := e.fillWith(buffer.Bytes(), source)
	buffer.Release()
	e.ended(err)
}

func (e *elastic) fillWith(buffer []byte, source io.Reader) error {
	for {
		n, err := source.Read(buffer)
		if stored := e.store(buffer[:n]); stored != nil {
			err = stored
		}
		if err != nil {
			return err
		}
	}
}

// store buffers a piece. It waits until there is room.
func (e *elastic) store(piece []byte) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	for len(piece) > 0 && !e.closed {
		switch {
		case e.written == 0 && (e.memory.Len()+len(piece) <= e.inMemory || e.memory.Len() == 0 && !e.hasFile()):
			e.memory.Write(piece)
			piece = nil
		case e.hasFile() && e.written+int64(len(piece)) <= elasticFile:
			n, err := e.file.WriteAt(piece, e.written)
			e.written += int64(n)
			piece, e.full = piece[n:], err != nil
		default:
			e.changed.Wait()
		}
	}
	e.changed.Broadcast()
	if e.closed {
		return io.ErrClosedPipe
	}
	return nil
}

func (e *elastic) hasFile() bool {
	if e.file == nil && !e.full {
		var err error
		e.file, err = newSpool(e.namespace)
		e.full = err != nil
	}
	return !e.full
}

func (e *elastic) ended(err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.err = err
	e.changed.Broadcast()
}

// Read returns the next piece. It waits until there is data.
func (e *elastic) Read(b []byte) (int, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for {
		switch {
		case e.memory.Len() > 0:
			n, err := e.memory.Read(b)
			e.changed.Broadcast()
			return n, err
		case e.read < e.written:
			n, err := e.file.ReadAt(b[:min(int64(len(b)), e.written-e.read)], e.read)
			if e.read += int64(n); e.read == e.written {
				// The file is empty again, so it may have room.
				e.read, e.written, e.full = 0, 0, false
			}
			e.changed.Broadcast()
			if errors.Is(err, io.EOF) {
				err = nil
			}
			return n, err
		case e.err != nil:
			return 0, e.err
		}
		e.changed.Wait()
	}
}

// end discards the rest and releases the memory and the file. It calls stop to interrupt the source, and waits until
// the source is no longer read.
func (e *elastic) end(stop func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.closed = true
	e.changed.Broadcast()
	for e.err == nil {
		e.mu.Unlock()
		stop()
		e.mu.Lock()
		if e.err == nil {
			e.changed.Wait()
		}
	}
	e.room.Give(int64(e.inMemory))
	if e.file != nil {
		_ = e.file.Close()
	}
}
