package proxy

import (
	"errors"
	"io"
	"os"
)

// spool is a file for what does not fit into memory. It has no name, and ends with its last user.
type spool struct {
	file *os.File
	size int64
}

var errNoRoom = errors.New("there is no room for more files")

func newSpool() (*spool, error) {
	file, err := os.CreateTemp("", "k8singress-body-")
	if err != nil {
		return nil, err
	}
	if err := os.Remove(file.Name()); err != nil {
		_ = file.Close()
		return nil, err
	}
	return &spool{file: file}, nil
}

// WriteAt is io.WriterAt. It returns an error when there is no room.
func (s *spool) WriteAt(b []byte, at int64) (int, error) {
	if more := at + int64(len(b)) - s.size; more > 0 {
		if !files.take(more) {
			return 0, errNoRoom
		}
		s.size += more
	}
	return s.file.WriteAt(b, at)
}

// ReadAt is io.ReaderAt.
func (s *spool) ReadAt(b []byte, at int64) (int, error) { return s.file.ReadAt(b, at) }

// Close is for once.
func (s *spool) Close() error {
	files.give(s.size)
	return s.file.Close()
}

// fill copies a source into the file. What was read and found no room is left over; the rest of the source is still there.
// An error is the source's.
func (s *spool) fill(source io.Reader) (size int64, left []byte, err error) {
	buffer := large.Get()
	size, left, err = s.fillWith(buffer.Bytes(), source)
	buffer.Release()
	return size, left, err
}

func (s *spool) fillWith(buffer []byte, source io.Reader) (size int64, left []byte, err error) {
	for {
		n, err := source.Read(buffer)
		written, full := s.WriteAt(buffer[:n], size)
		size += int64(written)
		switch {
		case full != nil:
			return size, append([]byte{}, buffer[written:n]...), nil
		case errors.Is(err, io.EOF):
			return size, nil, nil
		case err != nil:
			return size, nil, err
		}
	}
}
