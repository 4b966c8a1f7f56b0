package l4app

import (
	"errors"
	"net"
	"sync"
	"syscall"

	"github.com/k8singress/k8singress/internal/budget"
)

const (
	// spliced is how many bytes one call of splice moves at most, and the size that pipes are asked for. The kernel gives a
	// process without privileges smaller ones once it has 64 of these.
	spliced = 1 << 20
	// idlePipes is how many pipes are kept for later. Each one costs two file descriptors.
	idlePipes = 64
	// withoutWaiting is SPLICE_F_NONBLOCK: a socket that has nothing to say says so.
	withoutWaiting = 2
)

// pipe is where bytes are on their way from one socket to another without coming into this process. It is empty while
// nobody has it, and belongs to one direction of one connection only while bytes are in it, so that connections on which
// nothing is said have none.
type pipe struct{ in, out int }

var pipes = make(chan pipe, idlePipes)

// pipeShare is where the descriptors of pipes come from. They have a budget of their own: a connection whose bytes find no pipe copies
// them, and a client who takes no bytes holds one.
var pipeShare = sync.OnceValue(func() *budget.Share { return budget.Pipes.Budget().Share("", "") })

// perPipe is how many file descriptors a pipe costs.
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
	// A smaller one works, with more calls.
	_, _, _ = syscall.Syscall(syscall.SYS_FCNTL, uintptr(ends[0]), syscall.F_SETPIPE_SZ, spliced)
	return pipe{in: ends[1], out: ends[0]}, nil
}

// give takes a pipe back that is empty.
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

// splicer moves what one TCP connection says to another one.
type splicer struct {
	from, to syscall.RawConn
	note     func(int)
	pipe     pipe
	// full is how much is in the pipe; moved and err are what became of the last call.
	full, moved int
	err         error
	// readable and writable are fill and drain as functions, which are made once.
	readable, writable func(uintptr) bool
}

// splice moves bytes in the kernel until the source has said all, and tells of each lot that has gone. With
// errors.ErrUnsupported nothing is lost, and somebody has to copy the rest.
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

// step moves what there is to be moved.
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
			// What is in it would come out at somebody else's.
			s.pipe.close()
			return deafError{err}
		}
	}
	s.pipe.give()
	return nil
}

// fill moves from the source into a pipe. It returns false when there is nothing yet.
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
		// Not for this kind of socket, or not for us.
		s.err = errors.ErrUnsupported
	}
	return true
}

// drain moves from the pipe to the destination. It returns false when that takes nothing more for now.
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
