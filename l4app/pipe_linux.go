package l4app

import (
	"errors"
	"net"
	"sync"
	"syscall"

	"github.com/k8singress/k8singress/internal/process/budget"
)

const (
	// spliced is the maximum number of bytes to move with one splice call. It is also the requested size of a pipe. For
	// an unprivileged process, Linux limits this size: after 64 pipes of this size, further pipes are smaller.
	spliced = 1 << 20
	// idlePipes is the maximum number of idle pipes that are kept for reuse. Each pipe uses two file descriptors.
	idlePipes = 64
	// withoutWaiting is the flag SPLICE_F_NONBLOCK. It makes splice return EAGAIN instead of blocking.
	withoutWaiting = 2
)

// pipe is a kernel pipe. splice uses it to move bytes from one socket to another without copying them into this
// process. Each direction of a connection needs a pipe, but only while there are bytes in it. So idle connections use
// no pipes, and idle pipes are empty.
type pipe struct{ in, out int }

var pipes = make(chan pipe, idlePipes)

// pipeShare limits the file descriptors of pipes. They are counted separately from the file descriptors of connections,
// because a client that does not read keeps a pipe in use. If no pipe is available, the bytes are copied without a
// pipe.
var pipeShare = sync.OnceValue(func() *budget.Share { return budget.Pipes.Budget().Share("", "") })

// perPipe is the number of file descriptors per pipe.
const perPipe = 2

func takePipe() (pipe, error) {
	select {
	case p := <-pipes:
		return p, nil
	default:
	}
	if !pipeShare().Take(perPipe) {
		return pipe{}, syscall.EMFILE
	}
	var ends [2]int
	if err := syscall.Pipe2(ends[:], syscall.O_CLOEXEC|syscall.O_NONBLOCK); err != nil {
		pipeShare().Give(perPipe)
		return pipe{}, err
	}
	// Ignore the error: if the pipe is smaller than requested, only more splice calls are needed.
	_, _, _ = syscall.Syscall(syscall.SYS_FCNTL, uintptr(ends[0]), syscall.F_SETPIPE_SZ, spliced)
	return pipe{in: ends[1], out: ends[0]}, nil
}

// give makes an empty pipe available for reuse. If there are already enough idle pipes, it closes the pipe instead.
func (p pipe) give() {
	select {
	case pipes <- p:
	default:
		p.close()
	}
}

func (p pipe) close() {
	_, _ = syscall.Close(p.in), syscall.Close(p.out)
	pipeShare().Give(perPipe)
}

// splicer moves the bytes that arrive on one TCP connection to another TCP connection.
type splicer struct {
	from, to syscall.RawConn
	note     func(int)
	pipe     pipe
	// full is the number of bytes in the pipe. moved is the number of bytes that the method fill has moved into the
	// pipe. err is the error of the last splice call.
	full, moved int
	err         error
	// readable and writable are the methods fill and drain. They are stored here to avoid an allocation for each call.
	readable, writable func(uintptr) bool
}

// splice moves bytes from one connection to another within the kernel, until EOF. After each write, it calls note with
// the number of bytes written. It returns errors.ErrUnsupported if the kernel cannot move the bytes. No bytes are lost
// in this case, and the caller must copy the remaining bytes itself.
func splice(to, from *net.TCPConn, note func(int)) error {
	source, err := from.SyscallConn()
	if err != nil {
		return err
	}
	destination, err := to.SyscallConn()
	if err != nil {
		return err
	}
	s := &splicer{from: source, to: destination, note: note}
	s.readable, s.writable = s.fill, s.drain
	for {
		if err := s.step(); err != nil || s.moved == 0 {
			return err
		}
	}
}

// step waits until the source connection has data, and then moves the available bytes to the destination.
func (s *splicer) step() error {
	if err := s.from.Read(s.readable); err != nil {
		return err
	}
	if s.err != nil || s.moved == 0 {
		return s.err
	}
	for s.full > 0 {
		err := s.to.Write(s.writable)
		if err == nil {
			err = s.err
		}
		if err != nil {
			// Do not reuse the pipe: it still contains bytes, which would be sent on another connection.
			s.pipe.close()
			return writeClosedError{err}
		}
	}
	s.pipe.give()
	return nil
}

// fill moves bytes from the source socket into the pipe. It returns false if the socket has no data yet: it must then
// be called again when data arrives.
func (s *splicer) fill(socket uintptr) bool {
	if s.pipe, s.err = takePipe(); s.err != nil {
		s.err = errors.ErrUnsupported
		return true
	}
	moved, err := transfer(s.pipe.in, int(socket))
	s.moved, s.full, s.err = moved, moved, err
	if moved == 0 {
		s.pipe.give()
	}
	switch {
	case errors.Is(err, syscall.EAGAIN):
		s.err = nil
		return false
	case errors.Is(err, syscall.EINVAL), errors.Is(err, syscall.ENOSYS), errors.Is(err, syscall.EPERM):
		// The kernel cannot splice from this type of socket, or this process is not allowed to use splice. Let the
		// caller copy the bytes instead.
		s.err = errors.ErrUnsupported
	}
	return true
}

// drain moves bytes from the pipe to the destination socket. It returns false if the socket accepts no more bytes now:
// it must then be called again when the socket is writable.
func (s *splicer) drain(socket uintptr) bool {
	for s.full > 0 {
		moved, err := transfer(int(socket), s.pipe.out)
		if moved > 0 {
			s.full -= moved
			s.note(moved)
			continue
		}
		if errors.Is(err, syscall.EAGAIN) {
			s.err = nil
			return false
		}
		s.err = err
		return true
	}
	return true
}

func transfer(to, from int) (int, error) {
	for {
		n, err := syscall.Splice(from, nil, to, nil, spliced, withoutWaiting)
		if !errors.Is(err, syscall.EINTR) {
			return max(int(n), 0), err
		}
	}
}
