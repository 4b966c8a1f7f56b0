package proxy

import (
	"bytes"
	"errors"
	"io"
	"sync"

	"github.com/k8singress/k8singress/internal/budget"
	"github.com/k8singress/k8singress/internal/panics"
)

// elastic takes an answer off an endpoint as fast as it comes, and gives it away as slowly as it is wanted. What does not fit
// into memory goes into a file without a name; without a place for one, the endpoint has to wait.
type elastic struct {
	// namespace is the namespace of the backend, which the memory and the file count for.
	namespace string

	mu      sync.Mutex
	changed *sync.Cond
	// memory has up to inMemory bytes, which are taken from room. Without room, inMemory is 0: then it has one piece
	// at a time, and only if there is no file.
	memory   bytes.Buffer
	inMemory int
	room     *budget.Share
	file     *spool
	// full says that there is no room for more in the file, or none for a file.
	full bool
	// written and read are how far the file is.
	written, read int64
	// err is how the answer ended.
	err    error
	closed bool
}

const (
	// elasticMemory is how much of an answer is held in memory.
	elasticMemory = 64 << 10
	// elasticFile is how large a file may be: nginx's proxy_max_temp_file_size.
	elasticFile = 1 << 30
)

// newElastic starts reading the response of a backend of a namespace from source, until its end or an error. The
// caller calls end.
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

// store waits for room, and keeps a piece.
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

// Read gives the next piece away, and waits for it.
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
				// There may be room again, and be it that of this file.
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

// end lets go of what is left, once the source is not read any more. stop ends that.
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
